"""The wheel of ``ffn``, the same bytes from the same sources, made without a build tool."""

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Wheel", "make_wheel", "pack"]

# The first moment that a zip file can hold.
_ALWAYS = (1980, 1, 1, 0, 0, 0)
_SUFFIXES = frozenset({".npz", ".py", ".toml", ".typed"})


@dataclass(frozen=True)
class Wheel:
    """A wheel's name, version, and bytes."""

    name: str
    version: str
    file_name: str
    content: bytes


def make_wheel(root: Path) -> Wheel:
    """The wheel of the package ``ffn`` in the course's folder.

    Its build number is a digest of the contents: under a name of its own a new version is never taken for an old one
    that a browser has kept.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    name, version = "ffn_course", project["version"]
    files = {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted((root / "ffn").rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file() and "__pycache__" not in path.parts
    }
    return pack(name, version, project["requires-python"], files)


def pack(name: str, version: str, python: str, files: Mapping[str, bytes]) -> Wheel:
    """A wheel of these files."""
    digest = hashlib.sha256(b"".join(f"{file} {_hash(files[file])}\n".encode() for file in files)).hexdigest()
    build = f"0{digest[:10]}"
    folder = f"{name}-{version}.dist-info"
    held = {**files, **_metadata(folder, name, version, python, build)}
    lines = [f"{file},sha256={_hash(content)},{len(content)}" for file, content in held.items()]
    held[f"{folder}/RECORD"] = "\n".join([*lines, f"{folder}/RECORD,,", ""]).encode()
    file_name = f"{name}-{version}-{build}-py3-none-any.whl"
    return Wheel(name=name.replace("_", "-"), version=version, file_name=file_name, content=_zip(held))


def _hash(content: bytes) -> str:
    """A digest as a wheel's RECORD spells it."""
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _metadata(folder: str, name: str, version: str, python: str, build: str) -> dict[str, bytes]:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: {python}\n"
    wheel = (
        f"Wheel-Version: 1.0\nGenerator: tools.live\nRoot-Is-Purelib: true\nTag: py3-none-any\nBuild: {build}\n"
    )
    return {f"{folder}/METADATA": metadata.encode(), f"{folder}/WHEEL": wheel.encode()}


def _zip(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _ALWAYS)
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    return stream.getvalue()
