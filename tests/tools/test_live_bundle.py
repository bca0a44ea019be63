"""Pyodide as the book serves it, the wheel of ffn, learner notebooks, and addresses; made from small parts."""

import csv
import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.helpers import ROOT
from tests.tools.test_live_fetch import Stand
from tools.live import bundle, exercises, pins, site, step
from tools.live.exceptions import LiveError
from tools.live.wheel import make_wheel, pack


def entry(name: str, content: bytes, *depends: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1",
        "file_name": f"{name}-1-py3-none-any.whl",
        "sha256": hashlib.sha256(content).hexdigest(),
        "install_dir": "site",
        "imports": [name.lower()],
        "depends": list(depends),
        "package_type": "package",
        "unvendored_tests": False,
    }


WHEELS = {name: name.encode() for name in ("numpy", "matplotlib", "Pillow", "scipy")}
LOCK: dict[str, Any] = {
    "info": {"version": pins.PYODIDE},
    "packages": {
        "numpy": entry("numpy", b"numpy"),
        "matplotlib": entry("matplotlib", b"matplotlib", "numpy", "pillow"),
        "pillow": entry("Pillow", b"Pillow"),
        "scipy": entry("scipy", b"scipy", "numpy"),
    },
}


def course(root: Path) -> Path:
    """A course with a helper module of one file, and one unit with data."""
    (root / "ffn" / "__pycache__").mkdir(parents=True)
    (root / "ffn" / "__init__.py").write_text("ONE = 1\n")
    (root / "ffn" / "published.toml").write_text("one = 1\n")
    (root / "ffn" / "__pycache__" / "__init__.cpython-311.pyc").write_bytes(b"compiled")
    (root / "exercises" / "small").mkdir(parents=True)
    (root / "exercises" / "small" / "layer.npz").write_bytes(b"numbers")
    shutil.copyfile(
        ROOT / "exercises" / "activations" / "activations.ipynb", root / "exercises" / "small" / "small.ipynb"
    )
    shutil.copyfile(ROOT / "pyproject.toml", root / "pyproject.toml")
    return root


# -------------------------------------------------------------------------------------------- the lock


def test_the_closure_has_the_roots_and_all_that_they_need() -> None:
    assert bundle.closure(LOCK, ["matplotlib"]) == ["matplotlib", "numpy", "pillow"]


def test_the_closure_leaves_out_what_nothing_needs() -> None:
    assert "scipy" not in bundle.closure(LOCK, ["numpy", "matplotlib"])


def test_packages_that_need_each_other_end() -> None:
    lock = {"packages": {"a": entry("a", b"", "b"), "b": entry("b", b"", "a")}}
    assert bundle.closure(lock, ["a"]) == ["a", "b"]


def test_a_root_that_the_lock_lacks_is_named() -> None:
    with pytest.raises(LiveError, match="no package pandas"):
        bundle.closure(LOCK, ["pandas"])


def test_the_pruned_lock_names_the_kept_and_the_added_packages_only() -> None:
    extra = bundle.Extra("ffn-course", "1", "ffn.whl", b"ffn", ("ffn",), ("numpy",))
    pruned = bundle.prune(LOCK, ["numpy"], [extra])
    assert set(pruned["packages"]) == {"numpy", "ffn-course"}
    assert pruned["info"] == LOCK["info"]
    assert pruned["packages"]["numpy"] == LOCK["packages"]["numpy"]


def test_an_added_package_carries_the_digest_of_its_wheel() -> None:
    extra = bundle.Extra("ffn-course", "1", "ffn.whl", b"ffn", ("ffn",), ("numpy",))
    written = bundle.prune(LOCK, [], [extra])["packages"]["ffn-course"]
    assert written["sha256"] == hashlib.sha256(b"ffn").hexdigest()
    assert (written["file_name"], written["imports"], written["depends"]) == ("ffn.whl", ["ffn"], ["numpy"])


def test_who_imports_the_plots_gets_matplotlib() -> None:
    pruned = bundle.prune(LOCK, ["matplotlib"], [])
    assert pruned["packages"]["matplotlib"]["imports"] == ["matplotlib", "ffn.plots"]


def test_pruning_leaves_the_lock_that_it_is_given_alone() -> None:
    before = json.dumps(LOCK)
    bundle.prune(LOCK, ["matplotlib", "numpy"], [])
    assert json.dumps(LOCK) == before


