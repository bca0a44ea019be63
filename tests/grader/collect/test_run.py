"""Downloads become submissions."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.collect import archive, place
from grader.collect.place import read_record
from grader.collect.run import Summary, collect
from grader.course import Course
from grader.engine import store
from grader.engine.verdict import Limits
from grader.exceptions import (
    CannotPlaceError,
    CollectBusyError,
    DownloadRefusedError,
    GraderError,
    LearnersNotNamedError,
    RosterError,
    UnknownUnitError,
    UnknownZoneError,
)
from tests.grader.collect.downloads import (
    ATTACKS,
    BLACKBOARD_LIST,
    BRIGHTSPACE_LIST,
    CANVAS_LIST,
    CLASSES,
    MOODLE_LIST,
    RELEASED,
    SMALL,
    UNIT,
    Files,
    canvas,
    laid_out,
    zipped,
)

FIRST, SECOND, THIRD = SMALL, SMALL + b"\n", SMALL + b"\n\n"


@pytest.fixture
def source(tmp_path: Path) -> Callable[[Files], Path]:
    """Makes a zip archive of files; another one each time."""
    count = iter(range(100))
    return lambda files: zipped(tmp_path / f"{next(count)}.zip", files)


def tree(course: Course) -> dict[str, bytes]:
    """All files below grader/var but the lock, by path."""
    paths = (path for path in course.var.rglob("*") if path.is_file() and path.name != ".collect.lock")
    return {path.relative_to(course.var).as_posix(): path.read_bytes() for path in paths}


def done(summary: Summary) -> dict[str, str]:
    return {row.learner: row.done for row in summary.rows}


def submission(course: Course, learner: str) -> bytes | None:
    return store.read_bytes(course, learner, UNIT, Limits())


def attempts(course: Course, learner: str) -> dict[str, bytes]:
    folder = course.var / "attempts" / learner / UNIT
    return {path.name: (path / f"{UNIT}.ipynb").read_bytes() for path in sorted(folder.glob("[0-9]*"))}


def written_list(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "list.csv"
    path.write_text(text, encoding="utf-8")
    return path


# -------------------------------------------------------------------------------------------------------- whole classes


@pytest.mark.parametrize("packed", [True, False], ids=["zip", "folder"])
@pytest.mark.parametrize("kind", CLASSES)
def test_a_class_is_laid_out_as_the_engine_reads_it(
    kind: str, packed: bool, course: Course, tmp_path: Path
) -> None:
    files = CLASSES[kind]()
    path = zipped(tmp_path / "all.zip", files) if packed else laid_out(tmp_path / "all", files)
    summary = collect(course, UNIT, path, timezone="Europe/Berlin")
    assert summary.left_out == ()
    assert len(summary.rows) == 3
    assert course.learners(UNIT) == [row.learner for row in summary.rows]
    for row in summary.rows:
        found = store.collect(course, row.learner, UNIT, Limits())
        assert found is not None
        assert found.data == SMALL
        assert found.notes == ()
        assert found.timestamp == (row.time and row.time.replace(tzinfo=None))


@pytest.mark.parametrize("kind", CLASSES)
def test_collecting_the_same_once_more_changes_nothing_and_says_so(
    kind: str, course: Course, source: Callable[[Files], Path]
) -> None:
    path = source(CLASSES[kind]())
    collect(course, UNIT, path)
    before = tree(course)
    summary = collect(course, UNIT, path)
    assert set(done(summary).values()) == {"unchanged"}
    assert tree(course) == before


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("canvas", CANVAS_LIST),
        ("moodle", MOODLE_LIST),
        ("blackboard", BLACKBOARD_LIST),
        ("brightspace", BRIGHTSPACE_LIST),
    ],
)
def test_a_list_names_the_learners_in_the_gradebook(
    kind: str, text: str, course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    summary = collect(course, UNIT, source(CLASSES[kind]()), roster=written_list(tmp_path, text))
    assert summary.left_out == ()
    names = students(course)
    assert {row.learner for row in summary.rows} | {person.id for person in summary.missing} == set(names)
    assert {(name["first_name"], name["last_name"]) for name in names.values()} >= {
        ("Ada", "Lovelace"),
        ("Grace", "Hopper"),
    }


def students(course: Course) -> dict[str, dict[str, Any]]:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        return {
            student.id: {
                name: getattr(student, name) for name in ("first_name", "last_name", "email", "lms_user_id")
            }
            for student in gradebook.students
        }


def test_what_the_list_does_not_say_stays_in_the_gradebook(
    course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        gradebook.add_student("alovelace", first_name="A.", email="ada@example.edu")
        gradebook.add_student("other", first_name="Other")
    collect(course, UNIT, source(canvas()), roster=written_list(tmp_path, CANVAS_LIST))
    found = students(course)
    assert found["alovelace"] == {
        "first_name": "Ada",
        "last_name": "Lovelace",
        "email": "ada@example.edu",
        "lms_user_id": "101",
    }
    assert found["other"]["first_name"] == "Other"


@pytest.mark.parametrize("text", [MOODLE_LIST, "login,name\nada,Ada Lovelace\nalan,Alan Turing\n"])
def test_the_lms_s_number_is_kept_where_the_gradebook_has_none(
    text: str, course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    people = written_list(tmp_path, text)
    collect(course, UNIT, source(CLASSES["moodle"]()), roster=people)
    later = {path.replace("_201_", "_301_"): content for path, content in CLASSES["moodle"]().items()}
    collect(course, UNIT, source(later), roster=people)
    numbers = {name["first_name"]: name["lms_user_id"] for name in students(course).values()}
    assert numbers["Ada"] == "201"
    assert numbers["Alan"] == ("204" if text == MOODLE_LIST else None)


def test_without_a_list_the_gradebook_is_not_touched(course: Course, source: Callable[[Files], Path]) -> None:
    collect(course, UNIT, source(canvas()))
    assert not (course.var / "gradebook.db").exists()


def test_a_gradebook_that_does_not_take_the_names_is_said_after_the_rest_is_done(
    course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    course.var.mkdir(parents=True)
    (course.var / "gradebook.db").write_text("this is no database, but some text that is long enough" * 20)
    with pytest.raises(LearnersNotNamedError, match="the submissions are in place, but the gradebook"):
        collect(course, UNIT, source(canvas()), roster=written_list(tmp_path, CANVAS_LIST))
    assert submission(course, "alovelace") == SMALL


# --------------------------------------------------------------------------------------------------- attempts and times


def test_earlier_attempts_are_kept_with_their_times(course: Course, source: Callable[[Files], Path]) -> None:
    summary = collect(course, UNIT, source(CLASSES["blackboard"]()), timezone="UTC")
    assert {row.learner: row.attempts for row in summary.rows}["alovelace"] == 2
    assert attempts(course, "alovelace") == {"001-2026-11-29T09-00-00Z": SMALL + b" "}
    stamp = course.var / "attempts" / "alovelace" / UNIT / "001-2026-11-29T09-00-00Z" / "timestamp.txt"
    assert stamp.read_text() == "2026-11-29 09:00:00 UTC\n"


def test_a_submission_is_never_overwritten(course: Course, source: Callable[[Files], Path]) -> None:
    files = [{"ada_1_5_activations.ipynb": FIRST}, {"ada_1_6_activations.ipynb": SECOND}]
    collect(course, UNIT, source(files[0]))
    (course.submitted / "ada" / UNIT / "notes by hand.txt").write_text("kept")
    assert done(collect(course, UNIT, source(files[1]))) == {"ada": "replaced an earlier one"}
    assert submission(course, "ada") == SECOND
    assert attempts(course, "ada") == {"001-time-unknown": FIRST}
    kept = course.var / "attempts" / "ada" / UNIT / "001-time-unknown" / "notes by hand.txt"
    assert kept.read_text() == "kept"
    assert done(collect(course, UNIT, source(files[0]))) == {"ada": "unchanged"}
    assert submission(course, "ada") == SECOND


def test_an_older_download_is_kept_among_the_attempts(course: Course, source: Callable[[Files], Path]) -> None:
    head = "Unit_ada_attempt_2026-11-"
    collect(course, UNIT, source({f"{head}30-09-00-00_a.ipynb": SECOND}), timezone="UTC")
    summary = collect(course, UNIT, source({f"{head}29-09-00-00_a.ipynb": FIRST}), timezone="UTC")
    assert done(summary) == {"ada": "kept as an earlier attempt"}
    assert submission(course, "ada") == SECOND
    assert attempts(course, "ada") == {"001-2026-11-29T09-00-00Z": FIRST}


def test_a_time_that_was_not_known_is_added(
    course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    path, people = source(CLASSES["moodle"]()), written_list(tmp_path, MOODLE_LIST)
    bare = written_list(tmp_path / "course", MOODLE_LIST.replace("Last modified (submission)", "x"))
    collect(course, UNIT, path, roster=bare)
    summary = collect(course, UNIT, path, roster=people, timezone="UTC")
    assert done(summary) == {
        "ada@example.edu": "time added",
        "grace@example.edu": "time added",
        "jose@example.edu": "unchanged",
    }
    found = store.collect(course, "ada@example.edu", UNIT, Limits())
    assert found is not None
    assert found.timestamp == datetime(2026, 11, 30, 14, 5)
    assert attempts(course, "ada@example.edu") == {}


def test_what_lay_in_the_place_and_could_not_be_read_is_kept(
    course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    (course.submitted / "ada").mkdir(parents=True)
    (course.submitted / "ada" / UNIT).symlink_to(tmp_path)
    collect(course, UNIT, source({"ada_1_5_activations.ipynb": FIRST}))
    assert submission(course, "ada") == FIRST
    assert (course.var / "attempts" / "ada" / UNIT / "001-time-unknown").readlink() == tmp_path


def test_what_was_collected_is_recorded(course: Course, source: Callable[[Files], Path]) -> None:
    path = source({"ada_LATE_7_5_activations.ipynb": FIRST, "ada_LATE_7_6_activations-1.ipynb": SECOND})
    collect(course, UNIT, path)
    record = read_record(course, "ada", UNIT)
    assert (record["learner"], record["name"], record["lms"], record["form"], record["source"]) == (
        "ada",
        "ada",
        "7",
        "canvas",
        path.name,
    )
    assert record["submission"]["file"] == "ada_LATE_7_6_activations-1.ipynb"
    assert record["submission"]["late"] is True
    assert record["attempts"]["001-time-unknown"]["file"] == "ada_LATE_7_5_activations.ipynb"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"submission": 5, "attempts": []}', '{"lms": 5}', "[" * 100_000, "\0"]
)
def test_a_record_that_is_none_is_made_anew(text: str, course: Course, source: Callable[[Files], Path]) -> None:
    path = source({"ada_7_5_activations.ipynb": FIRST})
    collect(course, UNIT, path)
    (course.var / "attempts" / "ada" / UNIT / "collected.json").write_text(text)
    assert done(collect(course, UNIT, path)) == {"ada": "unchanged"}
    assert read_record(course, "ada", UNIT)["lms"] == "7"


def test_another_learner_of_the_same_name_does_not_take_the_place(
    course: Course, source: Callable[[Files], Path]
) -> None:
    collect(course, UNIT, source({"leeann_1_5_activations.ipynb": FIRST}))
    summary = collect(course, UNIT, source({"leeann_2_6_activations.ipynb": SECOND}))
    assert ["another learner with this name" in left.reason for left in summary.left_out] == [True]
    assert submission(course, "leeann") == FIRST


def test_the_zone_is_the_course_s_where_none_is_named(course: Course, source: Callable[[Files], Path]) -> None:
    with (course.root / "nbgrader_config.py").open("a") as file:
        file.write('\nc.LatePolicy.timezone = "Asia/Tokyo"\n')
    summary = collect(course, UNIT, source(CLASSES["brightspace"]()))
    assert summary.zone == "Asia/Tokyo"
    assert summary.rows[0].time == datetime(2026, 11, 30, 5, 5, tzinfo=UTC)


def test_the_zone_is_the_machine_s_where_the_course_has_none(
    course: Course, source: Callable[[Files], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (course.root / "nbgrader_config.py").write_text("c = get_config()\n")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert collect(course, UNIT, source(CLASSES["brightspace"]())).zone == "Asia/Tokyo"


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_leaves_everything_as_it_was(name: str, course: Course, tmp_path: Path) -> None:
    collect(course, UNIT, zipped(tmp_path / "good.zip", canvas(FIRST)))
    before = tree(course)
    with pytest.raises(DownloadRefusedError):
        collect(course, UNIT, ATTACKS[name][0](tmp_path / f"{name}.zip"))
    assert tree(course) == before
    assert [path.name for path in tmp_path.parent.iterdir() if path.name.startswith("lovelace")] == []


def test_damage_in_the_last_file_is_found_before_the_first_is_moved(course: Course, tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "all.zip", {f"l{number}_{number}_1_activations.ipynb": RELEASED for number in range(9)}
    )
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x03\x04") + 200] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(DownloadRefusedError, match="damaged at 'l8_8_1_activations"):
        collect(course, UNIT, path)
    assert tree(course) == {}


def test_a_bomb_among_the_notebooks_costs_its_learner_only(
    course: Course, source: Callable[[Files], Path]
) -> None:
    files = {
        **canvas(),
        "mallory_9_1_activations.ipynb": bytes(19_000_000),
        "eve_8_2_activations.ipynb": b"PK\x03\x04x",
    }
    summary = collect(course, UNIT, source(files))
    assert len(summary.rows) == 3
    assert {left.files[0]: left.reason for left in summary.left_out} == {
        "mallory_9_1_activations.ipynb": "it unpacks to more than 200 times its size",
        "eve_8_2_activations.ipynb": "it is a zip archive, and no notebook",
    }
    assert course.learners(UNIT) == ["hoppergrace", "lovelaceada", "obrienjosé"]


def test_a_file_that_grew_since_it_was_looked_at_is_left_out(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = laid_out(tmp_path / "all", {"ada.ipynb": SMALL, "bob.ipynb": SMALL})
    total = archive.Folder.require_total

    def growing(self: archive.Folder, members: Any) -> None:
        total(self, members)
        (folder / "ada.ipynb").write_bytes(b"x" * 2_000)

    monkeypatch.setattr(archive.Folder, "require_total", growing)
    summary = collect(course, UNIT, folder, limits=Limits(submission_bytes=1_000))
    assert done(summary) == {"bob": "collected"}
    assert [left.reason for left in summary.left_out] == ["it is larger than 0 MB"]


@pytest.mark.parametrize("files", [{}, {"readme.txt": b"x"}, {".DS_Store": b""}])
def test_a_download_without_submissions_is_named(
    files: Files, course: Course, source: Callable[[Files], Path]
) -> None:
    with pytest.raises(DownloadRefusedError, match="there is no submission in it"):
        collect(course, UNIT, source(files))


@pytest.mark.parametrize("where", ["submitted", "submitted/ada", "attempts"])
def test_submissions_are_not_collected_from_themselves(where: str, course: Course) -> None:
    (course.var / where).mkdir(parents=True)
    with pytest.raises(DownloadRefusedError, match="submissions are kept there"):
        collect(course, UNIT, course.var / where)


@pytest.mark.parametrize("part", ["submitted", "attempts"])
def test_a_learner_s_folder_that_is_a_link_is_not_written_through(
    part: str, course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (course.var / part).mkdir(parents=True)
    (course.var / part / "ada").symlink_to(tmp_path / "elsewhere")
    files = {"ada_1_5_activations.ipynb": FIRST, "bob_2_6_activations.ipynb": FIRST}
    summary = collect(course, UNIT, source(files))
    assert done(summary) == {"bob": "collected"}
    assert ["is a link or a file; move it away" in left.reason for left in summary.left_out] == [True]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"roster": Path("nowhere.csv")}, RosterError),
        ({"roster": Path("/")}, RosterError),
        ({"roster": Path("/dev/null")}, RosterError),
        ({"timezone": "Mars/Olympus"}, UnknownZoneError),
    ],
)
def test_options_that_cannot_be_used_are_named_before_anything_is_done(
    options: dict[str, Any], error: type[GraderError], course: Course, source: Callable[[Files], Path]
) -> None:
    with pytest.raises(error):
        collect(course, UNIT, source(canvas()), **options)
    assert tree(course) == {}


def test_a_unit_that_the_course_does_not_have_is_named(course: Course, source: Callable[[Files], Path]) -> None:
    with pytest.raises(UnknownUnitError):
        collect(course, "gate", source(canvas()))


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    course: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    collect(course, UNIT, source({"lovelaceada_101_4_activations.ipynb": FIRST}))
    before = {path: path.stat().st_mtime_ns for path in course.root.rglob("*")}
    people = written_list(tmp_path, "login,name\nalovelace,Ada Lovelace\n")
    summary = collect(course, UNIT, source(canvas(SECOND)), dry_run=True)
    assert done(summary)["lovelaceada"] == "replaced an earlier one"
    assert done(summary)["hoppergrace"] == "collected"
    assert done(collect(course, UNIT, source(canvas()), roster=people, dry_run=True)) == {"alovelace": "collected"}
    assert {path: path.stat().st_mtime_ns for path in course.root.rglob("*")} == before


# ---------------------------------------------------------------------------------------------------------- interrupted


class KilledError(BaseException):
    """Stands for a signal that ends the process."""


@contextmanager
def killed_at(number: int, monkeypatch: pytest.MonkeyPatch, *, one_step: bool) -> Iterator[list[str]]:
    """End the run in the place of its n-th move."""
    moves: list[str] = []
    rename, swap = os.rename, place.exchange

    def counted(name: str) -> None:
        moves.append(name)
        if len(moves) == number:
            raise KilledError

    def moved(one: Any, other: Any, **folders: int) -> None:
        counted(f"{one} {other}")
        rename(one, other, **folders)

    def swapped(one: str, one_folder: int, other: str, other_folder: int) -> bool:
        if not one_step:
            return False
        counted(f"{one} <> {other}")
        return swap(one, one_folder, other, other_folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", moved)
        patch.setattr(place, "exchange", swapped)
        yield moves


HEAD = "Unit_ada_attempt_2026-11-"
BEFORE = {f"{HEAD}28-09-00-00_a.ipynb": FIRST}
AFTER = {f"{HEAD}29-09-00-00_a.ipynb": SECOND, f"{HEAD}30-09-00-00_a.ipynb": THIRD}


@pytest.mark.parametrize("one_step", [True, False])
@pytest.mark.parametrize("number", range(1, 8))
def test_a_run_that_is_killed_leaves_the_old_or_the_new_and_the_next_ends_it(
    number: int, one_step: bool, course: Course, source: Callable[[Files], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(course, UNIT, source(BEFORE), timezone="UTC")
    path = source({**BEFORE, **AFTER})
    with killed_at(number, monkeypatch, one_step=one_step) as moves, suppress(KilledError):
        collect(course, UNIT, path, timezone="UTC")
    # Where two folders cannot change places in one step, neither is there between the two moves.
    between = not one_step and len(moves) == number == 4
    assert submission(course, "ada") in ((None,) if between else (FIRST, THIRD))
    collect(course, UNIT, path, timezone="UTC")
    assert submission(course, "ada") == THIRD
    assert sorted(attempts(course, "ada").values(), key=len) == [FIRST, SECOND]
    record = read_record(course, "ada", UNIT)
    assert record["submission"]["file"] == f"{HEAD}30-09-00-00_a.ipynb"
    assert sorted(record["attempts"]) == sorted(attempts(course, "ada"))
    assert [name for name in tree(course) if "/." in name or name.startswith(".")] == []


def test_the_killed_runs_above_reach_to_the_last_move(
    course: Course, source: Callable[[Files], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(course, UNIT, source(BEFORE), timezone="UTC")
    with killed_at(100, monkeypatch, one_step=True) as moves:
        collect(course, UNIT, source({**BEFORE, **AFTER}), timezone="UTC")
    assert 1 < len(moves) < 8


def test_what_a_killed_run_unpacked_is_cleared_away(course: Course, source: Callable[[Files], Path]) -> None:
    (course.var / ".collect-left" / "0").mkdir(parents=True)
    collect(course, UNIT, source(canvas()))
    assert list(course.var.glob(".collect-*")) == []


def test_two_runs_at_a_time_are_one_too_many(course: Course, source: Callable[[Files], Path]) -> None:
    course.var.mkdir(parents=True, exist_ok=True)
    with (course.var / ".collect.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CollectBusyError):
            collect(course, UNIT, source(canvas()))
    assert len(collect(course, UNIT, source(canvas())).rows) == 3


def test_a_full_disk_is_one_sentence_and_what_was_there_stays(
    course: Course, source: Callable[[Files], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(course, UNIT, source(canvas(FIRST)))
    before = tree(course)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(CannotPlaceError, match="No space left on device; when that is mended, collect again"):
        collect(course, UNIT, source(canvas(SECOND)))
    assert tree(course) == before


def test_progress_is_told_by_the_learner(course: Course, source: Callable[[Files], Path]) -> None:
    told: list[tuple[int, int]] = []
    collect(course, UNIT, source(canvas()), progress=lambda *count: told.append(count))
    assert told == [(1, 3), (2, 3), (3, 3)]


# ---------------------------------------------------------------------------------------------------------- round trips


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
def test_what_was_collected_is_graded(
    kind: str, released: Course, source: Callable[[Files], Path], tmp_path: Path
) -> None:
    from grader.engine.batch import grade_unit

    summary = collect(released, UNIT, source(CLASSES[kind](RELEASED)), timezone="UTC")
    learner = summary.rows[0].learner
    (outcome,) = grade_unit(released, UNIT, [learner], sandbox="none", workers=1)
    assert outcome.error == ""
    assert outcome.verdict is not None
    assert outcome.verdict.status == "graded"
    handed_in = store.record_of(released, learner, UNIT)["time"]
    assert handed_in == (
        "" if summary.rows[0].time is None else summary.rows[0].time.replace(tzinfo=None).isoformat()
    )
    json.loads((released.autograded / learner / UNIT / f"{UNIT}.ipynb").read_bytes())
