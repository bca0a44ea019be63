"""What is seen in the source of an answer: the course's module doing the step, and published values typed in."""

import ast
import time
from pathlib import Path
from typing import Any

import nbformat
import pytest

from ffn.misconceptions import UNITS, unit_steps
from ffn.published import published
from grader.course import Course
from grader.flags import LONGEST, answer_flags, flags, withholds
from grader.notebooks import checked_ids, grade_id, read_notebook, steps
from tests.helpers import ROOT


def reference(unit: str) -> Any:
    return read_notebook(Course(ROOT).reference(unit))


def learner_notebook(
    unit: str = "activations",
    answers: dict[str, str] | None = None,
    before: dict[str, str] | None = None,
    broken_off: tuple[str, ...] = (),
) -> Any:
    """A unit's notebook with some answers replaced, and cells of a learner's own before cells of the unit."""
    notebook = reference(unit)
    cells = []
    for cell in notebook["cells"]:
        name = str(grade_id(cell))
        if name in (before or {}):
            cells.append(nbformat.v4.new_code_cell((before or {})[name]))
        if name in (answers or {}):
            cell["source"] = (answers or {})[name]
        if name in broken_off:
            cell["outputs"] = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
        cells.append(cell)
    notebook["cells"] = cells
    return notebook


def seen(unit: str = "activations", **changes: Any) -> dict[str, list[str]]:
    return flags(learner_notebook(unit, **changes), reference(unit))


# --------------------------------------------------------------------------------- the course's module in an answer


@pytest.mark.parametrize(
    "answer",
    [
        "import ffn\n\n\ndef gelu(z):\n    return ffn.gelu(z)",
        "import ffn as f",
        "import numpy, ffn.activations",
        "import ffn.activations as a",
        "from ffn import gelu",
        "from ffn import *",
        "from ffn.activations import gelu as mine",
        "def gelu(z):\n    from ffn import gelu as g\n\n    return g(z)",
        "def gelu(z):\n    return ffn.gelu(z)",
        "gelu = lambda z: ffn.gelu(z)",
        "class A:\n    import ffn",
        "try:\n    import ffn\nexcept ImportError:\n    pass",
        "if True: from ffn import gelu",
        "name = 'ffn'",
        "name = 'ffn.activations'",
        "name = 'ffn:gelu'",
        "text = 'import ffn; print(ffn.gelu(1))'",
        "text = 'from ffn.activations import gelu'",
        "f'{ffn.gelu(1)}'",
        "%time import ffn",
        "%%time\nimport ffn",
        "%%time\nfrom ffn import gelu\n",
        "  import ffn",
        ">>> import ffn",
        "await thing\nimport ffn",
        "# a comment\nx = 1; import ffn",
    ],
)
def test_the_module_is_seen_in_every_spelling(answer: str) -> None:
    assert answer_flags(answer) == ["uses ffn"]


