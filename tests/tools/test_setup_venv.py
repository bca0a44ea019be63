"""tools/setup_venv.py and the Makefile, run as commands; venv and pip are stand-ins that log their calls."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, said_once
from tools import setup_venv

VENV_STAND_IN = '''\
"""python -m venv FOLDER, without a standard library or pip: the interpreter writes down how it was called."""
import pathlib
import sys

if __name__ == "__main__":
    python = pathlib.Path(sys.argv[-1]) / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("""#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in *"$FAILING"*)
    echo "Looking in the usual places"
    echo "ERROR: Could not find a version that satisfies the requirement numpy"
    exit 1;;
esac
""")
    python.chmod(0o755)
    with open(pathlib.Path(sys.argv[-1]).parent / "calls", "a") as calls:
        calls.write("made .venv\\n")
'''
# Packages that are installed without what they declare.
BARE = [path.name for path in sorted(ROOT.glob("requirements-*.txt"))]
PIP = "-m pip --disable-pip-version-check install --no-input --progress-bar off"
INSTALLATION = [
    f"{PIP} setuptools==84",
    f"{PIP} --compile --no-build-isolation -r requirements.txt",
    *[f"{PIP} --no-deps -r {name}" for name in BARE],
    "-m compileall -q ffn grader tools",
    "-c import matplotlib.font_manager",
]

INSTALLING = ["setuptools==84", *[f"-r {name}" for name in ("requirements.txt", *BARE)]]


class Place:
    """A folder with the files that the set-up needs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.record = self.venv / "complete.json"
        (root / "tools").mkdir(parents=True)
        shutil.copyfile(ROOT / "tools" / "setup_venv.py", root / "tools" / "setup_venv.py")
        (root / "requirements.txt").write_text("-e .\nsetuptools==84\n")
        for name in BARE:
            (root / name).write_text("setuptools==84\n")
        (root / "pyproject.toml").write_text("[project]\nname = 'tiny'\nversion = '1'\n")
        self.stand_ins = root / "stand-ins"
        self.stand_ins.mkdir()
        (self.stand_ins / "venv.py").write_text(VENV_STAND_IN)

    def setup(self, python: str = sys.executable, failing: str = "no such call", **environment: str) -> Any:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
        own |= {"PYTHONPATH": str(self.stand_ins), "CALLS": str(self.root / "calls"), "FAILING": failing}
        return subprocess.run(
            [python, "tools/setup_venv.py"],
            cwd=self.root,
            env=own | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def counts_as_complete(self) -> bool:
        return self.record.exists() and bool(json.loads(self.record.read_text())["sources"])

    def calls(self) -> list[str]:
        """What was run since the last look: the making of .venv and every call of its interpreter."""
        log = self.root / "calls"
        lines = log.read_text().replace(f"{self.root}/", "").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [line for line in lines if line != "-c "]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "course")


@pytest.fixture
def made(place: Place) -> Place:
    """A place with a complete .venv."""
    done = place.setup()
    assert done.returncode == 0, done.stderr
    place.calls()
    return place


