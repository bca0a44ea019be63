"""Look at a learner's code for what a test cannot see: the course's own module doing a step, and values typed in.

Nothing is run. What an answer takes from other cells of the learner is followed to where it comes from: a name
imported in a cell of one's own is an import too. What is found is told to the instructor, and the engine
lets an answer that uses the course's module keep the visible marks of its step at most.

It finds what a person would write, and the usual ways around that; code made to deceive can do more.
"""

import ast
import builtins
import math
import re
import symtable
import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from grader.notebooks import checked_ids, grade_id, is_hidden, steps

__all__ = ["LONGEST", "answer_flags", "flags", "withholds"]

LONGEST = 100_000
"""A cell of more characters is not looked at, which is a flag of its own; of all cells five times as many are."""

_USES = "uses "

_TOOLS = {"agree", "check", "published_inputs", "testing"}
# What the tests rely on, and a learner's code leaves as it is.
_GUARDED = _TOOLS | {"math", "np"} | {name for name in dir(builtins) if not name.startswith("_")}
_FUNCTIONS = {
    "__builtins__",
    "__import__",
    "__loader__",
    "__spec__",
    "compile",
    "delattr",
    "eval",
    "exec",
    "globals",
    "locals",
    "open",
    "setattr",
}
# No answer needs these: modules by another way than an import statement, and the insides of functions.
_ATTRIBUTES = {
    "__builtins__",
    "__closure__",
    "__code__",
    "__globals__",
    "__import__",
    "__loader__",
    "__self__",
    "__spec__",
    "__subclasses__",
    "__wrapped__",
    "_getframe",
    "f_back",
    "f_globals",
    "getmodule",
    "import_module",
    "modules",
    "popen",
    "resolve_name",
    "run_cell",
    "run_code",
    "run_module",
    "run_path",
    "user_global_ns",
    "user_ns",
}
_DOORS = {"builtins", "ctypes", "gc", "importlib", "pkgutil", "runpy", "subprocess", "zipimport"}
# Beside the standard library; any other module may be a file that the learner handed in, with the import inside.
_ORDINARY = {"IPython", "matplotlib", "mpmath", "numpy", "scipy", "sympy"}
_NAMES_OF_THE_MODULE = re.compile(r"ffn(?:[.:/]\S*)?")
_IMPORT_IN_TEXT = re.compile(r"\bimport\s+ffn\b|\bfrom\s+ffn\b[\w.]*\s+import\b")

_HARMLESS_MAGIC = {
    "autoreload",
    "config",
    "load_ext",
    "matplotlib",
    "pdb",
    "pinfo",
    "pinfo2",
    "pprint",
    "precision",
    "who",
    "whos",
}
_TIMING_MAGIC = {"capture", "prun", "time", "timeit"}
_MAGIC_LINE = re.compile(r"^[ \t]*[%!?,;/]|=[ \t]*[%!]|\?[ \t]*$", re.MULTILINE)
_MOST_MAGIC = 400_000
"""Lines that may be magic, times the characters of the cell; beyond it a cell is not looked at."""

_SHORT = 2_000
"""Characters of a cell whose statements are kept for the next learner with the same one."""

_SCOPES = (
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.DictComp,
    ast.ExceptHandler,
    ast.FunctionDef,
    ast.GeneratorExp,
    ast.Lambda,
    ast.ListComp,
    ast.Match,
    ast.SetComp,
)
# The parts of code that more is asked of than which names they are about.
_TELLING = {
    ast.Attribute,
    ast.Call,
    ast.Constant,
    ast.Global,
    ast.Import,
    ast.ImportFrom,
    ast.List,
    ast.Subscript,
    ast.Tuple,
}
_SURE = (ast.Assign, ast.AnnAssign, ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom)


