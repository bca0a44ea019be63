"""The figures: every number has its shape, a title and words beside them, and no text leaves the figure."""

import re
from xml.etree import ElementTree

import pytest

from grader.report.plots import difficulty_plot, histogram, step_bars
from grader.report.statistics import Discrimination, StepStatistics, distribution

WIDTH = 440.0


def a_step(name: str, mean: float | None = 0.5, value: float | None = 0.4, **counts: int) -> StepStatistics:
    found = Discrimination(value, value, value) if value is not None else Discrimination(reason="few")
    fields = {"full": 2, "partial": 1, "none": 1, "waiting": 0} | counts
    return StepStatistics(
        name=name, title="", points=2.0, mean=mean, discrimination=found, tests=(), remarks=(), **fields
    )


def parsed(svg: str | None) -> ElementTree.Element:
    assert svg is not None
    return ElementTree.fromstring(svg)


def shapes(svg: str, kind: str) -> list[ElementTree.Element]:
    return [part for part in parsed(svg).iter() if kind in part.get("class", "").split()]


@pytest.mark.parametrize(
    "svg",
    [histogram(distribution([1, 2, 3], 4)), step_bars([a_step("relu")]), difficulty_plot([a_step("relu")])],
    ids=["histogram", "bars", "difficulty"],
)
def test_a_figure_has_a_title_and_words_that_name_it(svg: str) -> None:
    root = parsed(svg)
    named = (root.get("aria-labelledby") or "").split()
    texts = {part.get("id"): part.text for part in root.iter() if part.get("id") in named}
    assert root.get("role") == "img"
    assert len(named) == 2
    assert all(texts[name] for name in named)


def test_the_histogram_has_a_bar_for_every_bin_with_learners() -> None:
    found = distribution([0, 0, 0, 10, 39, 40], 40)
    bars = shapes(histogram(found), "bar")
    assert len(bars) == 3
    heights = [float(bar.get("height") or 0) for bar in bars]
    assert heights == pytest.approx([heights[0], heights[0] / 3, heights[0] * 2 / 3], abs=0.2)


def test_the_histogram_has_lines_for_median_and_quartiles_at_their_places() -> None:
    svg = histogram(distribution([0, 10, 20, 30, 40], 40))
    (median,), quartiles = shapes(svg, "median"), shapes(svg, "quartile")
    places = sorted(float(line.get("x1") or 0) for line in (median, *quartiles))
    assert places[1] == float(median.get("x1") or 0)
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)
    assert "median 20" in "".join(parsed(svg).itertext())


def test_a_bar_is_cut_by_shares() -> None:
    svg = step_bars([a_step("relu", full=3, partial=1, none=4)])
    widths = [float(shapes(svg, kind)[-1].get("width") or 0) for kind in ("full", "partial", "none")]
    assert widths == pytest.approx([sum(widths) * 3 / 8, sum(widths) / 8, sum(widths) / 2], abs=0.2)


def test_those_who_wait_are_a_part_of_the_bar_and_leave_the_mean_open() -> None:
    svg = step_bars([a_step("words", 0.0, None, full=0, partial=0, none=2, waiting=6)])
    widths = [float(shapes(svg, kind)[-1].get("width") or 0) for kind in ("none", "waiting")]
    assert widths == pytest.approx([sum(widths) / 4, sum(widths) * 3 / 4], abs=0.2)
    texts = [part.text for part in parsed(svg).iter("text")]
    assert "n/a" in texts
    assert "waiting" in texts


def test_without_anybody_who_waits_nothing_is_said_of_it() -> None:
    assert "waiting" not in [part.text for part in parsed(step_bars([a_step("relu")])).iter("text")]


def test_every_step_with_both_numbers_is_a_mark_with_its_name() -> None:
    steps = [a_step(f"step{place}", 0.5, 0.4) for place in range(8)] + [a_step("alone", 0.2, None)]
    svg = difficulty_plot(steps)
    assert svg is not None
    assert len(shapes(svg, "mark")) == 8
    labels = [part.text for part in parsed(svg).iter("text")]
    assert {f"step{place}" for place in range(8)} <= set(labels)
    assert "alone" not in labels


def test_a_low_discrimination_has_another_shape() -> None:
    svg = difficulty_plot([a_step("good", 0.5, 0.5), a_step("bad", 0.6, 0.1)])
    assert svg is not None
    heights = {
        part.tag: float(re.findall(r"[\d.]+", f"{part.get('cy', '')} {part.get('points', '')}")[0])
        for part in shapes(svg, "mark")
    }
    assert heights["circle"] < heights["polygon"]


def test_without_a_discrimination_there_is_no_figure() -> None:
    assert difficulty_plot([a_step("relu", 0.5, None)]) is None


@pytest.mark.parametrize("count", [1, 12, 40])
def test_no_name_is_outside_of_the_figure(count: int) -> None:
    assert all(0 <= start < end <= WIDTH for start, end, _ in names_of(count))


def test_no_two_of_a_dozen_names_are_in_one_place() -> None:
    boxes = names_of(12)
    pairs = [(a, b) for place, a in enumerate(boxes) for b in boxes[:place]]
    assert not [(a, b) for a, b in pairs if a[0] < b[1] and b[0] < a[1] and abs(a[2] - b[2]) < 12]


def names_of(count: int) -> list[tuple[float, float, float]]:
    """Where the names of steps with nearly the same numbers begin and end, and their height."""
    steps = [a_step(f"step_{place:02d}", 0.4 + place % 3 / 40, 0.3 + place / 100) for place in range(count)]
    found = []
    for part in parsed(difficulty_plot(steps)).iter("text"):
        if (part.text or "").startswith("step_"):
            x, width = float(part.get("x") or 0), 6.0 * len(part.text or "")
            start = x if part.get("text-anchor") == "start" else x - width
            found.append((start, start + width, float(part.get("y") or 0)))
    assert len(found) == count
    return found


def test_names_are_escaped() -> None:
    step = a_step("<b>&\"'")
    for svg in (step_bars([step]), difficulty_plot([step])):
        assert svg is not None
        assert "<b>" not in svg
        assert step.name in "".join(parsed(svg).itertext())


def test_colours_and_patterns_are_the_style_sheet_s() -> None:
    svg = "".join(
        map(str, (histogram(distribution([1], 2)), step_bars([a_step("a")]), difficulty_plot([a_step("a")])))
    )
    assert re.findall(r"\b(?:fill|stroke|style)=", svg) == []
