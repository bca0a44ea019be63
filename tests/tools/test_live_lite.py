"""JupyterLite as the book serves it: built once from a small exercise, with the kernel out of the cache."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.tools.test_live_bundle import course
from tools.live import exercises, lite, pins
from tools.live.exceptions import LiveError
from tools.live.fetch import cache_folder, gather
from tools.live.kernel import kernel_wheels, unpack
from tools.live.site import Carriers

KERNEL = "@jupyterlite/pyodide-kernel-extension"


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel's extension; its wheel is fetched where no build has done so yet."""
    wheel = gather([pins.KERNEL], Carriers().kernel, cache_folder())[pins.KERNEL.name]
    return unpack(wheel, tmp_path_factory.mktemp("kernel"))


@pytest.fixture(scope="module")
def site(extension: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; it lies beside the folder pyodide."""
    root = course(tmp_path_factory.mktemp("lite"))
    lite.build_lite(root / "live" / "lite", exercises.read_units(root / "exercises"), extension, "v1")
    return root / "live" / "lite"


@pytest.fixture(scope="module")
def config(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site / "jupyter-lite.json").read_text())["jupyter-config-data"]
    return found


def test_the_site_has_the_learner_notebook_and_its_data(site: Path) -> None:
    notebook = json.loads((site / "files" / "small" / "small.ipynb").read_text())
    assert notebook["metadata"]["kernelspec"]["name"] == "python"
    assert notebook["metadata"]["exercise"]["unit"] == "small"
    assert (site / "files" / "small" / "layer.npz").read_bytes() == b"numbers"
    listed = json.loads((site / "api" / "contents" / "small" / "all.json").read_text())["content"]
    assert sorted(entry["name"] for entry in listed) == ["layer.npz", "small.ipynb"]


def test_python_comes_from_the_folder_beside_under_the_version_of_the_build(config: dict[str, Any]) -> None:
    kernel = config["litePluginSettings"][f"{KERNEL}:kernel"]
    assert kernel["pyodideUrl"] == "./../pyodide/pyodide-buffered.js"
    assert kernel["loadPyodideOptions"]["lockFileURL"] == "../pyodide/pyodide-lock.json?v=v1"
    assert kernel["disablePyPIFallback"] is True


def test_no_setting_names_another_host(site: Path) -> None:
    for name in ("jupyter-lite.json", "notebooks/jupyter-lite.json", "overrides.json"):
        text = (site / name).read_text() if (site / name).exists() else ""
        assert "//" not in text.replace("https://jupyterlite-pyodide-kernel", ""), name


def test_only_the_kernel_is_added_to_jupyterlite(config: dict[str, Any]) -> None:
    assert [extension["name"] for extension in config["federated_extensions"]] == [KERNEL]


def test_the_kernel_brings_its_own_wheels(extension: Path) -> None:
    found = kernel_wheels(extension)
    assert sorted(found) == ["ipykernel", "piplite", "pyodide-kernel"]
    assert all(zipfile.is_zipfile(path) for path in found.values())


def test_a_wheel_without_the_kernel_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other-1.whl", "w") as wheel:
        wheel.writestr("other/__init__.py", "")
    with pytest.raises(LiveError, match=r"other-1\.whl has no extension"):
        unpack(tmp_path / "other-1.whl", tmp_path / "out")


def test_the_course_installs_no_extension_that_jupyterlab_cannot_run() -> None:
    folder = Path(sys.prefix) / "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension"
    assert not folder.exists()


def test_no_service_worker_is_registered(site: Path, config: dict[str, Any]) -> None:
    assert "@jupyterlite/application-extension:service-worker-manager" in config["disabledExtensions"]
    assert not (site / "service-worker.js").exists()


def test_the_notebook_s_page_looks_for_an_old_copy_before_it_shows(site: Path) -> None:
    page = (site / "notebooks" / "index.html").read_text()
    assert '<script type="module" src="../../guard.mjs"></script>' in page.split("</head>")[0]
    assert (Path(lite.__file__).parent / "page" / "guard.mjs").exists()


def test_pages_that_are_not_there_lead_to_the_exercise(site: Path, config: dict[str, Any]) -> None:
    assert config["appUrl"] == "./tree"
    for name in ("tree", "lab"):
        assert "../../exercise.html" in (site / name / "index.html").read_text()


def test_nothing_is_there_for_debugging_alone(site: Path) -> None:
    assert list(site.rglob("*.map")) == []


def test_nothing_is_left_beside_the_site(site: Path) -> None:
    assert [path.name for path in site.parent.iterdir()] == ["lite"]


def test_a_builder_that_fails_leaves_the_site_and_shows_its_last_lines(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no room\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setattr("tools.live.lite.sys.executable", str(program))
    with pytest.raises(LiveError, match="JupyterLite's builder failed; what it said last:\nno room"):
        lite.build_lite(site, [], tmp_path, "v2")
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == before


def test_a_page_of_the_builder_that_is_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "index.html").write_text("<html><head><title>New</title></head></html>")
    with pytest.raises(LiveError, match="JupyterLite's page"):
        lite._tidy(tmp_path)
