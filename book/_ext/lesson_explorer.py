"""The directive ``explorer``, and the numbers of ``ffn`` that the explorers' scripts start from.

The directive's argument names the explorer; its content is what a reader without scripts sees in its place::

    :::{explorer} activations
    | z | ReLU | GELU |
    |---|---|---|
    | {glue:text}`z` | {glue:text}`relu` | {glue:text}`gelu` |
    :::

No coefficient, published number or preset is typed in a script: ``_static/ffn-data.mjs`` is written from ``ffn``
at every build.
"""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ffn import activations, ledger, normal
from ffn.blocks import GATES
from ffn.published import published_inputs

EXPLORERS = ("activations", "forward", "budget")


class explorer(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes so
    """The place of an explorer, with what stands there without scripts."""


class Explorer(SphinxDirective):
    """A place for one of the explorers; there is one on a page, because its setting is in the page's address."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Parse what a reader without scripts sees."""
        self.assert_has_content()
        kind = self.arguments[0]
        if kind not in EXPLORERS:
            raise self.error(f"there is no explorer “{kind}”; choose one of {', '.join(EXPLORERS)}")
        node = explorer(kind=kind)
        self.set_source_info(node)
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


def visit_explorer(self: Any, node: nodes.Element) -> None:
    """Open the place and what stands there without scripts."""
    self.body.append(
        f'<div class="ffn-explorer" data-explorer="{node["kind"]}"><div class="ffn-explorer-still">\n'
    )


def depart_explorer(self: Any, node: nodes.Element) -> None:
    """Close the place."""
    self.body.append("</div></div>\n")


def pass_through(self: Any, node: nodes.Element) -> None:
    """Other builders show the contents as they stand."""


def _defaults(function: Callable[..., int]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def _block(name: str) -> dict[str, Any]:
    """An example's plain block, and a gated one made of the same numbers: W_1, W_2 transposed, and W_2."""
    given = {key.lower(): value for key, value in published_inputs(name).items()}
    x, W_1, b_1, W_2 = given["x"], given["w1"], given["b1"], given["w2"]
    plain = {"x": x, "W_1": W_1, "b_1": b_1, "W_2": W_2, "b_2": given.get("b2", [0] * len(x))}
    return {**plain, "W_g": W_1, "W_u": [list(column) for column in zip(*W_2, strict=True)], "W_d": W_2}


def _budgets() -> list[dict[str, Any]]:
    """The settings that the budget explorer offers: a model of the ledger and a use of it."""
    bert = {**_defaults(ledger.encoder_parameters), "gated": False, "biases": True}
    llama = {**_defaults(ledger.llama_parameters), "gated": True, "biases": False}
    adam = {"optimizer_states": 2, "optimizer_bytes": 4}
    return [
        {"id": "bert-training", "name": "BERT-base, training in float32", **bert, "weight_bytes": 4, **adam},
        {"id": "bert-inference", "name": "BERT-base, inference in 16 bits", **bert, "weight_bytes": 2},
        {"id": "llama-inference", "name": "LLaMA-7B, inference", **llama, "weight_bytes": 2, "tokens": 2048},
        {
            "id": "llama-training",
            "name": "LLaMA-7B, training in mixed precision",
            **llama,
            "weight_bytes": 2,
            **adam,
            "master_bytes": 4,
        },
    ]


def explorer_data() -> dict[str, Any]:
    """Everything that the scripts take from ``ffn``."""
    return {
        # float64 only: a number in a script is always one.
        "normalTail": {"coefficients": normal._FLOAT64, "far": normal.FAR},
        "geluTanh": {"scale": activations._TANH_SCALE, "cubic": activations._TANH_CUBIC},
        "lowest": activations._LOWEST,
        "gates": GATES,
        "blocks": {"cell-d": _block("ex2"), "tiny": _block("tiny")},
        "budgets": _budgets(),
        "mebibyte": ledger.BYTES_PER_MEBIBYTE,
        "gibibyte": ledger.BYTES_PER_GIBIBYTE,
    }


def _write_data(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None or app.builder.format != "html":
        return
    text = json.dumps(explorer_data(), separators=(",", ":"))
    head = "// Written by book/_ext/lesson_explorer.py from the helper module ffn.\n"
    path = Path(app.outdir) / "_static" / "ffn-data.mjs"
    path.write_text(f"{head}export default {text};\n", encoding="utf-8")


def setup_explorer(app: Sphinx) -> None:
    """Register the directive, and write the data with every build."""
    other = (pass_through, pass_through)
    app.add_node(explorer, html=(visit_explorer, depart_explorer), latex=other, text=other)
    app.add_directive("explorer", Explorer)
    app.connect("build-finished", _write_data)
