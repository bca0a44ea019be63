"""How deeply what is handed in may be nested."""

import json

import pytest

from grader.engine.read import DEEPEST, UnreadableError, read_submission

MOST = 1_000_000


def nested(levels: int) -> bytes:
    """A notebook of one cell, with lists in it so that containers are nested to this depth."""
    inner = "[" * (levels - 4) + "]" * (levels - 4)
    metadata = f'{{"x": {inner}}}'
    cell = f'{{"cell_type": "code", "source": "a = 1", "metadata": {metadata}}}'
    return f'{{"nbformat": 4, "cells": [{cell}]}}'.encode()


def test_a_notebook_may_be_nested_so_deeply() -> None:
    assert [cell["source"] for cell in read_submission(nested(DEEPEST), MOST)] == ["a = 1"]


@pytest.mark.parametrize("levels", [DEEPEST + 1, 900, 100_000])
def test_one_that_is_nested_more_deeply_is_refused(levels: int) -> None:
    with pytest.raises(UnreadableError, match="nested more deeply"):
        read_submission(nested(levels), MOST)


def test_brackets_in_a_text_do_not_count() -> None:
    source = "[" * 500 + '"' + "{" * 500
    cell = {"cell_type": "code", "source": source, "metadata": {}}
    data = json.dumps({"nbformat": 4, "cells": [cell]}).encode()
    assert [cell["source"] for cell in read_submission(data, MOST)] == [source]