def other_pythons() -> Iterator[Any]:
    """Interpreters of this machine whose version the course does not support."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {path.parent.parent.name: str(path) for path in sorted(pyenv.glob("3.*/bin/python"))}
    for minor in (*range(6, 11), *range(14, 18)):
        on_path = shutil.which(f"python3.{minor}")
        if on_path and "shims" not in on_path:
            found.setdefault(f"3.{minor}", on_path)
    wrong = {name: path for name, path in found.items() if not 11 <= int(name.split(".")[1]) <= 13}
    for name, path in wrong.items():
        yield pytest.param(path, id=name)
    if not wrong:
        yield pytest.param("", marks=pytest.mark.skip(reason="no Python of an unsupported version here"))


# -------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize("python", [*other_pythons()])
def test_a_python_of_another_version_is_refused_in_one_sentence(place: Place, python: str) -> None:
    done = place.setup(python)
    assert done.returncode == 1
    assert re.fullmatch(
        r"error: The course needs Python 3\.11 to 3\.13, and \S+ is 3\.\d+\.\d+; install one of these and run "
        r"`make course PYTHON=/path/to/python`\.",
        said_once(done.stderr),
    )
    assert not place.venv.exists()


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 10, 13), (3, 14, 0), (4, 0, 0)], ids=str)
def test_versions_outside_the_supported_span_are_refused(
    version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_venv.sys, "version_info", version)
    with pytest.raises(setup_venv.SetupError, match=re.escape("is {}.{}.{};".format(*version))):
        setup_venv.check_machine()


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1), (3, 13, 9)], ids=str)
def test_every_supported_version_passes(version: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_venv.sys, "version_info", version)
    setup_venv.check_machine()


@pytest.mark.parametrize("tool", ["git", "make"])
def test_a_missing_tool_is_named(place: Place, tool: str, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for other in {"git", "make"} - {tool}:
        (programs / other).symlink_to(str(shutil.which(other)))
    done = place.setup(PATH=str(programs))
    assert done.returncode == 1
    assert said_once(done.stderr) == f"error: {tool} is not installed; install {tool} and run the command again."
    assert not place.venv.exists()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_a_python_that_cannot_make_environments_is_refused(place: Place, module: str) -> None:
    (place.stand_ins / f"{module}.py").write_text("raise ImportError('split off by the distribution')\n")
    done = place.setup()
    assert done.returncode == 1
    assert "install its venv package (on Debian and Ubuntu: apt-get install python3-venv)" in said_once(
        done.stderr
    )
    assert not place.venv.exists()


# ------------------------------------------------------------------------------------ the first run


def test_the_first_run_makes_the_environment_and_installs_from_requirements_alone(place: Place) -> None:
    done = place.setup()
    assert done.returncode == 0, done.stderr
    assert place.calls() == ["made .venv", *INSTALLATION]


def test_the_record_is_written_when_everything_is_done(place: Place) -> None:
    place.setup()
    record = json.loads(place.record.read_text())
    assert record["python"] == sys.version.split()[0]
    assert record["place"] == str(place.venv)


def test_every_step_is_announced(place: Place) -> None:
    steps = [line.strip().split(" (")[0] for line in place.setup().stderr.splitlines()]
    assert steps == [
        f"Setting up .venv with Python {sys.version.split()[0]}",
        "making .venv",
        "installing the build tool",
        "installing the pinned packages",
        *["installing two small trained models" for _ in BARE],
        "compiling the course",
    ]


# -------------------------------------------------------------------------------------- later runs


def test_a_complete_environment_is_left_alone(made: Place) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.venv.rglob("*")}
    done = made.setup()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert made.calls() == []
    assert {path: path.stat().st_mtime_ns for path in made.venv.rglob("*")} == before


def test_a_complete_environment_needs_no_network(made: Place) -> None:
    assert made.setup(failing="pip").returncode == 0


@pytest.mark.parametrize("name", ["requirements.txt", *BARE, "pyproject.toml"])
def test_changed_requirements_are_installed_into_the_same_environment(made: Place, name: str) -> None:
    with (made.root / name).open("a") as stream:
        stream.write("# changed\n")
    assert made.setup().returncode == 0
    assert made.calls() == INSTALLATION


def test_a_half_made_environment_is_made_anew(place: Place) -> None:
    (place.venv / "lib").mkdir(parents=True)
    (place.venv / "lib" / "left-over").touch()
    done = place.setup()
    assert done.returncode == 0
    assert "half-made" in done.stderr
    assert place.calls()[0] == "made .venv"
    assert not (place.venv / "lib").exists()


@pytest.mark.parametrize(
    "record",
    [b"", b"{", b"[]", b"null", b'"complete"', b'{"python": "3.11.7"}', b"\xff\xfe\x00"],
    ids=["empty", "cut", "list", "null", "text", "no-place", "binary"],
)
def test_a_corrupt_record_counts_as_half_made(made: Place, record: bytes) -> None:
    made.record.write_bytes(record)
    assert made.setup().returncode == 0
    assert made.calls() == ["made .venv", *INSTALLATION]
    assert json.loads(made.record.read_text())["place"] == str(made.venv)


def test_an_environment_that_was_moved_is_made_anew(made: Place, tmp_path: Path) -> None:
    there = Place(tmp_path / "there")
    shutil.copytree(made.venv, there.venv)
    assert there.setup().returncode == 0
    assert there.calls()[0] == "made .venv"
    assert json.loads(there.record.read_text())["place"] == str(there.venv)


def test_an_environment_of_another_python_is_made_anew(made: Place) -> None:
    record = json.loads(made.record.read_text())
    made.record.write_text(json.dumps(record | {"python": "3.11.0"}))
    done = made.setup()
    assert done.returncode == 0
    assert ".venv is of Python 3.11.0; making it anew" in done.stderr
    assert made.calls()[0] == "made .venv"


def test_an_environment_whose_interpreter_is_gone_is_made_anew(made: Place) -> None:
    (made.venv / "bin" / "python").unlink()
    assert made.setup().returncode == 0
    assert made.calls() == ["made .venv", *INSTALLATION]


def test_an_environment_whose_interpreter_no_longer_starts_is_made_anew(made: Place) -> None:
    python = made.venv / "bin" / "python"
    python.write_text("#!/bin/sh\nexit 127\n")
    assert stat.S_IMODE(python.stat().st_mode) == 0o755
    assert made.setup().returncode == 0
    assert made.calls() == ["made .venv", *INSTALLATION]


# ----------------------------------------------------------------------------------- steps that fail


@pytest.mark.parametrize("step", INSTALLING)
def test_a_failing_pip_says_what_to_do_and_does_not_count_as_complete(place: Place, step: str) -> None:
    done = place.setup(failing=step)
    assert done.returncode == 1
    assert "error: Packages could not be installed; check the network" in done.stderr
    assert "ERROR: Could not find a version that satisfies the requirement numpy" in done.stderr
    assert ".venv/setup.log" in done.stderr
    assert "Traceback" not in done.stderr
    assert not place.counts_as_complete()


@pytest.mark.parametrize("step", INSTALLING)
def test_after_a_failing_pip_the_next_run_goes_on_from_there(place: Place, step: str) -> None:
    place.setup(failing=step)
    place.calls()
    assert place.setup().returncode == 0
    assert place.calls() == INSTALLATION
    assert place.counts_as_complete()


def test_an_update_without_network_keeps_what_is_installed(made: Place) -> None:
    (made.venv / "installed-package").touch()
    (made.root / "requirements.txt").write_text("-e .\nsetuptools==84\nnumpy==2\n")
    for _ in range(2):
        assert made.setup(failing="-r requirements.txt").returncode == 1
    assert (made.venv / "installed-package").exists()


def test_code_that_does_not_compile_is_reported(place: Place) -> None:
    done = place.setup(failing="compileall")
    assert done.returncode == 1
    assert "error: The course's code does not compile." in done.stderr
    assert not place.counts_as_complete()


@pytest.mark.parametrize("kind", ["file", "link", "dangling-link"])
def test_something_else_in_the_place_of_the_environment_is_named(place: Place, kind: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    if kind == "file":
        place.venv.write_text("not a folder")
    else:
        place.venv.symlink_to(elsewhere)
    if kind == "link":
        elsewhere.mkdir()
    done = place.setup()
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert last.endswith("run the command again.")
    assert ".venv" in last
    assert "None" not in last
    assert "Traceback" not in done.stderr


# --------------------------------------------------------------------------------------- the real pip


@pytest.fixture
def real(place: Place) -> Place:
    """A place where venv and pip are the real ones."""
    (place.stand_ins / "venv.py").unlink()
    return place


@pytest.mark.slow
def test_the_real_pip_without_network_says_what_to_do(real: Place) -> None:
    done = real.setup(PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1
    assert "error: Packages could not be installed; check the network" in done.stderr
    assert "No matching distribution found for setuptools==84" in done.stderr
    assert not real.counts_as_complete()


@pytest.mark.slow
def test_without_network_an_environment_with_everything_installed_is_completed(real: Place) -> None:
    import setuptools

    packages = Path(setuptools.__file__).parents[1]
    for name, lines in {"requirements.txt": "-e .\n", **dict.fromkeys(BARE, "")}.items():
        (real.root / name).write_text(f"{lines}setuptools=={setuptools.__version__}\n")
    (real.root / "pyproject.toml").write_text(
        "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n"
        "[project]\nname = 'tiny'\nversion = '1'\n[tool.setuptools]\npackages = ['ffn']\n"
    )
    for package in ("ffn", "grader"):
        (real.root / package).mkdir()
        (real.root / package / "__init__.py").touch()
    subprocess.run([sys.executable, "-m", "venv", str(real.venv)], check=True)
    version = sys.version.split()[0]
    real.record.write_text(json.dumps({"python": version, "place": str(real.venv), "sources": "older"}))
    target = next(real.venv.glob("lib/python*/site-packages"))
    for name in ("setuptools", "_distutils_hack", f"setuptools-{setuptools.__version__}.dist-info"):
        shutil.rmtree(target / name, ignore_errors=True)
        shutil.copytree(packages / name, target / name)
    done = real.setup(PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull, PYTHONPATH="")
    assert done.returncode == 0, done.stderr
    assert json.loads(real.record.read_text())["sources"] != "older"
    python = [str(real.venv / "bin" / "python"), "-c", "import ffn; print(ffn.__file__)"]
    imported = subprocess.run(python, cwd=real.venv, capture_output=True, text=True, check=True)
    assert imported.stdout.strip() == str(real.root / "ffn" / "__init__.py")


# ---------------------------------------------------------------------------------------- the Makefile


@pytest.fixture
def makefile(place: Place) -> Place:
    shutil.copyfile(ROOT / "Makefile", place.root / "Makefile")
    return place


def make(place: Place, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    own |= {"PYTHONPATH": str(place.stand_ins), "CALLS": str(place.root / "calls"), "FAILING": "no such call"}
    return subprocess.run(
        ["make", *arguments], cwd=place.root, env=own | environment, capture_output=True, text=True, check=False
    )


def phony() -> list[str]:
    text = (ROOT / "Makefile").read_text()
    return " ".join(re.findall(r"^\.PHONY:(.*)$", text, flags=re.MULTILINE)).split()


def test_make_help_describes_every_target_in_a_line_each(makefile: Place) -> None:
    lines = make(makefile, "help").stdout.splitlines()[1:]
    assert sorted(line.split()[0] for line in lines) == sorted(phony())
    assert [line for line in lines if len(line.split()) < 3] == []


def test_make_alone_shows_the_help(makefile: Place) -> None:
    assert make(makefile).stdout == make(makefile, "help").stdout != ""


@pytest.mark.parametrize("target", ["course", "book", "test", "lab"])
def test_make_without_a_python_says_what_to_install(makefile: Place, target: str) -> None:
    done = make(makefile, target, "PYTHON=/nonexistent/python")
    assert done.returncode == 2
    assert "error: /nonexistent/python is not installed; install Python 3.11, 3.12 or 3.13" in done.stderr
    assert "Traceback" not in done.stderr
    assert not makefile.venv.exists()


def test_make_takes_a_supported_python_where_python3_is_not_one(makefile: Place, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    old = programs / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    (programs / "python3.12").symlink_to(sys.executable)
    for other in ("python3.13", "python3.11"):
        (programs / other).symlink_to(old)
    done = make(makefile, "-n", "venv", PATH=f"{programs}:{os.environ['PATH']}")
    assert "python3.12 tools/setup_venv.py" in done.stdout


def test_make_stops_where_the_environment_could_not_be_made(makefile: Place) -> None:
    (makefile.stand_ins / "ensurepip.py").write_text("raise ImportError\n")
    done = make(makefile, "book", f"PYTHON={sys.executable}")
    assert done.returncode == 2
    assert "install its venv package" in done.stderr
    assert "No such file" not in done.stderr
