"""A learner session: runs cells in an IPython shell, and answers the checker's questions about what they made.

Everything here is in the learner's hands once a cell has run. The checker therefore trusts no answer: it bounds it,
decodes it without executing anything, and holds it against the course's own values.
"""

import ast
import builtins
import mmap
import os
import re
import socket
import sys
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from .wire import FLOAT_ERRORS, Decoder, Encoder, ProtocolError, Wire

__all__ = ["Session", "make_shell", "serve"]

_ROOM = 64 << 20
MOST_HANDLES = 100_000
_NOT_PLAIN = re.compile(r"[^\n\t\x20-\x7e]|^\s*(>>>|\.\.\.|In ?\[)", re.MULTILINE)
# Where IPython's own syntax may begin: help, a shell command, a magic, a call without brackets.
_MAYBE_MAGIC = re.compile(r"\?|!(?!=)|=\s*%|^\s*[%,;/]", re.MULTILINE)
_MOST_AHEAD = 4 << 20
_OVERHEAD = 100  # bytes that an output takes beside its text
_TRUNCATED = "\n[output beyond the limit was left out]\n"


class Recorder:
    """The outputs of one cell, in nbformat's form; beyond a number of bytes they are left out."""

    def __init__(self, most: int) -> None:
        self.outputs: list[dict[str, Any]] = []
        self._left = most

    def stream(self, name: str, text: str) -> None:
        """Add text of a stream."""
        if self._left <= 0:
            return
        text = text if len(text) <= self._left else text[: self._left] + _TRUNCATED
        self._left -= len(text)
        if self.outputs and self.outputs[-1].get("name") == name:
            self.outputs[-1]["text"] += text
        else:
            self._left -= _OVERHEAD
            self.outputs.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict[str, Any], metadata: dict[str, Any], **more: Any) -> None:
        """Add a display or a result."""
        size = sum(len(value) if isinstance(value, str | bytes) else len(repr(value)) for value in data.values())
        size += _OVERHEAD
        if size > self._left:
            self.stream("stdout", _TRUNCATED)
            return
        self._left -= size
        self.outputs.append({"output_type": kind, "data": dict(data), "metadata": dict(metadata), **more})

    def error(self, name: str, value: str, traceback: list[str]) -> None:
        """Add an exception; always room for it, but not for a long one."""
        shown = [line[:20_000] for line in traceback[:60]]
        self.outputs.append({"output_type": "error", "ename": name, "evalue": value[:20_000], "traceback": shown})


class _Stream:
    encoding, errors, closed = "utf-8", "replace", False

    def __init__(self, name: str, session: "Session") -> None:
        self.name = name
        self._session = session

    def write(self, text: object) -> int:
        self._session.recorder.stream(self.name, str(text))
        return len(str(text))

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        raise OSError("this stream has no file descriptor")


def make_shell() -> Any:
    """The IPython shell of a session; made once, before the forks."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Type
    from traitlets.config import Config

    class Publisher(DisplayPublisher):
        def publish(self, data: Any, metadata: Any = None, *arguments: Any, **more: Any) -> None:
            self.shell.session.recorder.rich("display_data", data, metadata or {})

        def clear_output(self, wait: bool = False) -> None:
            self.shell.session.recorder.outputs.clear()

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None:
            """No prompt in a recorded output."""

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            shell: Any = self.shell
            count = shell.execution_count
            shell.session.recorder.rich("execute_result", format_dict, md_dict or {}, execution_count=count)

        def finish_displayhook(self) -> None:
            """Nothing was written to a stream."""

    class Shell(InteractiveShell):
        display_pub_class = Type(Publisher)
        displayhook_class = Type(Hook)
        session: "Session"

        def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
            self.session.recorder.error(getattr(etype, "__name__", "Exception"), _text(evalue), list(stb))

        def enable_gui(self, gui: Any = None) -> None:
            """No windows; `%matplotlib` asks for that, too."""

        def transform_cell(self, raw_cell: str) -> str:
            """A cell's Python; one that is plain Python is that already, which is quicker seen than done."""
            manager = self.input_transformer_manager
            added = (manager.cleanup_transforms, manager.line_transforms, manager.token_transformers)
            if tuple(map(len, added)) == usual and not self.input_transformers_post and _is_plain(raw_cell):
                return raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"
            return str(super().transform_cell(raw_cell))  # type: ignore[no-untyped-call]

        def should_run_async(self, raw_cell: str, **known: Any) -> bool:
            """Whether a cell waits for something at its top level; most say so nowhere, which is quicker seen."""
            return any(word in raw_cell for word in ("async", "await")) and super().should_run_async(
                raw_cell, **known
            )

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    shell = Shell.instance(config=config)
    manager = shell.input_transformer_manager
    usual = (len(manager.cleanup_transforms), len(manager.line_transforms), len(manager.token_transformers))
    _rehearse(shell)
    return shell