def answer_flags(answer: str, reference: str = "", ids: Iterable[str] | None = None) -> list[str]:
    """What an instructor should look at in a single answer, a phrase each; empty for an ordinary one.

    Numbers of the reference answer are not held against a learner. ``ids`` are the published values that the step
    is about; None stands for all of them.
    """
    statements = _statements(answer)
    names: dict[str, list[_Statement]] = {}
    _bind(names, statements)
    return _phrases(_reached(statements, (), names), _Known(reference, ids))


def flags(notebook: Any, reference: Any) -> dict[str, list[str]]:
    """For each step of a learner's notebook what an instructor should look at; ordinary steps are left out.

    The notebook holds the reference's locked cells as they are. Outputs tell which cells broke off.
    """
    tests = steps(reference)
    cells = {name: cell for cell in reference["cells"] if (name := grade_id(cell)) is not None}
    own = {step: _bound_by_course(cells[step]["source"]) for step in tests}
    step_of = {test: step for step, names in tests.items() for test in names}
    locked = {name for name, cell in cells.items() if not cell["metadata"]["nbgrader"].get("solution")}
    names: dict[str, list[_Statement]] = {}
    answers: dict[str, Sequence[_Statement]] = {}
    unread: list[_Statement] = []
    found: dict[str, dict[str, None]] = {}
    length = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        name = grade_id(cell)
        if name in locked:
            step = step_of.get(name, "")
            if step:
                others = set().union(*(own[other] for other in own if other != step)) - own[step]
                reached = _reached([*answers.get(step, []), *unread], own[step], names, others)
                visible = [cells[test] for test in tests[step] if not is_hidden(cells[test])]
                ids = [ident for test in visible for ident in checked_ids(test["outputs"])]
                phrases = _phrases(reached, _Known(cells[step]["source"], ids))
                phrases += _meddling(cells[name]["source"], names)
                found.setdefault(step, {}).update(dict.fromkeys(phrases))
            for bound in _bound_by_course(cell["source"]):
                names.pop(bound, None)
            continue
        length += len(cell["source"])
        statements = (
            _statements(cell["source"], broke_off=_broke_off(cell)) if length <= 5 * LONGEST else [_TOO_LONG]
        )
        if name in tests:
            answers[name] = statements
        else:
            unread += [statement for statement in statements if statement.tree is None]
        _bind(names, statements)
    return {step: list(phrases) for step, phrases in found.items() if phrases}


def withholds(phrases: Iterable[str]) -> bool:
    """Whether flags of a step cost the marks of its hidden tests."""
    return any(phrase.startswith(_USES) for phrase in phrases)


@dataclass(frozen=True)
class _Statement:
    """A statement of a cell: the names that it binds and reads, the objects it puts something into, what it gets at.

    ``changes`` are those of the objects that get another attribute; ``numbers`` and ``lists`` are what it has typed in.
    """

    tree: ast.stmt | None
    binds: frozenset[str] = frozenset()
    loads: frozenset[str] = frozenset()
    fills: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    uses: tuple[str, ...] = ()
    sure: bool = True
    numbers: frozenset[float] = frozenset()
    lists: frozenset[tuple[float, ...]] = frozenset()

    def keeps(self, name: str) -> bool:
        """Whether what the name meant before may still matter after this statement."""
        return not self.sure or name in self.loads

    def passes_on(self, name: str) -> bool:
        """Whether the name stands for a part of the course after the statement, not for a result made with it."""
        value = self.tree.value if isinstance(self.tree, ast.Assign | ast.AnnAssign) else None
        part = isinstance(self.tree, ast.Import | ast.ImportFrom | ast.ClassDef) or isinstance(
            value, ast.Attribute | ast.Name
        )
        return name in self.binds and (part or bool(self.loads & _TOOLS))


_TOO_LONG = _Statement(None, uses=(f"more than {LONGEST:,} characters",))
_TOO_DEEP = _Statement(None, uses=("an expression that is nested too deep to be looked at",))