@pytest.mark.parametrize(
    ("answer", "way"),
    [
        ("__import__('ff' + 'n')", "__import__"),
        ("import importlib\nimportlib.import_module('f' + 'fn')", "importlib"),
        ("from importlib import import_module as get", "importlib"),
        ("import sys\nm = sys.modules['f' + 'fn']", "modules"),
        ("from sys import modules as m", "modules"),
        ("check.__globals__", "check"),
        ("def f():\n    return testing", "testing"),
        ("published_inputs('ex1')", "published_inputs"),
        ("relu.__globals__", "__globals__"),
        ("getattr(relu, '__globals__')", "__globals__"),
        ("__builtins__['__import__']", "__builtins__"),
        ("import builtins", "builtins"),
        ("print.__self__", "__self__"),
        ("exec('...')", "exec"),
        ("eval('...')", "eval"),
        ("open('x').read()", "open"),
        ("vars()['g']", "vars"),
        ("globals()['g']", "globals"),
        ("import pkgutil", "pkgutil"),
        ("import runpy", "runpy"),
        ("import subprocess", "subprocess"),
        ("import helper_that_i_handed_in", "helper_that_i_handed_in"),
        ("from grader import check as c", "grader"),
        ("%run helper.py", "%run"),
        ("%%bash\nls", "%bash"),
        ("!ls", "!"),
        ("files = !ls", "!"),
        ("get_ipython().run_cell('1')", "run_cell"),
        ("import sys\nsys._getframe(1)", "_getframe"),
    ],
)
def test_ways_around_the_import_statement_are_seen(answer: str, way: str) -> None:
    assert f"uses {way}" in answer_flags(answer)
    assert withholds(answer_flags(answer))


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "pass",
        "import numpy as np\nimport math\nfrom scipy.special import erf\nimport matplotlib.pyplot as plt",
        "import sys\nlargest = sys.float_info.max",
        "import re\npattern = re.compile('a')",
        '"""Like ffn.gelu, but by hand; the ffn comes after attention."""',
        "# import ffn",
        "print('the ffn block', 'ffn output')",
        "def residual(x, ffn):\n    return x + ffn(x)",
        "def residual(x):\n    ffn = block(x)\n    return x + ffn",
        "ffn = block(1)\nprint(ffn)",
        "ffn_out = 1\nmyffn = 2",
        "from math import ffn",
        "def open_units(h):\n    return [opened for opened in h]",
        "def f(check, testing, modules, eval):\n    return check + testing + modules + eval",
        "fields = vars(budget)",
        "%matplotlib inline\nx = 1",
        "%timeit 1 + 1",
        "%%time\nx = 1",
        "np.maximum?",
        "raise NotImplementedError()",
    ],
)
def test_an_ordinary_answer_has_no_flag(answer: str) -> None:
    assert answer_flags(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "def gelu(z)\n    import ffn",
        "import ffn\n)",
        "import ffn\n\x00",
        "\ufeffimport ffn",
        "if",
        "1" * 5000 + "x",
    ],
    ids=["colon", "bracket", "nul", "bom", "cut", "digits"],
)
def test_what_does_not_run_has_no_flag(answer: str) -> None:
    assert answer_flags(answer) == []


def test_every_way_is_named_once_and_in_order() -> None:
    answer = "import ffn\nexec('1')\nfrom ffn import gelu\nexec('2')"
    assert answer_flags(answer) == ["uses ffn", "uses exec"]


def test_an_answer_without_end_is_not_looked_at_and_says_so() -> None:
    assert answer_flags("x = 1\n" * LONGEST) == ["uses more than 100,000 characters"]


@pytest.mark.parametrize("answer", ["-" * 90_000 + "1", "x = " + "1 + " * 9000 + "1"], ids=["signs", "sum"])
def test_an_answer_that_is_nested_too_deep_says_so(answer: str) -> None:
    assert answer_flags(answer) == ["uses an expression that is nested too deep to be looked at"]


def test_a_long_sum_is_ordinary() -> None:
    assert answer_flags("def f(x):\n    return " + " + ".join(["x"] * 900)) == []


@pytest.mark.parametrize("answer", ["x=1\n" * 8_000, "x[0]=1\n" * 8_000, "a=" * 33_000 + "1", "(" * 50_000])
def test_looking_at_a_large_answer_comes_to_an_end(answer: str) -> None:
    start = time.monotonic()
    answer_flags(answer)
    assert time.monotonic() - start < 30


# ------------------------------------------------------------------------------------------ published values typed in


def typed(answer: str, known: str = "", ids: list[str] | None = None) -> list[str]:
    """Ids that an answer is said to have typed in."""
    found = [flag for flag in answer_flags(answer, known, ids) if flag.startswith("has the published ")]
    assert len(found) < 2
    return [
        name
        for flag in found
        for name in flag.removeprefix("has the published ").split(" typed in")[0].split(", ")
    ]