def _is_plain(source: str) -> bool:
    """Whether a cell is Python that IPython leaves as it is: no single line, which may be a magic, and no prompts."""
    if "\n" not in source.strip() or source[:1].isspace() or _NOT_PLAIN.search(source):
        return False
    if not _MAYBE_MAGIC.search(source):
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _rehearse(shell: Any) -> None:
    """Run a cell that ends well and one that does not: much is imported and compiled at the first of its kind."""
    shell.session = SimpleNamespace(recorder=Recorder(1_000))
    for source in ("import math\nmath.pi", "def f():\n    raise NotImplementedError()\n\n\nf()"):
        shell.run_cell(source, store_history=True)
    shell.reset(new_session=True)
    shell.user_ns |= {"_": "", "__": "", "___": ""}


def _text(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"an object of type {type(value).__name__}"


def _named(error: BaseException) -> tuple[str, str]:
    """The name and the text of an exception, as one of Python's own: its own, or the nearest that it is one of."""
    kind = type(error)
    nearest = next((base for base in kind.__mro__ if getattr(builtins, base.__name__, None) is base), Exception)
    # The text of a KeyError is its key's, in quotes, which another KeyError of that text would quote again.
    text = _text(error.args[0] if isinstance(error, KeyError) and len(error.args) == 1 else error)
    return nearest.__name__, text if nearest is kind else f"{kind.__name__}: {text}"


class Session:
    """The learner's names, and the answers to the checker's requests."""

    def __init__(self, shell: Any, wire: Wire, output_bytes: int) -> None:
        self.recorder = Recorder(output_bytes)
        self._shell = shell
        self._wire = wire
        self._most = output_bytes
        self._handles: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._asked: dict[str, Any] = {}
        self._kept: dict[str, Any] = {}
        self._moments: dict[str, dict[str, Any]] = {}
        shell.session = self

    @property
    def names(self) -> dict[str, Any]:
        """What the cells have defined."""
        found: dict[str, Any] = self._shell.user_ns
        return found

    def answer(self, request: Any, arrays: Sequence[bytes | memoryview]) -> None:
        """Do what a request asks and send what came of it."""
        self.recorder = Recorder(self._most)
        if request["op"] == "script":
            self._answer_all(request, arrays)
            return
        reply, encoder, _ = self._answered(request, arrays)
        self._send(reply | {"n": request["n"]}, encoder.arrays)

    def _answered(
        self, request: Any, arrays: Sequence[bytes | memoryview]
    ) -> tuple[dict[str, Any], Encoder, bool]:
        """The reply to a request, and whether another one may be answered before it is sent."""
        encoder, goes_on = Encoder(self._hold), True
        try:
            for what, name in request.get("first", ()):
                getattr(self, f"_{what}")(name)
            reply = getattr(self, f"_{request['op']}")(request, Decoder(arrays, self._take), encoder)
            goes_on = "missing" not in reply
        except BaseException as error:
            encoder, goes_on = Encoder(self._hold), isinstance(error, Exception)
            reply = self._refused(error)
        if self._is_rebound():
            reply["rebound"], goes_on = True, False
        return reply, encoder, goes_on

    def _is_rebound(self) -> bool:
        """Whether a name that the checker has asked for means something else now; once."""
        names = self.names
        for name, value in self._asked.items():
            if names.get(name, _MISSING) is not value:
                self._asked = {}
                return True
        return False

    def _answer_all(self, request: Any, arrays: Sequence[bytes | memoryview]) -> None:
        """Answer several requests in one go, up to one after which the next might be another one.

        What comes right behind tells the checker that nothing else was sent meanwhile.
        """
        replies: list[dict[str, Any]] = []
        sent: list[bytes] = []
        size = start = 0
        for what, name in request["first"]:
            getattr(self, f"_{what}")(name)
        for step in request["steps"]:
            if "of" in step:
                number = self._numbers.get(id(self.names.get(step["of"], _MISSING)))
                if number is None:
                    break
                step["handle"] = number
            count = step.get("arrays", 0)
            reply, encoder, goes_on = self._answered(step, arrays[start : start + count])
            start += count
            size += encoder.size
            if "of" in step:
                reply["handle"] = step["handle"]
            reply["arrays"] = len(encoder.arrays)
            replies.append(reply)
            sent += encoder.arrays
            if not goes_on or size > _MOST_AHEAD:
                break
        self._send({"each": replies, "n": request["n"]}, sent, behind=f'{{"n":{request["n"]},"settled":true}}')

    def _refused(self, error: BaseException) -> dict[str, Any]:
        name, text = _named(error)
        return {"error": name, "text": text[:20_000], "line": self._line(error)}

    def _send(self, reply: Any, arrays: list[bytes], behind: str | None = None) -> None:
        try:
            self._wire.send(reply, arrays, behind=behind)
        except ProtocolError as error:
            self._asked = {}
            refusal = {"error": "ValueError", "text": str(error), "line": None, "n": reply["n"], "rebound": True}
            self._wire.send(refusal, [])

    def _hold(self, value: Any) -> Any:
        number = self._numbers.get(id(value))
        if number is None:
            number = len(self._handles)
            if number >= MOST_HANDLES:
                raise ProtocolError("too many objects were handed over")
            self._handles.append(value)
            self._numbers[id(value)] = number
        name = getattr(value, "__name__", "")
        name = name[:100] if type(name) is str else ""
        return [number, callable(value), type(value).__name__[:100], name]

    def _take(self, handle: Any) -> Any:
        if type(handle) is list:
            return self._callback(handle[0], str(handle[1]))
        return self._handles[handle]

    def _callback(self, number: int, name: str) -> Callable[..., Any]:
        """A function of the checker's, as the learner's code sees it."""

        def call(*arguments: Any, **named: Any) -> Any:
            encoder = Encoder(self._hold)
            sent = [encoder.encode(value) for value in arguments]
            keys = {key: encoder.encode(value) for key, value in named.items()}
            message = {"callback": number, "args": sent, "kwargs": keys}
            if self._is_rebound():
                message["rebound"] = True
            self._wire.send(message, encoder.arrays)
            while True:
                message, arrays = self._wire.receive()
                if "op" not in message:
                    break
                # The function called back into this session: answer that first.
                self.answer(message, arrays)
            if "error" in message:
                raise _exception(message)
            return Decoder(arrays, self._take).decode(message["value"])

        call.__name__ = name
        return call

    def _line(self, error: BaseException) -> int | None:
        """The line of a cell in which an exception arose."""
        trace, found = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_globals is self.names:
                found = trace.tb_lineno
            trace = trace.tb_next
        return found

    # The requests: each gets the message, a decoder for its values, and an encoder for those of the reply.

    def _run(self, request: Any, decoder: Decoder, encoder: Encoder) -> Any:
        well = False
        try:
            well = self._shell.run_cell(request["source"], store_history=True).success
        finally:
            if not well and not _has_room():
                # What the cell has filled stays filled, and no later one could run: the checker goes on without it.
                os._exit(1)
        return {"outputs": self.recorder.outputs, "count": self._shell.execution_count - 1, "ok": well}

    def _get(self, request: Any, decoder: Decoder, encoder: Encoder) -> Any:
        name = request["name"]
        if name not in self.names:
            return {"missing": True}
        self._asked[name] = self.names[name]
        return {"value": encoder.encode(self.names[name])}

    def _call(self, request: Any, decoder: Decoder, encoder: Encoder) -> Any:
        arguments = [decoder.decode(value) for value in request["args"]]
        named = {str(key): decoder.decode(value) for key, value in request.get("kwargs", {}).items()}
        return self._called(request, arguments, named, encoder)

    def _call_each(self, request: Any, decoder: Decoder, encoder: Encoder) -> Any:
        replies = []
        for call in request["calls"]:
            arguments = [decoder.decode(value) for value in call]
            try:
                replies.append(self._called(request, arguments, {}, encoder))
            except Exception as error:
                replies.append(self._refused(error))
        return {"each": replies}

    def _called(self, request: Any, arguments: list[Any], named: dict[str, Any], encoder: Encoder) -> Any:
        before = [_content(x) for x in arguments]
        with np.errstate(**request.get("errors", FLOAT_ERRORS)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = self._handles[request["handle"]](*arguments, **named)
        # What a call has left as it was is not sent back.
        after_named = {key: _after(encoder, x) for key, x in named.items()}
        reply = {"value": encoder.encode(value)}
        after = [_after(encoder, x, was) for x, was in zip(arguments, before, strict=True)]
        if any(after):
            reply["args"] = after
        if after_named:
            reply["kwargs"] = after_named
        return reply

    def _attribute(self, request: Any, decoder: Decoder, encoder: Encoder) -> Any:
        return {"value": encoder.encode(getattr(self._handles[request["handle"]], request["name"]))}

    def _ping(self, request: Any, decoder: Decoder, encoder: Encoder) -> Any:
        return {"value": {"v": None}}

    # What is done before a request.

    def _stand_in(self, step: str) -> None:
        """Let the course's own functions take the place of the learner's, for a step."""
        from ffn.misconceptions import stand_ins

        own = stand_ins(step)
        self._kept = {name: self.names.get(name, _MISSING) for name in own}
        self._bind(own)

    def _stand_back(self, _: str) -> None:
        own, self._kept = self._kept, {}
        self._bind(own)

    def _bind(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            self._asked.pop(name, None)
            if value is _MISSING:
                self.names.pop(name, None)
            else:
                self.names[name] = value

    def _keep(self, name: str) -> None:
        self._moments[name] = dict(self.names)

    def _come_back(self, name: str) -> None:
        moment = self._moments[name]
        self._asked = {}
        for other in [other for other in self.names if other not in moment]:
            del self.names[other]
        self.names.update(moment)


def _has_room() -> bool:
    """Whether there is memory left to go on with: asked for and given back untouched, which costs next to nothing."""
    try:
        mmap.mmap(-1, _ROOM).close()
    except (MemoryError, OSError):
        return False
    return True


_MISSING = object()


def _content(argument: Any) -> Any:
    """What an array holds, to be compared; None for anything else."""
    if type(argument) is np.ndarray:
        return argument.shape, argument.dtype, argument.tobytes()
    return None


def _after(encoder: Encoder, argument: Any, before: Any = None) -> Any:
    """What an argument has become in the call; None for an array that is as it was, and for what no call can change."""
    if before is not None and _content(argument) == before:
        return None
    return encoder.encode(argument) if isinstance(argument, np.ndarray | list | dict | tuple) else None


def _exception(message: Any) -> Exception:
    kind = getattr(builtins, str(message["error"]), None)
    kind = kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError
    return kind(str(message.get("text", "")))


def serve(connection: socket.socket, shell: Any, output_bytes: int) -> None:
    """Answer requests until the checker closes the connection."""
    session = Session(shell, Wire(connection), output_bytes)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    streams = _Stream("stdout", session), _Stream("stderr", session)
    while True:
        try:
            message, arrays = session._wire.receive()
        except (EOFError, OSError, ProtocolError):
            os._exit(0)
        # A cell may have closed them, and IPython writes to them.
        sys.stdout, sys.stderr = streams
        session.answer(message, arrays)
