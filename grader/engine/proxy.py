"""The checker's side of a learner session: requests with deadlines, and stand-ins for the learner's objects."""

import builtins
import copy
import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from grader.engine.foresight import Asked, Script, script_of
from grader.session.wire import FLOAT_ERRORS, Decoder, Encoder, ProtocolError, Wire

__all__ = ["LearnerSession", "Names", "Proxy", "SessionLostError", "text_of"]

DEEPEST_CALLBACK = 20
MOST_CALLBACKS = 200_000
MOST_HANDLES = 1 << 31
LONGEST_NAME = 100
LONGEST_TEXT = 20_000
AHEAD_SECONDS = 5.0
"""Seconds for the answers to a script; where that is too short, the test is run anew without one."""
_BUILTINS = dict(vars(builtins))
_PLAIN = str | bytes | int | float | complex | None
_T = TypeVar("_T")


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
        # Names of the objects that were asked for, by number; and what is asked, while that is kept.
        self._named: dict[int, str] = {}
        self._kept: list[Asked] | None = None
        self._script: Script | None = None
        self._ahead: _Ahead | None = None
        # The number of a script whose answers have a last word behind them that is not read yet.
        self._unsettled = 0
        self.lost_ahead = False
        """Whether the session was lost while it answered a script, and so maybe at what a test would not have asked."""
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
        value = self._decode(decoder, reply.get("value"))
        if isinstance(value, Proxy):
            self._named[value._proxy_number] = name
        return value

    def stand_in(self, step: str) -> None:
        """Let the course's own functions stand in for those of earlier steps, in the session too."""
        self._first.append(["stand_in", step])

    def settle(self) -> None:
        """See that nothing is left over from the cell at hand, such as a reply behind a forged one."""
        if self._unsettled:
            self._ready()
            self._guarded(self._last_word)
        else:
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
        }
        if named:
            message["kwargs"] = {key: encoder.encode(value) for key, value in named.items()}
        _add_float_errors(message)
        reply, decoder = self._ask(message, encoder.arrays)
        return self._returned(reply, decoder, arguments, named)

    def call_each(self, handle: int, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call an object of the learner's with several arguments in one go; an exception stands for itself."""
        encoder = Encoder(self._hold)
        message = {
            "op": "call_each",
            "handle": handle,
            "calls": [[encoder.encode(value) for value in arguments] for arguments in calls],
        }
        _add_float_errors(message)
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

    def keep_asked(self) -> None:
        """Keep what is asked from now on, for ``asked``."""
        self._kept = []

    def asked(self) -> Script | None:
        """The script of what was asked since ``keep_asked``, if it is worth one."""
        kept, self._kept = self._kept or [], None
        return script_of(kept)

    def foresee(self, script: Script | None) -> None:
        """Ask all of a script as soon as the first of it is asked."""
        self._script, self._ahead = script, None

    def unforeseen(self) -> int | None:
        """End what ``foresee`` began: the place in the script up to which it was asked; None where nothing was."""
        ahead = self._ahead
        self._leave_script()
        self._ahead = None
        return None if ahead is None else ahead.place

    def _leave_script(self) -> None:
        """Go on without the script; what the session has done ahead of the test is undone, as far as it can be."""
        self._script = None
        if self._ahead is None:
            return
        if self._ahead.is_in_front():
            # The session has let functions stand in for a test that did not get so far.
            self._first.insert(0, ["stand_back", ""])
            self._ahead.begun = None
        self.rebound += self._ahead.is_rebound

    def _ready(self) -> None:
        if self._forgotten:
            raise RuntimeError("the session that this object belonged to has ended")
        if self._lost is not None:
            raise SessionLostError(str(self._lost), timed_out=self._lost.timed_out)

    def _ask(self, message: dict[str, Any], arrays: list[bytes]) -> tuple[dict[str, Any], Decoder]:
        """The reply to a request: one that is there already, or one that the session sends now."""
        self._ready()
        if self._kept is not None:
            self._kept.append(self._as_asked(message, arrays))
        found = self._foreseen(message, arrays) if self._script is not None else None
        if found is None:
            found = self._guarded(lambda: self._exchange(message, arrays))
        reply, decoder = found
        self.rebound += "rebound" in reply
        if "error" in reply:
            raise _exception(reply)
        return reply, decoder

    def _guarded(self, exchange: Callable[[], _T]) -> _T:
        """What an exchange with the session gives; whatever goes wrong in it, the session is lost."""
        try:
            return exchange()
        except TimeoutError:
            raise self._lose("the time was over", timed_out=True) from None
        except (EOFError, OSError):
            raise self._lose("the session ended") from None
        except ProtocolError as error:
            raise self._lose(str(error)) from None

    def _exchange(self, message: dict[str, Any], arrays: list[bytes]) -> tuple[dict[str, Any], Decoder]:
        """Send a request and wait for its reply, answering the session's calls of our functions meanwhile."""
        if self._unsettled:
            self._last_word()
        self._asked += 1
        message["n"] = self._asked
        if self._first:
            # What needs no answer goes with the next request.
            message["first"], self._first = self._first, []
        self._wire.send(message, arrays, self._deadline)
        reply, received = self._reply(self._asked, self._deadline)
        return reply, Decoder(received, self._take)

    def _reply(self, number: int, deadline: float) -> tuple[dict[str, Any], list[memoryview]]:
        while True:
            reply, received = self._wire.receive(deadline)
            if not isinstance(reply, dict):
                raise ProtocolError("the session sent no reply")
            if "callback" not in reply:
                # A reply that the learner's code forged pushes the true one back to the next request.
                if reply.get("n", number) != number:
                    raise ProtocolError("the session answered another question")
                return reply, received
            self.rebound += "rebound" in reply
            self._answer(reply, Decoder(received, self._take))

    def _last_word(self) -> None:
        """Read what is sent behind the answers to a script: another thing in its place tells of forged answers."""
        number, self._unsettled = self._unsettled, 0
        reply, _ = self._wire.receive(self._deadline)
        if reply != {"n": number, "settled": True}:
            raise ProtocolError("the session answered another question")

    def _as_asked(self, message: dict[str, Any], arrays: list[bytes]) -> Asked:
        plain = {key: value for key, value in message.items() if key != "handle"}
        first = tuple((what, name) for what, name in self._first)
        return Asked(plain, tuple(arrays), first, self._named.get(message.get("handle", -1), ""))

    def _foreseen(self, message: dict[str, Any], arrays: list[bytes]) -> tuple[dict[str, Any], Decoder] | None:
        """The reply to a request out of the answers to the script; None where it is not among them."""
        assert self._script is not None
        plain = {key: value for key, value in message.items() if key != "handle"}
        if self._ahead is None:
            of = self._named.get(message.get("handle", -1), "")
            place = next(
                (
                    n
                    for n, one in enumerate(_openings(self._script))
                    if one.of == of and one.is_same(plain, arrays)
                ),
                None,
            )
            if place is None or self._depth:
                self._script = None
                return None
            try:
                self._ahead = self._guarded(lambda: self._answers(place))
            except SessionLostError:
                self.lost_ahead = True
                raise
            found = self._ahead.find(plain, arrays, message.get("handle"), [])
        else:
            found = self._ahead.find(plain, arrays, message.get("handle"), self._first)
            if found is not None:
                self._first = []
        if found is None:
            # The test has gone another way; what is asked from here on is asked of the session.
            self._leave_script()
            return None
        reply, received = found
        return reply, Decoder(received, self._take)

    def _answers(self, place: int) -> "_Ahead":
        """Send a script from a place on, and take the answers."""
        assert self._script is not None
        if self._unsettled:
            self._last_word()
        self._asked += 1
        deadline = min(self._deadline, time.monotonic() + AHEAD_SECONDS)
        steps, arrays = self._script.encoded(place)
        first, self._first = self._first, []
        head = f'{{"op":"script","n":{self._asked},"first":{json.dumps(first)},"steps":{steps}}}'
        self._wire.send_text(head, arrays, deadline)
        reply, received = self._reply(self._asked, deadline)
        self._unsettled = self._asked
        return _Ahead(self._script, place, _parted(reply.get("each"), received))

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


class _Ahead:
    """The answers to a script, from the request on with which it began; ``place`` is that of the next one."""

    def __init__(self, script: Script, place: int, replies: list[tuple[dict[str, Any], list[memoryview]]]) -> None:
        self.place = place
        self.begun = next((n for n in range(place + 1, place + len(replies)) if script.asked[n].first), None)
        """The place of the request before which the session has let functions stand in, if there is one."""
        self.is_rebound = any("rebound" in reply for reply, _ in replies)
        self._script = script
        self._start = place
        self._replies = replies

    def is_in_front(self) -> bool:
        """Whether the session has let functions stand in, and the test has not come so far."""
        return self.begun is not None and self.place <= self.begun

    def find(
        self, message: Mapping[str, Any], arrays: Sequence[bytes], handle: Any, first: list[list[str]]
    ) -> tuple[dict[str, Any], list[memoryview]] | None:
        """The answer to a request; of a test that fails, calls are passed over up to the probes of its step."""
        for place in range(self.place, min(self._start + len(self._replies), self._script.length)):
            one, (reply, received) = self._script.asked[place], self._replies[place - self._start]
            before = one.first if place > self._start else ()
            if one.is_same(message, arrays) and reply.get("handle") == handle:
                if first != [list(part) for part in before]:
                    return None
                self.place = place + 1
                return reply, received
            if before or (one.message["op"] != "get" and message["op"] != "call_each"):
                return None
        return None


def _openings(script: Script) -> Iterator[Asked]:
    """The requests of a script with which a test may begin: its first ones, as far as they ask for names."""
    for one in script.asked[: script.length]:
        yield one
        if one.message["op"] != "get":
            return


def _parted(replies: Any, arrays: list[memoryview]) -> list[tuple[dict[str, Any], list[memoryview]]]:
    """Each reply with the arrays that are its own."""
    if type(replies) is not list:
        raise ProtocolError("the session did not answer the script")
    parted, start = [], 0
    for reply in replies:
        count = reply.get("arrays") if type(reply) is dict else None
        if type(count) is not int or not 0 <= count <= len(arrays) - start:
            raise ProtocolError("the session did not answer the script")
        parted.append((reply, arrays[start : start + count]))
        start += count
    return parted


def _add_float_errors(message: dict[str, Any]) -> None:
    """Say how numpy treats overflow and the like at this place, where that is not what it does by itself."""
    reactions = dict(np.geterr())
    if reactions != FLOAT_ERRORS:
        message["errors"] = reactions


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """A copy that keeps its own state; what has none that could be copied, such as a module, is itself."""
    if isinstance(value, ModuleType | type | _PLAIN) or callable(value):
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
        if name not in self._asked:
            if name in _BUILTINS:
                # Python would look there next, after an exception; tests use many of them.
                return _BUILTINS[name]
            if name in self._reserved or name.startswith("__"):
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
        """Whether a test cell can use the name, Python's own aside."""
        if self._is_python_s(name):
            return False
        try:
            self[name]  # type: ignore[index]
        except (KeyError, NameError):
            return False
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a name, from wherever it is but from Python itself, or the default."""
        if self._is_python_s(name):
            return default
        try:
            return self[name]
        except (KeyError, NameError):
            return default

    def _is_python_s(self, name: object) -> bool:
        return name in _BUILTINS and name not in self._asked and name not in self.keys()

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
