"""Lock the process that learner code runs in: namespaces of its own, no capabilities, bounded resources. Linux only.

What no resource limit counts is refused by a seccomp filter: memory that is no process's own, the kernel's key rings,
new namespaces (in one of its own a learner could mount a /tmp without a bound), and rarely used parts of the kernel.
"""

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from dataclasses import dataclass
from functools import cache

__all__ = ["Bounds", "enter_namespaces", "enter_session", "fork_apart", "limit", "prepare", "restrict"]

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_NOSUID_NODEV = 2 | 4
_RECURSIVE, _PRIVATE = 1 << 14, 1 << 18
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
_IS_X86 = os.uname().machine == "x86_64"
_CAPSET = 126 if _IS_X86 else 91
_CAPABILITIES = 64
_ARCHITECTURE = 0xC000003E if _IS_X86 else 0xC00000B7
_X32 = 0x40000000
# System calls by their numbers on x86-64 and on aarch64.
_REFUSED = {
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "fsopen": (430, 430),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "mount_setattr": (442, 442),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
}


@dataclass(frozen=True)
class Bounds:
    """What a session may use: bytes of memory for a process, processes, seconds of CPU, bytes of a file and of /tmp."""

    memory: int
    processes: int
    cpu_seconds: int
    file_bytes: int
    tmp_bytes: int


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def prepare() -> None:
    """Make what all sessions need before they are forked."""
    _libc()
    _filter()


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter_namespaces(bounds: Bounds) -> None:
    """Go on in a child that is the first process of new user, mount, pid, network and ipc namespaces.

    The calling process waits for that child and ends with it; it ends the child, and with it all that the child has
    started, when it gets a SIGTERM. The child has a /proc and an empty, bounded /tmp of its own, and no process in it
    can make another user namespace.

    Raises:
        OSError: the machine does not allow it.
    """
    libc = _libc()
    uid, gid = os.getuid(), os.getgid()
    _checked(libc.unshare(_NEWUSER | _NEWNS | _NEWPID | _NEWNET | _NEWIPC), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - small and early, before anything is imported
            file.write(text)
    # A learner can undo the signal on the parent's death, so the parent ends the child itself when it is told to end.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    child = os.fork()
    if child:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # What is mounted here, and in the namespaces made from here, is seen nowhere else.
    _checked(libc.mount(None, b"/", None, _PRIVATE | _RECURSIVE, None), "mount /")
    _mount(libc, bounds)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:  # noqa: PTH123
        file.write("0")


def fork_apart() -> int:
    """Fork, within ``enter_namespaces``, a child that is the first process of a pid namespace of its own.

    It ends, with all that it has started, by a SIGKILL. Returns its number, and 0 in the child, which has to
    ``enter_session`` before it runs anything.

    Raises:
        OSError: the machine does not allow it.
    """
    libc, child = _libc(), -1
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _checked(libc.unshare(_NEWPID), "unshare")
        child = os.fork()
    finally:
        if child:
            # The next one is to have another one, beside this one.
            _checked(libc.setns(own, _NEWPID), "setns")
        os.close(own)
    return child


def enter_session(bounds: Bounds) -> None:
    """Have mount, network and ipc namespaces of its own, with a /proc and an empty, bounded /tmp; after ``fork_apart``.

    The rights that this takes are still there: ``restrict`` gives them up.

    Raises:
        OSError: the machine does not allow it.
    """
    libc = _libc()
    _checked(libc.unshare(_NEWNS | _NEWNET | _NEWIPC), "unshare")
    _mount(libc, bounds)


def _mount(libc: ctypes.CDLL, bounds: Bounds) -> None:
    # A file takes memory beside its bytes, so their number is bounded too.
    options = b"size=%d,nr_inodes=%d" % (bounds.tmp_bytes, max(1_000, bounds.tmp_bytes >> 12))
    _checked(libc.mount(b"proc", b"/proc", b"proc", _NOSUID_NODEV | 8, None), "mount /proc")
    _checked(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", _NOSUID_NODEV, options), "mount /tmp")
    # Semaphores of multiprocessing live there.
    _checked(libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", _NOSUID_NODEV, options), "mount /dev/shm")


def limit(bounds: Bounds) -> None:
    """Bound what this process and its children may use, as far as that needs no isolation.

    Raises:
        OSError, ValueError: the machine does not allow it.
    """
    limits = [
        (resource.RLIMIT_CPU, bounds.cpu_seconds),
        (resource.RLIMIT_FSIZE, bounds.file_bytes),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ]
    if sys.platform == "linux":
        # Elsewhere a process starts with more than that, and the limit is refused.
        limits.append((resource.RLIMIT_AS, bounds.memory))
    for kind, most in limits:
        resource.setrlimit(kind, (most, most))


def restrict(bounds: Bounds) -> None:
    """Drop every capability for good, bound what this process and its children may use, and refuse the rest.

    Raises:
        OSError, ValueError: the machine does not allow it.
    """
    libc = _libc()
    limit(bounds)
    # Both are counted for a user: outside of a session's namespaces that would be all that the user runs.
    resource.setrlimit(resource.RLIMIT_NPROC, (bounds.processes, bounds.processes))
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (0, 0))
    for capability in range(_CAPABILITIES):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0 and ctypes.get_errno() == errno.EINVAL:
            # The kernel knows no capability of this number, nor of a higher one.
            break
    _checked(libc.syscall(_CAPSET, ctypes.byref(_Header(0x20080522, 0)), (ctypes.c_uint32 * 6)()), "capset")
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _refuse(libc)


def _refuse(libc: ctypes.CDLL) -> None:
    """Let the refused system calls fail with EPERM, those of another architecture too; children inherit it."""
    code, steps = _filter()
    program = _Program(steps, ctypes.addressof(code))
    _checked(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0), "seccomp")


@cache
def _filter() -> tuple["ctypes.Array[ctypes.c_char]", int]:
    """The filter's program, and the number of its steps."""
    load, equal, greater, answer = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050001
    numbers = [pair[0 if _IS_X86 else 1] for pair in _REFUSED.values()]
    steps = [(load, 0, 0, 4), (equal, 0, len(numbers) + 3, _ARCHITECTURE), (load, 0, 0, 0)]
    steps += [(greater, len(numbers) + 1, 0, _X32)]
    steps += [(equal, len(numbers) - place, 0, number) for place, number in enumerate(numbers)]
    steps += [(answer, 0, 0, allow), (answer, 0, 0, refuse)]
    # The steps jump forward by these counts, to the last one if the call is refused.
    return ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps)), len(steps)
