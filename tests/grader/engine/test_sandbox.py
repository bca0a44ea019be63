"""What a session can reach, use and leave behind, tried from within real ones."""

import hashlib
import json
import os
import signal
import socket
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grader.engine import sandbox as module
from grader.engine.grade import _run_here, grade
from grader.engine.proxy import LearnerSession, Names, SessionLostError
from grader.engine.restore import Assignment
from grader.engine.sandbox import Sandbox, diagnosis
from grader.engine.verdict import Limits
from grader.exceptions import NoSandboxError
from tests.grader.session.test_confine import named
from tests.helpers import ROOT

pytestmark = pytest.mark.slow

MEBIBYTE = 1 << 20
LIMITS = Limits(
    cpu_seconds=1,
    memory_bytes=700 * MEBIBYTE,
    processes=24,
    output_bytes=100_000,
    file_bytes=2 * MEBIBYTE,
    tmp_bytes=6 * MEBIBYTE,
)
DATA = (("data.txt", b"of the unit"), ("more/inner.txt", b"inner"))
HELP = """
import ctypes, errno, os, socket, subprocess, sys, time

libc = ctypes.CDLL(None, use_errno=True)

def reason(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    except MemoryError:
        return "MemoryError"
    return "done"
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    try:
        made = Sandbox(LIMITS, DATA)
    except NoSandboxError as error:
        pytest.skip(f"this machine gives no isolation: {error}")
    with made:
        yield made


@pytest.fixture
def session(sandbox: Sandbox) -> LearnerSession:
    return fresh(sandbox)


def fresh(sandbox: Sandbox, seconds: float = 60) -> LearnerSession:
    session = sandbox.session()
    session.allow(seconds)
    session.run(HELP)
    return session


def said(session: LearnerSession, source: str) -> list[dict[str, Any]]:
    outputs: list[dict[str, Any]] = session.run(textwrap.dedent(source))["outputs"]
    return outputs


def seen(session: LearnerSession, source: str) -> Any:
    """The value that a cell leaves as ``seen``; the cell has to run to its end."""
    assert said(session, source) == []
    return session.get("seen")


# -------------------------------------------------------------------------------------------------------- in sight


def test_the_machine_s_diagnosis_has_no_complaint(sandbox: Sandbox) -> None:
    found = diagnosis(LIMITS)
    assert [name for name, there, _ in found if not there] == []
    assert len(found) == 8


def test_no_network(session: LearnerSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0ffn-{os.getpid()}")
        abstract.listen()
        answers = seen(
            session,
            f"""
            def name(host):
                try:
                    socket.getaddrinfo(host, 80)
                except socket.gaierror:
                    return "unknown"
            abstract = socket.socket(socket.AF_UNIX)
            seen = {{
                "local": reason(lambda: socket.create_connection(("127.0.0.1", {listener.getsockname()[1]}), 3)),
                "local 6": reason(lambda: socket.socket(socket.AF_INET6).connect(("::1", 80))),
                "away": reason(lambda: socket.create_connection(("1.1.1.1", 53), 3)),
                "datagram": reason(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("1.1.1.1", 53))),
                "abstract": reason(lambda: abstract.connect("\\0ffn-{os.getpid()}")),
                "raw": reason(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)),
                "names": [name("example.org"), name("localhost.localdomain.invalid")],
                "routes": len(open("/proc/net/route").readlines()),
                "interfaces": [n for _, n in socket.if_nameindex()],
            }}
            """,
        )
    assert answers.pop("names") == ["unknown", "unknown"]
    assert answers.pop("interfaces") == ["lo"]
    assert answers.pop("routes") <= 1
    assert answers.pop("local 6") in ("ENETUNREACH", "EADDRNOTAVAIL", "EAFNOSUPPORT")
    assert answers == {
        "local": "ENETUNREACH",
        "away": "ENETUNREACH",
        "datagram": "ENETUNREACH",
        "abstract": "ECONNREFUSED",
        "raw": "EPERM",
    }


def test_another_user_without_rights(session: LearnerSession) -> None:
    status = seen(
        session, "seen = dict(line.split(':\\t', 1) for line in open('/proc/self/status') if ':\\t' in line)"
    )
    assert set(status["Uid"].split()) == {str(os.geteuid() or module.NOBODY)}
    assert set(status["Gid"].split()) == {str(os.getegid() or module.NOBODY)}
    assert {status[f"Cap{kind}"].strip() for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")


def test_no_rights_to_be_had(session: LearnerSession) -> None:
    answers = seen(
        session,
        """
        def runs(*words):
            try:
                return subprocess.run(words, capture_output=True, timeout=10).returncode == 0
            except OSError:
                return False
        open("/tmp/own", "wb").write(open("/usr/bin/id", "rb").read())
        os.chmod("/tmp/own", 0o6755)
        seen = {
            "works": runs("true"),
            "user namespace": runs("unshare", "-r", "true"),
            "mount": runs("mount", "-t", "tmpfs", "none", "/tmp"),
            "suid": subprocess.run(["/tmp/own", "-u"], capture_output=True, text=True).stdout.strip(),
            "root": reason(lambda: os.setuid(0)),
            "groups": reason(lambda: os.setgroups([0])),
            "owner": reason(lambda: os.chown("/tmp/own", 0, 0)),
            "chroot": reason(lambda: os.chroot("/tmp")),
            "device": reason(lambda: os.mknod("/tmp/disk", 0o60666, os.makedev(254, 0))),
            "clone": libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) if os.uname().machine == "x86_64" else -1,
            "mounts": [line.split()[1] for line in open("/proc/mounts") if "nosuid" not in line.split()[3]],
        }
        """,
    )
    assert answers.pop("suid") == str(os.geteuid() or module.NOBODY)
    # Only a /proc that is covered by the session's own may lack it.
    assert set(answers.pop("mounts")) <= {"/proc"}
    assert answers.pop("owner") in ("EPERM", "EINVAL")
    assert answers.pop("groups") in ("EPERM", "EINVAL")
    assert answers.pop("root") in ("EPERM", "EINVAL")
    assert answers == {
        "works": True,
        "user namespace": False,
        "mount": False,
        "chroot": "EPERM",
        "device": "EPERM",
        "clone": -1,
    }


def test_no_other_process(session: LearnerSession) -> None:
    assert seen(
        session,
        """
        seen = {
            "processes": [name for name in os.listdir("/proc") if name.isdigit()],
            "parent": os.getppid(),
            "me": os.getpid(),
            "others": [number for number in range(2, 2000) if reason(lambda: os.kill(number, 0)) != "ESRCH"],
        }
        """,
    ) == {"processes": ["1"], "parent": 0, "me": 1, "others": []}


def test_no_file_of_the_course_or_of_anyone(session: LearnerSession, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    paths = [ROOT, ROOT / "grader", ROOT / "solutions", ROOT / "grader" / "var", tmp_path, tmp_path / "secret.txt"]
    paths += [
        Path(sys.prefix) / "bin",
        Path("/root"),
        Path("/home"),
        Path("/etc/passwd"),
        Path("/etc/shadow"),
    ]
    paths += [
        Path("/etc/hosts"),
        Path("/etc/resolv.conf"),
        Path("/var"),
        Path("/run"),
        Path("/sys"),
        Path("/work"),
    ]
    answers = seen(
        session,
        f"""
        paths = {[str(path) for path in paths]!r}
        names = []
        for folder, folders, files in os.walk("/"):
            if folder in ("/proc", "/usr", "/python", "/packages", "/lib", "/lib64", "/bin"):
                folders.clear()
            else:
                names += [os.path.join(folder, name) for name in files]
        seen = [[path for path in paths if os.path.lexists(path)], sorted(os.listdir("/")), names]
        """,
    )
    assert answers[0] == []
    folders = {
        "bin",
        "course",
        "data",
        "dev",
        "engine",
        "etc",
        "lib",
        "lib64",
        "packages",
        "proc",
        "python",
        "tmp",
        "usr",
    }
    assert set(answers[1]) <= folders
    shown = {path for path in answers[2] if not path.startswith(("/dev/", "/course/ffn/", "/engine/session/"))}
    assert {path for path in shown if not path.startswith("/etc/")} == {
        f"{place}/{name}" for place in ("/data", "/tmp") for name, _ in DATA
    }
    assert not [path for path in answers[2] if path.endswith((".ipynb", ".db", "grade.py", "proxy.py"))]


def test_nothing_of_the_environment_outside(session: LearnerSession) -> None:
    environment = seen(session, "seen = {k.decode(): v.decode() for k, v in os.environb.items()}")
    environment.pop("PWD", None)
    environment.pop("LC_CTYPE", None)
    # Where the interpreter does not come from /usr, it finds its own library there.
    assert environment.pop("LD_LIBRARY_PATH", "/python/lib") == "/python/lib"
    assert set(environment) == {
        "HOME",
        "IPYTHONDIR",
        "LANG",
        "MPLBACKEND",
        "MPLCONFIGDIR",
        "OPENBLAS_NUM_THREADS",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONPATH",
    }
    assert str(ROOT) not in json.dumps(environment)
    assert seen(session, "seen = open('/proc/self/cmdline').read()").count(str(ROOT)) == 0


def test_no_descriptor_but_the_session_s_own(session: LearnerSession) -> None:
    descriptors = seen(
        session,
        """
        seen = {}
        for number in range(256):
            try:
                seen[number] = os.readlink(f"/proc/self/fd/{number}")
            except OSError:
                pass
        """,
    )
    sockets = [number for number, target in descriptors.items() if target.startswith("socket:")]
    assert len(sockets) == 1
    assert {target for number, target in descriptors.items() if number not in sockets} == {"/dev/null"}


def test_writing_in_folders_of_the_sessions_own_only(session: LearnerSession) -> None:
    writable = seen(
        session,
        """
        seen = []
        for folder, folders, files in os.walk("/"):
            if folder.startswith("/proc") and folder != "/proc":
                folders.clear()
                continue
            if folder.startswith(("/usr/", "/python/", "/packages/")) and folder.count("/") > 2:
                folders.clear()
            if reason(lambda: open(os.path.join(folder, "new"), "x").close()) == "done":
                seen.append(folder)
            for name in files[:20]:
                path = os.path.join(folder, name)
                if not folder.startswith(("/tmp", "/dev")) and os.access(path, os.W_OK):
                    seen.append(path)
        """,
    )
    # Both are mounted anew for every session, and bounded.
    own = ("/tmp", "/dev/shm")
    assert [folder for folder in writable if not folder.startswith(own)] == []
    assert set(own) <= set(writable)
    assert (
        seen(
            session,
            "seen = [reason(lambda: open(f'/proc/sys/{n}', 'w').write('1')) for n in "
            "('kernel/hostname', 'user/max_user_namespaces', 'vm/overcommit_memory')]",
        ).count("done")
        == 0
    )


def test_each_session_has_the_unit_s_files_to_change(sandbox: Sandbox) -> None:
    for _ in range(2):
        session = fresh(sandbox)
        assert seen(
            session,
            """
            seen = [os.getcwd(), open("data.txt").read(), open("more/inner.txt").read()]
            with open("data.txt", "w") as file:
                _ = file.write("changed")
            open("left behind", "w").close()
            """,
        ) == ["/tmp", "of the unit", "inner"]


def test_the_interpreter_is_the_grader_s_own_with_its_own_library(session: LearnerSession) -> None:
    assert seen(session, "seen = sys.version") == sys.version


# ------------------------------------------------------------------------------------------------------- in bounds


def test_processes_are_bounded(session: LearnerSession) -> None:
    count, why = seen(
        session,
        """
        count, why = 0, ""
        while count < 500:
            try:
                if os.fork() == 0:
                    while True:
                        time.sleep(1000)
            except OSError as error:
                why = errno.errorcode[error.errno]
                break
            count += 1
        seen = [count, why]
        """,
    )
    assert why == "EAGAIN"
    assert count <= LIMITS.processes


def test_a_fork_bomb_ends_with_its_session(sandbox: Sandbox) -> None:
    session = fresh(sandbox, 1.0)
    with pytest.raises(SessionLostError):
        session.run(
            "libc.prctl(15, b'ffn-bomb', 0, 0, 0)\nwhile True:\n    try:\n        os.fork()\n    except OSError: pass"
        )
    assert 0 < len(named("ffn-bomb")) <= LIMITS.processes
    sandbox.end_session()
    assert named("ffn-bomb") == []
    assert seen(fresh(sandbox), "seen = 1") == 1


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("seen = reason(lambda: bytearray(800 << 20))", "MemoryError"),
        ("import numpy\nseen = reason(lambda: numpy.ones(100_000_000))", "MemoryError"),
        (
            "kept = []\nseen = reason(lambda: [kept.append(bytes(1 << 20)) for _ in range(800)])\nkept.clear()",
            "MemoryError",
        ),
        ("seen = reason(lambda: open('large', 'wb').write(bytes(3 << 20)))", "EFBIG"),
        ("seen = reason(lambda: os.truncate('data.txt', 1 << 40))", "EFBIG"),
        ("seen = reason(lambda: [os.open('/dev/null', 0) for _ in range(1000)])", "EMFILE"),
        ("seen = reason(lambda: [open(str(n), 'wb', 0).write(bytes(1 << 20)) for n in range(20)])", "ENOSPC"),
        ("seen = reason(lambda: [os.mkdir(f'folder {n}') for n in range(300_000)])", "ENOSPC"),
        ("seen = reason(lambda: os.memfd_create('x'))", "EPERM"),
    ],
)
def test_memory_and_files_are_bounded(sandbox: Sandbox, source: str, expected: str) -> None:
    assert seen(fresh(sandbox), source) == expected


def test_memory_is_bounded_for_all_processes_of_a_session_together() -> None:
    each, together = 300 << 20, 512 << 20
    with Sandbox(replace(LIMITS, memory_bytes=1 << 30, session_bytes=together)) as sandbox:
        assert (
            seen(fresh(sandbox), f"kept = bytearray({each})\nkept[::4096] = b'x' * len(kept[::4096])\nseen = 1")
            == 1
        )
        with pytest.raises(SessionLostError) as caught:
            fresh(sandbox).run(
                "children = []\nfor _ in range(6):\n    if os.fork() == 0:\n"
                f"        kept = bytearray({each})\n        kept[::4096] = b'x' * len(kept[::4096])\n"
                "        time.sleep(1000)\ntime.sleep(1000)"
            )
        assert not caught.value.timed_out
        assert seen(fresh(sandbox), "seen = 1") == 1


def test_what_all_sessions_share_counts_for_none_of_them() -> None:
    with Sandbox(replace(LIMITS, session_bytes=128 << 20)) as sandbox:
        sandbox.preload("matplotlib.figure")
        session = fresh(sandbox)
        children = "for _ in range(8):\n    if os.fork() == 0:\n        time.sleep(1)\n        os._exit(0)\n"
        assert seen(session, f"{children}time.sleep(1)\nseen = 1") == 1


def test_cpu_time_is_bounded(sandbox: Sandbox) -> None:
    start = time.monotonic()
    with pytest.raises(SessionLostError) as caught:
        fresh(sandbox).run("while True: pass")
    assert not caught.value.timed_out
    assert time.monotonic() - start < 40


@pytest.mark.parametrize(
    "source",
    [
        "time.sleep(1000)",
        "import signal\nfor n in (1, 2, 3, 13, 14, 15): signal.signal(n, signal.SIG_IGN)\ntime.sleep(1000)",
        "try:\n    time.sleep(1000)\nexcept BaseException:\n    time.sleep(1000)",
        "input_ = os.read(os.pipe()[0], 1)",
    ],
)
def test_wall_time_is_bounded(sandbox: Sandbox, source: str) -> None:
    session = fresh(sandbox, 0.5)
    start = time.monotonic()
    with pytest.raises(SessionLostError) as caught:
        session.run(source)
    sandbox.end_session()
    assert caught.value.timed_out
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "source",
    [
        "print('x' * 10_000_000)",
        "for n in range(20_000): print(n, 'line')",
        "import sys\nfor n in range(20_000): print(n, file=(sys.stdout, sys.stderr)[n % 2])",
        "from IPython.display import display, HTML\nfor n in range(300): display(HTML('x' * 1000))",
        "'y' * 10_000_000",
        "raise ValueError('z' * 10_000_000)",
        "os.write(1, b'x' * 100_000); os.write(2, b'x' * 100_000); os.system('yes | head -c 100000')",
    ],
)
def test_output_is_bounded_where_it_arises(sandbox: Sandbox, source: str) -> None:
    session = fresh(sandbox)
    outputs = session.run(source)["outputs"]
    assert len(json.dumps(outputs)) < 4 * LIMITS.output_bytes
    assert seen(session, "seen = 1") == 1


# ----------------------------------------------------------------------------------------------------- and the end


@pytest.mark.parametrize(
    "way",
    [
        "os._exit(0)",
        "os.kill(os.getpid(), 9)\ntime.sleep(0.1)\nos.abort()",
        "reason(lambda: os.kill(-1, 9))\nos._exit(1)",
        "ctypes.string_at(0)",
        "os.closerange(0, 200)\nraise SystemExit",
        "[os.write(n, b'\\xff' * 100) for n in range(3, 8) if os.readlink(f'/proc/self/fd/{n}').startswith('socket')]",
    ],
)
def test_a_session_that_ends_itself_is_noticed_and_the_next_is_well(sandbox: Sandbox, way: str) -> None:
    session = fresh(sandbox, 20)
    with pytest.raises(SessionLostError) as caught:
        session.run(way)
    assert not caught.value.timed_out
    assert seen(fresh(sandbox), "seen = 1") == 1


def test_nothing_goes_on_after_the_end(sandbox: Sandbox) -> None:
    """Neither what runs in the background nor the session itself, whatever it has done to stay."""
    session = fresh(sandbox)
    said(
        session,
        """
        import signal
        libc.prctl(1, 0, 0, 0, 0)
        libc.prctl(15, b"ffn-stays", 0, 0, 0)
        for number in (1, 2, 13, 15):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    time.sleep(1)
            os._exit(0)
        import subprocess
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        os._exit = lambda *_: time.sleep(1000)
        """,
    )
    assert len(named("ffn-stays")) >= 2
    sandbox.end_session()
    assert named("ffn-stays") == []


def test_a_session_sees_nothing_of_the_one_before(sandbox: Sandbox) -> None:
    first = fresh(sandbox)
    said(
        first,
        """
        open("/tmp/note", "w").write("for the next")
        os.mkdir("/tmp/folder")
        import builtins, numpy, session.wire, ffn.exercise
        builtins.left = numpy.left = session.wire.left = ffn.exercise.left = 1
        note = 1
        """,
    )
    second = fresh(sandbox)
    assert seen(
        second,
        """
        import builtins, numpy, session.wire, ffn.exercise
        seen = [
            os.path.exists("/tmp/note") or os.path.exists("/tmp/folder"),
            [hasattr(place, "left") for place in (builtins, numpy, session.wire, ffn.exercise)],
            "note" in globals(),
            [name for name in os.listdir("/proc") if name.isdigit()],
        ]
        """,
    ) == [False, [False] * 4, False, ["1"]]


SEARCH = """
import hashlib, re
def found(start, length, digest):
    hits = 0
    for line in open("/proc/self/maps"):
        place, rights = line.split()[:2]
        if not rights.startswith("r") or "[v" in line:
            continue
        low, high = (int(number, 16) for number in place.split("-"))
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(low)
            try:
                content = memory.read(high - low)
            except OSError:
                continue
        at = content.find(start)
        while at >= 0:
            hits += hashlib.sha256(content[at : at + length]).hexdigest() == digest
            at = content.find(start, at + 1)
    return hits