@pytest.mark.parametrize(
    ("text", "ident"),
    [
        ("-0.188770", "ex4.silu_neg"),
        ("-0.18877", "ex4.silu_neg"),
        ("-1.88770e-1", "ex4.silu_neg"),
        ("-0.1887703343990727", "ex4.silu_neg"),
        ("-0.188770334", "ex4.silu_neg"),
        ("0.188770", "ex4.silu_neg"),
        ("float('-0.188770')", "ex4.silu_neg"),
        ("[0.377541, 1]", "ex4.sigmoid_neg"),
        ("{-0.5: -0.154269}", "ex4.gelu_neg"),
        ("0.977250", "ex4.phi_pos"),
        ("4_722_432", "ex6.sublayer"),
        ("4722432.0", "ex6.sublayer"),
        ("216.18", "ex6.mebibytes"),
        ("216.2", "ex6.mebibytes"),
        ("7.6e-24", "ex8.phi_neg"),
        ("-7.619853024160526e-23", "ex8.gelu_neg"),
        ("1.7", "ex1.z_A"),
        ("10.5625", "ex3.variance"),
        ("0.0398", "mech.tanh_dh_dw_saturated"),
        ("162", "mech.core_params"),
        ("[1, -1, 3.5]", "ex2.u"),
        ("np.array((4.5, 0))", "ex2.y"),
        ("[[0, 3], [3.5, 0]]", "ex5.swapped"),
        ("np.array([[3, 2], [1, 1]])", "ex7.W"),
        ("(64, 256, 64)", "tiny.widths"),
        ("[2.25, 0, -1.25]", "tiny.output"),
    ],
)
def test_a_published_value_is_seen_in_every_form(text: str, ident: str) -> None:
    assert ident in typed(f"def f(z):\n    return {text}")


NUMBERS = [
    x for x in published().values() if isinstance(x.value, int | float) and len(str(x.value)) > 3 and x.value != 10
]


@pytest.mark.parametrize("entry", NUMBERS, ids=lambda entry: entry.ident)
def test_every_published_value_of_some_length_is_seen_as_it_is_computed(entry: Any) -> None:
    assert entry.ident in typed(f"x = {entry.value!r}")


@pytest.mark.parametrize(
    "text",
    ["0", "1", "2.0", "10", "0.5", "[1, -1]", "(1, 1)", "[0, 0]", "True", "1j", "1e999", "0.1887", "'0.19'"],
)
def test_what_is_too_short_to_tell_is_no_published_value(text: str) -> None:
    assert typed(f"x = {text}") == []


def test_numbers_in_a_docstring_are_ordinary() -> None:
    assert typed('def silu(z):\n    """silu(-0.5) is -0.188770."""') == []


def test_a_number_that_the_reference_needs_too_is_allowed() -> None:
    assert typed("x = 0.377541", "y = 0.377541") == []
    assert typed("x = [4.5, 0]", "y = [4.5, 0]") == []


def test_values_of_other_steps_are_ordinary() -> None:
    assert typed("x = 0.377541", ids=["ex4.silu_neg"]) == []


def test_typed_values_are_told_but_cost_nothing() -> None:
    assert answer_flags("x = -0.188770") == ["has the published ex4.silu_neg typed in"]
    assert not withholds(answer_flags("x = -0.188770"))


# ------------------------------------------------------------------------------------------------ whole notebooks


@pytest.mark.parametrize("unit", UNITS)
def test_the_reference_notebook_has_no_flag(unit: str) -> None:
    assert flags(reference(unit), reference(unit)) == {}


@pytest.mark.parametrize("unit", UNITS)
def test_the_learner_notebook_has_no_flag(unit: str) -> None:
    assert flags(read_notebook(Course(ROOT).exercise(unit)), reference(unit)) == {}


