"""Turn a notebook into the bytes of a file that is damaged, old, of another encoding, or very large."""

import copy
import json
from typing import Any

from grader.notebooks import grade_id
from tests.hostile.corpus import as_bytes

DEEP = 100_000


def first_half(notebook: Any) -> bytes:
    data = as_bytes(notebook)
    return data[: len(data) // 2]


def merge_conflict(notebook: Any) -> bytes:
    lines = as_bytes(notebook).splitlines(keepends=True)
    both = [b"<<<<<<< HEAD\n", lines[20], b"=======\n", lines[20], b">>>>>>> mine\n"]
    return b"".join([*lines[:20], *both, *lines[21:]])


def utf_16(notebook: Any) -> bytes:
    return json.dumps(notebook, ensure_ascii=False).encode("utf-16")


def byte_order_mark(notebook: Any) -> bytes:
    return b"\xef\xbb\xbf" + as_bytes(notebook)


def latin_1(notebook: Any) -> bytes:
    notebook["cells"][0]["source"] = "façade"
    return json.dumps(notebook, ensure_ascii=False).encode("latin-1")


def deep_nesting(notebook: Any) -> bytes:
    notebook["metadata"]["deep"] = 0
    return as_bytes(notebook).replace(b'"deep": 0', b'"deep": ' + b"[" * DEEP + b"]" * DEEP)


def deep_nesting_in_a_large_file(notebook: Any) -> bytes:
    return deep_nesting(_with_output(notebook, 2_000_000))


def two_hundred_megabytes(notebook: Any) -> bytes:
    return as_bytes(_with_output(notebook, 1, "@")).replace(b'"@"', b'"' + b"x" * 200_000_000 + b'"')


def ten_megabytes_of_output(notebook: Any) -> bytes:
    return as_bytes(_with_output(notebook, 10_000_000))


def hundred_thousand_cells(notebook: Any) -> bytes:
    notebook["cells"] += [{"cell_type": "markdown", "metadata": {}, "source": ""}] * 100_000
    return json.dumps(notebook).encode()


def nbformat_3(notebook: Any) -> bytes:
    cells = []
    for number, cell in enumerate(copy.deepcopy(notebook["cells"])):
        made = {"cell_type": cell["cell_type"], "metadata": cell["metadata"]}
        if cell["cell_type"] == "code":
            made |= {"input": cell["source"].splitlines(keepends=True), "language": "python", "outputs": []}
            made |= {"collapsed": False, "prompt_number": number}
        else:
            made["source"] = cell["source"].splitlines(keepends=True)
        cells.append(made)
    sheets = [{"cells": cells, "metadata": {}}]
    return as_bytes({"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": sheets})


def nbformat_5(notebook: Any) -> bytes:
    return as_bytes(notebook | {"nbformat": 5, "nbformat_minor": 0})


def nbformat_4_99(notebook: Any) -> bytes:
    return as_bytes(notebook | {"nbformat_minor": 99, "signatures": ["of a later time"]})


def unknown_schema_version(notebook: Any) -> bytes:
    for cell in notebook["cells"]:
        if grade_id(cell):
            cell["metadata"]["nbgrader"]["schema_version"] = 99
    return as_bytes(notebook)


def schema_version_1(notebook: Any) -> bytes:
    for cell in notebook["cells"]:
        if grade_id(cell):
            marks = cell["metadata"]["nbgrader"]
            marks["schema_version"] = 1
            del marks["task"]
    return as_bytes(notebook)


def nan_and_infinity_in_metadata(notebook: Any) -> bytes:
    for cell in notebook["cells"]:
        cell["metadata"]["seconds"] = [float("nan"), float("inf"), -float("inf")]
    return as_bytes(notebook)


def lone_surrogates_in_output(notebook: Any) -> bytes:
    return as_bytes(_with_output(notebook, 3, "\ud83d"))


def lone_surrogate_in_an_answer(notebook: Any) -> bytes:
    _cell(notebook, "relu")["source"] += "\n# well done \ud83d\n"
    return as_bytes(notebook)


def attachments(notebook: Any) -> bytes:
    notebook["cells"][0] |= {
        "attachments": {"dot.png": {"image/png": "iVBORw0KGgo="}},
        "source": "![a dot](attachment:dot.png)",
    }
    return as_bytes(notebook)


def source_as_lines(notebook: Any) -> bytes:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)
    return as_bytes(notebook)


def windows_line_ends(notebook: Any) -> bytes:
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n")
    return as_bytes(notebook)


def source_that_is_a_number(notebook: Any) -> bytes:
    _cell(notebook, "relu")["source"] = 5
    return as_bytes(notebook)


def cell_that_is_no_object(notebook: Any) -> bytes:
    notebook["cells"][1:1] = [7, None]
    return as_bytes(notebook)


def metadata_of_another_type(notebook: Any) -> bytes:
    relu, means = _cell(notebook, "relu"), _cell(notebook, "means")
    relu["metadata"], means["metadata"] = ["nbgrader"], {"nbgrader": "means"}
    return as_bytes(notebook)


def marks_lost(notebook: Any) -> bytes:
    for cell in notebook["cells"]:
        cell["metadata"] = {}
    return as_bytes(notebook)


def wrong_notebook(notebook: Any) -> bytes:
    names = {"relu": "swish", "affine": "gate", "means": "layer"}
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        for name, other in names.items():
            if "grade_id" in marks:
                marks["grade_id"] = marks["grade_id"].replace(name, other)
        for name, other in names.items():
            cell["source"] = cell["source"].replace(name, other)
    return as_bytes(notebook)


def _with_output(notebook: Any, size: int, character: str = "x") -> Any:
    _cell(notebook, "relu")["outputs"] = [{"name": "stdout", "output_type": "stream", "text": character * size}]
    return notebook


def _cell(notebook: Any, name: str) -> Any:
    return next(cell for cell in notebook["cells"] if grade_id(cell) == name)
