"""Runs the cells of a live lesson inside Pyodide: one namespace for the page, outputs as messages.

``live-worker.mjs`` loads this file and calls ``Page``. A message is a dictionary, sent as JSON: ``stream`` with text,
``display`` with data by MIME type, ``error`` with the text to show, ``note`` with a sentence about the run.

The course's module shows things through IPython, which would outweigh the rest of what a lesson loads. ``stand_in``
makes a module of that name with the few functions in use.
"""

import ast
import base64
import builtins
import io
import json
import linecache
import logging
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["LeftOut", "Page", "stand_in"]

LONGEST = 100_000
"""So many characters a cell may write; what is beyond is left out, so that a page survives an endless loop."""
SHOWN_FRAMES = 5
_PIECE = 4_000
_PAUSE = 0.1
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CUT = f"\n… beyond {LONGEST:,} characters nothing more is shown.\n"

Send = Callable[[dict[str, Any]], None]


class LeftOut(Exception):  # noqa: N818 - it is no error: the cell is left out, in words
    """A cell asks for what the slice that is shipped with the book does not hold."""


class _Shell:
    """What ``IPython.get_ipython`` gives. It counts as false: matplotlib would ask a true one for its events."""

    def __bool__(self) -> bool:
        return False


def stand_in(display: Callable[..., None]) -> types.ModuleType:
    """A module for ``sys.modules["IPython"]`` whose ``display`` sends to the page."""
    module, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell = _Shell()
    for name, mime in (("HTML", "text/html"), ("SVG", "image/svg+xml")):
        setattr(inner, name, _wrapper(name, mime))
    vars(inner)["display"] = display
    vars(module).update(get_ipython=lambda: shell, display=inner, version_info=(8, 24, 0), __path__=[])
    return module