# -------------------------------------------------------------------------------------------- ffn's wheel


def members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_the_helper_module_and_nothing_compiled(tmp_path: Path) -> None:
    held = members(make_wheel(course(tmp_path)).content)
    assert {name for name in held if name.startswith("ffn/")} == {"ffn/__init__.py", "ffn/published.toml"}


def test_the_wheel_of_this_course_holds_the_files_that_the_package_declares() -> None:
    held = members(make_wheel(ROOT).content)
    assert {"ffn/minilm_vectors.npz", "ffn/published.toml", "ffn/py.typed", "ffn/misconceptions/swiglu.py"} <= set(
        held
    )
    assert held["ffn/blocks.py"] == (ROOT / "ffn" / "blocks.py").read_bytes()


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    first = make_wheel(course(tmp_path / "first"))
    second = make_wheel(course(tmp_path / "second"))
    assert first == second


def test_changed_sources_give_the_wheel_another_name(tmp_path: Path) -> None:
    before = make_wheel(course(tmp_path))
    (tmp_path / "ffn" / "__init__.py").write_text("ONE = 2\n")
    after = make_wheel(tmp_path)
    assert after.file_name != before.file_name
    assert after.version == before.version


def test_the_record_gives_digest_and_size_of_every_other_file(tmp_path: Path) -> None:
    held = members(pack("parcel", "1", ">=3", {"parcel/a.py": b"a = 1\n"}).content)
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(held["parcel-1.dist-info/RECORD"].decode()))}
    assert set(rows) == set(held)
    assert rows["parcel/a.py"] == ["sha256=" + sha256_of("a = 1\n"), "6"]


def sha256_of(text: str) -> str:
    import base64

    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def test_the_wheel_can_be_read_by_the_library_that_reads_wheels(tmp_path: Path) -> None:
    from importlib.metadata import PathDistribution

    made = make_wheel(course(tmp_path))
    (tmp_path / made.file_name).write_bytes(made.content)
    folder = zipfile.Path(tmp_path / made.file_name) / f"ffn_course-{made.version}.dist-info"
    distribution = PathDistribution(folder)  # type: ignore[arg-type]
    assert (distribution.metadata["Name"], distribution.version) == ("ffn_course", made.version)


# -------------------------------------------------------------------------------------------- exercises


def test_the_browser_s_notebook_names_its_kernel_unit_and_version(tmp_path: Path) -> None:
    (unit,) = exercises.read_units(course(tmp_path) / "exercises")
    metadata = json.loads(unit.notebook)["metadata"]
    assert metadata["kernelspec"]["name"] == "python"
    assert metadata["exercise"] == {"unit": "small", "version": unit.version}


def test_the_browser_s_notebook_has_the_cells_of_the_exercise(tmp_path: Path) -> None:
    (unit,) = exercises.read_units(course(tmp_path) / "exercises")
    released = json.loads((tmp_path / "exercises" / "small" / "small.ipynb").read_text())
    assert json.loads(unit.notebook)["cells"] == released["cells"]


@pytest.mark.parametrize("name", ["small.ipynb", "layer.npz"])
def test_a_change_of_the_notebook_or_its_data_is_a_new_version(tmp_path: Path, name: str) -> None:
    folder = course(tmp_path) / "exercises"
    (before,) = exercises.read_units(folder)
    path = folder / "small" / name
    path.write_bytes(path.read_bytes().replace(b"ReLU", b"ReLu") + b"\n")
    (after,) = exercises.read_units(folder)
    assert before.version != after.version


def test_the_same_exercise_keeps_its_version(tmp_path: Path) -> None:
    folder = course(tmp_path) / "exercises"
    assert exercises.read_units(folder) == exercises.read_units(folder)


def test_the_list_of_exercises_gives_title_version_and_place(tmp_path: Path) -> None:
    units = exercises.read_units(course(tmp_path) / "exercises")
    assert json.loads(exercises.manifest(units)) == {
        "small": {"title": "Activations", "version": units[0].version, "path": "small/small.ipynb"}
    }


def test_the_data_of_an_exercise_lies_where_python_starts(tmp_path: Path) -> None:
    made = exercises.data_wheel(exercises.read_units(course(tmp_path) / "exercises"))
    assert members(made.content)["ffn_exercise_data-1.data/data/home/pyodide/layer.npz"] == b"numbers"


