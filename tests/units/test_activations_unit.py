"""The unit `activations`: the published values it checks, and wrong answers beside its known misconceptions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ffn
from ffn.misconceptions import Misconception, Step, unit_steps
from ffn.published import checked_in, published
from tools.audit.notebook import Result, run, unit
from tools.places import ROOT

NOTEBOOK = ROOT / "solutions" / "activations" / "activations.ipynb"
BOOK = unit("activations")

ARRAY = "z = np.asarray(z, dtype=float)\n    "
INNER = "math.sqrt(2 / math.pi) * (z + 0.44715 * z**3)"
NAMES = '(("relu", relu), ("gelu", gelu), ("silu", silu))'


def elementwise(name: str, expression: str) -> str:
    return f"def {name}(z):\n    {ARRAY}return {expression}"


def wrong(step: str, ident: str, answer: str, message: str) -> Any:
    return pytest.param(step, answer, message, id=f"{step}-{ident}")


WRONG = [
    wrong("relu", "largest-entry", elementwise("relu", "np.max(np.append(z, 0))"), "shape"),
    wrong("relu", "clipped", elementwise("relu", "np.clip(z, 0, 100)"), "infinite"),
    wrong("relu_grad", "fixed-pair", "def one_sided_slopes(z, step=1e-6):\n    return 0.0, 1.0", "quotients"),
    wrong(
        "relu_grad",
        "not-divided",
        "def one_sided_slopes(z, step=1e-6):\n    return relu(z) - relu(z - step), relu(z + step) - relu(z)",
        "slope_right",
    ),
    wrong(
        "sigmoid", "tail-set-to-0", elementwise("sigmoid", "(z > -30) * np.exp(-np.logaddexp(0, -z))"), "left tail"
    ),
    wrong("silu", "overflows", elementwise("silu", "z / (1 + np.exp(-z))"), "overflow|tiny"),
    wrong(
        "silu", "changes-its-argument", f"def silu(z):\n    {ARRAY}z *= sigmoid(z)\n    return z", "silu changes"
    ),
    wrong(
        "silu",
        "whole-numbers",
        "def silu(z):\n    z = np.array(z)\n    out = np.zeros_like(z)\n"
        "    for i, v in enumerate(z.flat):\n        out.flat[i] = v * sigmoid(v)\n    return out",
        "whole numbers",
    ),
    wrong(
        "normal_cdf",
        "clipped",
        elementwise("normal_cdf", "0.5 * erfc(-np.clip(z, -10, 10) / math.sqrt(2))"),
        "far from 0|left tail",
    ),
    wrong("gelu", "one-number-only", "def gelu(z):\n    return z * normal_cdf(z).item()", "Error: "),
    wrong("gelu_tanh", "constant", elementwise("gelu_tanh", f"z * (1 + np.tanh({INNER})) / 2"), "4.73e-4"),
    wrong(
        "gelu_tanh",
        "most-negative",
        "def largest_gap(z):\n    gap = gelu(z) - gelu_tanh(z)\n    i = np.argmin(gap)\n"
        "    return abs(gap[i]), abs(z[i])",
        "4.73e-4|2.70|grid",
    ),
    wrong("gelu_tanh", "fixed-pair", "def largest_gap(z):\n    return 4.73e-4, 2.70", "its grid"),
    wrong(
        "tanh_neuron", "of-the-sum", "def tanh_neuron(x, w, b):\n    return np.tanh(w + x + b)", "mech.tanh_h|tanh"
    ),
    wrong(
        "silu_grad",
        "difference-quotient",
        elementwise("silu_grad", "(silu(z + 1e-6) - silu(z - 1e-6)) / 2e-6"),
        "random input|one half",
    ),
    wrong("gelu_grad", "of-the-tanh-form", "from ffn import gelu_tanh_grad as gelu_grad", "differences"),
    wrong(
        "tail_reach",
        "wrong-side",
        "def tail_reach(tolerance, z):\n"
        f"    return {{n: np.max(z[np.abs(f(z)) < tolerance], initial=-40) for n, f in {NAMES}}}",
        "order of the three tails|relu",
    ),
]


def results(step: str, answer: str) -> list[Result]:
    """How the step's test cells go with ``answer`` on top of the reference."""
    return run(BOOK, step, source=f"{BOOK.answers[step]}\n\n\n{answer}", only_step=True)


@pytest.mark.parametrize("quiet", [False, True], ids=["as-it-is", "warnings-off"])
@pytest.mark.parametrize(("step", "answer", "message"), WRONG)
def test_a_wrong_answer_loses_marks(step: str, answer: str, message: str, quiet: bool) -> None:
    before = '@np.errstate(all="ignore")\n' if quiet and answer.startswith("def ") else ""
    messages = [result.message for result in results(step, before + answer) if result.message]
    assert messages
    assert any(part in messages[0] for part in message.split("|"))


def known() -> list[Any]:
    """Every known mistake but one: of two finished forms the right one is chosen, and the warning is all there is."""
    pairs = [(step, m) for step in unit_steps("activations") for m in step.misconceptions]
    return [pytest.param(s, m, id=f"{s.name}-{m.name}") for s, m in pairs if m.name != "both-forms-computed"]


@pytest.mark.parametrize(("step", "misconception"), known())
def test_a_known_mistake_loses_marks_with_its_warnings_off(step: Step, misconception: Misconception) -> None:
    quiet = {name: np.errstate(all="ignore")(function) for name, function in misconception.wrong.items()}
    assert any(result.message for result in run(BOOK, step.name, quiet, only_step=True))


def test_graded_cells_have_checked_every_published_value_of_the_unit(tmp_path: Path) -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    document["cells"] = [
        cell
        for cell in document["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade") and cell.get("execution_count")
    ]
    graded = tmp_path / "graded.ipynb"
    graded.write_text(json.dumps(document), encoding="utf-8")
    checked = set(checked_in(graded))
    wanted = {
        ident
        for ident, entry in published().items()
        if entry.graded and ident.startswith(("ex1.relu", "ex4.", "ex8.", "mech.tanh_"))
    }
    assert len(wanted) > 25
    assert (wanted | {"ex8.sigmoid_neg", "ex8.sigmoid_pos"}) - checked == set()


def test_the_helper_module_agrees_with_the_reference() -> None:
    names: dict[str, Any] = {}
    for source in (cell.source for cell in BOOK.cells if cell.points is None):
        exec(source, names)
    z = np.linspace(-12, 12, 97)
    elementwise_names = ("relu", "relu_grad", "sigmoid", "silu", "gelu", "gelu_tanh", "silu_grad", "gelu_grad")
    for name in (*elementwise_names, "normal_cdf"):
        np.testing.assert_allclose(names[name](z), getattr(ffn, name)(z), rtol=1e-9, atol=1e-13, err_msg=name)
