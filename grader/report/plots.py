"""The report's figures as SVG, written by hand.

Shapes get classes, and the page's style sheet their colours and patterns, so that a figure follows the theme and the
printer. matplotlib's SVG is ten times as large and has its colours fixed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from grader.report.statistics import LOW, Distribution, StepStatistics

__all__ = ["difficulty_plot", "histogram", "step_bars"]

_WIDTH = 440
_CHARACTER = 7.0
_LINE = 15


@dataclass(frozen=True)
class _Frame:
    """The plot's area, and what its edges stand for."""

    left: float
    top: float
    right: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1)
        up = (y - self.y[0]) / ((self.y[1] - self.y[0]) or 1)
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)


def histogram(found: Distribution) -> Markup:
    """How many learners have which score, with the quartiles and the median as lines."""
    highest = max(bin_.count for bin_ in found.bins)
    first, last = found.bins[0].low, found.bins[-1].high
    frame = _Frame(40, 44, _WIDTH - 16, 214, (first, last), (0, max(1, highest)))
    parts = [*_counts_axis(frame, highest), *_scores_axis(frame)]
    for bin_ in found.bins:
        left, top = frame.at(bin_.low, bin_.count)
        right, base = frame.at(bin_.high, 0)
        if bin_.count:
            parts.append(_rect("bar", left + 1, top, right - left - 2, base - top))
    marks = ((found.first_quartile, "quartile"), (found.third_quartile, "quartile"), (found.median, "median"))
    for value, kind in marks:
        x, _ = frame.at(value, 0)
        parts.append(_line(kind, x, frame.top - 8, x, frame.bottom))
    x, _ = frame.at(found.median, 0)
    parts.append(_text(f"median {found.median:g}", _kept(x, 80), 16, "middle", "strong"))
    quartiles = f"quartiles {found.first_quartile:g} and {found.third_quartile:g} (dashed)"
    parts.append(_text(quartiles, _WIDTH / 2, 31, "middle"))
    parts.append(_text("points", (frame.left + frame.right) / 2, 250, "middle"))
    said = (
        f"Scores of {found.count} learners from {found.lowest:g} to {found.highest:g} of {found.most:g} points; median "
        f"{found.median:g}, quartiles {found.first_quartile:g} and {found.third_quartile:g}."
    )
    return _svg("histogram", "Distribution of the scores", said, 256, parts)


def _counts_axis(frame: _Frame, highest: int) -> Iterator[Markup]:
    step = next(
        step for base in (1, 10, 100, 1000, 10_000) for step in (base, 2 * base, 5 * base) if step * 5 >= highest
    )
    for value in range(0, highest + 1, step):
        x, y = frame.at(frame.x[0], value)
        yield _line("grid", x, y, frame.right, y)
        yield _text(str(value), x - 6, y + 4, "end")
    yield _text("learners", 4, 16)


def _scores_axis(frame: _Frame) -> Iterator[Markup]:
    yield _line("axis", frame.left, frame.bottom, frame.right, frame.bottom)
    first, last = frame.x
    for place in range(5):
        value = first + (last - first) * place / 4
        x, y = frame.at(value, 0)
        yield _text(f"{value:g}", x, y + 17, "middle")


def step_bars(steps: Sequence[StepStatistics]) -> Markup:
    """For each step a bar of those with full, some and no points, and of those who wait for a person."""
    left = min(150.0, 14 + _CHARACTER * max((min(len(step.name), 20) for step in steps), default=4))
    bottom = 40 + 24 * len(steps)
    frame = _Frame(left, 40, _WIDTH - 42, bottom, (0, 1), (0, 1))
    parts = list(_legend(left, waiting=any(step.waiting for step in steps)))
    for place, step in enumerate(steps):
        y = 42 + 24 * place
        parts.append(_text(_short(step.name, 20), left - 8, y + 14, "end"))
        start, whole = 0, max(1, step.count + step.waiting)
        of = (("full", step.full), ("partial", step.partial), ("none", step.none), ("waiting", step.waiting))
        for kind, count in of:
            x, _ = frame.at(start / whole, 0)
            end, _ = frame.at((start + count) / whole, 0)
            if count:
                parts.append(_rect(kind, x, y, end - x, 18))
            start += count
        # Answers that were left blank have no points, and say little while the others wait.
        mean = "n/a" if step.mean is None or step.waiting else f"{step.mean:.0%}"
        parts.append(_text(mean, _WIDTH - 4, y + 14, "end"))
    for share in (0, 0.25, 0.5, 0.75, 1):
        x, _ = frame.at(share, 0)
        parts.append(_line("tick", x, frame.bottom, x, frame.bottom + 5))
        parts.append(_text(f"{share:.0%}", x, frame.bottom + 18, "middle"))
    said = "; ".join(
        f"{step.name}: {step.full} full, {step.partial} some, {step.none} none, {step.waiting} waiting"
        for step in steps
    )
    return _svg("steps", "Points by step", f"Learners by their points: {said}.", bottom + 26, parts)


def _legend(left: float, *, waiting: bool) -> Iterator[Markup]:
    x = left
    kinds = (("full", "full"), ("partial", "some"), ("none", "none"), ("waiting", "waiting"))
    for kind, text in kinds if waiting else kinds[:3]:
        yield _rect(kind, x, 10, 18, 14)
        yield _text(text, x + 22, 21)
        x += 32 + _CHARACTER * len(text)
    yield _text("mean", _WIDTH - 4, 21, "end")