# ----------------------------------------------------------------------------------- the whole, without network


def core_archive() -> bytes:
    stream = io.BytesIO()
    files = {**{name: name.encode() for name in pins.CORE_FILES}, pins.LOCK: json.dumps(LOCK).encode()}
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in {**files, "console.html": b"unused"}.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> site.Site:
    """A small course, a Pyodide of four packages, and carriers that have it all; JupyterLite is left out."""
    core, comm = core_archive(), b"comm"
    monkeypatch.setattr(pins, "CORE", pins.Wanted("core.tgz", hashlib.sha512(core).hexdigest(), "sha512"))
    monkeypatch.setattr(pins, "COMM", pins.Wanted("comm-1-none.whl", hashlib.sha256(comm).hexdigest()))
    monkeypatch.setattr(pins, "KERNEL_ROOTS", ())
    monkeypatch.setattr(site, "kernel_wheels", lambda extension: {})
    monkeypatch.setattr(site, "unpack", lambda wheel, folder: folder)
    monkeypatch.setattr(pins, "KERNEL", pins.Wanted("kernel-1.whl", hashlib.sha256(b"kernel").hexdigest()))
    monkeypatch.setattr(site, "DATA", tmp_path / "data.toml")
    (tmp_path / "data.toml").write_text('[files]\n"layer.npz" = "exercises/small/layer.npz"\n')

    def lite(folder: Path, units: object, extension: Path, version: str) -> None:
        (folder / "notebooks").mkdir(parents=True, exist_ok=True)
        (folder / "notebooks" / "index.html").write_text(version)

    monkeypatch.setattr("tools.live.lite.build_lite", lite)
    wheels = Stand("wheels", {f"{name}-1-py3-none-any.whl": content for name, content in WHEELS.items()})
    carriers = site.Carriers(
        core=(Stand("core", {"core.tgz": core}),),
        wheels=(wheels,),
        comm=(Stand("comm", {"comm-1-none.whl": comm}),),
        kernel=(Stand("kernel", {"kernel-1.whl": b"kernel"}),),
    )
    return site.Site(
        root=course(tmp_path / "course"),
        live=tmp_path / "html" / "live",
        cache=tmp_path / "cache",
        say=lambda line: None,
        carriers=carriers,
    )


def test_the_served_pyodide_has_every_file_that_its_lock_names_and_no_other(small: site.Site) -> None:
    site.build_site(small, "v1")
    folder = small.live / "pyodide"
    lock = json.loads((folder / pins.LOCK).read_text())
    named = {package["file_name"] for package in lock["packages"].values()}
    assert {path.name for path in folder.iterdir()} == {
        *named,
        *(set(pins.CORE_FILES) - {"pyodide.js"}),
        bundle.BUFFERED,
        pins.LOCK,
    }
    assert "scipy-1-py3-none-any.whl" not in named


def test_every_served_wheel_has_the_digest_that_its_lock_gives(small: site.Site) -> None:
    site.build_site(small, "v1")
    folder = small.live / "pyodide"
    for package in json.loads((folder / pins.LOCK).read_text())["packages"].values():
        assert hashlib.sha256((folder / package["file_name"]).read_bytes()).hexdigest() == package["sha256"]


def test_what_lessons_read_in_the_browser_is_laid_beside(small: site.Site) -> None:
    site.build_site(small, "v1")
    assert (small.live / "data" / "layer.npz").read_bytes() == b"numbers"


def test_a_file_for_lessons_that_is_not_there_is_named(small: site.Site, tmp_path: Path) -> None:
    (tmp_path / "data.toml").write_text('[files]\n"layer.npz" = "exercises/gone.npz"\n')
    with pytest.raises(LiveError, match=r"^exercises/gone\.npz is not there"):
        site.build_site(small, "v1")


def test_a_second_build_needs_no_carrier(small: site.Site) -> None:
    site.build_site(small, "v1")
    offline = site.Carriers(core=(Stand("a", fault="no network"),), wheels=(), comm=(), kernel=())
    again = site.Site(small.root, small.live, small.cache, small.say, offline)
    site.build_site(again, "v2")
    assert (small.live / "lite" / "notebooks" / "index.html").read_text() == "v2"


