"""A pytest plugin beside nbval, for ``grader check``: write down what every cell of the notebook gave.

nbval itself says what differs as text for a terminal; this keeps the outputs that it compared.
"""

import json
from pathlib import Path
from typing import Any

import pytest

__all__ = ["LONGEST"]

LONGEST = 20_000
"""Of every text as many characters are kept."""

# What nbval says of a cell that ran to its end, or raised an exception.
_COMPLETE = ("Cell outputs differ", "Cell execution caused an exception")

_CELLS: list[dict[str, Any]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for the file to write."""
    parser.addoption("--record", type=Path, help="write what the cells gave to this file, as JSON")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Run every cell, whatever a learner's comment says to nbval."""
    for item in items:
        item.options["skip"] = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: Any, call: pytest.CallInfo[None]) -> None:
    """Note a cell that ran, or could not; after one that did not come to its end no other runs."""
    if call.when == "teardown" or (call.when == "setup" and call.excinfo is None):
        return
    failure = _cut(call.excinfo.value) if call.excinfo is not None else ""
    stopped = item.parent.timed_out or (failure != "" and not failure.startswith(_COMPLETE))
    _CELLS.append(
        {
            "number": item.cell_num,
            "failure": failure,
            "stopped": stopped,
            "outputs": [_kept(output) for output in item.test_outputs or ()],
        }
    )
    if stopped:
        item.session.shouldstop = "a cell did not come to its end"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was noted."""
    path: Path = session.config.getoption("--record")
    path.write_text(json.dumps(_CELLS), encoding="utf-8")


def _kept(output: Any) -> dict[str, Any]:
    """Of an output what ``grader check`` reads: no pictures, and no text without end."""
    kept: dict[str, Any] = {
        key: _cut(output[key]) for key in ("output_type", "name", "text", "ename", "evalue") if key in output
    }
    if "data" in output:
        kept["data"] = {"text/plain": _cut(output["data"].get("text/plain", ""))}
        kept["metadata"] = output["metadata"]
    return kept


def _cut(text: Any) -> str:
    return str(text)[:LONGEST]