def _wrapper(name: str, mime: str) -> type:
    """A class that shows text as one MIME type, as IPython's class of that name does."""

    def bundle(self: Any, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": f"<{name} object>", mime: self.data}

    def keep(self: Any, data: str) -> None:
        self.data = data

    return type(name, (), {"__init__": keep, "_repr_mimebundle_": bundle})


class _Stream(io.TextIOBase):
    """Standard output or error of the cell that runs; sends its text in pieces."""

    def __init__(self, name: str, send: Send) -> None:
        self.name, self.send = name, send
        self.begin()

    def begin(self) -> None:
        self.waiting: list[str] = []
        self.length = self.total = 0
        self.sent = time.monotonic()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        room = LONGEST - self.total
        if room > 0:
            self.waiting.append(text[:room])
        if 0 <= room < len(text):
            self.waiting.append(_CUT)
        self.total += len(text)
        self.length += len(text)
        if self.length >= _PIECE or time.monotonic() - self.sent > _PAUSE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self.waiting:
            self.send({"kind": "stream", "name": self.name, "text": "".join(self.waiting)})
        self.waiting, self.length, self.sent = [], 0, time.monotonic()


def _no_input(prompt: object = "") -> str:
    raise RuntimeError("input() cannot ask anything here; write the value into the cell.")


class Page:
    """The namespace of a page and what has happened in it.

    ``send`` takes each message as JSON.
    """

    def __init__(self, send: Callable[[str], object]) -> None:
        self.send: Send = lambda message: (send(json.dumps(message)), None)[1]
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.missing: set[str] = set()
        self.used: Callable[[], str] = lambda: ""
        """Gives a note on what the cell that has just run took from the slice; a page with a slice sets it."""
        # Pyodide's matplotlib says at its first import that it makes a list of fonts.
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
        self.streams = [_Stream(name, self.send) for name in ("stdout", "stderr")]
        sys.modules["IPython"] = stand_in(self.display)
        sys.modules["IPython.display"] = vars(sys.modules["IPython"])["display"]
        main = types.ModuleType("__main__")
        vars(main).update(self.names)
        self.names = vars(main)
        self.names.update(display=self.display, get_ipython=vars(sys.modules["IPython"])["get_ipython"])
        sys.modules["__main__"] = main

    def needs(self, source: str) -> list[str]:
        """Modules beside those that the source imports itself: ``ffn.plots`` draws with matplotlib."""
        try:
            found = set(_imported(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        return ["matplotlib"] if "ffn.plots" in found else []

    def run(self, source: str, name: str) -> str:
        """Run one cell; ``name`` stands in tracebacks.

        Returns:
            "ok", "failed", "interrupted", or "left-out" where the cell asks for what the slice does not hold.
        """
        for stream in self.streams:
            stream.begin()
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        kept = sys.stdout, sys.stderr, builtins.input
        sys.stdout, sys.stderr, builtins.input = *self.streams, _no_input
        try:
            self._execute(source, name)
            status = "ok"
        except LeftOut as reason:
            status = self._leave_out(source, str(reason))
        except KeyboardInterrupt:
            self._say("error", text="KeyboardInterrupt: the cell was interrupted.", name="KeyboardInterrupt")
            status = "interrupted"
        except BaseException as error:
            status = self._fail(error, source, name)
        finally:
            sys.stdout, sys.stderr, builtins.input = kept
        if (note := self.used()) and status == "ok":
            self._say("note", text=note)
        return status

    def display(self, *objects: Any, raw: bool = False, metadata: Any = None, **_: object) -> None:
        """Show objects as IPython's function of that name does; ``raw`` ones are data by MIME type already."""
        for each in objects:
            data, more = (each, {}) if raw else _bundle(each)
            self._say("display", data=data, metadata={**more, **(metadata or {})})

    def _say(self, kind: str, **fields: Any) -> None:
        for stream in self.streams:
            stream.flush()
        self.send({"kind": kind, **fields})

    def _execute(self, source: str, name: str) -> None:
        tree = ast.parse(source, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self.names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), self.names)
            if value is not None and not source.rstrip().endswith(";"):
                self.names["_"] = value
                self.display(value)
        self._show_open_figures()
        for stream in self.streams:
            stream.flush()
        # What the cell has bound is there again, whatever was left out before.
        self.missing -= self.names.keys()

    def _show_open_figures(self) -> None:
        """Show what was drawn with pyplot, and close it, as notebooks do."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            for number in pyplot.get_fignums():
                self.display(pyplot.figure(number))
            pyplot.close("all")

    def _leave_out(self, source: str, reason: str) -> str:
        """Take back what the cell would have defined, so that no later cell goes on with something older."""
        tree = ast.parse(source)
        for name in _assigned(tree):
            self.names.pop(name, None)
        # A function may still be there, if its definition came first, and is as good as ever.
        self.missing |= {*_assigned(tree), *(n.name for n in tree.body if isinstance(n, _DEFINITIONS))}
        self._say("note", text=reason)
        return "left-out"

    def _fail(self, error: BaseException, source: str, name: str) -> str:
        if isinstance(error, NameError) and error.name in self.missing:
            reason = f"Left out here: it uses {error.name}, which a cell above that was left out defines."
            return self._leave_out(source, reason)
        self._say("error", text=_short_traceback(error, name), name=type(error).__name__)
        return "failed"


def _bundle(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an object looks like by MIME type, and metadata, asked for in IPython's order."""
    bundle = getattr(value, "_repr_mimebundle_", None)
    if callable(bundle) and not isinstance(value, type):
        found = bundle(include=None, exclude=None)
        return found if isinstance(found, tuple) else (found, {})
    data = {"text/plain": repr(value)}
    for method, mime in (("_repr_html_", "text/html"), ("_repr_svg_", "image/svg+xml")):
        ask = getattr(value, method, None)
        if callable(ask) and not isinstance(value, type) and (text := ask()) is not None:
            data[mime] = text
    figures = sys.modules.get("matplotlib.figure")
    if figures is not None and isinstance(value, figures.Figure):
        stream = io.BytesIO()
        value.savefig(stream, format="png", dpi=144, bbox_inches="tight", facecolor="white")
        data["image/png"] = base64.b64encode(stream.getvalue()).decode()
    return data, {}


def _imported(tree: ast.AST) -> Iterator[str]:
    """Names of modules that a source imports; of a name taken from a package, also as a module of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _assigned(tree: ast.AST) -> Iterator[str]:
    """Names to which a cell assigns at its top level."""
    inner = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, _DEFINITIONS + inner):
            yield from _assigned(node)


def _short_traceback(error: BaseException, name: str) -> str:
    """The lines of cells that led to an error, and the error; the insides of modules are named, not shown."""
    frames = traceback.extract_tb(error.__traceback__)
    cells = [frame for frame in frames if frame.filename == name or frame.filename.startswith("Cell ")]
    lines: list[str] = []
    for number, frame in enumerate(cells):
        if SHOWN_FRAMES <= number < len(cells) - SHOWN_FRAMES:
            if number == SHOWN_FRAMES:
                lines.append(f"… {len(cells) - 2 * SHOWN_FRAMES} more calls …")
            continue
        within = "" if frame.name == "<module>" else f", in {frame.name}"
        lines += [f"{frame.filename}, line {frame.lineno}{within}", f"    {frame.line}"]
    if cells and frames and frames[-1].filename != cells[-1].filename:
        module = frames[-1].filename.rpartition("/site-packages/")[2]
        lines.append(f"{module}, line {frames[-1].lineno}, in {frames[-1].name}")
    lines.append("".join(traceback.format_exception_only(error)).strip())
    if isinstance(error, ModuleNotFoundError):
        lines.append("In the browser there are Python's own modules, numpy, matplotlib and ffn.")
    return "\n".join(lines)
