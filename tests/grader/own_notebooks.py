"""Learners' own notebooks, for the tests of `grader check`."""

import json
from pathlib import Path

from grader.course import Course
from grader.notebooks import grade_id, read_notebook
from tests.helpers import ROOT


def notebook_text(unit: str, answers: dict[str, str] | None = None, own: str = "", deleted: str = "") -> str:
    """A learner's notebook: right answers apart from those given, perhaps a cell of its own, perhaps one deleted."""
    right = {str(grade_id(c)): c["source"] for c in read_notebook(Course(ROOT).reference(unit))["cells"]}
    notebook = json.loads(Course(ROOT).exercise(unit).read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution") and cell["cell_type"] == "code":
            cell["source"] = (answers or {}).get(marks["grade_id"], right[marks["grade_id"]])
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] != deleted]
    if own:
        cell = {
            "cell_type": "code",
            "id": "own",
            "metadata": {},
            "source": own,
            "outputs": [],
            "execution_count": 1,
        }
        notebook["cells"].insert(2, cell)
    return json.dumps(notebook)


def stub(unit: str, step: str) -> str:
    cells = json.loads(Course(ROOT).exercise(unit).read_text(encoding="utf-8"))["cells"]
    return "".join(next(cell["source"] for cell in cells if cell["id"] == step))


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def put(folder: Path, text: str | bytes, name: str = "answers.ipynb") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


OWN = "def mine(z):\n    return 1 / (1 + np.exp(-z))"
MIXED = {
    "relu": "# NBVAL_SKIP\ndef relu(z):\n    return np.maximum(np.asarray(z, dtype=float), 0)",
    "relu_grad": "def one_sided_slopes(z, step=1e-6):\n"
    "    return (relu(z) - relu(z - step)) / step, (relu(z + step) - relu(z)) / step\n\n\n"
    "def relu_grad(z):\n    return np.where(np.asarray(z) >= 0, 1.0, 0.0)",
    "sigmoid": "import matplotlib.pyplot as plt\n\nprint('my plot')\nplt.plot([1, 2])\nplt.show()\n\n\n"
    "def sigmoid(z):\n    print('called with', z)\n    z = np.asarray(z, dtype=float)\n    plt.plot([1, 2])\n"
    "    plt.show()\n    small = np.exp(-np.abs(z))\n    return np.where(z < 0, small, 1) / (1 + small)",
    "silu": stub("activations", "silu"),
    "normal_cdf": "def normal_cdf(z):\n    raise RuntimeError('\\x1b[31mno\\x1b[0m\\x07 idea')",
    "gelu": "from ffn import gelu",
    "gelu_tanh": "def gelu_tanh(z)\n    return z",
    "silu_grad": "def silu_grad(z):\n    s = mine(z)\n    return s + z * s * (1 - s)",
    "gelu_grad": "import sys\n\n\ndef gelu_grad(z):\n    print('odd', file=sys.stderr)\n"
    "    z = np.asarray(z, dtype=float)\n"
    "    return normal_cdf(z) + z * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)",
    "tail_reach": "def tail_reach(activation, threshold, z):\n    return -0.0",
}
