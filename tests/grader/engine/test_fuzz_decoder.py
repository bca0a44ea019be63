"""The fuzzer's inputs end as they should, and where atheris is installed a short run of it finds nothing."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grader.engine.fuzz_decoder import check, frame, seeds
from tests.helpers import ROOT


def test_the_inputs_that_it_starts_from() -> None:
    for data in seeds():
        check(data)
        for cut in range(0, len(data), 7):
            check(data[:cut])


def test_a_fault_of_the_checker_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(*_: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr("grader.engine.proxy.LearnerSession._decode", faulty)
    with pytest.raises(ValueError, match="a fault"):
        check(b"\0" + frame(b'[{"value": {"v": null}}, []]'))


@pytest.mark.slow
def test_a_short_run(tmp_path: Path) -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed here; with it, `python -m tests.grader.engine.fuzz_decoder` fuzzes")
    command = [sys.executable, "-m", "tests.grader.engine.fuzz_decoder", "--seconds", "5"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(tmp_path.iterdir()) == []