def right_answers(unit: str) -> list[tuple[str, str]]:
    """Steps with right answers of tools/audit, each with the helpers that it calls."""
    path = ROOT / "tools" / "audit" / "alternatives" / f"{unit.replace('-', '_')}.py"
    body = ast.parse(path.read_text(encoding="utf-8")).body
    helpers = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
    lists = {ast.unparse(node.target): node.value for node in body if isinstance(node, ast.AnnAssign)}
    lists |= {ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
    table = lists["ALTERNATIVES"]
    assert isinstance(table, ast.Dict)
    step_of = {function: step.name for step in unit_steps(unit) for function in step.own}

    def called(node: ast.AST, known: dict[str, ast.FunctionDef]) -> dict[str, ast.FunctionDef]:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in helpers and part.id not in known:
                known[part.id] = helpers[part.id]
                called(helpers[part.id], known)
        return known

    found = []
    for key, several in zip(table.keys, table.values, strict=True):
        function = ast.literal_eval(key or several)
        listed = lists.get(ast.unparse(several), several)
        for item in getattr(listed, "elts", [listed]):
            value = item.value if isinstance(item, ast.Starred) else item
            source = [*map(ast.unparse, called(value, {}).values()), f"{function} = {ast.unparse(value)}"]
            found.append((step_of[function], "\n".join(source)))
    return found


@pytest.mark.parametrize("unit", UNITS)
def test_right_answers_written_differently_have_no_flag_unless_they_use_the_module(unit: str) -> None:
    book = reference(unit)
    cells = {str(grade_id(cell)): cell for cell in book["cells"]}
    answers = right_answers(unit)
    assert len(answers) > 30
    wrong = []
    for step, answer in answers:
        ids = [ident for test in steps(book)[step] for ident in checked_ids(cells[test]["outputs"])]
        uses = any(isinstance(part, ast.Name) and part.id == "ffn" for part in ast.walk(ast.parse(answer)))
        if answer_flags(answer, cells[step]["source"], ids) != ["uses ffn"] * uses:
            wrong.append((step, answer))
    assert wrong == []


def test_flags_are_told_step_by_step() -> None:
    answers = {"gelu": "from ffn import gelu", "silu": "def silu(z):\n    return {-0.5: -0.188770}[z]"}
    assert seen(answers=answers) == {
        "silu": ["has the published ex4.silu_neg typed in"],
        "gelu": ["uses ffn"],
    }


def test_a_function_of_another_step_does_not_count_for_this_one() -> None:
    answers = {"gelu": "from ffn import gelu", "gelu_grad": "def gelu_grad(z):\n    return gelu(z)"}
    assert list(seen(answers=answers)) == ["gelu"]


def test_an_import_in_another_answer_is_followed() -> None:
    answers = {"relu": "from ffn import relu, gelu as g", "gelu": "def gelu(z):\n    return g(z)"}
    assert seen(answers=answers) == {"relu": ["uses ffn"], "gelu": ["uses ffn"]}


def test_an_import_in_a_cell_of_one_s_own_is_followed() -> None:
    before = {"relu": "from ffn import activations as a\nhelp_me = a.gelu"}
    answers = {"gelu": "def gelu(z):\n    return help_me(z)"}
    assert seen(answers=answers, before=before) == {"gelu": ["uses ffn"]}


@pytest.mark.parametrize("place", ["gelu", "test_gelu", "hidden_gelu"])
@pytest.mark.parametrize(
    "line", ["from ffn import gelu", "from ffn.activations import *", "import ffn; gelu = ffn.gelu"]
)
def test_an_answer_replaced_from_a_cell_of_one_s_own_is_seen(place: str, line: str) -> None:
    assert seen(answers={"gelu": "pass"}, before={place: line})["gelu"] == ["uses ffn"]


def test_an_answer_that_broke_off_does_not_cover_an_import_before_it() -> None:
    answers = {"gelu": "1 / 0\ndef gelu(z):\n    return z"}
    before = {"gelu": "from ffn import gelu"}
    assert seen(answers=answers, before=before) == {}
    assert seen(answers=answers, before=before, broken_off=("gelu",)) == {"gelu": ["uses ffn"]}


def test_the_module_put_into_an_object_is_followed() -> None:
    before = {"relu": "import ffn\nbox = {}\nbox['gelu'] = ffn.gelu"}
    assert seen(answers={"gelu": "def gelu(z):\n    return box['gelu'](z)"}, before=before) == {
        "gelu": ["uses ffn"]
    }


@pytest.mark.parametrize(
    "cell",
    [
        "import ffn\nprint(np.allclose(gelu(1), ffn.gelu(1)))",
        "from ffn import gelu as right\nassert np.allclose(gelu(1), right(1))",
        "results = {}\nimport ffn\nresults['ffn'] = ffn.gelu(1)",
        "import ffn\nresults = {'ffn': ffn.gelu(1)}\nresults['mine'] = gelu(1)",
        "from ffn import FeedForward\nblock = FeedForward\nother = block(1, 2)\nother.W_1 = 3",
        "import ffn\nfor z in (1, 2):\n    print(ffn.gelu(z))",
        "import matplotlib.pyplot as plt\nplt.rcParams['font.size'] = 12",
        "z = 3\nx = -0.188770",
    ],
)
def test_comparing_with_the_module_in_a_cell_of_one_s_own_is_ordinary(cell: str) -> None:
    assert seen(before={"test_gelu": cell}) == {}


def test_a_local_name_is_not_taken_for_an_import_elsewhere() -> None:
    before = {"relu": "from ffn import gelu as g"}
    assert seen(answers={"gelu": "def gelu(g):\n    return g"}, before=before) == {}


def test_typed_values_in_a_cell_of_one_s_own_are_followed() -> None:
    before = {"silu": "TABLE = {-0.5: -0.188770, 2.0: 1.761594}"}
    found = seen(answers={"silu": "def silu(z):\n    return TABLE[z]"}, before=before)
    assert found == {"silu": ["has the published ex4.silu_neg, ex4.silu_pos typed in"]}


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ("class testing:\n    pass", "testing"),
        ("def check(*a):\n    pass", "check"),
        ("np.allclose = lambda *a, **k: True", "np"),
        ("setattr(np, 'allclose', print)", "np"),
        ("float = round", "float"),
        ("Trial = type(testing('activations.relu'))\nTrial.__exit__ = lambda *a: True", "testing"),
        ("type(testing('activations.relu')).__exit__ = lambda *a: True", "testing"),
        ("import ffn.exercise as e\ne.Trial.__exit__ = lambda *a: True", "ffn"),
    ],
)
def test_tampering_with_what_the_tests_use_is_seen(cell: str, name: str) -> None:
    found = seen(before={"gelu": cell})
    assert f"uses {name} of its own" in found["gelu"]
    assert withholds(found["gelu"])
    assert not found.keys() & {"relu", "silu"}


