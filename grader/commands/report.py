"""`grader report`: what a class made of a unit, on one page."""

import json
from collections.abc import Callable
from pathlib import Path

import click

from grader.course import Course

__all__ = ["report"]

_KEYS = """\b
The keys of --json:
  unit, graded, max_points
  first_graded, last_graded   when graded notebooks were written
  waiting         submissions that wait for a person
  ran             submissions in which there was something to run
  isolation       submissions by isolation: full, none, unknown
  distribution    count, most, mean, deviation, lowest, quartiles, median,
                  highest, bins (low, high, count)
  steps           name, title, points, full, partial, none, waiting, mean,
                  discrimination (value, low, high, reason), tests, remarks
  misconceptions  step, name, hint, page, learners, count
  failures        step, test, example, learners, count
  remarks         what a person should look at: kind, learner, sentence,
                  where (the graded notebook), about
  slowest         cell, count, median, longest, learner
  similarity      compared, by_chance, threshold, found, pairs (learners,
                  number, steps)
  learners        learner, points, status, steps (null where one waits)
"""


@click.command(epilog=_KEYS)
@click.argument("unit")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the page to this file (default: grader/var/reports/UNIT.html).",
)
@click.option("--json", "as_json", is_flag=True, help="Write the numbers as JSON, and the page only with -o.")
@click.pass_obj
def report(course_of: Callable[[], Course], unit: str, output: Path | None, as_json: bool) -> None:
    """Write one page on how the class did in UNIT.

    It shows the scores, the difficulty and discrimination of every step, which misconceptions were met and how often,
    what needs a person, which cells are slow, and which submissions are unusually alike. The page opens from the disk
    and asks no other host for anything. A page that is there already is replaced.
    """
    from grader.report.page import write_page
    from grader.report.summary import build, plain

    course = course_of()
    found = build(course, unit)
    target = output if output is not None else course.var / "reports" / f"{unit}.html"
    if output is not None or not as_json:
        write_page(found, target)
    if as_json:
        click.echo(json.dumps(plain(found), indent=2))
    else:
        inside = target.is_relative_to(course.root)
        click.echo(f"The report is in {target.relative_to(course.root) if inside else target}.")
