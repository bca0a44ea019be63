"""The fingerprint that tells whether something changed, and the stamps that steps leave."""

import os
import sys
from pathlib import Path

import pytest

from tools import places

PATTERNS = ("ffn/**/*.py", "book/**/*", "_toc.yml")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small course's folder in the place of the real one."""
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(places, "STAMPS", tmp_path / "_build" / "stamps")
    for name in ("ffn/blocks.py", "ffn/data/table.py", "book/index.md", "book/part/page.md", "_toc.yml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"content of {name}\n")
    return tmp_path


def changed(root: Path, name: str) -> None:
    (root / name).write_text("something else\n")


def renamed(root: Path, name: str) -> None:
    path = root / name
    path.rename(path.with_name(f"renamed-{path.name}"))


def removed(root: Path, name: str) -> None:
    (root / name).unlink()


def added(root: Path, name: str) -> None:
    path = root / name
    path.with_name(f"added-{path.name}").write_text("")


@pytest.mark.parametrize("name", ["ffn/blocks.py", "ffn/data/table.py", "book/part/page.md"])
@pytest.mark.parametrize("change", [changed, renamed, removed, added])
def test_the_fingerprint_changes_with_contents_and_names(root: Path, name: str, change: object) -> None:
    before = places.fingerprint(PATTERNS)
    change(root, name)  # type: ignore[operator]
    assert places.fingerprint(PATTERNS) != before


def test_two_files_that_swap_their_contents_change_the_fingerprint(root: Path) -> None:
    before = places.fingerprint(PATTERNS)
    first, second = root / "book" / "index.md", root / "book" / "part" / "page.md"
    kept = first.read_text()
    first.write_text(second.read_text())
    second.write_text(kept)
    assert places.fingerprint(PATTERNS) != before


def test_the_fingerprint_does_not_depend_on_times(root: Path) -> None:
    before = places.fingerprint(PATTERNS)
    os.utime(root / "ffn" / "blocks.py", (1, 1))
    assert places.fingerprint(PATTERNS) == before


@pytest.mark.parametrize(
    "name", ["book/__pycache__/lesson.py", "book/part/.ipynb_checkpoints/page.md", "README.md", "ffn/notes.txt"]
)
def test_what_is_no_source_does_not_change_the_fingerprint(root: Path, name: str) -> None:
    before = places.fingerprint(PATTERNS)
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("beside the sources")
    assert places.fingerprint(PATTERNS) == before


def test_the_order_of_the_patterns_does_not_matter(root: Path) -> None:
    assert places.fingerprint(PATTERNS) == places.fingerprint([*reversed(PATTERNS), "ffn/*.py"])


def test_the_same_files_in_another_folder_have_the_same_fingerprint(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = places.fingerprint(PATTERNS)
    there = tmp_path_factory.mktemp("there") / "course"
    root.rename(there)
    monkeypatch.setattr(places, "ROOT", there)
    assert places.fingerprint(PATTERNS) == before


@pytest.mark.parametrize(
    ("patterns", "name"),
    [
        ("HELPER", "ffn/published.toml"),
        ("HELPER", "ffn/blocks.py"),
        ("HELPER", "requirements.txt"),
        ("BOOK", "ffn/published.toml"),
        ("BOOK", "book/_ext/lesson.py"),
        ("BOOK", "book/_static/course.css"),
        ("BOOK", "book/references.bib"),
        ("BOOK", "_config.yml"),
        ("BOOK", "_toc.yml"),
        ("LIVE", "ffn/blocks.py"),
        ("LIVE", "tools/live/pins.py"),
        ("LIVE", "tools/live/page/exercise.mjs"),
        ("LIVE", "exercises/activations/activations.ipynb"),
        ("LIVE", "requirements.txt"),
        ("GRADING", "grader/release.py"),
        ("GRADING", "grader/data/demo_activations.toml"),
        ("GRADING", "solutions/activations/activations.ipynb"),
        ("GRADING", "exercises/activations/activations.ipynb"),
        ("GRADING", "nbgrader_config.py"),
        ("GRADING", "ffn/published.toml"),
    ],
)
def test_each_step_depends_on_its_sources(root: Path, patterns: str, name: str) -> None:
    before = places.fingerprint(getattr(places, patterns))
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("changed")
    assert places.fingerprint(getattr(places, patterns)) != before


def test_a_stamp_is_read_back(root: Path) -> None:
    places.stamp("book", "abc")
    assert places.stamped("book") == "abc"


def test_a_step_without_stamp_has_none(root: Path) -> None:
    places.stamp("book", "abc")
    assert places.stamped("grading") is None


def test_an_unstamped_step_has_none(root: Path) -> None:
    places.stamp("book", "abc")
    places.unstamp("book")
    assert places.stamped("book") is None


def test_unstamping_twice_is_fine(root: Path) -> None:
    places.unstamp("book")
    places.unstamp("book")
    assert places.stamped("book") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b'"abc"', b"{}", b'{"fingerprint": 3}', b'{"fingerprint": null}', b"\xff\x00"],
    ids=["empty", "cut", "null", "list", "text", "no-key", "number", "nothing", "binary"],
)
def test_a_corrupt_stamp_reads_as_none(root: Path, content: bytes) -> None:
    places.stamp("book", "abc")
    (places.STAMPS / "book.json").write_bytes(content)
    assert places.stamped("book") is None


def test_an_interrupted_stamp_leaves_the_one_before(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places.stamp("book", "before")
    whole = Path.write_text

    def half(path: Path, text: str, **options: str) -> int:
        whole(path, text[: len(text) // 2], **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(KeyboardInterrupt):
        places.stamp("book", "after")
    assert places.stamped("book") == "before"


def test_tools_run_with_the_programs_and_the_kernel_of_the_course() -> None:
    environment = places.tool_environment()
    assert environment["PATH"].split(os.pathsep)[0] == str(Path(sys.prefix) / "bin")
    assert environment["JUPYTER_PREFER_ENV_PATH"] == "1"


def test_tools_may_write_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in places.tool_environment()
