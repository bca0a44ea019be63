"""A preprocessor for nbgrader's autograde: an answer that lets the course's module do the step gets no hidden marks.

It runs right after the notebook was executed. What an instructor should look at is written into the metadata of the
answer's cell, where ``grader scores`` finds it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor

from grader.course import Course
from grader.flags import flags, withholds
from grader.notebooks import FLAG_KEY, grade_id, is_hidden, read_notebook, steps

__all__ = ["Withhold"]


class Withhold(NbGraderPreprocessor):  # type: ignore[misc]
    """Flag answers, and let the hidden test cells of those that use the course's module count as failed."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Treat an executed submission."""
        for cell in nb["cells"]:
            # What is found there was put there by the learner.
            cell["metadata"].pop(FLAG_KEY, None)
        unit = resources["nbgrader"]["assignment"]
        path = Course(Path(self.config.CourseDirectory.get("root", "."))).reference(unit)
        if resources["nbgrader"]["notebook"] != unit or not path.is_file():
            return nb, resources
        reference = read_notebook(path)
        tests = steps(reference)
        hidden = {grade_id(cell) for cell in reference["cells"] if is_hidden(cell)}
        cells = {name: cell for cell in nb["cells"] if (name := grade_id(cell)) is not None}
        for step, found in flags(nb, reference).items():
            # A learner may have deleted the answer's cell; the tests are always there.
            place = next(name for name in (step, *tests[step]) if name in cells)
            cells[place]["metadata"][FLAG_KEY] = found
            if withholds(found):
                for name in tests[step]:
                    if name in hidden and name in cells:
                        cells[name]["outputs"] = [_failure(found)]
        return nb, resources


def _failure(found: Iterable[str]) -> Any:
    from nbformat.v4 import new_output

    said = (
        "This step is asked for from scratch, so these tests give no marks for an answer that "
        f"{' and '.join(phrase for phrase in found if withholds([phrase]))}."
    )
    return new_output("error", ename="Withheld", evalue=said, traceback=[f"Withheld: {said}"])  # type: ignore[no-untyped-call]
