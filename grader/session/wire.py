"""Frames between the checker and a learner session: JSON with arrays as raw .npy bytes behind it, never a pickle.

A frame is two lengths (big-endian, four bytes each), the JSON, and the arrays. Both sides bound what they read. Plain
values cross by value: None, truth values, numbers, fractions, text, bytes, lists, tuples, sets, dictionaries, numpy
scalars and arrays without objects. Anything else stays where it is and crosses as a handle.

What may cross is bounded on both sides alike, so that an honest session is told at once what is too much: depth, parts,
digits of a number, and keys that are not text, since numbers can be chosen so that a dictionary of them takes for ever.
"""

import io
import json
import math
import re
import socket
import struct
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

__all__ = ["FLOAT_ERRORS", "Decoder", "Encoder", "ProtocolError", "Wire"]

FLOAT_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""What numpy does by itself about overflow and the like; a request says where it is to do something else."""

LARGEST_TEXT = 8 << 20
LARGEST_DATA = 96 << 20
DEEPEST = 40
MOST_ITEMS = 200_000
MOST_KEYS = 2_000
LONGEST_INTEGER = 3_500  # hexadecimal digits; Python prints no number of more than 4,300 decimal ones
LARGEST_EXPONENT = 4_000
LONGEST_DECIMAL = 1_000
_HEADER = struct.Struct(">II")
_AT_ONCE = 1 << 16
_NEARLY = 0.99
_USUAL_HEAD = 256
_KINDS = "biufcSU"
# Exactly what numpy writes for such an array, so that nothing of a header is ever evaluated.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|])([biufcSU])(\d{1,9})', 'fortran_order': False, "
    rb"'shape': \((|\d{1,18},|\d{1,18}(?:, \d{1,18}){1,63})\), \} *\n",
    re.DOTALL,
)


class ProtocolError(Exception):
    """A frame that no honest session sends."""


class Wire:
    """One end of a connection; reads give up at a deadline (in seconds of the monotonic clock)."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._received = bytearray()
        self._allowed: float | None = -1.0

    def send(
        self, message: Any, arrays: list[bytes], deadline: float | None = None, behind: str | None = None
    ) -> None:
        """Send a frame; ``behind`` it, the JSON of a second one.

        Raises:
            ProtocolError: it would be larger than a frame may be.
            OSError, TimeoutError: the other side is gone, or does not read.
        """
        try:
            text = _JSON.encode(message)
        except (ValueError, TypeError, RecursionError) as error:
            raise ProtocolError("the values cannot be handed over") from error
        self.send_text(text, arrays, deadline, behind)

    def send_text(
        self, message: str, arrays: list[bytes], deadline: float | None = None, behind: str | None = None
    ) -> None:
        """Send a frame whose message is JSON already; ``behind`` it, the message of a second one.

        Raises:
            ProtocolError: it would be larger than a frame may be.
            OSError, TimeoutError: the other side is gone, or does not read.
        """
        parts = _frame(message, arrays)
        if behind is not None:
            parts += _frame(behind, [])
        self._wait(deadline)
        # The time-out of sendall is for the whole of it, not for each part.
        self.connection.sendall(b"".join(parts))

    def receive(self, deadline: float | None = None) -> tuple[Any, list[memoryview]]:
        """Receive a frame: its message and its arrays.

        Raises:
            ProtocolError: the frame is malformed or too large.
            EOFError: the other side is gone.
            TimeoutError: nothing came by the deadline.
        """
        size, total = _HEADER.unpack(self._exactly(_HEADER.size, deadline))
        if size > LARGEST_TEXT or total > LARGEST_DATA:
            raise ProtocolError("a frame is larger than it may be")
        text, data = self._exactly(size, deadline), self._exactly(total, deadline)
        try:
            message, lengths = _PLAIN_JSON.decode(text.decode("ascii"))
        except (ValueError, TypeError, RecursionError) as error:
            raise ProtocolError("a frame is malformed") from error
        if type(lengths) is not list or not all(type(length) is int and length >= 0 for length in lengths):
            raise ProtocolError("the lengths of a frame's arrays are malformed")
        if sum(lengths) != total:
            raise ProtocolError("the lengths of a frame's arrays do not add up")
        arrays, start = [], 0
        for length in lengths:
            arrays.append(memoryview(data)[start : start + length])
            start += length
        return message, arrays

    def _wait(self, deadline: float | None) -> None:
        """Let the next step wait until the deadline; the socket is told only where that is another time by far."""
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise TimeoutError
        if left is not None and self._allowed is not None and _NEARLY * self._allowed <= left <= self._allowed:
            return
        if left is not None or self._allowed is not None:
            self.connection.settimeout(left)
            self._allowed = left

    def _exactly(self, count: int, deadline: float | None) -> bytearray:
        """So many bytes; no memory is taken for those that never come. What came behind them is kept."""
        while len(self._received) < count:
            self._wait(deadline)
            part = self.connection.recv(max(_AT_ONCE, min(count - len(self._received), 1 << 20)))
            if not part:
                raise EOFError
            self._received += part
        data, self._received = self._received, self._received[count:]
        del data[count:]
        return data