def difficulty_plot(steps: Sequence[StepStatistics]) -> Markup | None:
    """Each step by its mean share of points and its discrimination; None where no step has both."""
    shown = [
        (step.name, step.mean, step.discrimination.value)
        for step in steps
        if step.mean is not None and step.discrimination.value is not None
    ]
    if not shown:
        return None
    low = min(0.0, *(value for _, _, value in shown))
    frame = _Frame(44, 30, _WIDTH - 24, 320, (0, 1), (-1.0 if low < -0.5 else -0.5 if low < 0 else 0.0, 1.0))
    parts = [*_shares_axes(frame)]
    taken: list[tuple[float, float, float, float]] = []
    places = [(name, *frame.at(min(1.0, share), value), value) for name, share, value in shown]
    taken += [(x - 6, y - 6, x + 6, y + 6) for _, x, y, _ in places]
    for name, x, y, value in sorted(places, key=lambda place: (place[2], place[1])):
        parts.append(_mark(x, y, low=value < LOW))
        label = _short(name, 20)
        at_x, at_y, anchor = _free(x, y, _CHARACTER * len(label), frame, taken)
        if abs(at_y - 4 - y) > 14:
            parts.append(_line("leader", x, y, at_x, at_y - 4))
        parts.append(_text(label, at_x, at_y, anchor))
    said = "; ".join(f"{name}: mean share {share:.2f}, discrimination {value:.2f}" for name, share, value in shown)
    return _svg("difficulty", "Difficulty and discrimination of the steps", f"{said}.", 362, parts)


def _shares_axes(frame: _Frame) -> Iterator[Markup]:
    lowest = frame.y[0]
    for value in [step / 4 for step in range(round(lowest * 4), 5)]:
        x, y = frame.at(0, value)
        yield _line("axis" if value == 0 else "grid", x, y, frame.right, y)
        yield _text(f"{value:g}", x - 6, y + 4, "end")
    for value in (0, 0.25, 0.5, 0.75, 1):
        x, y = frame.at(value, lowest)
        yield _line("grid", x, frame.top, x, frame.bottom)
        yield _text(f"{value:.0%}", x, y + 17, "middle")
    _, y = frame.at(0, LOW)
    yield _line("low", frame.left, y, frame.right, y)
    yield _text("discrimination", 4, 16)
    yield _text(
        "mean share of the points: hard on the left, easy on the right", _WIDTH / 2, frame.bottom + 35, "middle"
    )


def _mark(x: float, y: float, *, low: bool) -> Markup:
    """A filled circle, or an open diamond for a step to look at."""
    if not low:
        return Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="4.5"/>').format(x, y)
    points = f"{x:.1f},{y - 7:.1f} {x + 7:.1f},{y:.1f} {x:.1f},{y + 7:.1f} {x - 7:.1f},{y:.1f}"
    return Markup('<polygon class="mark low" points="{}"/>').format(points)


def _free(
    x: float, y: float, width: float, frame: _Frame, taken: list[tuple[float, float, float, float]]
) -> tuple[float, float, str]:
    """A place for a label near a point that no other has, and where it is anchored; it is taken then."""
    for far in range(12):
        for down in (0, -_LINE * far, _LINE * far) if far else (0,):
            for side in (1, -1):
                start = x + 9 if side > 0 else x - 9 - width
                box = (start, y + down - 8, start + width, y + down + 6)
                inside = box[0] >= frame.left and box[2] <= _WIDTH and box[1] >= 18 and box[3] <= frame.bottom
                if inside and not any(_meet(box, other) for other in taken):
                    taken.append(box)
                    return (x + 9 * side, y + down + 4, "start" if side > 0 else "end")
    return x + 9, y + 4, "start"


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


# -------------------------------------------------------------------------------------------------------- pieces


def _svg(name: str, title: str, said: str, height: float, parts: Sequence[Markup]) -> Markup:
    patterns = Markup(
        '<defs><pattern id="hatch-{0}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"/>'
        '<rect class="hatch-line" width="3" height="6"/></pattern></defs>'
    ).format(name)
    return Markup(
        '<svg class="plot {0}" viewBox="0 0 {1} {2:.0f}" role="img" aria-labelledby="{0}-title {0}-said">'
        '<title id="{0}-title">{3}</title><desc id="{0}-said">{4}</desc>{5}{6}</svg>'
    ).format(name, _WIDTH, height, title, said, patterns, Markup("").join(parts))


def _rect(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    text = '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>'
    return Markup(text).format(kind, x, y, max(0.5, width), max(0.5, height))


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Markup:
    text = '<line class="{}" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'
    return Markup(text).format(kind, x1, y1, x2, y2)


def _text(text: Any, x: float, y: float, anchor: str = "start", kind: str = "") -> Markup:
    made = '<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
    return Markup(made).format(kind, x, y, anchor, text)


def _kept(x: float, width: float) -> float:
    """A middle for a text of this width that keeps it inside the figure."""
    return min(max(x, width / 2), _WIDTH - width / 2)


def _short(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