"""


def test_a_session_holds_no_test(sandbox: Sandbox) -> None:
    """Its whole memory, which is the fork server's and its own, is searched for words that only the checker knows."""
    session = fresh(sandbox)
    session.run("def relu(z): return max(z, 0)\ndef keep(text):\n    global kept\n    kept = text")
    secret = "mark-of-the-test:" + os.urandom(16).hex()
    source = f"assert relu(2) == 2, {secret!r}\ndef hidden():\n    return {secret!r}\nassert hidden()"
    _run_here(source, "<test>", Names(session, ["relu"]))
    look = (
        f"seen = found(b'mark-of-the-' + b'test:', {len(secret)}, '{hashlib.sha256(secret.encode()).hexdigest()}')"
    )
    said(session, SEARCH)
    assert seen(session, look) == 0
    # That the search finds what is there:
    session.get("keep")(secret)
    assert seen(session, look) > 0


def test_the_end_of_the_server_is_noticed() -> None:
    try:
        sandbox = Sandbox(LIMITS)
    except NoSandboxError as error:
        pytest.skip(f"this machine gives no isolation: {error}")
    with sandbox:
        session = fresh(sandbox)
        assert seen(session, "libc.prctl(15, b'ffn-left', 0, 0, 0)\nseen = 1") == 1
        assert sandbox._process is not None
        os.kill(sandbox._process.pid, signal.SIGKILL)
        sandbox._process.wait()
        with pytest.raises(SessionLostError):
            session.run("time.sleep(5)")
        for _ in range(2):
            with pytest.raises(NoSandboxError):
                sandbox.session()
        deadline = time.monotonic() + 5
        while named("ffn-left") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert named("ffn-left") == []