def test_a_build_that_fails_leaves_the_pyodide_of_before(small: site.Site) -> None:
    site.build_site(small, "v1")
    before = {path.name: path.read_bytes() for path in (small.live / "pyodide").iterdir()}
    (small.root / "ffn" / "__init__.py").write_text("ONE = 2\n")
    (small.cache / "numpy-1-py3-none-any.whl").write_bytes(b"damaged")
    with pytest.raises(LiveError, match=r"numpy-1-py3-none-any\.whl"):
        site.build_site(small, "v2")
    assert {path.name: path.read_bytes() for path in (small.live / "pyodide").iterdir()} == before


def test_a_file_that_static_hosts_refuse_stops_the_build(
    small: site.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pins, "LARGEST", 20)
    with pytest.raises(LiveError, match="more than static hosts take"):
        site.build_site(small, "v1")


# ---------------------------------------------------------------------------------------- as a step of the build


@pytest.fixture
def built(small: site.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a built book, with the step working on the small course; gives the book's root."""
    html = tmp_path / "html"
    monkeypatch.setattr(step, "ROOT", tmp_path)
    monkeypatch.setattr(step, "_FOLDER", html / "live")
    monkeypatch.setattr(step, "_CONFIG", html / "_static" / "live-config.mjs")
    monkeypatch.setattr("tools.places.ROOT", small.root)
    monkeypatch.setattr("tools.places.STAMPS", tmp_path / "stamps")
    monkeypatch.setattr(step, "build_site", lambda given, version: site.build_site(small, version))
    return html


def said(*, leave_out: bool = False) -> str:
    console = Console(record=True, width=200, file=io.StringIO())
    (step.leave_out if leave_out else step.build)(console)
    return console.export_text()


def config(html: Path) -> Any:
    text = (html / "_static" / "live-config.mjs").read_text()
    return json.loads(text.split("export const live = ")[1].rstrip().rstrip(";"))


def test_the_pages_are_told_where_the_browser_part_is(built: Path) -> None:
    said()
    live = config(built)
    assert set(live) == {"version", "pyodide", "exercise", "slice"}
    assert (built / live["pyodide"] / pins.LOCK).exists()
    assert (built / live["exercise"]).exists()
    assert (built / live["slice"]).is_dir()


def test_the_size_of_the_whole_is_said(built: Path) -> None:
    assert "The part that runs in the browser is in html/live (" in said()


def test_unchanged_nothing_is_built(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said()
    monkeypatch.setattr(step, "build_site", lambda given, version: pytest.fail("built again"))
    assert said() == "The part that runs in the browser is up to date.\n"


def test_the_addresses_are_written_again_after_the_book_was(built: Path) -> None:
    said()
    before = config(built)
    (built / "_static" / "live-config.mjs").write_text(site.config_text(None))
    said()
    assert config(built) == before


def test_a_change_of_ffn_builds_again_under_another_version(built: Path, small: site.Site) -> None:
    said()
    before = config(built)["version"]
    (small.root / "ffn" / "__init__.py").write_text("ONE = 2\n")
    said()
    assert config(built)["version"] != before


def test_while_it_cannot_be_built_the_pages_show_nothing_of_it(built: Path, small: site.Site) -> None:
    said()
    (small.root / "ffn" / "__init__.py").write_text("ONE = 2\n")
    (small.cache / "core.tgz").write_bytes(b"damaged")
    with pytest.raises(LiveError, match=r"core\.tgz"):
        said()
    assert config(built) is None


def test_left_out_it_is_gone_and_that_is_said(built: Path) -> None:
    said()
    assert said(leave_out=True) == "The part that runs in the browser was left out; `make book` builds it.\n"
    assert config(built) is None
    assert not (built / "live").exists()


@pytest.mark.parametrize(("value", "wanted"), [("0", False), ("1", True), ("", True), (None, True)])
def test_only_live_0_leaves_it_out(value: str | None, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LIVE", raising=False)
    if value is not None:
        monkeypatch.setenv("LIVE", value)
    assert step.is_wanted() is wanted


def test_the_source_of_the_book_knows_no_browser_part() -> None:
    source = (ROOT / "book" / "_static" / "live-config.mjs").read_text()
    assert source.endswith("export const live = null;\n")
