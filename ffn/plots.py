"""Figures of the course: one style, one colour for each quantity, drawn as SVG that follows the page's theme.

Every function gives a Drawing, which a notebook shows when it is the last expression of a cell. Nothing here
changes matplotlib's global settings or opens a window.
"""

import html
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from ffn.activations import ACTIVATIONS
from ffn.arrays import FloatArray

__all__ = ["COLOURS", "Colour", "Drawing", "Stage", "activation_curves", "bars", "canvas", "drawing", "shapes"]


@dataclass(frozen=True)
class Colour:
    """One quantity's colour on light and on dark pages, as #rrggbb."""

    light: str
    dark: str


COLOURS = {
    "x": Colour("#0a5ea8", "#6cb6ff"),
    "u": Colour("#a04d00", "#f0a35e"),
    "h": Colour("#006b4c", "#4fc99b"),
    "gate": Colour("#8a3b94", "#d79be0"),
    "y": Colour("#b3261e", "#ff8a80"),
    "weight": Colour("#59636e", "#9aa4af"),
    "relu": Colour("#4a4f55", "#c3c8ce"),
    "gelu": Colour("#00707f", "#5cc8d8"),
    "silu": Colour("#ad2d78", "#f58ac5"),
    "tanh": Colour("#66661a", "#cfcf5a"),
    "sigmoid": Colour("#4548b0", "#a9abff"),
    "gelu_tanh": Colour("#7a5c00", "#e0bd55"),
}
"""Colour-blind-safe colours by quantity or activation; each has a contrast of at least 4.5 on its page."""

_DASHES = {
    "relu": "-",
    "gelu": "--",
    "silu": "-.",
    "tanh": ":",
    "sigmoid": (0, (5, 1, 1, 1, 1, 1)),
    "gelu_tanh": "-",
}
_INK = "#010203"
_FAINT = "#8a8f96"

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "lines.linewidth": 2.2,
    "lines.solid_capstyle": "round",
    "axes.grid": True,
    "grid.color": _FAINT,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "savefig.edgecolor": "none",
}


@dataclass(frozen=True)
class Drawing:
    """An SVG figure with the text that stands for it; its colours follow the theme of the page."""

    svg: str
    alt: str

    def __str__(self) -> str:
        """The alternative text."""
        return f"[figure: {self.alt}]"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": f'<div class="ffn-figure">{self.svg}</div>'}


def canvas(
    width: float = 5.6, height: float = 3.2, *, x_label: str = "", y_label: str = "", title: str = ""
) -> tuple[Figure, Axes]:
    """An empty figure in the course's style, sizes in inches; draw on the axes, then give both to ``drawing``."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots()
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title, loc="left")
    return figure, axes


def drawing(figure: Figure, alt: str, name: str) -> Drawing:
    """Turn a figure into a Drawing.

    ``alt`` says in a sentence or two what a reader sees and should notice; ``name`` is unique on the page and
    keeps the ids inside the SVG apart. The same figure gives the same bytes every time.

    Raises:
        ValueError: the alternative text is empty.
    """
    if not alt.strip():
        raise ValueError(f"the figure {name} has no alternative text; say what a reader sees in it.")
    _style_late_text(figure)
    stream = io.StringIO()
    with mpl.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure.savefig(
            stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    return Drawing(svg=_follow_theme(stream.getvalue(), alt, name), alt=alt)


def _style_late_text(figure: Figure) -> None:
    """Give text and legends that were drawn after ``canvas`` returned the course's ink and no frame."""
    for text in figure.findobj(Text):
        if isinstance(text, Text) and str(text.get_color()) == "black":
            text.set_color(_INK)
    for legend in figure.findobj(Legend):
        if isinstance(legend, Legend):
            legend.set_frame_on(False)


def _follow_theme(svg: str, alt: str, name: str) -> str:
    """The SVG for use inside a page: theme colours, the page's font, and its alternative text."""
    svg = svg[svg.index("<svg") :]
    # matplotlib's own <style> would apply to the whole page; its rule moves to the figure.
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    size = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    width = float(size.group(1)) * 4 / 3 if size else 0
    svg = re.sub(
        r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>",
        rf'<svg \1 role="img" aria-label="{html.escape(alt)}" style="width: {width:.0f}px; max-width: 100%; '
        'height: auto; stroke-linejoin: round" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">',
        svg,
        count=1,
    )
    for quantity, colour in COLOURS.items():
        svg = svg.replace(colour.light, f"var(--ffn-{quantity.replace('_', '-')}, {colour.light})")
    svg = svg.replace(_INK, "currentColor")
    svg = re.sub(r"(font: [^;\"]*?[\d.]+px) [^;\"]*", r"\1 sans-serif", svg)
    svg = re.sub(
        r'id="((?:figure|axes|patch|line2d|text|matplotlib|xtick|ytick|legend|PathC|LineC|Poly)[^"]*)"', "", svg
    )
    return re.sub(r">\s+<", "><", svg).strip()


def colour(quantity: str) -> str:
    """The light colour of a quantity or activation; ``drawing`` makes it follow the theme."""
    return COLOURS[quantity].light


