"""The shell of a session: a cell that is plain Python is taken as it is, just as IPython would leave it."""

import json
import resource
import subprocess
import sys
from typing import Any

import pytest

from grader.session.learner import _has_room

PLAIN = {
    "two lines": "a = 1\nb = 2",
    "with an end": "a = 1\nb = 2\n",
    "a function": "def f(x):\n    return x % 2\n\nf(3)",
    "text that looks like a magic": 'a = """\n%time\n!ls\nwhat?\n"""\nb = 1',
    "a comment that asks": "# what?\na = 1  # why?",
    "over two lines": "a = (7\n%3)\nb = a",
    "a backslash": "a = 1 + \\\n    2",
    "an await": "import asyncio\nawait asyncio.sleep(0)",
    "an escape that is none": 'a = "\\d"\nb = 1',
    "no Python": "a = = 1\nb = 2",
    "not equal": "a = 1 != 2\nb = a",
    "a remainder": "a = 7\na %= 2",
    "a function that waits": "async def f():\n    return 1",
    "a wait for each": "async def f():\n    yield 1\n\nasync for x in f():\n    print(x)",
    "a text about waiting": "a = 'await'\nb = 'async'",
}
OTHERS = {
    "one line": "a = 1",
    "a magic": "%time a = 1\nb = 2",
    "a cell magic": "%%time\na = 1",
    "a shell": "a = !echo 1\nb = 2",
    "help": "import math\nmath.pi?",
    "an empty line first": "\n\na = 1\nb = 2",
    "indented": "    a = 1\n    b = 2",
    "prompts": ">>> a = 1\n>>> b = 2",
    "prompts in a text": '"""\n>>> a = 1\n"""',
    "prompts of IPython": "In [1]: a = 1\nIn [2]: b = 2",
    "an assigned magic": "a = %time 1\nb = 2",
    "an assigned magic on a line of its own": "a = \\\n%time 1\nb = 2",
    "a call without brackets": "/print a\nb = 2",
    "a call with one text": ";print a b\nb = 2",
    "a call with texts": "a = = 1\n,print a b",
    "no Python, and help": "a = = 1\nint?",
    "other ends of lines": "a = 1\r\nb = 2",
    "a letter beyond ASCII": "a = 'é'\nb = 1",
    "nothing": "",
}
_SCRIPT = """
import json, sys
from unittest import mock
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.inputtransformer2 import TransformerManager
from grader.session import learner

sources = json.loads(sys.stdin.read())
shell = learner.make_shell()
with mock.patch.object(learner, "_is_plain", lambda source: False):
    slow = [shell.transform_cell(source) for source in sources]
seen = []
whole = TransformerManager.transform_cell
def watched(self, cell):
    seen.append(cell)
    return whole(self, cell)
with mock.patch.object(TransformerManager, "transform_cell", watched):
    quick = [shell.transform_cell(source) for source in sources]
shell.input_transformer_manager.line_transforms.append(lambda lines: ["c = 3\\n"])
own = shell.transform_cell("a = 1\\nb = 2")
def waits(kind):
    return [kind.should_run_async(shell, source, transformed_cell=source) for source in sources]
print(json.dumps({"slow": slow, "quick": quick, "transformed": seen, "own": own,
    "waits": waits(type(shell)), "ipython waits": waits(InteractiveShell)}))
"""


_FULL = """
import resource
from pathlib import Path
from grader.session.learner import _has_room
before = _has_room()
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (32 << 20),) * 2)
print(before, _has_room())
"""


@pytest.fixture(scope="module")
def found() -> Any:
    """What a shell makes of these cells; in a process of its own, because there is one shell in each."""
    sources = [*PLAIN.values(), *OTHERS.values()]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_cells_are_what_ipython_makes_of_them(found: Any) -> None:
    assert found["quick"] == found["slow"]


def test_only_plain_python_is_taken_as_it_is(found: Any) -> None:
    assert [source for source in PLAIN.values() if source in found["transformed"]] == []
    assert [source for source in OTHERS.values() if source not in found["transformed"]] == []


def test_a_transformation_of_the_learner_s_own_is_made(found: Any) -> None:
    assert found["own"] == "c = 3\n"


def test_cells_that_wait_are_those_that_ipython_lets_wait(found: Any) -> None:
    assert found["waits"] == found["ipython waits"]
    assert sum(found["waits"]) == 2


def test_looking_whether_there_is_room_takes_no_memory() -> None:
    """It is done at every cell that fails; to fill what is asked for took most of an unfinished notebook's time."""
    _has_room()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert all(_has_room() for _ in range(10))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1_000


def test_where_memory_is_used_up_there_is_no_room() -> None:
    done = subprocess.run([sys.executable, "-c", _FULL], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True False\n"), done.stderr