@pytest.mark.parametrize(
    "line", ["import numpy as np", "import math", "from math import sqrt", "sum = 1", "z = 1"]
)
def test_an_answer_may_import_again_and_use_common_names(line: str) -> None:
    assert seen(answers={"gelu": f"{line}\ndef gelu(z):\n    return z"}) == {}


def test_a_cell_of_one_s_own_that_is_not_looked_at_is_told_in_the_steps_after_it() -> None:
    found = seen(before={"tail_reach": "x = 1\n" * LONGEST})
    assert found == {"tail_reach": ["uses more than 100,000 characters"]}


def test_a_deleted_answer_is_no_fault_of_the_looking() -> None:
    notebook = reference("activations")
    notebook["cells"] = [cell for cell in notebook["cells"] if grade_id(cell) != "gelu"]
    assert flags(notebook, reference("activations")) == {}


def test_what_the_set_up_imports_is_allowed() -> None:
    answer = "def swiglu(x, W_g, W_u, W_d):\n    return (silu(x @ W_g) * (x @ W_u)) @ W_d"
    assert seen("swiglu", answers={"swiglu": answer}) == {}


@pytest.mark.slow
def test_looking_at_a_large_notebook_comes_to_an_end() -> None:
    notebook = learner_notebook(before={"relu": "x1 = 1\n" * 14_000})
    notebook["cells"][0:0] = [nbformat.v4.new_code_cell("y = x\n" * 16_000) for _ in range(60)]
    start = time.monotonic()
    flags(notebook, reference("activations"))
    assert time.monotonic() - start < 60


def test_nothing_of_an_answer_is_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    answer_flags(f"from pathlib import Path\nPath({str(trace)!r}).touch()")
    seen(before={"relu": "raise SystemExit"}, answers={"gelu": f"import os\nos.mkdir({str(trace)!r})"})
    assert not trace.exists()
