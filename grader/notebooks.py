"""Read and write notebook files, and look at nbgrader's marks on their cells."""

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = [
    "FLAG_KEY",
    "HIDDEN_KEY",
    "answer_ids",
    "checked_ids",
    "grade_id",
    "is_hidden",
    "read_notebook",
    "steps",
    "without_hidden_tests",
    "write_notebook",
]

FLAG_KEY = "ffn-flags"
"""Key in an answer cell's metadata under which a graded notebook keeps what an instructor should look at."""

HIDDEN_KEY = "ffn-hidden"
"""Key in a test cell's metadata that says of a graded notebook: what is shown there came out of hidden tests."""

_BEGIN = "BEGIN HIDDEN TESTS"
_HIDDEN = re.compile(rf"^[^\n]*{_BEGIN}.*?(?:^[^\n]*END HIDDEN TESTS[^\n]*\n?|\Z)", re.DOTALL | re.MULTILINE)


def read_notebook(path: Path) -> Any:
    """A notebook file of the course, in the current format."""
    import nbformat

    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def write_notebook(notebook: Any, path: Path) -> None:
    """Write a notebook file, checked against the format."""
    import nbformat

    nbformat.validate(notebook)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def grade_id(cell: Any) -> str | None:
    """The id that nbgrader knows a cell by, or None for a cell that it does not."""
    name = _marks(cell).get("grade_id")
    return name if isinstance(name, str) else None


def answer_ids(notebook: Any) -> list[str]:
    """Ids of the cells that a learner answers in, in order."""
    return [cell["metadata"]["nbgrader"]["grade_id"] for cell in notebook["cells"] if _is_answer(cell)]


def steps(notebook: Any) -> dict[str, list[str]]:
    """For each answer cell in code the ids of the test cells that follow it, up to the next answer, in order."""
    found: dict[str, list[str]] = {}
    current = ""
    for cell in notebook["cells"]:
        name, marks = grade_id(cell), _marks(cell)
        if name is None or cell["cell_type"] != "code":
            continue
        if marks.get("solution"):
            current = name
            found[current] = []
        elif marks.get("grade") and current:
            found[current].append(name)
    return found


def is_hidden(cell: Any) -> bool:
    """Whether a cell of a reference notebook holds hidden tests."""
    return _BEGIN in cell["source"]


def without_hidden_tests(source: str) -> str:
    """The source of a reference notebook's cell as a learner has it; one without an end mark goes to the end."""
    # Most cells have none, and the pattern would look for it at each of their lines.
    return (_visible(source) if _BEGIN in source else source).rstrip("\n")


def checked_ids(outputs: Any) -> list[str]:
    """Ids of the published values whose lines stand in a cell's outputs, in order, each once."""
    from ffn.published import CHECK_KEY

    records = [output.get("metadata", {}).get(CHECK_KEY, {}) for output in outputs]
    return list(dict.fromkeys(str(record["id"]) for record in records if "id" in record))


@lru_cache(maxsize=500)
def _visible(source: str) -> str:
    """A cell of the course's own without its hidden tests; the same for every learner."""
    return _HIDDEN.sub("", source)


def _marks(cell: Any) -> Any:
    marks = cell["metadata"].get("nbgrader")
    return marks if isinstance(marks, dict) else {}


def _is_answer(cell: Any) -> bool:
    return bool(_marks(cell).get("solution"))
