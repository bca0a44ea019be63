"""Sessions without a sandbox: the real one in a thread of this process, and ones that say what a test wants."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from grader.engine.proxy import LearnerSession
from grader.session.learner import Session
from grader.session.wire import ProtocolError, Wire

GONE = (EOFError, OSError, ProtocolError)
SECONDS = 20.0


class Shell:
    """As much of an IPython shell as a session needs."""

    def __init__(self, source: str) -> None:
        self.user_ns: dict[str, Any] = {}
        self.execution_count = 1
        self.session: Any = None
        exec(source, self.user_ns)

    def run_cell(self, source: str, store_history: bool) -> Any:
        self.execution_count += 1
        exec(source, self.user_ns)
        return SimpleNamespace(success=True, error_before_exec=None, error_in_exec=None)


@contextmanager
def honest(source: str, seconds: float = SECONDS) -> Iterator[LearnerSession]:
    """A session that has run ``source``; it runs in a thread, so what it does can be looked at."""

    def serve(wire: Wire) -> None:
        session = Session(Shell(source), wire, 1_000_000)
        while True:
            message, arrays = wire.receive()
            session.answer(message, arrays)

    with _connected(serve, seconds) as session:
        yield session


Reply = dict[str, Any] | list[Any] | str | int | bytes | None


@contextmanager
def hostile(
    *replies: Reply | Callable[[Any], Reply], arrays: Iterable[bytes] = (), seconds: float = SECONDS
) -> Iterator[LearnerSession]:
    """A session that sends these replies whatever it is asked (bytes as they are), the last one again and again."""

    def serve(wire: Wire) -> None:
        remaining = list(replies)
        while True:
            request, _ = wire.receive()
            reply = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            reply = reply(request) if callable(reply) else reply
            if isinstance(reply, bytes):
                wire.connection.sendall(reply)
            else:
                wire.send(reply, list(arrays))

    with _connected(serve, seconds) as session:
        yield session


@contextmanager
def _connected(serve: Callable[[Wire], None], seconds: float) -> Iterator[LearnerSession]:
    mine, theirs = socket.socketpair()

    def run() -> None:
        try:
            serve(Wire(theirs))
        except GONE:
            pass
        finally:
            theirs.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    session = LearnerSession(mine)
    session.allow(seconds)
    try:
        yield session
    finally:
        mine.close()
        thread.join(5)
