"""Read and write notebook files, and look at nbgrader's marks on their cells."""

from pathlib import Path
from typing import Any

__all__ = ["answer_ids", "grade_id", "read_notebook", "write_notebook"]


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
    name = cell["metadata"].get("nbgrader", {}).get("grade_id")
    return name if isinstance(name, str) else None


def answer_ids(notebook: Any) -> list[str]:
    """Ids of the cells that a learner answers in, in order."""
    return [cell["metadata"]["nbgrader"]["grade_id"] for cell in notebook["cells"] if _is_answer(cell)]


def _is_answer(cell: Any) -> bool:
    return bool(cell["metadata"].get("nbgrader", {}).get("solution"))
