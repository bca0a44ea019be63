"""The command `grader`: release units, grade submissions, write feedback and scores.

Exit status: 0 all well; 1 something could not be done, with a sentence that says what to do; 2 wrong usage.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader import stock
from grader.commands.autograde import autograde, grade_shown
from grader.commands.collect import collect
from grader.commands.diff import diff
from grader.commands.due import due
from grader.commands.export import export
from grader.commands.extension import extension
from grader.commands.feedback import feedback, tell_failed
from grader.commands.report import report
from grader.course import Course, find_course
from grader.demo_class import demo_class, write_submissions
from grader.exceptions import FeedbackFailedError, GraderError
from grader.release import release as release_unit
from grader.scores import Score
from grader.scores import scores as read_scores

if TYPE_CHECKING:
    from grader.check import Report
    from grader.quick import Marks

__all__ = ["cli", "main"]

_ERR = Console(stderr=True, highlight=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--course",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="The course's folder, or one inside it (default: this folder).",
)
@click.version_option(package_name="ffn-course")
@click.pass_context
def cli(context: click.Context, folder: Path) -> None:
    """Release units, grade submissions, hand results back.

    Exit status: 0 all well, 1 something could not be done, 2 wrong usage.
    """
    context.obj = lambda: find_course(folder)


@cli.command()
@click.argument("units", nargs=-1, metavar="[UNIT]...")
@click.pass_obj
def release(course_of: Callable[[], Course], units: tuple[str, ...]) -> None:
    """Generate the learner notebooks in exercises/ from solutions/ (every unit, or those named)."""
    course = course_of()
    for unit in units or course.units():
        changed = release_unit(course, unit)
        click.echo(f"{unit}: {', '.join(changed) + ' written' if changed else 'up to date'}")


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
def doctor(as_json: bool) -> None:
    """Say how learner code is kept apart on this machine, and what to do where it is not.

    Exit status 1 where a part is missing.
    """
    from grader.engine.sandbox import diagnosis
    from grader.engine.verdict import Limits

    found = diagnosis(Limits())
    if as_json:
        rows = [{"part": part, "there": there, "remark": remark} for part, there, remark in found]
        click.echo(json.dumps(rows, indent=2))
    else:
        table = Table(title="Isolation of learner code", title_justify="left")
        for heading in ("part", "", "remark"):
            table.add_column(heading)
        for part, there, remark in found:
            table.add_row(part, "yes" if there else "no", escape(remark))
        Console(highlight=False).print(table)
    if not all(there for _, there, _ in found):
        raise GraderError(
            "learner code cannot be kept apart on this machine, see above; `grader autograde --sandbox=none` grades "
            "without isolation, which is for code that you trust."
        )


@cli.command()
@click.argument("unit")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
@click.pass_obj
def scores(course_of: Callable[[], Course], unit: str, as_json: bool) -> None:
    """Show the scores of UNIT's graded submissions."""
    found = read_scores(course_of(), unit)
    if as_json:
        click.echo(json.dumps([asdict(score) for score in found], indent=2))
    else:
        Console(highlight=False).print(_score_table(unit, found))


_CHECK_KEYS = """\b
The keys of --json:
  passed      whether nothing is wrong
  unit        the unit's name
  marks       points, max_points, sandbox; steps: name, points, max_points,
              message, flags; elsewhere: faults outside of the steps; notes:
              what was put right before the run; stopped: what did not come
              to its end, and why
  comparison  null with --no-compare; steps: name, reproduced, missing (ids
              of published values), message, note; elsewhere
"""