def _frame(message: str, arrays: list[bytes]) -> list[bytes]:
    lengths = [len(data) for data in arrays]
    text = f"[{message},[{','.join(map(str, lengths))}]]".encode("ascii")
    total = sum(lengths)
    if len(text) > LARGEST_TEXT or total > LARGEST_DATA:
        raise ProtocolError("the values are too large to be handed over")
    return [_HEADER.pack(len(text), total), text, *arrays]


def _refuse(token: str) -> NoReturn:
    raise ValueError(token)


# Made once: making them takes longer than a small message.
_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_PLAIN_JSON = json.JSONDecoder(parse_constant=_refuse)


def _npy(array: Any) -> bytes:
    plain = np.array(array, order="C", subok=False)
    return _npy_header(plain.dtype.str, plain.shape) + plain.tobytes()


@lru_cache(maxsize=1_000)
def _npy_header(kind: str, shape: tuple[int, ...]) -> bytes:
    """What numpy writes before the numbers of an array; making it takes longer than the rest of a small one."""
    data = io.BytesIO()
    np.lib.format.write_array_header_1_0(data, {"descr": kind, "fortran_order": False, "shape": shape})
    return data.getvalue()


def _from_npy(data: bytes | memoryview) -> Any:
    """An array from .npy bytes; its size is held against the bytes before any memory is taken for it."""
    # A head says itself how long it is; that of an array with few sides is short.
    end = 10 + int.from_bytes(data[8:10], "little")
    head = bytes(data[:end])
    kind, dtype, shape, size = _read_head(head) if end <= _USUAL_HEAD else _read_head.__wrapped__(head)
    if size != len(data) - end:
        raise ProtocolError("an array's shape and its bytes differ")
    if kind == "b":
        # A truth value is a byte that is 0 or 1; what numpy makes of another one is not defined.
        return np.frombuffer(data, np.uint8, offset=end).reshape(shape).astype(bool)
    if kind == "U" and np.frombuffer(data, f"{dtype.str[0]}u4", offset=end).max(initial=0) > 0x10FFFF:
        raise ProtocolError("a text holds what is no character")
    return np.frombuffer(data, dtype, offset=end).reshape(shape).copy()


@lru_cache(maxsize=1_000)
def _read_head(head: bytes) -> tuple[str, "np.dtype[Any]", tuple[int, ...], int]:
    """The kind, the type and the shape of an array, and how many bytes it has."""
    found = _NPY.fullmatch(head)
    if found is None or int.from_bytes(found[1], "little") != len(head) - 10:
        raise ProtocolError("an array has another form, or holds what may not cross")
    order, kind = found[2].decode(), found[3].decode()
    dtype = np.dtype(f"{order}{kind}{int(found[4])}")
    shape = tuple(int(side) for side in found[5].rstrip(b",").split(b",") if side)
    if any(side > LARGEST_DATA for side in shape):
        raise ProtocolError("an array's shape and its bytes differ")
    return kind, dtype, shape, math.prod(shape) * dtype.itemsize


def _integer(text: Any) -> int:
    if type(text) is not str or len(text) > LONGEST_INTEGER + 3:
        raise ProtocolError("a number is malformed or too long")
    return int(text, 16)


def _hex(value: int) -> str:
    if value.bit_length() > 4 * LONGEST_INTEGER:
        raise ProtocolError("a number has too many digits to be handed over")
    return hex(value)


def _decimal(text: Any) -> Decimal:
    if type(text) is not str or len(text) > LONGEST_DECIMAL:
        raise ProtocolError("a number is malformed or too long")
    value = Decimal(text)
    if value.is_finite() and abs(value.adjusted()) > LARGEST_EXPONENT:
        raise ProtocolError("a number is too large or too small to be handed over")
    return value


def _is_text(key: Any) -> bool:
    return isinstance(key, str | bytes)


