"""Fuzz what the checker reads of a session, guided by coverage: `python -m tests.grader.engine.fuzz_decoder`.

Needs atheris (`pip install atheris`), which no other part of the course does. Whatever bytes a session sends, the
checker has to come to a value, to the exception that the bytes name, or to the end of the session. What fails is left
as a file `crash-...` in the current folder; give such files as arguments to run them again.
"""

import argparse
import contextlib
import json
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

try:
    import atheris
except ImportError:
    atheris = None

OURS = ["grader.session.wire", "grader.engine.proxy"]
with atheris.instrument_imports(include=OURS) if atheris else contextlib.nullcontext():
    from grader.engine.proxy import LearnerSession, SessionLostError
    from grader.session.wire import Decoder, Encoder, ProtocolError, _npy

WORDS = (
    *(f'{{"{mark}":' for mark in "vifcbqdltsmagh"),
    *(f'"{word}":' for word in ("value", "args", "kwargs", "error", "text", "line", "callback")),
    *(
        "null",
        "true",
        '"0x1"',
        '"0x1p0"',
        '"nan"',
        '"1e9"',
        "[0,true,",
        '"ValueError"',
        "'descr': '",
        "'shape': (",
    ),
)
VALUES: tuple[Any, ...] = (
    None,
    [1, -(2**70), 0.5, 1j, "text", b"bytes", True],
    {"a": (1, {2, 3}), 4: [np.arange(6).reshape(2, 3), np.float32(1.5)]},
    [np.array(["x", "yz"]), np.array([True, False]), np.array(5), np.zeros((0, 2), dtype=">c16")],
)


class Sent:
    """A connection on which these bytes come, and then nothing more."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def recv(self, count: int) -> bytes:
        part, self._data = self._data[:count], self._data[count:]
        return part

    def sendall(self, data: bytes) -> None:
        """Nobody reads it."""

    def settimeout(self, seconds: float | None) -> None:
        """Nothing waits."""


def frame(text: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">II", len(text), len(data)) + text + data


def check(data: bytes) -> None:
    """Raise for bytes that do not end as they should; the first one says what the others are."""
    if not data:
        return
    kind, rest = data[0] % 5, data[1:]
    if kind == 0:
        _ask(rest)
    elif kind == 1:
        _ask(frame(rest))
    elif kind == 2:
        _decode({"a": 0}, [rest])
    elif kind == 4:
        _ask(frame(rest), each=True)
    else:
        text, _, array = rest.partition(b"\0")
        lengths = b"[%d]" % len(array)
        _ask(frame(b"[" + text + b"," + lengths + b"]", array))


def _decode(tree: Any, arrays: list[bytes]) -> None:
    try:
        value = Decoder(arrays, lambda handle: handle).decode(tree)
    except ProtocolError:
        return
    repr(value)


def _ask(sent: bytes, *, each: bool = False) -> None:
    connection: Any = Sent(sent)
    session = LearnerSession(connection)
    session.allow(1000)
    try:
        if each:
            repr(session.call_each(0, [(1, [2]), (np.zeros(2),)]))
            return
        repr(session.call(0, ([1, [2]], np.zeros(2), len, {"k": (1, np.ones(1))}), {"x": [3]}))
    except SessionLostError as error:
        str(error)
    except Exception as error:
        str(error)
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        # One that the bytes name is raised there; from anywhere else it is a fault of the checker.
        if where is None or where.tb_frame.f_code.co_name != "_ask" or where.tb_frame.f_globals is globals():
            raise


def seeds() -> list[bytes]:
    """What honest sessions send, so that not every run has to find it out."""
    found = [b"\2" + _npy(np.arange(3.0)), b"\2" + _npy(np.array(["a"]))]
    for value in VALUES:
        encoder = Encoder(lambda thing: [0, True, "f", "f"])
        reply = {"value": encoder.encode(value), "args": [encoder.encode([9, [8]]), encoder.encode(np.ones(2))]}
        text = json.dumps([reply, [len(array) for array in encoder.arrays]]).encode()
        found += [b"\0" + frame(text, b"".join(encoder.arrays)), b"\1" + text]
    for message in (
        {"error": "ValueError", "text": "a", "line": 3},
        {"callback": 0, "args": [{"l": []}], "kwargs": {}},
        {
            "value": {"h": [0, True, "function", "f"]},
            "kwargs": {"x": {"l": [{"d": "1.5"}, {"q": ["0x1", "0x2"]}]}},
        },
    ):
        found += [b"\1" + json.dumps([message, []]).encode(), b"\3" + json.dumps(message).encode() + b"\0"]
    each = [{"value": {"v": 1}, "args": [None, {"l": []}]}, {"error": "ValueError", "text": "a", "line": 3}]
    found += [
        b"\4" + json.dumps([{"each": each}, []]).encode(),
        b"\4" + json.dumps([{"each": each[:1]}, []]).encode(),
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="how long to go on")
    parser.add_argument("files", nargs="*", type=Path, help="inputs of earlier runs to try again instead")
    options = parser.parse_args()
    for data in [path.read_bytes() for path in options.files] or seeds():
        check(data)
    if options.files:
        print(f"{len(options.files)} inputs end as they should")
        return
    if atheris is None:
        sys.exit("atheris is not installed: pip install atheris")
    with tempfile.TemporaryDirectory() as corpus, tempfile.NamedTemporaryFile("w", suffix=".dict") as words:
        for number, data in enumerate(seeds()):
            (Path(corpus) / str(number)).write_bytes(data)
        words.write("".join(json.dumps(word) + "\n" for word in WORDS))
        words.flush()
        bounds = [
            f"-dict={words.name}",
            f"-max_total_time={options.seconds}",
            "-max_len=4096",
            "-timeout=10",
            "-rss_limit_mb=1500",
        ]
        atheris.Setup([sys.argv[0], *bounds, corpus], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
