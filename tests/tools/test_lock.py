"""requirements.txt: what pip installs, pinned from pyproject.toml."""

import itertools
import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.helpers import ROOT

LINES = [
    line
    for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {canonicalize_name(pin.name): pin for pin in map(Requirement, (x for x in LINES if not x.startswith("-")))}
EXTRAS = PROJECT["optional-dependencies"].values()
DECLARED = sorted({*PROJECT["dependencies"], *itertools.chain.from_iterable(EXTRAS)})


def test_the_course_itself_is_installed_editable() -> None:
    assert [line for line in LINES if line.startswith("-")] == ["-e ."]


@pytest.mark.parametrize("name", PINS)
def test_every_package_is_pinned_to_one_version(name: str) -> None:
    (specifier,) = PINS[name].specifier
    assert specifier.operator == "=="
    assert "*" not in specifier.version


def test_no_package_is_pinned_twice() -> None:
    assert len(PINS) == len(LINES) - 1


@pytest.mark.parametrize("line", LINES)
def test_no_line_names_a_host(line: str) -> None:
    assert "://" not in line
    assert "@" not in line


@pytest.mark.parametrize(("name", "version"), [("jupyter-book", "1.0.4.post1"), ("sphinx-book-theme", "1.2.0")])
def test_versions_that_a_range_would_get_wrong_are_pinned_exactly(name: str, version: str) -> None:
    assert str(PINS[name].specifier) == f"=={version}"
    assert f"{name}=={version}" in DECLARED


@pytest.mark.parametrize("declared", DECLARED)
def test_every_declared_dependency_is_pinned_within_its_range(declared: str) -> None:
    wanted = Requirement(declared)
    (pin,) = PINS[canonicalize_name(wanted.name)].specifier
    assert wanted.specifier.contains(pin.version, prereleases=True)


@pytest.mark.parametrize("declared", DECLARED)
def test_a_declared_dependency_is_installed_wherever_it_is_declared_for(declared: str) -> None:
    assert PINS[canonicalize_name(Requirement(declared).name)].marker == Requirement(declared).marker


def test_numpy_is_of_the_second_line() -> None:
    (pin,) = PINS["numpy"].specifier
    assert pin.version.startswith("2.")


@pytest.mark.parametrize(
    ("version", "supported"), [("3.10.9", False), ("3.11.0", True), ("3.13.9", True), ("3.14.0", False)]
)
def test_pythons_of_the_declared_span_are_those_of_the_set_up(version: str, supported: bool) -> None:
    from tools.setup_venv import NEWEST, OLDEST

    assert SpecifierSet(PROJECT["requires-python"]).contains(version) is supported
    assert (OLDEST <= tuple(map(int, version.split(".")))[:2] <= NEWEST) is supported


@pytest.mark.parametrize("name", [path.name for path in sorted(ROOT.glob("requirements*.txt"))])
def test_every_list_of_packages_holds_exact_pins_and_nothing_else(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pinned = re.compile(r"-e \.|[a-z0-9-]+==[\w.+!]+( ; .+)?")
    assert [line for line in lines if not pinned.fullmatch(line)] == []