@mpl.rc_context(_STYLE)
def activation_curves(
    names: Sequence[str],
    *,
    derivatives: bool = False,
    limits: tuple[float, float] = (-4, 4),
    alt: str,
    title: str = "",
) -> Drawing:
    """Activations (or their derivatives) by name, as curves over the pre-activation z."""
    z = np.linspace(*limits, 401)
    label = "derivative" if derivatives else "activation"
    figure, axes = canvas(x_label="pre-activation z", y_label=label, title=title)
    for name in names:
        function = ACTIVATIONS[name].derivative if derivatives else ACTIVATIONS[name].function
        axes.plot(z, function(z), color=colour(name), linestyle=_DASHES[name], label=_LABELS[name])
    axes.axhline(0, color=_FAINT, linewidth=1, zorder=0)
    axes.axvline(0, color=_FAINT, linewidth=1, zorder=0)
    axes.legend()
    return drawing(figure, alt, f"{label}-{'-'.join(names)}")


_LABELS = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU, tanh form",
    "silu": "SiLU",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "identity": "identity",
}


@dataclass(frozen=True)
class Stage:
    """One array in a picture of shapes: its symbol, its numbers of rows and columns, and its colour's name."""

    symbol: str
    rows: int
    columns: int
    quantity: str = "weight"


@mpl.rc_context(_STYLE)
def shapes(stages: Sequence[Stage | str], *, alt: str, name: str, width: float = 5.6) -> Drawing:
    """Arrays drawn to one scale with their shapes written on them, with signs such as "×" or "=" between them.

    Sides grow with the numbers of rows and columns; a row vector stays thick enough to be seen.
    """
    boxes = [stage for stage in stages if isinstance(stage, Stage)]
    largest = max(max(box.rows, box.columns) for box in boxes)

    def side(count: int) -> float:
        return max(4.0 * count / largest, 0.28)

    gap, x = 0.45, 0.0
    tallest = max(side(box.rows) for box in boxes)
    figure, axes = canvas(width, 1.0)
    axes.axis("off")
    for stage in stages:
        if isinstance(stage, str):
            axes.text(x + gap / 2, 0, stage, ha="center", va="center", fontsize=14)
            x += 2 * gap
            continue
        w, h = side(stage.columns), side(stage.rows)
        tint = colour(stage.quantity)
        axes.add_patch(Rectangle((x, -h / 2), w, h, facecolor=tint, alpha=0.22, linewidth=0))
        axes.add_patch(Rectangle((x, -h / 2), w, h, fill=False, edgecolor=tint, linewidth=1.6))
        axes.text(x + w / 2, tallest / 2 + 0.25, stage.symbol, ha="center", va="bottom", color=tint, fontsize=13)
        size = f"{stage.rows} × {stage.columns}"
        axes.text(x + w / 2, -tallest / 2 - 0.25, size, ha="center", va="top", fontsize=11)
        x += max(w, 0.9) + gap
    axes.set_xlim(-0.6, x)
    axes.set_ylim(-tallest / 2 - 0.75, tallest / 2 + 0.75)
    axes.set_aspect("equal")
    figure.set_size_inches(width, width * (tallest + 1.5) / (x + 0.6))
    return drawing(figure, alt, name)


@mpl.rc_context(_STYLE)
def bars(
    labels: Sequence[str],
    values: Sequence[float],
    *,
    alt: str,
    name: str,
    x_label: str = "",
    quantities: Sequence[str] | None = None,
    text: Callable[[float], str] = "{:,.6g}".format,
) -> Drawing:
    """Horizontal bars, first label on top, each with its value written beside it."""
    figure, axes = canvas(5.6, 0.7 + 0.42 * len(labels), x_label=x_label)
    tints = [colour(q) for q in quantities] if quantities else [colour("x")] * len(labels)
    axes.barh(range(len(labels)), values, color=tints, height=0.62)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.grid(visible=False)
    reach = max(max(values), 0) or 1
    for row, value in enumerate(values):
        axes.text(max(value, 0) + reach * 0.015, row, text(value), va="center", fontsize=11)
    axes.set_xlim(min(*values, 0) * 1.1, reach * 1.28)
    return drawing(figure, alt, name)


@mpl.rc_context(_STYLE)
def heat(
    values: FloatArray, *, alt: str, name: str, row_labels: Sequence[str], column_labels: Sequence[str]
) -> Drawing:
    """A small matrix as shaded cells with its numbers written in, blue below zero and orange above."""
    figure, axes = canvas(5.6, 0.9 + 0.45 * values.shape[0])
    reach = float(np.max(np.abs(values))) or 1.0
    for row, column in np.ndindex(values.shape):
        value = float(values[row, column])
        tint = colour("u" if value > 0 else "x")
        box = Rectangle((column, row), 1, 1, facecolor=tint, alpha=0.65 * abs(value) / reach, linewidth=0)
        axes.add_patch(box)
        axes.text(column + 0.5, row + 0.5, f"{value + 0.0:.3g}", ha="center", va="center", fontsize=11)
    axes.set_xlim(0, values.shape[1])
    axes.set_ylim(values.shape[0], 0)
    axes.set_xticks(np.arange(values.shape[1]) + 0.5, column_labels)
    axes.set_yticks(np.arange(values.shape[0]) + 0.5, row_labels)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    return drawing(figure, alt, name)


def theme_css() -> str:
    """Custom properties of every colour for light and dark pages, as a style sheet."""

    def block(selector: str, shade: Callable[[Colour], Any]) -> str:
        lines = "\n".join(f"  --ffn-{name.replace('_', '-')}: {shade(c)};" for name, c in COLOURS.items())
        return f"{selector} {{\n{lines}\n}}\n"

    dark = block('html[data-theme="dark"]', lambda c: c.dark)
    return block(":root", lambda c: c.light) + dark
