"""Frames: every kind of value comes back as it was sent, and whatever else comes ends in one of three exceptions."""

import contextlib
import io
import json
import math
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from grader.session import wire
from grader.session.wire import Decoder, Encoder, ProtocolError, Wire

CLEAN = (ProtocolError, EOFError, TimeoutError)
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Handle:
    """What a decoder makes of a handle here."""

    def __init__(self, held: Any) -> None:
        self.held = held


@pytest.fixture
def pair() -> Iterator[tuple[Wire, Wire]]:
    first, second = socket.socketpair()
    with first, second:
        yield Wire(first), Wire(second)


def there_and_back(value: Any) -> Any:
    held: list[Any] = []

    def hold(what: Any) -> int:
        held.append(what)
        return len(held) - 1

    encoder = Encoder(hold)
    tree = json.loads(json.dumps(encoder.encode(value)))
    return Decoder(encoder.arrays, lambda number: held[number]).decode(tree)


def same(first: Any, second: Any) -> bool:
    """Equal in kind, in type and in every bit."""
    if isinstance(first, np.ndarray | np.generic):
        alike = type(first) is type(second) and first.dtype == second.dtype and first.shape == second.shape
        if first.dtype == np.longdouble:
            return alike and np.array_equal(first, second)  # it has bytes that are not part of the number
        return alike and first.tobytes() == second.tobytes()
    if type(first) is not type(second):
        return False
    if isinstance(first, float):
        return struct.pack("d", first) == struct.pack("d", second) or (first != first and second != second)
    if isinstance(first, complex):
        return same(first.real, second.real) and same(first.imag, second.imag)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(same(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, dict):
        return list(first) == list(second) and all(same(first[key], second[key]) for key in first)
    return bool(first == second) or (isinstance(first, Decimal) and str(first) == str(second))


dtypes = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.unsigned_integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | hnp.complex_number_dtypes(endianness="?")
    | hnp.unicode_string_dtypes(endianness="?", min_len=1, max_len=5)
    | hnp.byte_string_dtypes(min_len=1, max_len=5)
)
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
numbers = (
    st.booleans()
    | st.integers()
    | st.integers(-(10**4000), 10**4000)
    | st.floats()
    | st.complex_numbers()
    | st.fractions()
    | st.decimals().filter(lambda value: not value.is_snan())
)
texts = st.text(st.characters()) | st.binary()
keys = texts | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.fractions()
scalars = st.none() | numbers | texts | hnp.arrays(dtypes, ()).map(lambda array: array[()])
values = st.recursive(
    scalars | arrays,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.lists(parts, max_size=4).map(tuple)
        | st.dictionaries(keys, parts, max_size=4)
        | st.sets(keys, max_size=4)
    ),
    max_leaves=12,
)


