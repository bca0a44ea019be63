"""The unit `activations`: its structure, the published values it checks, and the answers that it accepts."""

import ast
import functools
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import nbformat
import numpy as np
import pytest
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions

import ffn
from ffn.published import checked_in, published

NOTEBOOK = Path(__file__).parents[2] / "solutions" / "activations" / "activations.ipynb"
NB = nbformat.read(NOTEBOOK, as_version=4)
CELLS = {cell.id: cell for cell in NB.cells}
STEPS = [c.id for c in NB.cells if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("solution")]
WRITTEN = "inactive_or_dead"


def grading(cell: Any) -> dict[str, Any]:
    return cell.metadata.get("nbgrader", {})


def functions(source: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def region(source: str, name: str) -> list[str]:
    """Lines of code between the BEGIN and END marks of that name, stripped."""
    inside = re.findall(rf"### BEGIN {name}\n(.*?)### END {name}", source, flags=re.DOTALL)
    return [line.strip() for part in inside for line in part.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def released() -> dict[str, Any]:
    """The cells as nbgrader releases them, by id."""
    nb = nbformat.read(NOTEBOOK, as_version=4)
    for preprocessor in (ClearSolutions(), ClearHiddenTests()):
        nb, _ = preprocessor.preprocess(nb, {})
    return {cell.id: cell for cell in nb.cells}


# ------------------------------------------------------------------------------------------------- structure


def test_every_grade_id_is_unique_and_is_the_id_of_its_cell() -> None:
    ids = [(grading(cell)["grade_id"], cell.id) for cell in NB.cells if grading(cell)]
    assert all(grade_id == cell_id for grade_id, cell_id in ids)
    assert max(Counter(grade_id for grade_id, _ in ids).values()) == 1


def test_at_most_twelve_steps_and_forty_points() -> None:
    assert 8 <= len(STEPS) <= 12
    assert sum(grading(cell).get("points", 0) for cell in NB.cells) == 40


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_task_answer_hints_and_locked_tests_in_this_order(step: str) -> None:
    order = list(CELLS)
    start = order.index(f"{step}_task")
    assert order[start : start + 4] == [f"{step}_task", step, f"{step}_hints", f"test_{step}"]
    tests = grading(CELLS[f"test_{step}"])
    assert tests["grade"]
    assert tests["locked"]
    assert not tests["solution"]
    points = tests["points"]
    assert 2 <= points <= 4
    assert f"({points} points)" in CELLS[f"{step}_task"].source.splitlines()[0]


@pytest.mark.parametrize("step", STEPS)
def test_three_hints_of_growing_size_that_do_not_give_the_answer_away(step: str) -> None:
    source = CELLS[f"{step}_hints"].source
    hints = re.findall(r"<details>\n<summary>Hint (\d)</summary>\n\n(.+?)\n\n</details>", source, flags=re.DOTALL)
    assert [number for number, _ in hints] == ["1", "2", "3"]
    sizes = [len(hint) for _, hint in hints]
    assert sizes == sorted(set(sizes))
    answer = [line.removeprefix("return ") for line in region(CELLS[step].source, "SOLUTION")]
    telling = [line for line in answer if len(line) > 10 and line != "z = np.asarray(z, dtype=float)"]
    assert telling
    assert not [line for line in telling if line in source]


@pytest.mark.parametrize("step", STEPS)
def test_the_stub_keeps_signature_and_docstring_and_nothing_of_the_answer(
    step: str, released: dict[str, Any]
) -> None:
    source, stub = functions(CELLS[step].source), functions(released[step].source)
    assert list(source) == list(stub)
    for name, node in source.items():
        assert ast.unparse(stub[name].args) == ast.unparse(node.args)
        assert ast.get_docstring(node)
        assert ast.get_docstring(stub[name]) == ast.get_docstring(node)
        assert [ast.unparse(line) for line in stub[name].body[1:]] == ["raise NotImplementedError()"]


@pytest.mark.parametrize("step", STEPS)
def test_the_release_shows_the_visible_tests_only(step: str, released: dict[str, Any]) -> None:
    source, shown = CELLS[f"test_{step}"].source, released[f"test_{step}"].source
    visible, hidden = source.split("### BEGIN HIDDEN TESTS\n")
    assert "assert " in visible or "check(" in visible
    assert "assert " in hidden
    assert hidden.endswith("### END HIDDEN TESTS")
    assert shown == visible.removesuffix("\n")


def test_the_written_answer_is_graded_by_hand_and_its_rubric_stays_here(released: dict[str, Any]) -> None:
    cell = CELLS[WRITTEN]
    assert cell.cell_type == "markdown"
    assert grading(cell)["grade"]
    assert grading(cell)["solution"]
    assert f"Rubric ({grading(cell)['points']} points)" in cell.source
    assert released[WRITTEN].source == "YOUR ANSWER HERE"


def is_message(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "message"


def test_every_assertion_says_in_one_sentence_what_is_wrong() -> None:
    for step in STEPS:
        tree = ast.parse(CELLS[f"test_{step}"].source)
        asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
        assert asserts
        assert all(node.msg is not None for node in asserts)
        texts = [node.msg for node in asserts]
        texts += [n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and is_message(n.targets[0])]
        texts += [
            n.exc.args[0] for n in ast.walk(tree) if isinstance(n, ast.Raise) and isinstance(n.exc, ast.Call)
        ]
        said = [str(node.value) for node in texts if isinstance(node, ast.Constant)]
        assert len(said) > 2
        assert [text for text in said if not re.fullmatch(r"\w.{20,}\.", text)] == []


def test_code_cells_outside_of_the_tests_are_short() -> None:
    for cell in NB.cells:
        if cell.cell_type == "code" and not grading(cell).get("grade"):
            assert len(cell.source.splitlines()) <= 18


# ------------------------------------------------------------------------------------------- stored outputs


def test_graded_cells_have_checked_every_published_value_of_the_unit(tmp_path: Path) -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    document["cells"] = [
        cell
        for cell in document["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade") and cell.get("execution_count")
    ]
    graded = tmp_path / "graded.ipynb"
    graded.write_text(json.dumps(document), encoding="utf-8")
    wanted = {
        ident
        for ident, entry in published().items()
        if entry.graded and ident.startswith(("ex1.relu", "ex4.", "ex8.", "mech.tanh_"))
    }
    assert len(wanted) > 25
    assert wanted - set(checked_in(graded)) == set()


def test_the_notebook_was_run_from_top_to_bottom_and_carries_nothing_of_the_machine() -> None:
    code = [cell for cell in NB.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [cell.id for cell in NB.cells if set(cell.metadata) - {"nbgrader"}]
    kinds = {output.output_type for cell in code for output in cell.outputs}
    assert kinds == {"display_data", "stream"}
    assert "stderr" not in {output.get("name") for cell in code for output in cell.outputs}
    assert NB.metadata.kernelspec.name == "python3"
    assert "version" not in NB.metadata.language_info
    assert not re.search(r"/(home|root|tmp|work|usr)/", NOTEBOOK.read_text(encoding="utf-8"))


# --------------------------------------------------------------------------------------- answers, right or wrong


@functools.cache
def compiled(cell_id: str) -> Any:
    return compile(CELLS[cell_id].source, cell_id, "exec")


def in_another_process(function: FunctionType) -> Callable[..., Any]:
    """The function with numpy's own error handling: errstate of a test cell does not cross a process border."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return call


def run(step: str, answer: str | None = None, *, apart: bool = False) -> None:
    """Run the step's test cell on the reference, with ``answer`` executed on top of it."""
    names: dict[str, Any] = {}
    for cell_id in ("setup", *STEPS):
        exec(compiled(cell_id), names)
    if answer is not None:
        before = dict(names)
        exec(answer, names)
        if apart:
            mine = {n: v for n, v in names.items() if isinstance(v, FunctionType) and v is not before.get(n)}
            names.update({n: in_another_process(v) for n, v in mine.items()})
    exec(compiled(f"test_{step}"), names)


@pytest.mark.parametrize("step", STEPS)
def test_the_reference_passes(step: str) -> None:
    run(step)


@pytest.mark.parametrize("step", STEPS)
def test_the_untouched_stub_fails(step: str, released: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError):
        run(step, released[step].source)


ARRAY = "z = np.asarray(z, dtype=float)\n    "
GATE = "np.exp(-np.logaddexp(0, -z))"
INNER = "math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)"


def elementwise(name: str, expression: str) -> str:
    return f"def {name}(z):\n    {ARRAY}return {expression}"


def loop(name: str, expression: str) -> str:
    return (
        f"def {name}(z):\n    {ARRAY}out = np.empty(z.shape)\n"
        f"    for i, v in enumerate(z.flat):\n        out.flat[i] = {expression}\n    return out"
    )


Errors = type[Exception] | tuple[type[Exception], ...]


def wrong(step: str, ident: str, answer: str, message: str, error: Errors = AssertionError) -> Any:
    return pytest.param(step, answer, error, message, id=f"{step}-{ident}")


WRONG = [
    wrong(
        "relu",
        "changes-its-argument",
        f"def relu(z):\n    {ARRAY}z[z < 0] = 0\n    return z",
        "relu changes the array",
    ),
    wrong("relu", "one-number-only", "def relu(z):\n    return max(0, z)", "", TypeError),
    wrong("relu", "largest-entry", elementwise("relu", "np.max(np.append(z, 0))"), "shape"),
    wrong("relu", "leaky", elementwise("relu", "np.where(z > 0, z, 0.01 * z)"), "ex1.relu_B"),
    wrong("relu", "absolute", elementwise("relu", "np.abs(z)"), "ex1.relu_B"),
    wrong("relu", "times-mask", elementwise("relu", "z * (z > 0)"), "far from 0|infinite"),
    wrong("relu", "clipped", elementwise("relu", "np.clip(z, 0, 100)"), "infinite"),
    wrong("relu_grad", "one-at-zero", elementwise("relu_grad", "(z >= 0) * 1.0"), "convention_at_0"),
    wrong("relu_grad", "half-at-zero", elementwise("relu_grad", "np.heaviside(z, 0.5)"), "convention_at_0"),
    wrong("relu_grad", "truth-values", elementwise("relu_grad", "z > 0"), "which is no number"),
    wrong("relu_grad", "relu-again", elementwise("relu_grad", "np.maximum(z, 0)"), "random input"),
    wrong(
        "relu_grad",
        "central-difference",
        "def one_sided_slopes(z, step=1e-6):\n    return 2 * ((relu(z + step) - relu(z - step)) / (2 * step),)",
        "slope_left",
    ),
    wrong(
        "relu_grad",
        "right-first",
        "def one_sided_slopes(z, step=1e-6):\n"
        "    return (relu(z + step) - relu(z)) / step, (relu(z) - relu(z - step)) / step",
        "slope_left",
    ),
    wrong("relu_grad", "fixed-pair", "def one_sided_slopes(z, step=1e-6):\n    return 0.0, 1.0", "quotients"),
    wrong("sigmoid", "overflows-left", elementwise("sigmoid", "1 / (1 + np.exp(-z))"), "overflow|tiny"),
    wrong("sigmoid", "overflows-right", elementwise("sigmoid", "np.exp(z) / (1 + np.exp(z))"), "overflow|at 1000"),
    wrong("sigmoid", "cancels", elementwise("sigmoid", "0.5 * (1 + np.tanh(z / 2))"), "left tail"),
    wrong("sigmoid", "clipped", elementwise("sigmoid", "1 / (1 + np.exp(-np.clip(z, -500, 500)))"), "-1000"),
    wrong("sigmoid", "is-tanh", elementwise("sigmoid", "np.tanh(z)"), "sigmoid_neg"),
    wrong("sigmoid", "mirrored", elementwise("sigmoid", "1 / (1 + np.exp(np.minimum(z, 700)))"), "sigmoid_neg"),
    wrong("silu", "tanh-for-gate", elementwise("silu", "z * np.tanh(z)"), "silu_neg"),
    wrong("silu", "gate-mirrored", elementwise("silu", "z * sigmoid(-z)"), "silu_neg"),
    wrong("silu", "negative-cut-off", elementwise("silu", "np.maximum(z, 0) * sigmoid(z)"), "silu_neg"),
    wrong(
        "silu",
        "whole-numbers",
        loop("silu", "v * sigmoid(v)")
        .replace("np.asarray(z, dtype=float)", "np.array(z)")
        .replace("np.empty(z.shape)", "np.zeros_like(z)"),
        "whole numbers",
    ),
    wrong(
        "silu", "changes-its-argument", f"def silu(z):\n    {ARRAY}z *= sigmoid(z)\n    return z", "silu changes"
    ),
    wrong("silu", "overflows", elementwise("silu", "z / (1 + np.exp(-z))"), "overflow|tiny"),
    wrong(
        "normal_cdf", "erf-in-the-tail", elementwise("normal_cdf", "0.5 * (1 + erf(z / math.sqrt(2)))"), "phi_neg"
    ),
    wrong("normal_cdf", "no-root", elementwise("normal_cdf", "0.5 * erfc(-z)"), "phi_neg"),
    wrong("normal_cdf", "not-halved", elementwise("normal_cdf", "erfc(-z / math.sqrt(2))"), "phi_neg"),
    wrong("normal_cdf", "mirrored", elementwise("normal_cdf", "0.5 * erfc(z / math.sqrt(2))"), "phi_neg"),
    wrong(
        "normal_cdf",
        "clipped",
        elementwise("normal_cdf", "0.5 * erfc(-np.clip(z, -10, 10) / math.sqrt(2))"),
        "far from 0|left tail",
    ),
    wrong("gelu", "tanh-form", elementwise("gelu", f"z * (1 + np.tanh({INNER})) / 2"), "gelu_neg"),
    wrong("gelu", "sigmoid-form", elementwise("gelu", "z * sigmoid(1.702 * z)"), "gelu_neg"),
    wrong("gelu", "tail-lost", elementwise("gelu", "z * 0.5 * (1 + erf(z / math.sqrt(2)))"), "ex8.gelu_neg"),
    wrong("gelu", "gate-alone", elementwise("gelu", "normal_cdf(z)"), "gelu_neg"),
    wrong(
        "gelu", "one-number-only", "def gelu(z):\n    return z * normal_cdf(z).item()", "", (TypeError, ValueError)
    ),
    wrong(
        "gelu_tanh",
        "constant-misplaced",
        elementwise("gelu_tanh", f"z * (1 + np.tanh({INNER})) / 2").replace("0.044715", "0.44715"),
        "4.73e-4",
    ),
    wrong("gelu_tanh", "exact-form", elementwise("gelu_tanh", "z * normal_cdf(z)"), "4.73e-4"),
    wrong(
        "gelu_tanh",
        "position-instead-of-place",
        "def largest_gap(z):\n    gap = np.abs(gelu(z) - gelu_tanh(z))\n    return gap.max(), np.argmax(gap)",
        "2.70",
    ),
    wrong(
        "gelu_tanh",
        "sign-forgotten",
        "def largest_gap(z):\n    gap = gelu(z) - gelu_tanh(z)\n    i = np.argmin(gap)\n"
        "    return abs(gap[i]), abs(z[i])",
        "4.73e-4|2.70|grid",
    ),
    wrong("gelu_tanh", "fixed-pair", "def largest_gap(z):\n    return 4.73e-4, 2.70", "its grid"),
    wrong(
        "tanh_neuron",
        "by-input",
        "def tanh_neuron_dw(x, w, b):\n    return (1 - tanh_neuron(x, w, b) ** 2) * w",
        "mech.tanh_dh_dw",
    ),
    wrong(
        "tanh_neuron",
        "by-bias",
        "def tanh_neuron_dw(x, w, b):\n    return 1 - tanh_neuron(x, w, b) ** 2",
        "mech.tanh_dh_dw",
    ),
    wrong(
        "tanh_neuron",
        "square-forgotten",
        "def tanh_neuron_dw(x, w, b):\n    return (1 - tanh_neuron(x, w, b)) * x",
        "saturated",
    ),
    wrong(
        "tanh_neuron",
        "of-the-pre-activation",
        "def tanh_neuron_dw(x, w, b):\n    return (1 - (w * x + b) ** 2) * x",
        "saturated",
    ),
    wrong(
        "tanh_neuron",
        "bias-forgotten",
        "def tanh_neuron(x, w, b):\n    return np.tanh(w * x)",
        "tanh_neuron is not",
    ),
    wrong(
        "silu_grad", "no-product-rule", elementwise("silu_grad", "sigmoid(z) * (1 - sigmoid(z))"), "differences"
    ),
    wrong("silu_grad", "first-term-only", elementwise("silu_grad", "sigmoid(z)"), "differences"),
    wrong(
        "silu_grad",
        "second-term-only",
        elementwise("silu_grad", "z * sigmoid(z) * (1 - sigmoid(z))"),
        "differences",
    ),
    wrong(
        "silu_grad",
        "difference-quotient",
        elementwise("silu_grad", "(silu(z + 1e-6) - silu(z - 1e-6)) / 2e-6"),
        "random input|one half",
    ),
    wrong("gelu_grad", "first-term-only", elementwise("gelu_grad", "normal_cdf(z)"), "differences"),
    wrong(
        "gelu_grad",
        "density-alone",
        elementwise("gelu_grad", "np.exp(-z * z / 2) / math.sqrt(2 * math.pi)"),
        "differences",
    ),
    wrong(
        "gelu_grad",
        "density-not-scaled",
        elementwise("gelu_grad", "normal_cdf(z) + z * np.exp(-z * z / 2)"),
        "differences",
    ),
    wrong("gelu_grad", "slope-of-silu", "gelu_grad = silu_grad", "differences"),
    wrong(
        "tail_reach",
        "sign-kept",
        'def tail_reach(tolerance, z):\n    found = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}\n'
        "    return {n: np.min(z[f >= tolerance], initial=0) for n, f in found.items()}",
        "order of the three tails",
    ),
    wrong(
        "tail_reach",
        "entries-taken-as-sorted",
        'def tail_reach(tolerance, z):\n    found = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}\n'
        "    marked = {n: z[np.abs(f) >= tolerance] for n, f in found.items()}\n"
        "    return {n: m[0] if m.size else 0 for n, m in marked.items()}",
        "random order",
    ),
    wrong(
        "tail_reach",
        "empty-case-forgotten",
        'def tail_reach(tolerance, z):\n    found = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}\n'
        "    return {n: z[np.abs(f) >= tolerance].min() for n, f in found.items()}",
        "zero-size array",
        ValueError,
    ),
    wrong(
        "tail_reach",
        "wrong-side",
        'def tail_reach(tolerance, z):\n    found = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}\n'
        "    return {n: np.max(z[np.abs(f) < tolerance], initial=-40) for n, f in found.items()}",
        "",
    ),
]


@pytest.mark.parametrize("apart", [False, True], ids=["same-process", "own-process"])
@pytest.mark.parametrize(("step", "answer", "error", "message"), WRONG)
def test_a_wrong_answer_loses_the_step(step: str, answer: str, error: Errors, message: str, apart: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=message):
            run(step, answer, apart=apart)


def test_every_step_has_wrong_answers() -> None:
    assert min(Counter(case.values[0] for case in WRONG)[step] for step in STEPS) >= 3


def right(step: str, name: str, **answers: str) -> list[Any]:
    return [pytest.param(step, name, answer, id=f"{name}-{how}") for how, answer in answers.items()]


TAIL = "0.5 * erfc(np.abs(z) / math.sqrt(2))"
DENSITY = "0.3989422804014327 * np.exp(-0.5 * np.square(z))"
SCALAR_GATE = "(1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v)))"
SCALAR_CDF = "math.erfc(-v / math.sqrt(2)) / 2"
# The helper module's own functions keep float32 and get there by other formulas.
FLOAT32 = "import ffn\n{0} = ffn.{0}"
NAMES = '(("relu", relu), ("gelu", gelu), ("silu", silu))'

RIGHT = [
    *right(
        "relu",
        "relu",
        loop=loop("relu", "max(0.0, v)"),
        where=elementwise("relu", "np.where(z > 0, z, 0)"),
        float32=FLOAT32.format("relu"),
        copy="def relu(z):\n    z = np.array(z, dtype=float)\n    z[z < 0] = 0\n    return z",
        whole="def relu(z):\n    return np.maximum(z, 0)",
    ),
    *right(
        "relu_grad",
        "relu_grad",
        loop=loop("relu_grad", "1 if v > 0 else 0"),
        mask=elementwise("relu_grad", "(z > 0).astype(int)"),
        float32=FLOAT32.format("relu_grad"),
        heaviside="def relu_grad(z):\n    return np.heaviside(z, 0)",
    ),
    *right(
        "relu_grad",
        "one_sided_slopes",
        loop="def one_sided_slopes(z, step=1e-6):\n"
        "    return [(relu(z) - relu(z + s)) / -s for s in (-step, step)]",
        vectorised="def one_sided_slopes(z, step=1e-6):\n    return np.diff(relu([z - step, z, z + step])) / step",
        float32="def one_sided_slopes(z, step=1e-6):\n    z, step = np.float32(z), np.float32(step)\n"
        "    return (max(z, 0) - max(z - step, 0)) / step, (max(z + step, 0) - max(z, 0)) / step",
    ),
    *right(
        "sigmoid",
        "sigmoid",
        loop=loop("sigmoid", SCALAR_GATE),
        logaddexp=elementwise("sigmoid", GATE),
        float32=FLOAT32.format("sigmoid"),
        masks=f"def sigmoid(z):\n    {ARRAY}out = np.empty(z.shape)\n    left = z < 0\n"
        "    out[left] = np.exp(z[left]) / (1 + np.exp(z[left]))\n"
        "    out[~left] = 1 / (1 + np.exp(-z[~left]))\n    return out",
    ),
    *right(
        "silu",
        "silu",
        loop=loop("silu", f"v * {SCALAR_GATE}"),
        logaddexp=elementwise("silu", f"z * {GATE}"),
        float32=FLOAT32.format("silu"),
    ),
    *right(
        "normal_cdf",
        "normal_cdf",
        loop=loop("normal_cdf", SCALAR_CDF),
        two_sides=elementwise("normal_cdf", f"np.where(z < 0, {TAIL}, 1 - {TAIL})"),
        float32=FLOAT32.format("normal_cdf"),
    ),
    *right(
        "gelu",
        "gelu",
        loop=loop("gelu", f"v * {SCALAR_CDF}"),
        two_sides=elementwise("gelu", f"np.maximum(z, 0) - np.abs(z) * {TAIL}"),
        float32=FLOAT32.format("gelu"),
    ),
    *right(
        "gelu_tanh",
        "gelu_tanh",
        loop=loop("gelu_tanh", f"v / 2 * (1 + math.tanh({INNER.replace('z', 'v')}))"),
        by_sigmoid=elementwise("gelu_tanh", f"z * sigmoid(2 * {INNER})"),
        float32=FLOAT32.format("gelu_tanh"),
    ),
    *right(
        "gelu_tanh",
        "largest_gap",
        loop="def largest_gap(z):\n    best = (0.0, 0.0)\n    for v in z:\n"
        "        gap = float(abs(gelu(v) - gelu_tanh(v)))\n"
        "        if gap > best[0]:\n            best = (gap, abs(float(v)))\n    return best",
        pairs="def largest_gap(z):\n    return max(zip(np.abs(gelu(z) - gelu_tanh(z)), np.abs(z)))",
        sort="def largest_gap(z):\n    gap = np.abs(gelu(z) - gelu_tanh(z))\n    last = np.argsort(gap)[-1]\n"
        "    return [gap[last], abs(z)[last]]",
    ),
    *right(
        "tanh_neuron",
        "tanh_neuron",
        scalar="def tanh_neuron(x, w, b):\n    return math.tanh(x * w + b)",
        by_sigmoid="def tanh_neuron(x, w, b):\n    return 2 * sigmoid(2 * (w * x + b)) - 1",
        dot="def tanh_neuron(x, w, b):\n    return np.tanh(np.dot([x, 1], [w, b]))",
    ),
    *right(
        "tanh_neuron",
        "tanh_neuron_dw",
        cosh="def tanh_neuron_dw(x, w, b):\n    return x / math.cosh(w * x + b) ** 2",
        factors="def tanh_neuron_dw(x, w, b):\n    a = np.tanh(w * x + b)\n    return x * (1 - a) * (1 + a)",
        float64="import ffn\ndef tanh_neuron_dw(x, w, b):\n    return ffn.tanh_grad(np.array([w * x + b]))[0] * x",
    ),
    *right(
        "silu_grad",
        "silu_grad",
        loop=loop("silu_grad", f"{SCALAR_GATE} * (1 + v * (1 - {SCALAR_GATE}))"),
        mirrored=elementwise("silu_grad", "sigmoid(z) + z * sigmoid(z) * sigmoid(-z)"),
        float32=FLOAT32.format("silu_grad"),
    ),
    *right(
        "gelu_grad",
        "gelu_grad",
        loop=loop("gelu_grad", f"{SCALAR_CDF} + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)"),
        two_sides=elementwise("gelu_grad", f"np.where(z < 0, {TAIL}, 1 - {TAIL}) + z * {DENSITY}"),
        float32=FLOAT32.format("gelu_grad"),
    ),
    *right(
        "tail_reach",
        "tail_reach",
        loop=f"def tail_reach(tolerance, z):\n    reach = {{}}\n    for name, f in {NAMES}:\n"
        "        reach[name] = 0\n        for v in z:\n"
        "            if abs(f(v)) >= tolerance and v < reach[name]:\n                reach[name] = v\n"
        "    return reach",
        where=f"def tail_reach(tolerance, z):\n"
        f"    return {{n: np.where(np.abs(f(z)) >= tolerance, z, 0).min() for n, f in {NAMES}}}",
        sort=f"def tail_reach(tolerance, z):\n    z = np.sort(z)\n"
        f"    return {{n: next((float(v) for v, y in zip(z, f(z)) if -y >= tolerance), 0.0) for n, f in {NAMES}}}",
    ),
]


@pytest.mark.parametrize("apart", [False, True], ids=["same-process", "own-process"])
@pytest.mark.parametrize(("step", "name", "answer"), RIGHT)
def test_a_right_answer_written_differently_passes(step: str, name: str, answer: str, apart: bool) -> None:
    assert name in functions(CELLS[step].source)
    run(step, answer, apart=apart)


def test_every_function_has_three_differently_written_right_answers() -> None:
    asked = [name for step in STEPS for name in functions(CELLS[step].source)]
    assert min(Counter(case.values[1] for case in RIGHT)[name] for name in asked) >= 3


def test_the_helper_module_agrees_with_the_reference() -> None:
    names: dict[str, Any] = {}
    for cell_id in ("setup", *STEPS):
        exec(compiled(cell_id), names)
    z = np.linspace(-12, 12, 97)
    for name in (
        "relu",
        "relu_grad",
        "sigmoid",
        "silu",
        "gelu",
        "gelu_tanh",
        "silu_grad",
        "gelu_grad",
        "normal_cdf",
    ):
        np.testing.assert_allclose(names[name](z), getattr(ffn, name)(z), rtol=1e-9, atol=1e-13, err_msg=name)
