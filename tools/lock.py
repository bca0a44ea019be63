"""Pin requirements.txt anew from pyproject.toml, for every supported Python at once. Needs the network.

    python tools/lock.py

uv is installed into a scratch folder for this one step. No index address is written.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Pinned by `make lock` from pyproject.toml, for Python 3.11 to 3.13. Do not edit.\n"


def main() -> int:
    """Write requirements.txt whole or not at all."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = Path(scratch) / "bin" / "python"
        subprocess.run([str(python), "-m", "pip", "install", "-q", "uv"], check=True)
        pins = Path(scratch) / "pins.txt"
        command = [str(python.with_name("uv")), "pip", "compile", "requirements.in", "--universal", "--quiet"]
        command += ["--python-version", "3.11", "--fork-strategy", "fewest", "--no-header", "--no-annotate"]
        environment = {key: value for key, value in os.environ.items() if key != "PIP_FIND_LINKS"}
        subprocess.run([*command, "--no-emit-index-url", "-o", str(pins)], cwd=ROOT, env=environment, check=True)
        draft = ROOT / "requirements.txt.new"
        draft.write_text(HEAD + pins.read_text(encoding="utf-8"), encoding="utf-8")
        draft.replace(ROOT / "requirements.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