class Encoder:
    """Turns values into JSON; ``hold`` is given what cannot cross by value and returns its handle."""

    def __init__(self, hold: Callable[[Any], Any]) -> None:
        self.arrays: list[bytes] = []
        self._hold = hold
        self._items = self._keys = 0

    @property
    def size(self) -> int:
        """About how many bytes it has made so far."""
        return 20 * self._items + sum(map(len, self.arrays))

    def encode(self, value: Any, depth: int = 0) -> Any:
        """The JSON form of a value.

        Raises:
            ProtocolError: the value is too deep or has too many parts.
        """
        self._items += 1
        if depth > DEEPEST or self._items > MOST_ITEMS:
            raise ProtocolError("a value is too deep, or has too many parts, to be handed over")
        if value is None or isinstance(value, bool):
            return {"v": value}
        if isinstance(value, np.generic | np.ndarray):
            return self._array(value)
        if isinstance(value, int):
            return {"i": _hex(int(value))}
        if isinstance(value, float):
            return {"f": float(value).hex()}
        if isinstance(value, complex):
            return {"c": [complex(value).real.hex(), complex(value).imag.hex()]}
        if isinstance(value, str):
            return {"v": str(value)}
        if isinstance(value, bytes | bytearray):
            return {"b": bytes(value).hex()}
        if isinstance(value, Fraction):
            return {"q": [_hex(value.numerator), _hex(value.denominator)]}
        if isinstance(value, Decimal):
            return {"d": str(_decimal(str(value)))}
        for mark, kind in (("l", list), ("t", tuple)):
            if isinstance(value, kind):
                return {mark: [self.encode(item, depth + 1) for item in value]}
        if isinstance(value, set | frozenset):
            return {"s": [self._key(item, depth + 1) for item in value]}
        if isinstance(value, dict):
            pairs = value.items()
            return {"m": [[self._key(key, depth + 1), self.encode(item, depth + 1)] for key, item in pairs]}
        return {"h": self._hold(value)}

    def _key(self, value: Any, depth: int) -> Any:
        self._keys += not _is_text(value)
        if self._keys > MOST_KEYS:
            raise ProtocolError("a dictionary or set has too many keys that are not text to be handed over")
        return self.encode(value, depth)

    def _array(self, value: Any) -> Any:
        if value.dtype.hasobject or value.dtype.kind not in _KINDS:
            return {"h": self._hold(value)}
        self.arrays.append(_npy(value))
        return {"g" if isinstance(value, np.generic) else "a": len(self.arrays) - 1}


class Decoder:
    """Turns the JSON of one frame back into values; ``take`` makes something of a handle.

    Each array of the frame is there once: a frame that names one often would need far more memory than it has bytes.
    """

    def __init__(self, arrays: Sequence[bytes | memoryview], take: Callable[[Any], Any]) -> None:
        self._arrays = dict(enumerate(arrays))
        self._take = take
        self._items = self._keys = 0

    def decode(self, tree: Any, depth: int = 0) -> Any:
        """The value of a JSON form.

        Raises:
            ProtocolError: it is not one that ``Encoder`` makes.
        """
        try:
            return self._decode(tree, depth)
        except ProtocolError:
            raise
        except Exception as error:
            raise ProtocolError("a value is malformed") from error

    def _decode(self, tree: Any, depth: int) -> Any:
        self._items += 1
        if depth > DEEPEST or self._items > MOST_ITEMS or type(tree) is not dict or len(tree) != 1:
            raise ProtocolError("a value is malformed, too deep, or has too many parts")
        ((mark, value),) = tree.items()
        if mark == "v" and (value is None or type(value) in (bool, str)):
            return value
        if mark in ("a", "g") and type(value) is int:
            array = _from_npy(self._arrays.pop(value))
            return array[()] if mark == "g" and array.ndim == 0 else array
        if mark == "h":
            return self._take(value)
        if mark in _SCALARS:
            return _SCALARS[mark](value)
        if mark in _GROUPS:
            return _GROUPS[mark](self._decode(item, depth + 1) for item in _listed(value))
        if mark == "s":
            return {self._key(item, depth + 1) for item in _listed(value)}
        if mark == "m":
            pairs = [_pair(item) for item in _listed(value)]
            return {self._key(key, depth + 1): self._decode(item, depth + 1) for key, item in pairs}
        raise ProtocolError("a value is of an unknown kind")

    def _key(self, tree: Any, depth: int) -> Any:
        key = self._decode(tree, depth)
        self._keys += not _is_text(key)
        if self._keys > MOST_KEYS:
            raise ProtocolError("a value has too many keys that are not text")
        return key


def _listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ProtocolError("a value is malformed")
    return value


def _pair(value: Any) -> tuple[Any, Any]:
    first, second = _listed(value)
    return first, second


def _complex(value: Any) -> complex:
    real, imaginary = _pair(value)
    return complex(float.fromhex(real), float.fromhex(imaginary))


def _fraction(value: Any) -> Fraction:
    numerator, denominator = _pair(value)
    return Fraction(_integer(numerator), _integer(denominator))


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "i": _integer,
    "f": lambda text: float.fromhex(text),
    "c": _complex,
    "b": lambda text: bytes.fromhex(text),
    "q": _fraction,
    "d": _decimal,
}
_GROUPS: dict[str, Callable[[Any], Any]] = {"l": list, "t": tuple}
