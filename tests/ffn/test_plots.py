"""ffn.plots: figures that follow the theme, say what they show, and come out the same every time."""

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from ffn import plots

PAGES = {"light": "#ffffff", "dark": "#121212"}
STYLE_SHEET = Path(__file__).parents[2] / "book" / "_static" / "course.css"


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2)."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def two_points() -> plots.Drawing:
    figure, axes = plots.canvas(x_label="z", y_label="a")
    axes.plot([0, 1], [0, 1], color=plots.colour("x"), label="x")
    axes.legend()
    axes.text(0.5, 0.5, "middle")
    return plots.drawing(figure, "A line from 0 to 1.", "two-points")


@pytest.mark.parametrize("quantity", plots.COLOURS)
@pytest.mark.parametrize("theme", PAGES)
def test_every_colour_can_be_read_on_its_page(quantity: str, theme: str) -> None:
    assert contrast(getattr(plots.COLOURS[quantity], theme), PAGES[theme]) >= 4.5


def test_no_two_quantities_share_a_colour() -> None:
    for theme in PAGES:
        shades = [getattr(colour, theme) for colour in plots.COLOURS.values()]
        assert len(set(shades)) == len(shades)


def test_style_sheet_holds_the_colours_of_the_figures() -> None:
    assert plots.theme_css() in STYLE_SHEET.read_text(encoding="utf-8")


def test_colours_follow_the_theme_with_the_light_value_as_fallback() -> None:
    assert f"var(--ffn-x, {plots.COLOURS['x'].light})" in two_points().svg


def test_no_colour_is_left_that_a_dark_page_would_swallow() -> None:
    assert not re.search(r"(fill|stroke): (#000000|black)", two_points().svg)


def test_text_drawn_after_the_canvas_takes_the_colour_of_the_page() -> None:
    svg = two_points().svg
    assert re.search(r"fill: currentColor[^>]*>middle<", svg)


def test_alternative_text_is_on_the_figure_and_escaped() -> None:
    figure, _ = plots.canvas()
    assert 'role="img" aria-label="a &lt; &quot;b&quot;"' in plots.drawing(figure, 'a < "b"', "n").svg


def test_figure_without_alternative_text_is_refused() -> None:
    figure, _ = plots.canvas()
    with pytest.raises(ValueError, match="the figure bare has no alternative text"):
        plots.drawing(figure, "  ", "bare")


def test_same_figure_gives_the_same_bytes() -> None:
    assert two_points().svg == two_points().svg


def test_figures_of_different_names_share_no_ids() -> None:
    drawings = [
        plots.activation_curves(["relu", "gelu"], alt="a"),
        plots.activation_curves(["relu", "gelu"], derivatives=True, alt="b"),
    ]
    first, second = (set(re.findall(r' id="([^"]+)"', drawing.svg)) for drawing in drawings)
    assert first
    assert not first & second


def test_references_inside_a_figure_resolve() -> None:
    svg = plots.activation_curves(["relu", "gelu", "silu", "tanh"], alt="curves").svg
    wanted = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
    names = {a or b for a, b in wanted}
    assert names
    assert names <= set(re.findall(r' id="([^"]+)"', svg))


def test_figure_brings_no_style_rules_for_the_rest_of_the_page() -> None:
    assert "<style" not in two_points().svg


def test_global_settings_of_matplotlib_are_left_alone() -> None:
    before = dict(mpl.rcParams)
    two_points()
    plots.bars(["a"], [1.0], alt="one bar", name="b")
    assert dict(mpl.rcParams) == before


def test_figure_never_grows_wider_than_its_column() -> None:
    assert "max-width: 100%; height: auto" in two_points().svg


def test_curve_of_relu_bends_at_zero() -> None:
    # On a picture from -1 to 1 with 401 points the left half lies at one height, the right half rises.
    svg = plots.activation_curves(["relu"], limits=(-1, 1), alt="ReLU").svg
    path = re.search(r'd="([^"]+)"[^>]*style="[^"]*--ffn-relu', svg)
    assert path is not None
    points = np.array(re.findall(r"[ML] ([\d.]+) ([\d.]+)", path.group(1)), dtype=float)
    left, right = points[points[:, 0] < points[:, 0].mean()], points[points[:, 0] > points[:, 0].mean()]
    assert np.ptp(left[:, 1]) < 1e-6
    assert right[-1, 1] < left[0, 1]


def test_shapes_are_drawn_to_one_scale_with_their_shapes_written() -> None:
    stages = [plots.Stage("x", 1, 20, "x"), "×", plots.Stage("W", 20, 40)]
    svg = plots.shapes(stages, alt="x times W", name="to-scale").svg
    boxes = re.findall(r'd="M ([\d.]+) ([\d.]+)\s+L ([\d.]+) \2[^"]*"[^>]*style="fill: none; stroke: var', svg)
    widths = [float(right) - float(left) for left, _, right in boxes]
    assert "1 × 20" in svg
    assert "20 × 40" in svg
    assert widths[1] / widths[0] == pytest.approx(2, rel=1e-3)


def test_bars_write_their_values() -> None:
    svg = plots.bars(["plain", "gated"], [4718592, 7077888], alt="two bars", name="counts").svg
    assert "4.71859e+06" in svg


def test_bars_write_values_as_the_caller_wants_them() -> None:
    svg = plots.bars(["plain"], [4718592], alt="a bar", name="count", text="{:,.0f}".format).svg
    assert "4,718,592" in svg


def test_heat_writes_every_entry_without_a_negative_zero() -> None:
    values = np.array([[1.5, -0.0], [-2.0, 0.25]])
    svg = plots.heat(values, alt="h", name="heat", row_labels=["r", "s"], column_labels=["a", "b"]).svg
    texts = re.findall(r">([^<>]+)</text>", svg)
    assert texts.count("0") == 1
    assert {"1.5", "-2", "0.25", "r", "s", "a", "b"} <= set(texts)


def test_notebook_gets_the_figure_as_html_and_its_text() -> None:
    bundle = two_points()._repr_mimebundle_()
    assert bundle["text/html"].startswith('<div class="ffn-figure"><svg')
    assert bundle["text/plain"] == "[figure: A line from 0 to 1.]"
