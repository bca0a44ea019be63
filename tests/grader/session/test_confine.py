"""The lock around a session, tried in processes of its own: what it refuses, what it bounds, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the lock is Linux's")

MEBIBYTE = 1 << 20

# As the engine does it: without root's rights, which no limit on processes holds for.
START = f"""
import ctypes, errno, json, os, re, resource, signal, socket, subprocess, sys, time
sys.path.insert(0, {str(ROOT / "grader")!r})
from session import confine
from session.confine import Bounds, enter_namespaces, enter_session, fork_apart, limit, restrict

libc = ctypes.CDLL(None, use_errno=True)
bounds = Bounds(memory=512 << 20, processes=20, cpu_seconds=1, file_bytes=1 << 20, tmp_bytes=2 << 20)
if os.getuid() == 0:
    os.setgroups([])
    os.setresgid(54321, 54321, 54321)
    os.setresuid(54321, 54321, 54321)  # of nobody other tests have processes, which would count
    libc.prctl(4, 1, 0, 0, 0)

def reason(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    except MemoryError:
        return "MemoryError"
    return "done"

def tell(value):
    print(json.dumps(value), flush=True)
"""


def started(source: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", START + source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def told(source: str, result: int = 0) -> Any:
    """What a process told that ran this; it has to end with ``result``."""
    process = started(source)
    out, err = process.communicate(timeout=30)
    assert process.returncode == result, err
    return json.loads(out) if out else None


@pytest.fixture(scope="module")
def namespaces() -> None:
    process = started("enter_namespaces(bounds)")
    _, err = process.communicate(timeout=30)
    if process.returncode:
        pytest.skip(
            f"this machine gives an ordinary user no namespaces of its own: {err.strip().splitlines()[-1]}"
        )


def test_every_right_is_given_up_for_good() -> None:
    status = told("restrict(bounds)\ntell(dict(re.findall(r'(\\w+):\\s*(.*)', open('/proc/self/status').read())))")
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_limits_are_hard() -> None:
    limits = told("""
restrict(bounds)
kinds = ("AS", "NPROC", "CPU", "FSIZE", "CORE", "MSGQUEUE")
tell({kind: resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in kinds})
""")
    assert limits == {
        "AS": [512 * MEBIBYTE] * 2,
        "NPROC": [20, 20],
        "CPU": [1, 1],
        "FSIZE": [MEBIBYTE] * 2,
        "CORE": [0, 0],
        "MSGQUEUE": [0, 0],
    }
    assert (
        told("""
restrict(bounds)
try:
    resource.setrlimit(resource.RLIMIT_NPROC, (100, 100))
except ValueError:
    tell("refused")
""")
        == "refused"
    )


def test_limits_without_isolation_leave_the_user_s_other_processes_alone() -> None:
    before, after = told("""
before = resource.getrlimit(resource.RLIMIT_NPROC)
limit(bounds)
tell([before, resource.getrlimit(resource.RLIMIT_NPROC)])
""")
    assert before == after


def test_refused_system_calls_fail_and_others_work() -> None:
    answers = told("""
def call(*numbers):
    ctypes.set_errno(0)
    return errno.errorcode.get(ctypes.get_errno()) if libc.syscall(*numbers) == -1 else "done"
restrict(bounds)
place = 0 if os.uname().machine == "x86_64" else 1
# The last argument makes each fail in another way where it is not refused.
tell({name: call(numbers[place], -1, -1, -1, -1, -1) for name, numbers in confine._REFUSED.items()})
""")
    assert set(answers.values()) == {"EPERM"}, answers
    others = told("""
restrict(bounds)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    inner = libc.syscall(272 if os.uname().machine == "x86_64" else 97, 0x10000000)
    os.write(writing, b"refused" if inner == -1 else b"done")
    os._exit(0)
os.waitpid(child, 0)
tell([os.read(reading, 20).decode(), subprocess.run(["/bin/echo", "runs"], capture_output=True, text=True).stdout])
""")
    assert others == ["refused", "runs\n"]


@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="x86-64 has a second set of numbers for its system calls"
)
def test_another_architecture_s_numbers_are_refused() -> None:
    assert told("""
restrict(bounds)
ctypes.set_errno(0)
result = libc.syscall(0x40000000 + 39)
tell([result, errno.errorcode[ctypes.get_errno()]])
""") == [-1, "EPERM"]


def test_the_numbers_are_those_of_the_system_s_headers() -> None:
    from grader.session.confine import _REFUSED

    headers = list(Path("/usr/include").glob("*/asm/unistd_64.h")), [Path("/usr/include/asm-generic/unistd.h")]
    compared = 0
    for place, files in enumerate(headers):
        for path in filter(Path.is_file, files):
            words = [line.split() for line in path.read_text().splitlines() if line.startswith("#define __NR")]
            known = {w[1].removeprefix("__NR_"): int(w[2]) for w in words if len(w) > 2 and w[2].isdigit()}
            for name, numbers in _REFUSED.items():
                if name in known:
                    assert numbers[place] == known[name], name
                    compared += 1
    if not compared:
        pytest.skip("the system's headers are not installed here")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("open('/dev/null').close()", "done"),
        ("bytearray(600 << 20)", "MemoryError"),
        ("[bytearray(1 << 20) for _ in range(600)]", "MemoryError"),
        ("[os.open('/dev/null', os.O_RDONLY) for _ in range(300)]", "EMFILE"),
        ("open(f'/tmp/{os.getpid()}', 'wb').write(bytes(2 << 20))", "EFBIG"),
        ("os.setuid(0)", "EPERM"),
        ("os.kill(1, 0)", "EPERM"),
        ("os.chroot('/')", "EPERM"),
        ("os.mknod('/tmp/null-here', 0o20666, os.makedev(1, 3))", "EPERM"),
        ("os.sethostname('x') if hasattr(os, 'sethostname') else socket.sethostname('x')", "EPERM"),
        ("os.nice(-5)", "EPERM"),
    ],
)
def test_what_a_restricted_process_cannot_do(action: str, expected: str) -> None:
    assert (
        told(f"""
restrict(bounds)
tell(reason(lambda: {action}))
os.path.exists(f"/tmp/{{os.getpid()}}") and os.unlink(f"/tmp/{{os.getpid()}}")
""")
        == expected
    )


def test_cpu_time_ends() -> None:
    start = time.monotonic()
    process = started("restrict(bounds)\nwhile True: pass")
    process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    assert time.monotonic() - start < 60


@pytest.mark.usefixtures("namespaces")
def test_a_namespace_of_its_own() -> None:
    seen = told("""
mine = {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt", "pid", "net", "ipc")}
open("/tmp/ffn-confine-outside", "w").close()
enter_namespaces(bounds)
os.chdir("/tmp")
restrict(bounds)
tell({
    "pid": os.getpid(),
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "same": [kind for kind in mine if os.readlink(f"/proc/self/ns/{kind}") == mine[kind]],
    "tmp": os.listdir("/tmp"),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "local": reason(lambda: socket.socket().connect(("127.0.0.1", 22))),
    "away": reason(lambda: socket.socket().connect(("192.0.2.1", 80))),
    "user": os.getuid(),
    "no rights": {line.split()[1] for line in open("/proc/self/status") if line.startswith("Cap")} == {"0" * 16},
})
""")
    Path("/tmp/ffn-confine-outside").unlink()
    assert seen == {
        "pid": 1,
        "processes": ["1"],
        "same": [],
        "tmp": [],
        "interfaces": ["lo"],
        "local": "ENETUNREACH",
        "away": "ENETUNREACH",
        "user": os.getuid() or 54321,
        "no rights": True,
    }


@pytest.mark.usefixtures("namespaces")
def test_files_in_tmp_are_bounded_together() -> None:
    written, why = told("""
enter_namespaces(bounds)
restrict(bounds)
total, why = 0, ""
for number in range(100):
    try:
        with open(f"/tmp/{number}", "wb", buffering=0) as file:
            total += file.write(bytes(1 << 18))
    except OSError as error:
        why = errno.errorcode[error.errno]
        break
tell([total, why])
""")
    assert why == "ENOSPC"
    assert MEBIBYTE < written <= 2 * MEBIBYTE


@pytest.mark.usefixtures("namespaces")
def test_processes_are_bounded_together() -> None:
    count, why = told("""
enter_namespaces(bounds)
restrict(bounds)
reading, writing = os.pipe()
why, count = "", 0
while count < 200:
    try:
        if os.fork() == 0:
            os.read(reading, 1)
            os._exit(0)
    except OSError as error:
        why = errno.errorcode[error.errno]
        break
    count += 1
tell([count, why])
""")
    assert why == "EAGAIN"
    assert 5 < count <= 20


@pytest.mark.usefixtures("namespaces")
def test_no_namespace_within_even_without_the_filter() -> None:
    """A new user namespace would give its maker rights in it, and a /tmp without a bound."""
    assert told("""
enter_namespaces(bounds)
CLONE_NEWUSER = 0x10000000
ctypes.set_errno(0)
result = libc.unshare(CLONE_NEWUSER)
tell([result, errno.errorcode[ctypes.get_errno()]])
""") == [-1, "ENOSPC"]


@pytest.mark.usefixtures("namespaces")
def test_everything_ends_when_the_outer_process_is_told_to() -> None:
    """Also what has undone the signal on its parent's death, ignores signals, and has left its group."""
    process = started("""
name = f"ffn-{os.getpid()}"[:15]
enter_namespaces(bounds)
restrict(bounds)
libc.prctl(1, 0, 0, 0, 0)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
else:
    os.wait()
    time.sleep(0.1)
libc.prctl(15, name.encode(), 0, 0, 0)
if os.getpid() == 1:
    tell(name)
time.sleep(1000)
""")
    assert process.stdout is not None
    name = json.loads(process.stdout.readline())
    deadline = time.monotonic() + 10
    while len(named(name)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(named(name)) == 2
    process.send_signal(signal.SIGTERM)
    process.wait(10)
    process.communicate()
    assert named(name) == []


def named(name: str) -> list[str]:
    """Processes of this name, seen from outside."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text().strip() == name:
                found.append(path.parent.name)
        except OSError:
            continue
    return found


# As the fork server does it: sessions one after the other, each forked within the server's namespaces.
SESSION = """
KINDS = ("user", "mnt", "pid", "net", "ipc")
def mine():
    return {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in KINDS}
def session(action):
    reading, writing = os.pipe()
    child = fork_apart()
    if child == 0:
        enter_session(bounds)
        os.chdir("/tmp")
        restrict(bounds)
        os.write(writing, json.dumps(action()).encode())
        time.sleep(1000)
    found = json.loads(os.read(reading, 1 << 16))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return found
enter_namespaces(bounds)
"""


@pytest.mark.usefixtures("namespaces")
def test_each_session_has_namespaces_of_its_own_within_the_server_s() -> None:
    server, first, second = told(f"{SESSION}\ntell([mine(), session(mine), session(mine)])")
    for kind in ("mnt", "pid", "net", "ipc"):
        assert server[kind] not in (first[kind], second[kind]), kind
    assert server["user"] == first["user"] == second["user"]


@pytest.mark.usefixtures("namespaces")
def test_a_session_finds_nothing_of_the_server_and_of_the_one_before_it() -> None:
    first, second, left = told(f"""{SESSION}
def look():
    seen = [sorted(os.listdir("/tmp")), os.listdir("/dev/shm"), [n for n in os.listdir("/proc") if n.isdigit()]]
    for folder in ("/tmp", "/dev/shm"):
        open(f"{{folder}}/left", "w").close()
    return seen
open("/tmp/server", "w").close()
tell([session(look), session(look), [os.listdir("/tmp"), [n for n in os.listdir("/proc") if n.isdigit()]]])
""")
    assert first == second == [[], [], ["1"]]
    assert left == [["server"], ["1"]]


@pytest.mark.usefixtures("namespaces")
def test_a_session_has_no_right_left_and_cannot_touch_the_server() -> None:
    found = told(f"""{SESSION}
def attempts():
    def call(*numbers):
        ctypes.set_errno(0)
        return errno.errorcode.get(ctypes.get_errno()) if libc.syscall(*numbers) == -1 else "done"
    status = open("/proc/self/status").read()
    return {{
        "rights": sorted(set(re.findall(r"Cap\\w+:\\s*(\\w+)", status))),
        "namespaces": call(272, 0x20000000) if os.uname().machine == "x86_64" else "EPERM",
        "unmount": call(166 if os.uname().machine == "x86_64" else 39, b"/tmp", 0),
        "other processes": reason(lambda: os.kill(2, 0)),
        "host name": reason(lambda: socket.sethostname("x")),
        "descriptors of namespaces": [p for p in os.listdir("/proc/self/fd")
            if "pid:" in (os.readlink(f"/proc/self/fd/{{p}}") if os.path.islink(f"/proc/self/fd/{{p}}") else "")],
    }}
tell(session(attempts))
""")
    assert found == {
        "rights": ["0" * 16],
        "namespaces": "EPERM",
        "unmount": "EPERM",
        "other processes": "ESRCH",
        "host name": "EPERM",
        "descriptors of namespaces": [],
    }


@pytest.mark.usefixtures("namespaces")
def test_all_that_a_session_has_started_ends_with_it() -> None:
    assert told(f"""{SESSION}
def stubborn():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(1000)
    os.wait()
    return len([n for n in os.listdir("/proc") if n.isdigit()])
assert session(stubborn) == 2
tell([n for n in os.listdir("/proc") if n.isdigit()])
""") == ["1"]


@pytest.mark.usefixtures("namespaces")
def test_the_outer_process_ends_as_the_inner_one_does() -> None:
    told("enter_namespaces(bounds)\nos._exit(7)", result=7)
    told("enter_namespaces(bounds)\nrestrict(bounds)\nos.kill(os.getpid(), signal.SIGKILL)\nos._exit(3)", result=3)
