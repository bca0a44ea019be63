"""Two folders change places in one step, where the system can do that."""

import ctypes
import errno
import os
from functools import cache
from typing import Any

__all__ = ["exchange"]

_EXCHANGE = 2
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


@cache
def _renameat2() -> Any:
    """Linux's system call through the C library; None where there is none."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def exchange(one: str, one_folder: int, other: str, other_folder: int) -> bool:
    """Let two names change places, each in an opened folder; False where this system or disk cannot do it in one step.

    Raises:
        OSError: one of them is not there, or may not be moved.
    """
    call = _renameat2()
    if call is None:
        return False
    if call(one_folder, os.fsencode(one), other_folder, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNABLE:
        return False
    raise OSError(number, os.strerror(number))