class _Known:
    """What a step's answer may hold: the numbers of the reference answer, and the values it is about."""

    def __init__(self, reference: str, ids: Iterable[str] | None) -> None:
        self.needed, self.lists = _written(reference)
        self.ids = None if ids is None else set(ids)


@cache
def _of_course(source: str) -> tuple[_Statement, ...]:
    """The statements of a cell of the course's own; the same for every learner."""
    return _read.__wrapped__(source, False)


@cache
def _written(reference: str) -> tuple[frozenset[float], frozenset[tuple[float, ...]]]:
    """The numbers of a reference answer, and its lists of numbers."""
    statements = _of_course(reference)
    numbers = frozenset(number for statement in statements for number in statement.numbers)
    return numbers, frozenset(found for statement in statements for found in statement.lists)


def _phrases(statements: Collection[_Statement], known: _Known) -> list[str]:
    used = dict.fromkeys(use for statement in statements for use in statement.uses)
    if any("ffn" in s.loads for s in statements) and not any("ffn" in s.binds for s in statements):
        used["ffn"] = None
    typed = dict.fromkeys(ident for s in statements for ident in _typed(s, known))
    values = [f"has the published {', '.join(typed)} typed in"] if typed else []
    return [*(f"{_USES}{use}" for use in used), *values]


# ------------------------------------------------------------------------------------ from cells to statements


def _statements(source: str, *, broke_off: bool = False) -> Sequence[_Statement]:
    """The statements of a cell; none where it is no Python, for then it does not run either."""
    return (_read if len(source) <= _SHORT else _read.__wrapped__)(source, broke_off)


@lru_cache(maxsize=500)
def _read(source: str, broke_off: bool) -> tuple[_Statement, ...]:
    """The statements of a cell; in a class, many have some cells in common."""
    if len(source) > LONGEST:
        return (_TOO_LONG,)
    try:
        read, body = _parsed(source)
        own = _own_lines(read, body)
        return tuple(_statement(node, text, broke_off=broke_off) for node, text in zip(body, own, strict=True))
    except (SyntaxError, ValueError):
        return ()
    except (RecursionError, MemoryError):
        return (_TOO_DEEP,)


def _parsed(source: str) -> tuple[str, list[ast.stmt]]:
    """A cell's statements, with the text that they were read from."""
    try:
        return source, ast.parse(source).body
    except SyntaxError:
        magic = re.match(r"\s*%%(\w+).*(?:\n|\Z)", source)
        if magic and magic[1] in _TIMING_MAGIC:
            return _parsed(source[magic.end() :])
        plain = _without_magic(source)
        return plain, ast.parse(plain).body


def _own_lines(source: str, body: list[ast.stmt]) -> list[str]:
    """The lines of each statement; "" where it shares them with another one."""
    if not source.isprintable() and re.search(r"[^\n\t\x20-\x7e]", source):
        # What counts as the end of a line is then not so clear.
        return [""] * len(body)
    lines = source.split("\n")
    starts = [min(part.lineno for part in (node, *getattr(node, "decorator_list", ()))) for node in body]
    ends = [node.end_lineno or 0 for node in body]
    before, after = [0, *ends[:-1]], [*starts[1:], len(lines) + 1]
    return [
        "\n".join(lines[start - 1 : end]) if ahead < start and end < behind else ""
        for start, end, ahead, behind in zip(starts, ends, before, after, strict=True)
    ]


def _without_magic(source: str) -> str:
    """A cell's source with IPython's own syntax written as calls, as a kernel does it."""
    from IPython.core.inputtransformer2 import TransformerManager

    # IPython reads the whole cell anew for each of its lines, and this process has no time limit for it.
    if len(_MAGIC_LINE.findall(source)) * len(source) > _MOST_MAGIC:
        raise MemoryError
    try:
        return str(TransformerManager().transform_cell(source))  # type: ignore[no-untyped-call]
    except Exception as error:
        # It raises what it likes on text that is no Python.
        raise SyntaxError from error


