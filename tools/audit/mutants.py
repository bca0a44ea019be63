"""Small changes to a reference answer, one at a time: what a test suite has to notice.

Made from the syntax tree: another arithmetic operator or comparison, a constant off by one or halved, two arguments
exchanged, a sign turned, another function of the same kind, a condition turned, a statement left out.
"""

import ast
import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Mutant", "mutants"]

_BINARY: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
}
_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_FUNCTIONS = {
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "argmax": "argmin",
    "argmin": "argmax",
    "argsort": "sort",
    "sum": "mean",
    "mean": "sum",
    "var": "std",
    "sqrt": "abs",
    "tanh": "sinh",
    "exp": "expm1",
    "erf": "erfc",
    "erfc": "erf",
    "any": "all",
    "all": "any",
    "zeros": "ones",
    "zeros_like": "ones_like",
    "T": "real",
    "abs": "negative",
}


# The same for names that stand alone; the others are no functions there.
_BUILT_IN = {
    name: other for name, other in _FUNCTIONS.items() if name in ("max", "min", "any", "all", "erf", "erfc")
}


@dataclass(frozen=True)
class Mutant:
    """A changed answer, and what was changed in words: the line, and the old and the new code."""

    source: str
    change: str


@dataclass(frozen=True)
class _Change:
    tree: ast.Module
    line: int
    column: int
    words: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of an answer, from the outer parts of its code to the inner ones; none has the text of another.

    Where two changes of a line read the same, their columns tell them apart.
    """
    tree = ast.parse(source)
    found: dict[str, _Change] = {}
    for change in _changes(tree):
        found.setdefault(ast.unparse(change.tree), change)
    found.pop(ast.unparse(tree), None)
    alike = Counter((change.line, change.words) for change in found.values())
    for text, change in found.items():
        column = f", column {change.column}" if alike[change.line, change.words] > 1 else ""
        yield Mutant(source=text, change=f"line {change.line}{column}: {change.words}")


def _changes(tree: ast.Module) -> Iterator[_Change]:
    stored = pickle.dumps(tree)
    for place, node in enumerate(ast.walk(tree)):
        for edit in _edits(node):
            changed, copied = _copy(stored, place)
            before = _said(copied)
            edit(copied)
            yield _Change(changed, *_position(node), f"{before} -> {_said(copied)}")
        for number, statement in _dispensable(node):
            changed, copied = _copy(stored, place)
            del copied.body[number]
            yield _Change(changed, *_position(statement), f"{ast.unparse(statement).splitlines()[0]} -> left out")


def _copy(stored: bytes, place: int) -> tuple[ast.Module, Any]:
    """A copy of the tree, and of the node at a place of its walk."""
    changed: ast.Module = pickle.loads(stored)
    return changed, next(itertools.islice(ast.walk(changed), place, None))


def _position(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset + 1


def _said(node: ast.AST) -> str:
    """A node in one line: of a statement with a condition the condition."""
    return ast.unparse(node.test if isinstance(node, ast.If | ast.While) else node)


Edit = Callable[[Any], None]


def _edits(node: ast.AST) -> Iterator[Edit]:
    """The changes that a node allows, each a function that changes such a node in place."""
    if isinstance(node, ast.BinOp | ast.AugAssign):
        for operator in _BINARY.get(type(node.op), ()):
            yield _setting("op", operator())
        if isinstance(node, ast.BinOp):
            yield _exchange
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield _setting("op", ast.UAdd())
    elif isinstance(node, ast.BoolOp):
        yield _setting("op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.Compare):
        for comparison in _COMPARE.get(type(node.ops[0]), ()):
            yield _setting("ops", [comparison(), *node.ops[1:]])
    elif isinstance(node, ast.Constant):
        for value in _near(node.value):
            yield _setting("value", value)
    elif isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
        yield _setting("attr", _FUNCTIONS[node.attr])
    elif isinstance(node, ast.Name) and node.id in _BUILT_IN:
        yield _setting("id", _BUILT_IN[node.id])
    elif isinstance(node, ast.Call):
        if len(node.args) >= 2:
            yield lambda n: n.args.__setitem__(slice(0, 2), [n.args[1], n.args[0]])
        for number in range(len(node.keywords)):
            yield _dropping(number)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        yield lambda n: n.value.elts.reverse()
    elif isinstance(node, ast.IfExp | ast.If | ast.While):
        yield lambda n: setattr(n, "test", ast.UnaryOp(op=ast.Not(), operand=n.test))


def _near(value: object) -> tuple[Any, ...]:
    """What a constant is changed to."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1, value - 1) if value else (1,)
    if isinstance(value, float):
        return (value + 1, value / 2) if value else (1.0,)
    return ()


def _dispensable(node: ast.AST) -> Iterator[tuple[int, ast.stmt]]:
    """The statements of a body of several that can be left out, each with its number."""
    body = getattr(node, "body", ())
    if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If) and len(body) > 1:
        for number, statement in enumerate(body):
            if isinstance(statement, ast.AugAssign | ast.Assign | ast.For | ast.While | ast.If):
                yield number, statement


def _setting(field: str, value: Any) -> Edit:
    return lambda node: setattr(node, field, value)


def _dropping(number: int) -> Edit:
    return lambda node: node.keywords.pop(number)


def _exchange(node: ast.BinOp) -> None:
    node.left, node.right = node.right, node.left
