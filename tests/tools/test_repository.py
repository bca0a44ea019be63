"""What is committed: no machine's paths, no large files, exercises as generated, lessons without outputs."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.course import Course
from grader.release import generate
from tests.helpers import ROOT, copy_of_course

LARGEST = 1_000_000


def tracked() -> list[Path]:
    """Files that git keeps and that are there; without git there is nothing to look at."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


FILES = tracked()
NAMES = [path.relative_to(ROOT).as_posix() for path in FILES]
UNITS = sorted(path.parent.name for path in (ROOT / "solutions").glob("*/*.ipynb"))
LESSONS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "book").rglob("*.md"))

pytestmark = pytest.mark.skipif(not FILES, reason="the course's folder is no git checkout")


def text_of(name: str) -> str:
    """A file's text, or nothing where it is no text."""
    content = (ROOT / name).read_bytes()
    return "" if b"\0" in content else content.decode("utf-8", errors="replace")


TEXTS = [name for name in NAMES if text_of(name)]


# ---------------------------------------------------------------------------------------------- every file


@pytest.mark.parametrize("name", NAMES)
def test_no_file_is_large(name: str) -> None:
    assert (ROOT / name).stat().st_size <= LARGEST


def test_nothing_that_is_built_is_committed() -> None:
    built = re.compile(
        r"(^|/)(_build|\.venv|work|__pycache__|\.ipynb_checkpoints|[^/]*\.egg-info)/|^grader/var/|\.pyc$|\.db$"
    )
    assert [name for name in NAMES if built.search(name)] == []


def test_the_course_s_files_are_committed() -> None:
    expected = {
        "README.md",
        "LICENSE",
        "Makefile",
        "pyproject.toml",
        "requirements.txt",
        "_config.yml",
        "_toc.yml",
    }
    assert expected <= set(NAMES)


# In pieces, so that this file does not hold what it looks for.
MACHINE = re.compile(r"(?<![\w.~}\])*-])/(?:" + "|".join(["work", "root", "home", "Users"]) + r")/\w")
INDEX = re.compile(
    r"https?://\S*(?:/" + "simple" + r"\b|/repository/|pythonhosted|artifactory|devpi|nexus)"
    r"|--(?:extra-)?" + "index" + r"-url[ =]\S",
)


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_names_a_path_of_one_machine(name: str) -> None:
    assert [line for line in text_of(name).splitlines() if MACHINE.search(line)] == []


@pytest.mark.parametrize("name", TEXTS)
def test_no_file_names_a_package_index(name: str) -> None:
    assert [line for line in text_of(name).splitlines() if INDEX.search(line)] == []


@pytest.mark.parametrize("name", [name for name in TEXTS if not name.startswith("book/_static/vendor/")])
def test_every_text_ends_with_a_line_end_and_has_no_carriage_returns(name: str) -> None:
    text = text_of(name)
    assert text.endswith("\n")
    assert "\r" not in text


# ---------------------------------------------------------------------------------- exercises and solutions


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".ipynb_checkpoints" not in path.parts
    }


def cells(path: Path) -> list[Any]:
    return list(nbformat.read(path, as_version=4)["cells"])


def regions(source: str, name: str) -> list[str]:
    """Telling lines of code between the BEGIN and END marks of a name, blanks made equal."""
    inside = re.findall(rf"### BEGIN {name}\n(.*?)### END {name}", source, flags=re.DOTALL)
    lines = {" ".join(line.split()) for part in inside for line in part.splitlines()}
    return sorted(line for line in lines if len(line) > 12)


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_an_exercise_is_what_its_solution_generates_byte_for_byte(unit: str, tmp_path: Path) -> None:
    copy = copy_of_course(tmp_path / "course", "solutions", "nbgrader_config.py", "grader")
    generate(Course(copy.root), unit, tmp_path / "generated")
    assert files(tmp_path / "generated") == files(ROOT / "exercises" / unit)