@QUICK
@given(values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(there_and_back(value), value)


@QUICK
@given(values)
def test_frames_carry_values(value: Any) -> None:
    first, second = socket.socketpair()
    with first, second:
        encoder = Encoder(lambda what: pytest.fail("nothing here needs a handle"))
        tree = encoder.encode(value)
        sender = threading.Thread(target=Wire(first).send, args=({"value": tree}, encoder.arrays))
        sender.start()
        message, data = Wire(second).receive(time.monotonic() + 20)
        sender.join()
    assert same(Decoder(data, lambda number: None).decode(message["value"]), value)


@pytest.mark.parametrize(
    "value",
    [
        -0.0,
        math.nan,
        -math.inf,
        5e-324,
        2**13_999,
        -(2**13_999),
        Fraction(-(10**1000), 10**1000 + 1),
        Decimal("-0E-10"),
        Decimal("NaN"),
        Decimal("-Infinity"),
        "\ud800 alone \0",
        b"\x00\xff",
        np.array(-0.0),
        np.float64("nan"),
        np.array([], dtype="<f2"),
        np.zeros((0, 3, 0), dtype=">i8"),
        np.float32(1e-45),
        np.bool_(False),
        np.str_("naïve 🙂"),
        np.bytes_(b"a\x00b"),
        np.longdouble("1.1"),
        np.array("text"),
        [[], {}, (), ((),), {(1, (2, b"")): [None]}],
    ],
    ids=repr,
)
def test_special_values(value: Any) -> None:
    assert same(there_and_back(value), value)


def test_arrays_are_plain_own_and_writable() -> None:
    class Sub(np.ndarray):
        pass

    for array in (
        np.arange(6.0).reshape(2, 3).T,
        np.arange(8)[::-2],
        np.zeros(3).view(Sub),
        np.broadcast_to(1.5, (2, 2)),
    ):
        back = there_and_back(array)
        assert type(back) is np.ndarray
        assert back.dtype == array.dtype
        assert np.array_equal(back, array)
        back[...] = 7
    assert isinstance(there_and_back(np.array(2.0)), np.ndarray)
    assert type(there_and_back(np.int8(3))) is np.int8


def test_subclasses_become_what_they_are() -> None:
    class Text(str):
        pass

    class Many(list[int]):
        pass

    assert type(there_and_back(Text("a"))) is str
    assert type(there_and_back(Many([1]))) is list
    assert there_and_back(frozenset({1, "a"})) == {1, "a"}
    assert there_and_back(bytearray(b"x")) == b"x"


def test_the_rest_crosses_as_a_handle() -> None:
    for thing in (
        len,
        object(),
        int,
        np,
        range(3),
        np.array([None]),
        np.zeros(2, dtype="f8,i4"),
        np.datetime64("2020"),
    ):
        assert there_and_back([thing])[0] is thing


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def too_much() -> dict[str, Any]:
    endless: list[Any] = []
    endless.append(endless)
    return {
        "deep": nested(wire.DEEPEST + 1),
        "endless": endless,
        "long": [0] * wire.MOST_ITEMS,
        "integer": 10**4300,
        "fraction": Fraction(1, 10**4300),
        "exponent": Decimal("1e5000"),
        "tiny": Decimal("1e-5000"),
        "digits": Decimal("1" * 1001),
        "number keys": dict.fromkeys(range(wire.MOST_KEYS + 1)),
        "number set": set(range(wire.MOST_KEYS + 1)),
        "tuple keys": [{(place, 0) for place in range(1100)}, {(place, 1): 0 for place in range(1100)}],
    }


@pytest.mark.parametrize("name", too_much())
def test_too_much_is_refused_where_it_is_sent(name: str) -> None:
    with pytest.raises(ProtocolError):
        Encoder(id).encode(too_much()[name])


def test_as_much_as_may_be() -> None:
    assert there_and_back(nested(wire.DEEPEST)) == nested(wire.DEEPEST)
    assert len(there_and_back([0] * (wire.MOST_ITEMS - 1))) == wire.MOST_ITEMS - 1
    assert len(there_and_back(set(range(wire.MOST_KEYS)))) == wire.MOST_KEYS
    words = {f"word {number}": number for number in range(50_000)}
    assert there_and_back(words) == words
    largest = 16**wire.LONGEST_INTEGER - 1
    assert there_and_back([largest, -largest]) == [largest, -largest]
    assert len(str(largest)) < 4300


def npy(array: Any, **options: Any) -> bytes:
    data = io.BytesIO()
    np.lib.format.write_array(data, array, **options)
    return data.getvalue()


def header(text: str, body: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    line = text.encode() + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(line)) + line + body


def head(descr: str, shape: str, body: bytes = b"", fortran: str = "False") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}", body)