def test_closing_ends_everything(sandbox: Sandbox) -> None:
    with Sandbox(LIMITS) as other:
        assert seen(fresh(other), "libc.prctl(15, b'ffn-closed', 0, 0, 0)\nseen = 1") == 1
        data = Path(other._data.name)
        start = time.monotonic()
    assert time.monotonic() - start < 2
    assert named("ffn-closed") == []
    assert not data.exists()
    with pytest.raises(NoSandboxError):
        other.session()


def cell(source: str, name: str = "", **marks: Any) -> Any:
    made = new_code_cell(source)
    if name:
        made["metadata"]["nbgrader"] = {
            "grade_id": name,
            "grade": False,
            "locked": False,
            "solution": False,
            **marks,
        }
    return made


def unit(answer: str, first: str = "") -> Any:
    """A unit of one answer, whose second test uses what a locked cell and the first test define."""
    return new_notebook(
        cells=[
            *([cell(first)] if first else []),
            cell("import numpy as np\n\ndef close(a, b):\n    return abs(a - b) < 1e-9", "setup", locked=True),
            cell(answer, "relu", solution=True),
            cell(
                "def exact(a, b):\n    return a == b\n\nassert relu(-1) == 0",
                "test",
                grade=True,
                locked=True,
                points=1,
            ),
            cell(
                "assert close(relu(-3), 0) and exact(relu(-3), 0) and np.allclose(relu(-3), 0)",
                "more",
                grade=True,
                locked=True,
                points=2,
            ),
        ]
    )


