"""The checker's side of a learner session: requests with deadlines, and stand-ins for the learner's objects."""

import builtins
import copy
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from grader.session.wire import Decoder, Encoder, ProtocolError, Wire

__all__ = ["LearnerSession", "Names", "Proxy", "SessionLostError", "text_of"]

DEEPEST_CALLBACK = 20
MOST_CALLBACKS = 200_000
MOST_HANDLES = 1 << 31
LONGEST_NAME = 100
LONGEST_TEXT = 20_000
_BUILTINS = frozenset(vars(builtins))
_FLOAT_ERRORS = ("divide", "over", "under", "invalid")


class SessionLostError(BaseException):
    """The learner's session ended, sent what no session sends, or took too long; ``timed_out`` tells which.

    Not an Exception, so that no test cell takes it for a failed assertion.
    """

    def __init__(self, reason: str, *, timed_out: bool = False) -> None:
        super().__init__(reason)
        self.timed_out = timed_out


class LearnerSession:
    """A connection to a session; every request has the time that is left for the cell at hand."""

    def __init__(self, connection: socket.socket) -> None:
        self._wire = Wire(connection)
        self._deadline = 0.0
        self._held: list[Callable[..., Any]] = []
        self._depth = 0
        self._callbacks = 0
        self._asked = 0
        self._lost: SessionLostError | None = None
        self._forgotten = False
        self._first: list[list[str]] = []
        self.rebound = 0
        """Grows whenever a name may have come to mean something else in the session."""

    def allow(self, seconds: float) -> None:
        """Set the time by which the cell at hand has to be done."""
        self._deadline = time.monotonic() + seconds
        self._callbacks = 0

    def run(self, source: str) -> dict[str, Any]:
        """Run a cell of the learner's; the outputs are as the session sent them."""
        self.rebound += 1
        reply, _ = self._ask({"op": "run", "source": source}, [])
        if not isinstance(reply.get("outputs"), list):
            raise self._lose("the session sent no outputs")
        return reply

    def get(self, name: str) -> Any:
        """The value of a name, or a stand-in for it.

        Raises:
            NameError: the learner's cells have not defined it.
        """
        reply, decoder = self._ask({"op": "get", "name": name}, [])
        if reply.get("missing") is True:
            raise NameError(f"name {name!r} is not defined")
        return self._decode(decoder, reply.get("value"))

    def stand_in(self, step: str) -> None:
        """Let the course's own functions stand in for those of earlier steps, in the session too."""
        self._first.append(["stand_in", step])

    def settle(self) -> None:
        """See that nothing is left over from the cell at hand, such as a reply behind a forged one."""
        self._ask({"op": "ping"}, [])

    def stand_back(self) -> None:
        """Give the learner's own functions back."""
        self._first.append(["stand_back", ""])

    def keep(self, name: str) -> None:
        """Keep what all names mean now, to come back to it."""
        self._first.append(["keep", name])

    def come_back(self, name: str) -> None:
        """Let all names mean what they did when that was kept; what a value holds stays as it is."""
        self.rebound += 1
        self._first.append(["come_back", name])

    def call(self, handle: int, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Call an object of the learner's; arrays, lists and dictionaries that it changed are changed here too."""
        encoder = Encoder(self._hold)
        message = {
            "op": "call",
            "handle": handle,
            "args": [encoder.encode(value) for value in arguments],
            "kwargs": {key: encoder.encode(value) for key, value in named.items()},
            "errors": _float_errors(),
        }
        reply, decoder = self._ask(message, encoder.arrays)
        return self._returned(reply, decoder, arguments, named)

    def call_each(self, handle: int, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call an object of the learner's with several arguments in one go; an exception stands for itself."""
        encoder = Encoder(self._hold)
        message = {
            "op": "call_each",
            "handle": handle,
            "calls": [[encoder.encode(value) for value in arguments] for arguments in calls],
            "errors": _float_errors(),
        }
        reply, decoder = self._ask(message, encoder.arrays)
        replies = reply.get("each")
        if type(replies) is not list or len(replies) != len(calls) or not all(type(r) is dict for r in replies):
            raise self._lose("the session did not answer every call")
        return [
            _exception(one) if "error" in one else self._returned(one, decoder, arguments, {})
            for one, arguments in zip(replies, calls, strict=True)
        ]

    def _returned(
        self, reply: dict[str, Any], decoder: Decoder, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> Any:
        """What a call returned; what it changed of its arguments is changed here too."""
        value = self._decode(decoder, reply.get("value"))
        after, after_named = reply.get("args"), reply.get("kwargs")
        pairs: list[tuple[Any, Any]] = []
        if isinstance(after, list):
            pairs += zip(arguments, after, strict=False)
        if isinstance(after_named, dict):
            pairs += [(mine, after_named.get(key)) for key, mine in named.items()]
        changed: dict[int, Any] = {}
        for mine, tree in pairs:
            if tree is not None and isinstance(mine, np.ndarray | list | dict | tuple):
                _changed(mine, self._decode(decoder, tree), changed)
        return value

    def attribute(self, handle: int, name: str) -> Any:
        """An attribute of an object of the learner's."""
        reply, decoder = self._ask({"op": "attribute", "handle": handle, "name": name}, [])
        return self._decode(decoder, reply.get("value"))

    def forget(self) -> None:
        """The session has ended for good: what is left of its objects raises an ordinary exception from now on."""
        self._forgotten = True

    def _hold(self, value: Any) -> Any:
        """What is sent for a value that cannot cross: the learner's own objects go home, functions get a number."""
        if isinstance(value, Proxy) and value._proxy_session is self:
            return value._proxy_number
        if not callable(value):
            raise TypeError(f"an object of type {type(value).__name__} cannot be handed to the learner's code")
        self._held.append(value)
        return [len(self._held) - 1, str(getattr(value, "__name__", "function"))]

    def _decode(self, decoder: Decoder, tree: Any) -> Any:
        try:
            return decoder.decode(tree)
        except ProtocolError as error:
            raise self._lose(f"the session sent a value that is not one: {error}") from None

    def _take(self, handle: Any) -> "Proxy":
        number, is_callable, kind, name = handle
        if type(number) is not int or not 0 <= number < MOST_HANDLES or type(is_callable) is not bool:
            raise ProtocolError("a handle is malformed")
        return Proxy(self, number, is_callable, _label(kind), _label(name))

    def _lose(self, reason: str, *, timed_out: bool = False) -> SessionLostError:
        """The exception to raise, now and for every request after it: what comes from then on may be out of step."""
        self._lost = SessionLostError(reason, timed_out=timed_out)
        return self._lost

    def _ask(self, message: dict[str, Any], arrays: list[bytes]) -> tuple[dict[str, Any], Decoder]:
        """Send a request and wait for its reply, answering the session's calls of our functions meanwhile."""
        if self._forgotten:
            raise RuntimeError("the session that this object belonged to has ended")
        if self._lost is not None:
            raise SessionLostError(str(self._lost), timed_out=self._lost.timed_out)
        self._asked += 1
        number = self._asked
        message["n"] = number
        if self._first:
            # What needs no answer goes with the next request.
            message["first"], self._first = self._first, []
        try:
            self._wire.send(message, arrays, self._deadline)
            while True:
                reply, received = self._wire.receive(self._deadline)
                if not isinstance(reply, dict):
                    raise ProtocolError("the session sent no reply")
                decoder = Decoder(received, self._take)
                if "callback" not in reply:
                    # A reply that the learner's code forged pushes the true one back to the next request.
                    if reply.get("n", number) != number:
                        raise ProtocolError("the session answered another question")
                    break
                self.rebound += 1
                self._answer(reply, decoder)
        except TimeoutError:
            raise self._lose("the time was over", timed_out=True) from None
        except (EOFError, OSError):
            raise self._lose("the session ended") from None
        except ProtocolError as error:
            raise self._lose(str(error)) from None
        self.rebound += "rebound" in reply
        if "error" in reply:
            raise _exception(reply)
        return reply, decoder

    def _answer(self, request: dict[str, Any], decoder: Decoder) -> None:
        """A learner's function calls one that it was given."""
        self._callbacks += 1
        number, positional, keywords = request.get("callback"), request.get("args"), request.get("kwargs")
        if type(number) is not int or not 0 <= number < len(self._held) or self._callbacks > MOST_CALLBACKS:
            raise ProtocolError("the session called what it was not given, or too often")
        if type(positional) is not list or type(keywords) is not dict:
            raise ProtocolError("the session called without arguments")
        if self._depth >= DEEPEST_CALLBACK:
            raise ProtocolError("the session's calls are nested too deeply")
        arguments = [decoder.decode(tree) for tree in positional]
        named = {key: decoder.decode(tree) for key, tree in keywords.items()}
        encoder = Encoder(self._hold)
        self._depth += 1
        try:
            reply: dict[str, Any] = {"value": encoder.encode(self._held[number](*arguments, **named))}
        except Exception as error:
            reply, encoder = {"error": type(error).__name__, "text": text_of(error)[:2000]}, Encoder(self._hold)
        finally:
            self._depth -= 1
        self._wire.send(reply, encoder.arrays, self._deadline)


def _float_errors() -> dict[str, str]:
    """How numpy treats overflow and the like at this place."""
    reactions: dict[str, Any] = dict(np.geterr())
    return {key: reactions[key] for key in _FLOAT_ERRORS}


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """A copy that keeps its own state; what has none that could be copied, such as a module, is itself."""
    if isinstance(value, ModuleType | type) or callable(value):
        return value
    try:
        return copy.deepcopy(value, memo)
    except Exception:
        return value


def _changed(mine: Any, value: Any, done: dict[int, Any]) -> Any:
    """What stands in an argument's place after the call: itself, made equal in place, or where it cannot be, the value.

    ``done`` holds what was changed: of an array that was handed over twice, the copy that was changed counts.
    """
    if id(mine) in done:
        return mine
    before: Any = None
    if isinstance(mine, np.ndarray) and isinstance(value, np.ndarray):
        if mine.shape != value.shape or mine.dtype != value.dtype:
            return value
        if mine.tobytes() != value.tobytes():
            mine[...] = value
            done[id(mine)] = mine
    elif isinstance(mine, list) and isinstance(value, list):
        before, mine[:] = list(mine), _parts(mine, value, done)
        if not _identical(before, mine):
            done[id(mine)] = mine, before
    elif isinstance(mine, dict) and isinstance(value, dict):
        after = {key: _changed(mine[key], item, done) if key in mine else item for key, item in value.items()}
        if not _identical([*mine, *mine.values()], [*mine, *after.values()]) or list(mine) != list(after):
            done[id(mine)] = mine, dict(mine)
            mine.clear()
            mine.update(after)
    elif isinstance(mine, tuple) and isinstance(value, tuple):
        parts = _parts(mine, value, done)
        return mine if _identical(mine, parts) else tuple(parts)
    elif isinstance(value, Proxy):
        return mine if callable(mine) else value
    else:
        return mine if _equal(mine, value) else value
    return mine


def _parts(mine: Sequence[Any], value: Sequence[Any], done: dict[int, Any]) -> list[Any]:
    shared = min(len(mine), len(value))
    return [_changed(mine[place], value[place], done) for place in range(shared)] + list(value[shared:])


def _identical(first: Sequence[Any], second: Sequence[Any]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))


def _equal(mine: Any, value: Any) -> bool:
    """Whether a value without parts came back as it was sent; some kinds come back as another, like a bytearray."""
    try:
        return bool(mine == value)
    except Exception:
        return False


def _label(text: Any) -> str:
    """A name that the session gives an object, fit to be shown."""
    if type(text) is not str:
        raise ProtocolError("a handle is malformed")
    return "".join(character for character in text[:LONGEST_NAME] if character.isprintable())


def text_of(error: Exception) -> str:
    """The text of an exception; it may hold what cannot be printed, such as a number of very many digits."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def _exception(reply: dict[str, Any]) -> Exception:
    """The exception that a learner's code raised: one of Python's own by name, else a RuntimeError that names it.

    What steers Python itself does not cross: a StopIteration would end a test's loop as if it had come to its end.
    """
    name, text, line = reply.get("error"), reply.get("text"), reply.get("line")
    name = _label(name) if type(name) is str else "Exception"
    text = text[:LONGEST_TEXT] if type(text) is str else ""
    error = _built(getattr(builtins, name, None), text) or RuntimeError(f"{name}: {text}")
    if type(line) is int and 0 < line < 1_000_000:
        error.add_note(f"line {line} of the cell")
    return error


def _built(kind: Any, text: str) -> Exception | None:
    """An exception of a kind, or of the nearest kind that it is one of and that takes a text alone."""
    if not isinstance(kind, type) or not issubclass(kind, Exception):
        return None
    if issubclass(kind, StopIteration | StopAsyncIteration):
        return None
    for base in kind.__mro__:
        try:
            error = base(text)
        except TypeError:
            continue
        return error if isinstance(error, Exception) else None
    return None


class Proxy:
    """An object of the learner's, seen from the checker: it can be called and has attributes, nothing more."""

    # Nothing else can be set: a test that sets an attribute would set it here, and not on the learner's object.
    __slots__ = ("__name__", "_proxy_callable", "_proxy_kind", "_proxy_number", "_proxy_session")

    def __init__(self, session: LearnerSession, number: int, is_callable: bool, kind: str, name: str) -> None:
        self._proxy_session = session
        self._proxy_number = number
        self._proxy_callable = is_callable
        self._proxy_kind = kind
        self.__name__ = name or kind

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the object in the learner's session."""
        if not self._proxy_callable:
            raise TypeError(f"{self._proxy_kind!r} object is not callable")
        return self._proxy_session.call(self._proxy_number, arguments, named)

    def _call_each(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call the object several times in one go; what a call raised stands in the place of what it returned."""
        return self._proxy_session.call_each(self._proxy_number, calls)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._proxy_session.attribute(self._proxy_number, name)

    def __deepcopy__(self, memo: object) -> "Proxy":
        """The same object: it lives in the learner's session."""
        return self

    def __copy__(self) -> "Proxy":
        """The same object."""
        return self

    def __repr__(self) -> str:
        """What it stands for."""
        return f"<{self._proxy_kind} {self.__name__} of the learner's>"


class Names(dict[str, Any]):
    """The names that test cells see: the checker's own, Python's, and for the rest the learner's.

    The names that the reference's answers define always come from the learner, whatever else has that name. A name
    that a trusted cell has bound, or would have bound had it not failed, is never asked of the learner.
    """

    def __init__(self, session: LearnerSession, asked: Iterable[str]) -> None:
        super().__init__({"__name__": "__main__", "__builtins__": builtins})
        self._session = session
        self._asked = frozenset(asked)
        self._reserved: set[str] = set()
        self._overlaid: set[str] = set()
        # Stand-ins for the learner's functions, kept while no name in the session has come to mean something else.
        self._known: dict[str, Proxy] = {}
        self._known_at = 0
        self._moments: dict[str, tuple[dict[str, Any], set[str]]] = {}
        self._handed_on: dict[str, Any] = {}

    def __missing__(self, name: str) -> Any:
        if name not in self._asked and (name in _BUILTINS or name in self._reserved or name.startswith("__")):
            raise KeyError(name)
        if self._known_at != self._session.rebound:
            self._known, self._known_at = {}, self._session.rebound
        if name in self._known:
            return self._known[name]
        try:
            value = self._session.get(name)
        except NameError:
            raise KeyError(name) from None
        if isinstance(value, Proxy):
            self._known[name] = value
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        """Bind a name; an object of the learner's that is put back under its own name is asked for anew instead."""
        if name in self._asked and isinstance(value, Proxy):
            self.pop(name, None)
        else:
            super().__setitem__(name, value)

    def __contains__(self, name: object) -> bool:
        """Whether a test cell can use the name."""
        try:
            self[name]  # type: ignore[index]
        except (KeyError, NameError):
            return False
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, from wherever it is, or the default."""
        try:
            return self[name]
        except (KeyError, NameError):
            return default

    def reserve(self, names: Iterable[str]) -> None:
        """Never ask the learner for these names, unless the reference's answers define them."""
        self._reserved |= set(names)

    def move(self, session: LearnerSession) -> None:
        """Ask another session from now on. What trusted cells have made stays, without objects of the old session."""
        self._session.forget()
        self._session = session
        self._known = {}
        for name in [name for name, value in self.items() if isinstance(value, Proxy)]:
            del self[name]

    def keep(self, moment: str) -> None:
        """Keep what the names mean here, and copies of what they hold, to come back to it."""
        memo: dict[int, Any] = {}
        self._moments[moment] = {name: _copied(value, memo) for name, value in self.items()}, set(self._reserved)

    def come_back(self, moment: str) -> None:
        """Let names mean here what they did when that was kept, beside those that hidden tests have handed on."""
        values, reserved = self._moments.pop(moment)
        values = self._handed_on | values
        gone = {n for n, v in values.items() if isinstance(v, Proxy) and v._proxy_session is not self._session}
        self.clear()
        self.update({name: value for name, value in values.items() if name not in gone})
        self._reserved = reserved | self._handed_on.keys()

    def hand_on(self, names: Iterable[str]) -> None:
        """Let later hidden tests use names that one of them has bound."""
        # Asked for in any other way, a name that is not here would be the learner's.
        self._handed_on |= {name: self[name] for name in names if name in self.keys()}

    def stand_in(self, step: str, functions: Mapping[str, Any]) -> None:
        """Let the course's own functions stand in for earlier ones: here, and in the learner's session."""
        self._overlaid = set(functions)
        self.update(functions)
        if functions:
            self._session.stand_in(step)

    def stand_back(self) -> None:
        """Take the stand-ins back."""
        for name in self._overlaid:
            self.pop(name, None)
        if self._overlaid:
            self._session.stand_back()
        self._overlaid = set()
