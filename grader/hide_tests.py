"""A preprocessor for nbgrader's feedback: what a learner gets back shows no hidden test.

nbgrader's own feedback shows the graded notebook as it ran, with the source of hidden tests and, in tracebacks,
the lines around the one that failed. An error of a hidden test may also carry text that the learner's code chose, and
so what it was asked: of such an error only what stands in the test's own source is shown.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from nbgrader.preprocessors import NbGraderPreprocessor

from grader.engine.store import RECORD_KEY
from grader.notebooks import HIDDEN_KEY

__all__ = ["BEGIN", "END", "FAILED", "HideTests", "told", "without_hidden"]

BEGIN = "BEGIN HIDDEN TESTS"
END = "END HIDDEN TESTS"
NOTE = "# (hidden tests ran here)"
FAILED = "A hidden test of this step does not pass."

_KIND = re.compile(r"\A(?:AssertionError|StepFailedError): ")
_UNKNOWN = "…"
_NOT_WRITTEN = ("is not written yet; put your code in place of raise NotImplementedError()", "This step")
# A sentence's fixed parts; between each two of them stands a value.
_Sentence: TypeAlias = tuple[str, ...]
_OF_THE_ENGINE = {"TimedOut", "SessionLost", "NotRun", "Withheld"}


def without_hidden(source: str) -> str:
    """A cell's source with each hidden region replaced by a note; one that is never closed goes to the end."""
    kept, hidden = [], False
    for line in source.splitlines():
        if BEGIN in line:
            hidden = True
            kept.append(NOTE)
        elif END in line:
            hidden = False
        elif not hidden:
            kept.append(line)
    return "\n".join(kept)


def told(source: str, message: str) -> str:
    """What a learner is told of a hidden test's message: a sentence that its source has, or that it does not pass.

    Values that the test puts into a sentence are left out.
    """
    said = _KIND.sub("", message)
    return next((_UNKNOWN.join(parts) for parts in _sentences(source) if _is(parts, said)), FAILED)


def _is(parts: _Sentence, said: str) -> bool:
    """Whether a text has these parts, in order, and anything in between."""
    if len(parts) == 1:
        return said == parts[0]
    if not (said.startswith(parts[0]) and said.endswith(parts[-1])):
        return False
    place, end = len(parts[0]), len(said) - len(parts[-1])
    for part in parts[1:-1]:
        place = said.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return place <= end


def _sentences(source: str) -> Iterator[_Sentence]:
    """What a test may say: its own texts, and what `agree` makes of them."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return
    names = sorted({node.id for node in nodes if isinstance(node, ast.Name)})
    texts = sorted({("other input",)} | {found for node in nodes if (found := _text(node))})
    what, step = _NOT_WRITTEN
    for name in (step, *names):
        yield (f"{name} {what}.",)
        yield (f"{name} changes the arguments that it is given; work on a copy.",)
    for text in texts:
        yield text
        for name in names:
            for verb, end in _AGREE:
                yield _around(f"{name} {verb} ", text, end)


_AGREE = (
    ("is wrong on", "."),
    ("overflows, or computes an undefined value, on", "."),
    ("returns nothing on", "; give the result back with return."),
)


def _around(start: str, text: _Sentence, end: str) -> _Sentence:
    first, *others = text
    parts = [start + first, *others]
    return (*parts[:-1], parts[-1] + end)


def _text(node: ast.AST) -> _Sentence | None:
    """A text of the source."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 3:
        return (node.value,)
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [""]
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts[-1] += str(part.value)
        else:
            parts.append("")
    return tuple(parts) if any(part.strip() for part in parts) else None


class HideTests(NbGraderPreprocessor):  # type: ignore[misc]
    """Replace hidden regions by a note, and what came out of them by what a learner may be told."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Treat a graded notebook that the feedback is made from."""
        # The engine marks the cells whose hidden tests ran; another program's notebook may show them in any.
        marked = RECORD_KEY in nb.metadata
        for cell in nb.cells:
            if cell.cell_type == "code" and BEGIN in cell.source:
                self._treat(cell, hidden=not marked or bool(cell.metadata.get(HIDDEN_KEY)))
        return nb, resources

    def _treat(self, cell: Any, *, hidden: bool) -> None:
        source, cell.source = cell.source, without_hidden(cell.source)
        if hidden:
            cell.outputs = [output for output in cell.outputs if output.output_type in ("error", "execute_result")]
        for output in cell.outputs:
            if output.output_type != "error":
                continue
            if hidden and output.ename not in _OF_THE_ENGINE:
                output.ename, output.evalue = "AssertionError", told(source, output.evalue)
            output.traceback = [f"{output.ename}: {output.evalue}"]