OWN_HELPERS = """
import os

class Anything:
    def __getattr__(self, name):
        return lambda *given, **named: True

np = Anything()
close = exact = lambda *given: True
"""


@pytest.mark.parametrize(
    ("answer", "first", "points"),
    [
        ("def relu(z):\n    return max(z, 0)", "", 3),
        ("def relu(z):\n    return max(z, 0)", OWN_HELPERS, 3),
        ("def relu(z):\n    return 7", OWN_HELPERS, 0),
        # The session ends in the locked cell, so that this cell has defined nothing in it:
        (
            "def relu(z):\n    return 7",
            OWN_HELPERS
            + "def end(info):\n    if 'import numpy' in info.raw_cell:\n        os._exit(1)\n"
            + "get_ipython().events.register('pre_run_cell', end)",
            0,
        ),
        # It ends in the first test, so that the second one has the names of a new session:
        ("def relu(z):\n    if z == -1:\n        os._exit(0)\n    return 7", OWN_HELPERS, 0),
        ("def relu(z):\n    if z == -1:\n        os._exit(0)\n    return max(z, 0)", OWN_HELPERS, 2),
        ("def relu(z):\n    return 10**4300", "", 0),
        ("def relu(z):\n    raise SystemExit", "", 0),
        ("def relu(z):\n    return '\\ud800'", "", 0),
    ],
)
def test_names_of_the_tests_are_never_the_learner_s(
    sandbox: Sandbox, answer: str, first: str, points: float
) -> None:
    assignment = Assignment("unit", unit("def relu(z):\n    return max(z, 0)"))
    verdict = grade(assignment, json.dumps(unit(answer, first)).encode(), LIMITS, sandbox)
    assert verdict.points == points
    json.dumps(verdict.notebook, ensure_ascii=False).encode()


