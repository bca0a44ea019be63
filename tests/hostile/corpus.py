"""Read the cases below cases/, and make the folder that a learner hands in from each.

A case is a TOML file named after what it does. `kind` is cheat, accident or file; `why` says in a sentence what happens
and what is right; `status` and `points` (of 12) are the right verdict. The rest says what was handed in. Without any of
it that is an honest notebook, and each of these changes it, in this order:

- `answers`: sources of answer cells by grade id
- `repeat`: an answer that is a text many times over
- `edit`: keys of cells by grade id; `nbgrader` there changes the cell's marks
- `own`: cells of the learner's, each after the one named in `after`; with a `grade_id` it claims to be that cell
- `delete`, `order`: grade ids of cells that are gone, and of cells that now stand first
- `recipe`: a function of recipes.py that turns the notebook into bytes
- `file`: a file beside the case, handed in as it is
- `folder`: names of files and what they are: honest, stub, answers (the notebook made so far), data, pipe, or a link
  to itself, to a peer's notebook or to the instructor's source

`stock` gives the reason why it is not run with stock nbgrader. `open`
says why the engine is not right about it yet; with `run = false` it is then not even tried.
"""

import copy
import json
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from grader.engine.restore import Assignment
from grader.notebooks import grade_id, read_notebook, without_hidden_tests

HERE = Path(__file__).resolve().parent
UNIT = "small"
SOURCE = HERE / "assignment" / UNIT
MOST = 12.0


@dataclass(frozen=True)
class Case:
    """A submission, and what is right for it."""

    name: str
    kind: str
    why: str
    status: str
    points: float
    stock: str
    open: str
    run: bool
    more: dict[str, Any]

    def hand_in(self, folder: Path, peer: Path, source: Path) -> None:
        """Write what the learner hands in into a folder, which is made; links lead to the other two files."""
        folder.mkdir(parents=True)
        if "folder" in self.more:
            links = {
                "link to itself": f"{UNIT}.ipynb",
                "link to a peer": str(peer),
                "link to the source": str(source),
            }
            for name, what in self.more["folder"].items():
                self._put(folder / name, what, links)
        elif "file" in self.more:
            (folder / f"{UNIT}.ipynb").write_bytes((HERE / "cases" / self.more["file"]).read_bytes())
        else:
            (folder / f"{UNIT}.ipynb").write_bytes(self.data())

    def data(self) -> bytes:
        """The notebook that is handed in."""
        from tests.hostile import recipes

        notebook = self._notebook()
        if "recipe" in self.more:
            made: bytes = getattr(recipes, self.more["recipe"])(notebook)
            return made
        return as_bytes(notebook)

    def _put(self, path: Path, what: str, links: dict[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if what in links:
            path.symlink_to(links[what])
        elif what == "pipe":
            os.mkfifo(path)
        elif what == "data":
            path.write_text("1,2,3\n")
        else:
            made = {"honest": honest, "stub": stub, "answers": self._notebook}[what]()
            path.write_bytes(as_bytes(made))

    def _notebook(self) -> Any:
        notebook = honest()
        cells = {str(grade_id(cell)): cell for cell in notebook["cells"] if grade_id(cell)}
        for name, source in self.more.get("answers", {}).items():
            cells[name]["source"] = source
        if "repeat" in self.more:
            asked = self.more["repeat"]
            cells[asked["answer"]]["source"] = asked["text"] * asked["times"]
        for own in self.more.get("own", []):
            self._insert(notebook, own)
        for name, changes in self.more.get("edit", {}).items():
            marks = changes.get("nbgrader", {})
            cells[name]["metadata"]["nbgrader"] |= marks
            cells[name] |= {key: value for key, value in changes.items() if key != "nbgrader"}
            if cells[name]["cell_type"] != "code":
                cells[name].pop("outputs", None)
                cells[name].pop("execution_count", None)
        gone = self.more.get("delete", [])
        kept = [cell for cell in notebook["cells"] if grade_id(cell) not in gone]
        ahead = [cells[name] for name in self.more.get("order", [])]
        notebook["cells"] = ahead + [cell for cell in kept if not any(cell is other for other in ahead)]
        return notebook

    def _insert(self, notebook: Any, own: dict[str, Any]) -> None:
        """Put a cell of the learner's after another one, and after those that were put there before."""
        cells = notebook["cells"]
        place = next(n for n, cell in enumerate(cells) if grade_id(cell) == own["after"]) + 1
        while place < len(cells) and cells[place]["metadata"].get("own"):
            place += 1
        metadata: dict[str, Any] = {"own": True}
        if "grade_id" in own:
            model = next(cell for cell in cells if grade_id(cell) == own["grade_id"])
            metadata["nbgrader"] = dict(model["metadata"]["nbgrader"])
        cells.insert(
            place,
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"own-{len(cells)}",
                "metadata": metadata,
                "outputs": [],
                "source": own["source"],
            },
        )


@cache
def assignment() -> Assignment:
    """The small exercise as the engine grades it."""
    beside = tuple((path.name, path.read_bytes()) for path in sorted(SOURCE.iterdir()) if path.suffix != ".ipynb")
    return Assignment(UNIT, read_notebook(SOURCE / f"{UNIT}.ipynb"), beside)


def honest() -> Any:
    """The notebook of a learner who has every answer right; plain dictionaries, to be changed at will."""
    notebook = copy.deepcopy(json.loads(json.dumps(assignment().reference)))
    for cell in notebook["cells"]:
        if grade_id(cell) in assignment().steps:
            lines = cell["source"].splitlines(keepends=True)
            cell["source"] = "".join(line for line in lines if "### " not in line)
        else:
            cell["source"] = without_hidden_tests(cell["source"])
    return notebook


def stub() -> Any:
    """The notebook as it was given out."""
    notebook = honest()
    for cell in notebook["cells"]:
        if grade_id(cell) in assignment().steps:
            cell["source"] = "# YOUR CODE HERE\nraise NotImplementedError()"
    return notebook


def as_bytes(notebook: Any) -> bytes:
    """A notebook as Jupyter saves it; half characters stay what they are, as escapes."""
    return json.dumps(notebook, indent=1, sort_keys=True).encode("ascii") + b"\n"


@cache
def cases() -> tuple[Case, ...]:
    """Every case, by name."""
    found = []
    for path in sorted((HERE / "cases").glob("*.toml")):
        more = tomllib.loads(path.read_text(encoding="utf-8"))
        found.append(
            Case(
                name=path.stem,
                **{key: more.pop(key) for key in ("kind", "why", "status")},
                points=float(more.pop("points")),
                stock=more.pop("stock", ""),
                open=more.pop("open", ""),
                run=more.pop("run", True),
                more=more,
            )
        )
    return tuple(found)
