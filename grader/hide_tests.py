"""A preprocessor for nbgrader's feedback: what a learner gets back shows no hidden test.

nbgrader's own feedback shows the graded notebook as it ran, with the source of hidden tests and, in tracebacks,
the lines around the one that failed.
"""

from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor

__all__ = ["BEGIN", "END", "HideTests", "without_hidden"]

BEGIN = "BEGIN HIDDEN TESTS"
END = "END HIDDEN TESTS"
NOTE = "# (hidden tests ran here)"


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


class HideTests(NbGraderPreprocessor):  # type: ignore[misc]
    """Replace hidden regions by a note, and the tracebacks of their cells by the error's own message."""

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        """Treat one cell of the notebook that the feedback is made from."""
        if cell.cell_type == "code" and BEGIN in cell.source:
            cell.source = without_hidden(cell.source)
            for output in cell.outputs:
                if output.output_type == "error":
                    output.traceback = [f"{output.ename}: {output.evalue}"]
        return cell, resources