# --------------------------------------------------------------------------------------------- where there is none


def test_a_machine_without_bubblewrap_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_bubblewrap", lambda: None)
    with pytest.raises(NoSandboxError, match="bubblewrap is not installed"):
        Sandbox(LIMITS)
    (line,) = diagnosis(LIMITS)
    assert (line[0], line[1]) == ("bubblewrap", False)
    assert "apt-get install bubblewrap" in line[2]


def test_a_system_that_is_not_linux_is_told_so_and_runs_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "platform", "darwin")
    with pytest.raises(NoSandboxError, match="only Linux has the namespaces"):
        Sandbox(LIMITS)
    (line,) = diagnosis(LIMITS)
    assert line[1] is False
    assert "grader check" in line[2]
    with Sandbox(LIMITS, mode="none") as sandbox:
        assert seen(fresh(sandbox), "seen = 1") == 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'bwrap: no permissions to create a new namespace' >&2; exit 1", "no permissions to create"),
        ("exit 0", "the sandbox did not start"),
        ("sleep 100", "the sandbox did not start"),
        ("echo a; echo b >&2; kill -9 $$", "b"),
    ],
)
def test_a_bubblewrap_that_fails_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, message: str
) -> None:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "_bubblewrap", lambda: str(program))
    monkeypatch.setattr(module, "START_SECONDS", 0.5)
    with pytest.raises(NoSandboxError, match=message):
        Sandbox(LIMITS)


def test_without_isolation_only_where_it_is_said() -> None:
    with Sandbox(LIMITS, DATA, mode="none") as sandbox:
        session = sandbox.session()
        session.allow(60)
        assert seen(session, "import os\nseen = os.getuid()") == os.getuid()
        with pytest.raises(SessionLostError):
            session.run("while True: pass")
        assert sandbox.mode == "none"