def _statement(node: ast.stmt, text: str, *, broke_off: bool) -> _Statement:
    every = list(ast.walk(node))
    binds, loads = _names(node, text, every)
    parts = [part for part in every if type(part) in _TELLING]
    uses: dict[str, None] = {}
    for part in parts:
        uses.update(dict.fromkeys(_gets_at(part)))
        if isinstance(part, ast.ImportFrom) and any(alias.name == "*" for alias in part.names):
            binds |= _public(part.module or "")
    uses.update(dict.fromkeys(sorted(loads & (_TOOLS | _FUNCTIONS))))
    fills = {name for part in parts for name in _filled(part)} & loads
    changes = {name for part in parts for name in _changed(part)} & loads
    sure = isinstance(node, _SURE) and not broke_off
    sure = sure and not any(isinstance(part, ast.Global) for part in parts)
    return _Statement(
        tree=node,
        binds=frozenset(binds),
        loads=frozenset(loads),
        fills=frozenset(fills | changes),
        changes=frozenset(changes),
        uses=tuple(uses),
        sure=sure,
        numbers=frozenset(_numbers(parts)),
        lists=frozenset(_lists(parts)),
    )


def _names(node: ast.stmt, text: str, parts: list[ast.AST]) -> tuple[set[str], set[str]]:
    """Names of the notebook that a statement of these lines and parts binds, and that it reads."""
    if any(isinstance(part, _SCOPES) for part in parts):
        try:
            return _scopes(symtable.symtable(text or ast.unparse(node), "<cell>", "exec"))
        except (SyntaxError, RecursionError):
            # A kernel runs a little more than that, such as `await` outside of functions.
            pass
    binds: set[str] = set()
    loads: set[str] = set()
    for part in parts:
        if isinstance(part, ast.Name):
            (loads if isinstance(part.ctx, ast.Load) else binds).add(part.id)
        elif isinstance(part, ast.alias):
            binds.add(part.asname or part.name.split(".")[0])
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            binds.add(part.name)
    return binds, loads


def _scopes(table: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """Names of the notebook that a piece of code binds, and that it reads, functions inside it included."""
    outermost = table.get_type() == "module"
    binds, loads = set(), set()
    for symbol in table.get_symbols():
        if outermost or symbol.is_global():
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
                binds.add(symbol.get_name())
            if symbol.is_referenced():
                loads.add(symbol.get_name())
    for inner in table.get_children():
        more_binds, more_loads = _scopes(inner)
        binds |= more_binds
        loads |= more_loads
    return binds, loads


def _filled(node: ast.AST) -> Iterator[str]:
    """Names of lists, dictionaries and arrays that a node puts something into."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        yield from _inside(node.value)


def _changed(node: ast.AST) -> Iterator[str]:
    """Names of objects that a node gives another attribute."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        yield from _inside(node.value)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"):
        yield from _inside(*node.args[:1])


def _inside(*nodes: ast.expr) -> Iterator[str]:
    yield from (part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name))