@cli.command(epilog=_CHECK_KEYS)
@click.argument("notebook", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--unit", help="The unit that the notebook belongs to (default: told by its cells).")
@click.option(
    "--sandbox",
    type=click.Choice(["full", "none"]),
    default="none",
    show_default=True,
    help="How the code is kept apart while marks are given; none suits your own code, and runs on every system.",
)
@click.option("--no-compare", is_flag=True, help="Give the marks only; leave the reference notebook out.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs, at the end.")
@click.pass_obj
def check(
    course_of: Callable[[], Course],
    notebook: Path,
    unit: str | None,
    sandbox: str,
    no_compare: bool,
    as_json: bool,
) -> None:
    """Check your own NOTEBOOK: the marks of its visible tests first, then how it compares with the reference notebook.

    Its code runs on this machine as it is: check your own notebooks only. The comparison runs it once more, never in a
    sandbox. The file is not changed. Exit status 1 where something is not right yet.
    """
    from grader.check import compare, read_subject
    from grader.quick import mark

    subject = read_subject(course_of(), notebook, unit)
    marks = mark(subject, sandbox=sandbox)
    report = None
    if not as_json:
        _show_marks(marks)
    if not no_compare:
        if not as_json:
            _ERR.print("Comparing with the reference notebook (a few seconds)")
        report = compare(subject, stopped=marks.stopped)
    passed = marks.passed and (report is None or report.passed)
    if as_json:
        click.echo(json.dumps(_plain_check(marks, report, passed=passed), indent=2))
    else:
        _show_report(marks, report, passed=passed)
    sys.exit(0 if passed else 1)


@cli.command()
@click.argument("unit", default="activations")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what the demo class leaves open.")
@click.pass_obj
def demo(course_of: Callable[[], Course], unit: str, seed: int) -> None:
    """Make the demo class of UNIT (default: activations), grade it, write feedback and scores."""
    from grader.feedback import write_feedback

    course = course_of()
    invented = demo_class(unit)
    release_unit(course, unit)
    learners = write_submissions(course, invented, seed)
    stock.set_due(course, unit, invented.due)
    stock.name_learners(course, learners)
    # The class is invented, so its code may run without isolation where the machine gives none.
    grade_shown(course, unit, learners, force=True, sandbox=_best_sandbox()).complain()
    _ERR.print("Writing feedback and scores")
    failed = write_feedback(course, unit, progress=tell_failed)
    stock.export_csv(course)
    Console(highlight=False).print(_score_table(unit, read_scores(course, unit)))
    if failed:
        raise FeedbackFailedError(failed, len(learners))


def _best_sandbox() -> str:
    from grader.engine.proxy import SessionLostError
    from grader.engine.sandbox import Sandbox
    from grader.engine.verdict import Limits
    from grader.exceptions import NoSandboxError

    try:
        with Sandbox(Limits()) as sandbox:
            session = sandbox.session()
            session.allow(20)
            session.run("1 + 1")
    except (NoSandboxError, SessionLostError):
        _ERR.print(
            "This machine does not isolate learner code (`grader doctor`); the invented class runs without."
        )
        return "none"
    return "full"


def _plain_check(marks: "Marks", report: "Report | None", *, passed: bool) -> dict[str, Any]:
    given = {"points": marks.points, "max_points": marks.max_points, **asdict(marks)}
    compared = None if report is None else asdict(report)
    for part in (given, compared or {}):
        part.pop("unit", None)
    return {"passed": passed, "unit": marks.unit, "marks": given, "comparison": compared}


def _show_marks(marks: "Marks") -> None:
    console = Console(highlight=False)
    table = Table(title=f"Visible tests of the unit {marks.unit}", title_justify="left")
    for heading in ("step", "tests", "points"):
        table.add_column(heading)
    for step in marks.steps:
        said = "not yet" if step.message else "passed"
        table.add_row(step.name, said, f"{step.points:g} of {step.max_points:g}")
    console.print(table)
    console.print(f"Points of the visible tests: {marks.points:g} of {marks.max_points:g}")
    remarks = [f"{step.name}: {step.message}" for step in marks.steps if step.message]
    remarks += [
        f"{step.name}: the answer {flag}; write it from scratch." for step in marks.steps for flag in step.flags
    ]
    for line in [*marks.elsewhere, *remarks, *marks.notes]:
        console.print(line, markup=False, soft_wrap=True)


def _show_report(marks: "Marks", report: "Report | None", *, passed: bool) -> None:
    """What the comparison adds to the marks."""
    console = Console(highlight=False)
    if report is not None:
        wanted = sum(len(step.reproduced) + len(step.missing) for step in report.steps)
        missing = [ident for step in report.steps for ident in step.missing]
        if wanted:
            console.print(f"Published values reproduced: {wanted - len(missing)} of {wanted}")
        if missing:
            console.print(f"Not reproduced: {', '.join(missing)}", soft_wrap=True)
        known = {step.name for step in marks.steps if step.message}
        said = [f"{step.name}: {step.message}" for step in report.steps if step.message and step.name not in known]
        said += [f"{step.name}: {step.note}" for step in report.steps if step.note]
        for line in [*(line for line in report.elsewhere if line not in marks.elsewhere), *said]:
            console.print(line, markup=False, soft_wrap=True)
    if passed:
        console.print("All visible tests pass. Hidden tests run when the exercise is graded.")


def _score_table(unit: str, found: list[Score]) -> Table:
    table = Table(title=f"Scores of the unit {unit}", title_justify="left")
    for heading, justify in (("learner", "left"), ("points", "right"), ("of", "right"), ("remark", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for score in found:
        remarks = [score.status] if score.status not in ("", "graded") else []
        remarks += ["graded without isolation"] if score.sandbox == "none" else []
        remarks += [f"{score.hours_late:.0f} h late"] if score.hours_late > 0 else []
        remarks += [f"{score.late_penalty:g} points off"] if score.late_penalty > 0 else []
        remarks += [f"extension until {score.extended_until}"] if score.extended_until else []
        remarks += ["written answer to be graded"] if score.waits_for_person else []
        remarks += [f"look at {flag}" for flag in score.flags]
        table.add_row(
            escape(score.learner), f"{score.points:g}", f"{score.max_points:g}", escape(", ".join(remarks))
        )
    return table


cli.add_command(autograde)
cli.add_command(collect)
cli.add_command(diff)
cli.add_command(due)
cli.add_command(extension)
cli.add_command(export)
cli.add_command(feedback)
cli.add_command(report)


def main() -> None:
    """Run the command line; every expected fault is one sentence on stderr and exit status 1."""
    try:
        cli(standalone_mode=True)
    except GraderError as error:
        _ERR.print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(1)
    except Exception as error:
        # Only where a command works on the gradebook through nbgrader, which raises what the database does.
        if "sqlalchemy" not in sys.modules:
            raise
        from grader.engine.gradebook import fault_of

        fault = fault_of(error)
        if fault is None:
            raise
        _ERR.print(f"error: {fault}", markup=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