def test_every_exercise_has_a_solution() -> None:
    assert sorted(path.name for path in (ROOT / "exercises").iterdir()) == UNITS != []


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("mark", ["BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN TESTS", "END HIDDEN TESTS"])
def test_an_exercise_holds_no_mark_of_what_is_left_out(unit: str, mark: str) -> None:
    exercise = Course(ROOT).exercise(unit)
    assert mark in Course(ROOT).reference(unit).read_text(encoding="utf-8")
    assert mark not in exercise.read_text(encoding="utf-8")


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["SOLUTION", "HIDDEN TESTS"])
def test_an_exercise_holds_no_line_of_a_solution_or_hidden_test(unit: str, name: str) -> None:
    course = Course(ROOT)
    released = [cell for cell in cells(course.exercise(unit)) if cell["cell_type"] == "code"]
    # What a hidden test has in common with the visible part of the reference is no secret.
    visible = "\n".join(
        re.sub(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n.*?### END \1", "", cell["source"], flags=re.DOTALL)
        for cell in cells(course.reference(unit))
    )
    secret = {line for cell in cells(course.reference(unit)) for line in regions(cell["source"], name)}
    shown = {" ".join(line.split()) for cell in released for line in cell["source"].splitlines()}
    told = {" ".join(line.split()) for line in visible.splitlines()}
    assert secret
    assert secret & shown - told == set()


@pytest.mark.parametrize("unit", UNITS)
def test_an_exercise_has_no_output(unit: str) -> None:
    code = [cell for cell in cells(Course(ROOT).exercise(unit)) if cell["cell_type"] == "code"]
    assert [cell["source"] for cell in code if cell["outputs"] or cell["execution_count"]] == []


@pytest.mark.parametrize("unit", UNITS)
def test_a_solution_was_executed_from_top_to_bottom(unit: str) -> None:
    code = [cell for cell in cells(Course(ROOT).reference(unit)) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))


@pytest.mark.parametrize("unit", UNITS)
def test_a_solution_keeps_its_outputs_and_none_is_an_error(unit: str) -> None:
    outputs = [output for cell in cells(Course(ROOT).reference(unit)) for output in cell.get("outputs", [])]
    assert outputs
    assert [output for output in outputs if output["output_type"] == "error"] == []


@pytest.mark.parametrize("unit", UNITS)
def test_a_solution_names_the_kernel_that_everybody_has(unit: str) -> None:
    metadata = nbformat.read(Course(ROOT).reference(unit), as_version=4)["metadata"]
    assert metadata["kernelspec"]["name"] == "python3"


# ------------------------------------------------------------------------------------------------ lessons


def test_lessons_are_text_and_no_notebooks() -> None:
    assert [name for name in NAMES if name.startswith("book/") and name.endswith(".ipynb")] == []


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_holds_no_output(name: str) -> None:
    assert re.search(r"data:image|base64,|image/png|\bexecution_count\b|\{code-output\}", text_of(name)) is None


@pytest.mark.parametrize("name", [name for name in LESSONS if "{code-cell}" in text_of(name)])
def test_a_lesson_with_cells_is_marked_as_a_notebook(name: str) -> None:
    assert text_of(name).startswith("---\nfile_format: mystnb\n")


def words(text: str) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


SOURCES = Path(os.environ.get("FFN_SOURCES", ROOT.parent / "shared" / "sources"))


def sentences() -> list[str]:
    """Every sentence of the source documents with eight words or more, not counting the letters of formulas."""
    documents = sorted(SOURCES.glob("*.txt"))
    found = [words(part) for path in documents for part in re.split(r"[.!?:;]\s|\n", path.read_text("utf-8"))]
    return sorted({text for text in found if sum(len(word) > 1 for word in text.split()) >= 8})


@pytest.mark.skipif(
    not SOURCES.is_dir(), reason="the source documents are not here (FFN_SOURCES names their folder)"
)
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_copies_no_sentence_of_the_sources(name: str) -> None:
    known = sentences()
    page = f" {words(text_of(name))} "
    assert len(known) > 50
    assert [sentence for sentence in known if f" {sentence} " in page] == []


def test_the_looks_for_copies_and_paths_find_what_they_look_for() -> None:
    assert MACHINE.search("see " + "/work" + "/main/book")
    assert MACHINE.search('"' + "/home" + '/ada"')
    assert not MACHINE.search("book/work/page and ../root/page")
    assert INDEX.search("pip install --" + "index-url " + "https://host/x")
    assert INDEX.search("https://host/pypi/" + "simple/")
    assert words("It's  a *test*, one.") == "it s a test one"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("name", ["_build/html/index.html", "grader/var/gradebook.db", "work/a.ipynb"])
def test_what_is_built_is_ignored(name: str) -> None:
    done = subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT, check=False)
    assert done.returncode == 0