@cache
def _public(module: str) -> frozenset[str]:
    """Names that a star import from the course's module binds; none for other modules."""
    from importlib import import_module

    if not re.fullmatch(r"ffn(\.[a-z_]+)*", module):
        return frozenset()
    try:
        found = import_module(module)
    except ImportError:
        return frozenset()
    return frozenset(getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")]))


@cache
def _bound_by_course(source: str) -> frozenset[str]:
    """Functions and other names that a cell of the course's own defines."""
    return frozenset().union(*(statement.binds for statement in _of_course(source)))


def _broke_off(cell: Any) -> bool:
    return any(output.get("output_type") == "error" for output in cell.get("outputs", []))


def _bind(names: dict[str, list[_Statement]], statements: Iterable[_Statement]) -> None:
    """Note for every name which statements it leads to, after the statements ran."""
    for statement in statements:
        for bound in statement.binds | statement.fills:
            if statement.keeps(bound) or bound in statement.fills:
                names.setdefault(bound, []).append(statement)
            else:
                names[bound] = [statement]


def _reached(
    answer: Collection[_Statement],
    own: Iterable[str],
    names: Mapping[str, list[_Statement]],
    others: Iterable[str] = (),
) -> list[_Statement]:
    """The statements behind a step: its answer's, and those that its names lead to in the learner's cells.

    The functions of other steps are not followed: while a step is tested, the course's stand in for them.
    """
    found = {id(statement): statement for statement in answer}
    waiting = [*sorted(own), *(name for statement in answer for name in sorted(statement.loads))]
    followed = set(others)
    while waiting:
        name = waiting.pop()
        if name not in followed:
            followed.add(name)
            for statement in names.get(name, []):
                found[id(statement)] = statement
                waiting += sorted(statement.loads)
    return list(found.values())


@cache
def _guarded(test: str) -> frozenset[str]:
    """Names that a test of the course's relies on."""
    return frozenset(_GUARDED & set().union(*(statement.loads for statement in _of_course(test))))


def _meddling(test: str, names: Mapping[str, list[_Statement]]) -> list[str]:
    """What a learner's cells did to names that a test relies on, and to the insides of the course's module."""
    guarded = _guarded(test)
    own = [
        name
        for name in sorted(guarded & names.keys())
        if any(not isinstance(statement.tree, ast.Import | ast.ImportFrom) for statement in names[name])
    ]
    changed = {name for statements in names.values() for s in statements for name in s.changes}
    same = {name: [s for s in statements if s.passes_on(name)] for name, statements in names.items()}
    behind = [use for statement in _reached((), changed, same) for use in statement.uses]
    behind = [name for name in (*behind, *sorted(changed)) if name in _TOOLS or name == "ffn"]
    return [f"{_USES}{name} of its own" for name in dict.fromkeys([*own, *behind])]


# ----------------------------------------------------------------------------------------- the course's module


def _gets_at(node: ast.AST) -> Iterator[str]:
    """Ways in which a node gets at the course's module, or around the import statement."""
    if isinstance(node, ast.Import):
        yield from (root for alias in node.names if _is_door(root := alias.name.split(".")[0]))
    elif isinstance(node, ast.ImportFrom):
        if _is_door(root := (node.module or "").split(".")[0]):
            yield root
        yield from (alias.name for alias in node.names if alias.name in _ATTRIBUTES)
    elif isinstance(node, ast.Attribute):
        if node.attr in _ATTRIBUTES:
            yield node.attr
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "vars" and not node.args:
            yield "vars"
        yield from _magic(node)
    elif text := _text(node):
        if _NAMES_OF_THE_MODULE.fullmatch(text) or _IMPORT_IN_TEXT.search(text):
            yield "ffn"
        elif text in _ATTRIBUTES | _FUNCTIONS and text.startswith("_"):
            yield text


def _is_door(module: str) -> bool:
    ordinary = not module or module in sys.stdlib_module_names or module in _ORDINARY
    return module in _DOORS or not ordinary


def _magic(call: ast.Call) -> Iterator[str]:
    """What a line such as `%run` or `!python` gets at; IPython calls methods of get_ipython() for it."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)):
        return
    if not (isinstance(function.value.func, ast.Name) and function.value.func.id == "get_ipython"):
        return
    texts = [_text(argument) for argument in call.args]
    if function.attr in ("run_line_magic", "run_cell_magic") and texts:
        if texts[0] in _TIMING_MAGIC:
            yield from ("ffn" for text in texts[1:] if re.search(r"\bffn\b", text))
        elif texts[0] not in _HARMLESS_MAGIC:
            yield f"%{texts[0]}"
    elif function.attr in ("system", "getoutput"):
        yield "!"


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


# --------------------------------------------------------------------------------------- published values typed in


@dataclass(frozen=True)
class _Value:
    """The forms under which a published value may be typed: single numbers, and lists of them."""

    numbers: tuple[float, ...]
    tolerance: float
    lists: tuple[tuple[float, ...], ...]


def _typed(statement: _Statement, known: _Known) -> list[str]:
    """Published values that stand in a statement, by id."""
    numbers = sorted(statement.numbers - known.needed)
    lists = statement.lists - known.lists
    if not numbers and not lists:
        return []
    return [
        ident
        for ident, value in _values().items()
        if known.ids is None or ident in known.ids
        if any(_stands_in(numbers, number, value.tolerance) for number in value.numbers)
        or any(_same(a, b) for a in lists for b in value.lists)
    ]


def _stands_in(numbers: list[float], wanted: float, tolerance: float) -> bool:
    """Whether a number is among others: as it is, or with the digits that a test lets pass."""
    width = max(tolerance, 1e-9 * wanted)
    start = bisect_left(numbers, wanted - width)
    for number in numbers[start:]:
        if number > wanted + width:
            return False
        if math.isclose(number, wanted, rel_tol=1e-9) or _digits(number) >= 4:
            return True
    return False


def _same(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return len(a) == len(b) and all(math.isclose(x, y, rel_tol=1e-9) for x, y in zip(a, b, strict=True))


def _numbers(parts: Iterable[ast.AST]) -> list[float]:
    """Sizes of the numbers among the parts of a piece of code, those written as text included."""
    found = []
    for node in parts:
        if isinstance(node, ast.Constant):
            number = _number(node.value)
            if number is not None:
                found.append(abs(number))
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _lists(parts: Iterable[ast.AST]) -> list[tuple[float, ...]]:
    """Lists and tuples among the parts of a piece of code that hold numbers only, made flat."""
    found = []
    for node in parts:
        if isinstance(node, ast.List | ast.Tuple):
            numbers = _flat(node)
            if numbers is not None:
                found.append(tuple(numbers))
    return found


def _flat(node: ast.expr) -> list[float] | None:
    if isinstance(node, ast.List | ast.Tuple):
        parts = [_flat(part) for part in node.elts]
        return None if None in parts else [number for part in parts for number in part or ()]
    sign = 1.0
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -sign if isinstance(node.op, ast.USub) else sign
        node = node.operand
    number = _number(node.value) if isinstance(node, ast.Constant) else None
    return None if number is None else [sign * number]


@cache
def _values() -> dict[str, _Value]:
    """The published values that are no everyday numbers."""
    from ffn.published import published

    found = {}
    for ident, entry in published().items():
        if entry.is_formula:
            continue
        value = list(_numbers_of(entry.value))
        several = isinstance(entry.value, list)
        printed = [] if several else _printed(entry.published)
        numbers = tuple(dict.fromkeys(abs(v) for v in [*value, *printed] if _tells(v, alone=not several)))
        plain = not several or {abs(v) for v in value} <= {0, 1} or sum(map(_digits, value)) < 2
        lists = () if plain else (tuple(value),)
        # A coarse print, such as 10 for 9.9999, lets half a unit pass: too wide to tell by it.
        tolerance = entry.tolerance()
        fine = all(tolerance <= 1e-3 * abs(v) for v in value if v)
        if numbers or lists:
            found[ident] = _Value(numbers, tolerance if fine else 0.0, lists)
    return found


def _printed(text: str) -> list[float]:
    numbers = re.findall(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.])|\d+\.?\d*(?:e-?\d+)?", text)
    return [float(number.replace(",", "")) for number in numbers]


def _numbers_of(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _numbers_of(item)
    else:
        yield float(value)


def _tells(value: float, *, alone: bool) -> bool:
    """Whether a number that is typed points at a published one; one among others needs more digits."""
    return _digits(value) >= 3 or (alone and (_digits(value) == 2 or round(value, 1) != value))


def _digits(value: float) -> int:
    """Significant digits of a number."""
    digits = f"{abs(value):.15g}".split("e")[0].replace(".", "").strip("0")
    return len(digits)