BAD_ARRAYS = {
    "nothing": b"",
    "magic only": b"\x93NUMPY",
    "no header": b"\x93NUMPY\x01\x00\xff\xff",
    "objects": npy(np.array([None]), allow_pickle=True),
    "structured": npy(np.zeros(2, dtype="f8,i4")),
    "fortran": npy(np.asfortranarray(np.ones((2, 3)))),
    "version 2": npy(np.ones(3), version=(2, 0)),
    "version 3": npy(np.ones(3), version=(3, 0)),
    "dates": npy(np.array(["2020"], dtype="M8[D]")),
    "durations": npy(np.array([1], dtype="m8[s]")),
    "void": npy(np.zeros(2, dtype="V4")),
    "truncated": npy(np.ones(3))[:-1],
    "too long": npy(np.ones(3)) + b"x",
    "huge": head("'<f8'", f"({10**15},)"),
    "huge product": head("'|u1'", f"({2**31}, {2**31}, {2**31})"),
    "over the index type": head("'|u1'", f"({10**17}, {10**17}, 0)"),
    "empty but wide": head("'<f8'", f"(0, {10**12})"),
    "negative": head("'<f8'", "(-1,)", b"\0" * 8),
    "two negatives": head("'<f8'", "(-1, -1)", b"\0" * 8),
    "no size": head("'<U0'", "(5,)"),
    "no size, no bytes": head("'|S0'", f"({10**6},)"),
    "sub-array": head("'(2,)<f8'", "(1,)", b"\0" * 16),
    "list of fields": head("[('a', '<f8')]", "(1,)", b"\0" * 8),
    "number shape": head("'<f8'", "3", b"\0" * 24),
    "truth as a side": head("'|u1'", "(True,)", b"\0"),
    "float side": head("'|u1'", "(1.0,)", b"\0"),
    "unknown type": head("'<q3'", "(1,)", b"\0" * 3),
    "odd float": head("'<f3'", "(1,)", b"\0" * 3),
    "object text": head("'|O'", "(1,)", b"\0" * 8),
    "code": head("__import__('os').getpid()", "(1,)", b"\0" * 8),
    "code as a shape": head("'<f8'", "(print(1),)", b"\0" * 8),
    "70 axes": head("'|u1'", f"({', '.join(['1'] * 70)})", b"\0"),
    "deep": header("(" * 9000),
    "minus": header("-" * 9000 + "1"),
    "wrong header length": head("'<f8'", "(1,)", b"\0" * 8).replace(b"\x01\x00", b"\x01\x00\x09", 1),
    "no character": head("'<U1'", "(1,)", b"\xff\xff\xff\xff"),
    "no character, big-endian": head("'>U1'", "(1,)", b"\x00\x11\x00\x00"),
    "pickle": b"\x80\x04\x8c\x05posix\x94\x8c\x06getpid\x94\x93\x94)R\x94.",
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_bad_arrays_are_refused(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            Decoder([BAD_ARRAYS[name]], id).decode({"a": 0})
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_good_header_made_by_hand_is_taken() -> None:
    assert Decoder([head("'<f8'", "(1,)", struct.pack("<d", 2.5))], id).decode({"a": 0}).tolist() == [2.5]


def test_truth_values_are_normal_ones() -> None:
    array = Decoder([head("'|b1'", "(3,)", b"\x02\x00\xff")], id).decode({"a": 0})
    assert array.view(np.uint8).tolist() == [1, 0, 1]


BAD_TREES: dict[str, Any] = {
    "null": None,
    "number": 1,
    "list": [],
    "empty": {},
    "two marks": {"i": "0x1", "v": None},
    "unknown": {"x": 1},
    "empty mark": {"": 1},
    "number as plain": {"v": 1},
    "float as plain": {"v": 1.5},
    "list as plain": {"v": []},
    "integer of a number": {"i": 5},
    "integer of a list": {"i": ["0x1"]},
    "integer of nothing": {"i": ""},
    "integer that is long": {"i": "0x" + "f" * 10_000},
    "integer that is very long": {"i": "f" * 1_000_000},
    "integer that is none": {"i": "0xg"},
    "float of a number": {"f": 1.0},
    "float that is none": {"f": "one"},
    "float that is too large": {"f": "0x1p99999"},
    "complex of one": {"c": ["0x1p0"]},
    "complex of three": {"c": ["0x1p0"] * 3},
    "complex of a text": {"c": "12"},
    "fraction over nothing": {"q": ["0x1", "0x0"]},
    "fraction of numbers": {"q": [1, 2]},
    "fraction of a text": {"q": "12"},
    "fraction of long parts": {"q": ["0x1", "0x" + "f" * 4000]},
    "decimal of a number": {"d": 1},
    "decimal that is none": {"d": "1e"},
    "decimal that is huge": {"d": "1e999999999999999"},
    "decimal that is tiny": {"d": "1e-999999"},
    "decimal of zero with an exponent": {"d": "0e999999"},
    "decimal that is long": {"d": "9" * 2000},
    "bytes of a number": {"b": 5},
    "bytes that are odd": {"b": "abc"},
    "bytes that are none": {"b": "zz"},
    "list of a text": {"l": "ab"},
    "list of a dictionary": {"l": {"v": None}},
    "list of malformed": {"l": [1]},
    "set of lists": {"s": [{"l": []}]},
    "pairs of one": {"m": [[{"v": "a"}]]},
    "pairs of three": {"m": [[{"v": "a"}] * 3]},
    "pairs as a dictionary": {"m": {"v": None}},
    "key that is a list": {"m": [[{"l": []}, {"v": None}]]},
    "array that is not there": {"a": 1},
    "array before the first": {"a": -1},
    "array by truth": {"a": True},
    "array by text": {"a": "0"},
    "array twice": {"l": [{"a": 0}, {"a": 0}]},
    "array and scalar": {"l": [{"a": 0}, {"g": 0}]},
    "too deep": json.loads('{"l":[' * 60 + "]}" * 60),
    "too many": {"l": [{"v": None}] * 200_000},
    "colliding keys": {"s": [{"i": hex(number * (2**61 - 1))} for number in range(50_000)]},
    "colliding pairs": {"m": [[{"i": hex(number * (2**61 - 1))}, {"v": None}] for number in range(50_000)]},
    "keys of fractions": {"s": [{"q": [hex(number), "0x7"]} for number in range(50_000)]},
    "keys in parts": {"l": [{"s": [{"i": hex(n)} for n in range(50)]}] * 50},
}


@pytest.mark.parametrize("name", BAD_TREES)
def test_bad_trees_are_refused_quickly(name: str) -> None:
    start = time.process_time()
    with pytest.raises(ProtocolError):
        Decoder([npy(np.zeros(2))], id).decode(BAD_TREES[name])
    assert time.process_time() - start < 3


@pytest.mark.parametrize("error", [TypeError, ValueError, KeyError, RecursionError, MemoryError])
def test_a_handle_that_cannot_be_taken_is_a_malformed_value(error: type[Exception]) -> None:
    def take(handle: Any) -> Any:
        raise error("no")

    with pytest.raises(ProtocolError):
        Decoder([], take).decode({"h": 3})


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
marks = st.sampled_from("viféqdbcltsmagh" + "x") | st.text(max_size=2)
trees = st.recursive(
    leaves,
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(marks, parts, max_size=2),
    max_leaves=20,
)


def decoded(tree: Any, data: list[bytes]) -> None:
    """Decode, and use the value as tests do."""
    try:
        value = Decoder(data, Handle).decode(tree)
    except ProtocolError:
        return
    repr(value)
    str(value)
    with contextlib.suppress(ValueError):
        assert (value == value) in (True, False)


@settings(QUICK, max_examples=300)
@given(trees, st.lists(arrays.map(npy) | st.binary(max_size=80), max_size=2))
def test_random_trees_give_a_value_or_are_refused(tree: Any, data: list[bytes]) -> None:
    decoded(tree, data)


@settings(QUICK, max_examples=150)
@given(arrays.map(npy), st.data())
def test_damaged_arrays_give_a_value_or_are_refused(good: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(good) - 1))
    damaged = good[:place] + data.draw(st.binary(max_size=4)) + good[place + data.draw(st.integers(0, 4)) :]
    decoded({"a": 0}, [damaged])
    decoded({"g": 0}, [damaged])


def frame(text: bytes | str, data: bytes = b"", size: int | None = None, total: int | None = None) -> bytes:
    text = text.encode() if isinstance(text, str) else text
    lengths = (len(text) if size is None else size, len(data) if total is None else total)
    return struct.pack(">II", *lengths) + text + data


def received(sent: bytes, seconds: float = 20) -> Any:
    """What a receiver makes of bytes after which the other side is gone."""
    first, second = socket.socketpair()
    with first, second:

        def send() -> None:
            with contextlib.suppress(OSError):
                first.sendall(sent)
                first.shutdown(socket.SHUT_WR)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            return Wire(second).receive(time.monotonic() + seconds)
        finally:
            second.close()
            sender.join()


BAD_FRAMES = {
    "nothing": b"",
    "half a head": b"\0\0\0",
    "head only": frame("", size=5),
    "no text": frame(""),
    "half a text": frame("[1, [", size=10),
    "half the data": frame("[1, [8]]", b"1234", total=8),
    "text too large": frame("", size=wire.LARGEST_TEXT + 1),
    "data too large": frame("[1, [1]]", total=wire.LARGEST_DATA + 1),
    "largest lengths": b"\xff" * 8,
    "claims that never come": frame("", size=wire.LARGEST_TEXT, total=wire.LARGEST_DATA),
    "no JSON": frame("{"),
    "more than JSON": frame("[1, []] 2"),
    "one part": frame("[1]"),
    "three parts": frame("[1, [], 2]"),
    "number": frame("5"),
    "text": frame('"ab"'),
    "pair of keys": frame('{"a": 1, "b": []}'),
    "lengths as a number": frame("[1, 2]"),
    "lengths as a dictionary": frame("[1, {}]"),
    "lengths as text": frame('[1, ""]'),
    "negative lengths": frame("[1, [-1, 5]]", b"1234"),
    "true lengths": frame("[1, [true]]", b"1"),
    "float lengths": frame("[1, [1.0]]", b"1"),
    "lengths too short": frame("[1, [1]]", b"12"),
    "lengths too long": frame("[1, [3]]", b"12"),
    "NaN": frame("[NaN, []]"),
    "infinity": frame("[[-Infinity], []]"),
    "number of 10,000 digits": frame(f"[{'1' * 10_000}, []]"),
    "length of 10,000 digits": frame(f"[0, [{'1' * 10_000}]]"),
    "deep": frame("[" * 100_000),
    "deep dictionaries": frame('{"a":' * 100_000),
    "UTF-16": frame("[1, []]".encode("utf-16")),
    "UTF-32": frame("[1, []]".encode("utf-32")),
    "no UTF-8": frame(b'["\xff", []]'),
    "byte order mark": frame(b"\xef\xbb\xbf[1, []]"),
    "control character": frame('["\x00", []]'),
    "pickle": frame(b"\x80\x04N."),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frames_are_refused(name: str) -> None:
    tracemalloc.start()
    start = time.monotonic()
    try:
        with pytest.raises(CLEAN):
            received(BAD_FRAMES[name])
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < 3


def test_a_frame_made_by_hand_is_taken() -> None:
    message, data = received(frame('[{"a": 1}, [2, 0, 1]]', b"abc"))
    assert message == {"a": 1}
    assert [bytes(part) for part in data] == [b"ab", b"", b"c"]


@settings(QUICK, max_examples=100)
@given(
    st.binary(max_size=200) | st.binary(max_size=60).map(frame) | trees.map(lambda tree: frame(json.dumps(tree)))
)
def test_random_bytes_are_refused(sent: bytes) -> None:
    try:
        message, data = received(sent)
    except CLEAN:
        return
    assert json.dumps(message)
    assert all(isinstance(part, memoryview) for part in data)


@settings(QUICK, max_examples=40)
@given(values, st.data())
def test_a_cut_frame_ends_at_the_end(value: Any, data: st.DataObject) -> None:
    encoder = Encoder(id)
    text = json.dumps([encoder.encode(value), [len(part) for part in encoder.arrays]])
    whole = frame(text, b"".join(encoder.arrays))
    with pytest.raises(EOFError):
        received(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.parametrize(
    "text",
    ["[" + "[]," * 80_000 + "0]", "[" + '{"":1},' * 35_000 + "0]", f'["{"a" * 250_000}", []]'],
    ids=["lists", "dictionaries", "text"],
)
def test_a_text_takes_memory_by_its_size(text: str) -> None:
    tracemalloc.start()
    try:
        with contextlib.suppress(ProtocolError):
            received(frame(text))
        assert tracemalloc.get_traced_memory()[1] < 50 * len(text)
    finally:
        tracemalloc.stop()


def test_a_sender_of_single_bytes_takes_no_more_memory_than_its_bytes(pair: tuple[Wire, Wire]) -> None:
    mine, theirs = pair
    count = 20_000

    def trickle() -> None:
        theirs.connection.sendall(struct.pack(">II", count, 0))
        for _ in range(count):
            theirs.connection.send(b" ")

    tracemalloc.start()
    try:
        sender = threading.Thread(target=trickle)
        sender.start()
        with pytest.raises(ProtocolError):
            mine.receive(time.monotonic() + 20)
        sender.join()
        assert tracemalloc.get_traced_memory()[1] < 20 * count
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("start", [b"", struct.pack(">II", 100, 0), struct.pack(">II", 2, 100) + b"[]"])
def test_a_trickle_ends_at_the_deadline(pair: tuple[Wire, Wire], start: bytes) -> None:
    mine, theirs = pair
    over = threading.Event()

    def trickle() -> None:
        theirs.connection.sendall(start)
        while not over.wait(0.05):
            theirs.connection.send(b"\0" if not start else b" ")

    sender = threading.Thread(target=trickle)
    sender.start()
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            mine.receive(began + 0.3)
    finally:
        over.set()
        sender.join()
    assert time.monotonic() - began < 0.8


def test_a_reader_that_takes_little_ends_at_the_deadline(pair: tuple[Wire, Wire]) -> None:
    mine, theirs = pair
    over = threading.Event()

    def sip() -> None:
        while not over.wait(0.02):
            theirs.connection.recv(1000)

    reader = threading.Thread(target=sip)
    reader.start()
    began = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            mine.send({}, [b"x" * (8 << 20)], began + 0.3)
    finally:
        over.set()
        reader.join()
    assert time.monotonic() - began < 0.8


def test_nothing_is_sent_or_read_after_the_deadline(pair: tuple[Wire, Wire]) -> None:
    mine, theirs = pair
    theirs.send("here", [])
    for action in (
        lambda: mine.receive(time.monotonic() - 1),
        lambda: mine.send("late", [], time.monotonic() - 1),
    ):
        with pytest.raises(TimeoutError):
            action()
    assert mine.receive(time.monotonic() + 5)[0] == "here"


@pytest.mark.parametrize(
    ("message", "data"),
    [
        ("x" * (wire.LARGEST_TEXT + 1), []),
        ("", [b"x" * (wire.LARGEST_DATA + 1)]),
        ({"outputs": object()}, []),
        ({"outputs": math.nan}, []),
        ({(1, 2): 3}, []),
        (nested(100_000), []),
        (b"bytes", []),
    ],
    ids=["text", "data", "object", "nan", "key", "deep", "bytes"],
)
def test_what_cannot_be_sent_is_refused_here(pair: tuple[Wire, Wire], message: Any, data: list[bytes]) -> None:
    with pytest.raises(ProtocolError):
        pair[0].send(message, data, time.monotonic() + 5)
