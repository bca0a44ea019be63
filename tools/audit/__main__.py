"""Audit the exercises and their grading: python -m tools.audit [UNIT]... (make audit).

Prints a table of all units and what is not as it should be, then a table of the hostile submissions, and writes
_build/audit.json. Exit status 1 where a bar is missed: every misconception rejected, 95 % named and none misnamed, ten
alternatives of every function with full marks, 95 % of the mutants caught and every survivor with a reason; and where
the grading engine is wrong on a hostile submission. Units that are named are audited alone.
"""

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ffn.misconceptions import UNITS
from tools.audit.figures import Audit, audit
from tools.audit.hostile import HostileError, case_names, grade_cases, hostile_figures, show_rows, summary
from tools.places import BUILD

HEADINGS = ("unit", "wrong ways", "rejected", "named", "misnamed", "right ways", "full marks", "mutants", "caught")


def audit_all(names: Sequence[str]) -> Iterator[tuple[str, Audit]]:
    """Audit several units, as many at a time as there are processors."""
    if len(names) == 1:
        yield names[0], audit(names[0])
        return
    # Not forked: the progress bar runs in a thread.
    workers, fresh = min(len(names), os.cpu_count() or 1), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=workers, mp_context=fresh) as pool:
        yield from zip(names, pool.map(audit, names), strict=True)


def show(counts: Mapping[str, Audit], console: Console) -> None:
    """Print the table of the units, and of all together."""
    table = Table(title="Audit of the exercises", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "unit" else "right")
    for name, count in counts.items():
        figures = [*count.misconceptions.values(), *count.alternatives.values(), *count.mutants.values()]
        table.add_row(name, *map(str, figures))
    console.print(table)


def store(figures: Mapping[str, Any], target: Path) -> None:
    """Write the figures, and leave what else the file holds."""
    try:
        known = dict(json.loads(target.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        known = {}
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(known | dict(figures), indent=2) + "\n", encoding="utf-8")


def audit_units(chosen: Sequence[str], console: Console) -> Audit:
    """Audit units and print the table, and below it what is not as it should be.

    Raises:
        ModuleNotFoundError, FileNotFoundError: a part of a unit is missing.
    """
    total, counts = Audit(), {}
    terminal = Console(stderr=True)
    with Progress(console=terminal, disable=not terminal.is_terminal, transient=True) as bar:
        task = bar.add_task("Auditing", total=len(chosen))
        for name, found in audit_all(chosen):
            counts[name] = found
            total.add(found)
            bar.advance(task)
    show({**counts, "all": total}, console)
    for line in [*total.faults, *total.bars_missed]:
        console.print(line, markup=False, soft_wrap=True)
    return total


def audit_hostile(chosen: Sequence[str], console: Console) -> dict[str, int]:
    """Grade hostile submissions with the engine and with stock nbgrader, print the table and return the figures.

    Raises:
        HostileError: they cannot be graded here.
    """
    rows = grade_cases(chosen, Console(stderr=True))
    show_rows(rows, console)
    console.print(summary(rows), markup=False, soft_wrap=True)
    return hostile_figures(rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit what is asked for, and store the figures of what was audited as a whole."""
    options = _parser().parse_args(arguments)
    asked_units, asked_cases = (list(dict.fromkeys(names)) for names in (options.units, options.case))
    refused = _refused(options, asked_units, asked_cases)
    if refused:
        sys.stderr.write(f"error: {refused}\n")
        return 2
    only_hostile = options.hostile or bool(asked_cases)
    units = [] if only_hostile else asked_units or list(UNITS)
    cases = asked_cases or ([] if asked_units or options.no_hostile else case_names())
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    met = True
    figures: dict[str, Any] = {}
    try:
        if units:
            total = audit_units(units, console)
            met = total.met()
            figures |= total.figures() if units == list(UNITS) else {}
        if cases:
            counts = audit_hostile(cases, console)
            met &= counts["right"] == counts["total"]
            figures |= {} if asked_cases else {"hostile": counts}
        else:
            console.print("The hostile submissions were left out.")
    except (ModuleNotFoundError, FileNotFoundError) as error:
        sys.stderr.write(f"error: a part of a unit is missing: {error}.\n")
        return 2
    except HostileError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    finally:
        if figures:
            store(figures, BUILD / "audit.json")
    return 0 if met else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.audit",
        description="What the exercises' tests and their grading are worth.",
    )
    parser.add_argument("units", nargs="*", metavar="UNIT", help=f"units to audit (default: {', '.join(UNITS)})")
    parser.add_argument("--hostile", action="store_true", help="grade the hostile submissions only")
    parser.add_argument("--no-hostile", action="store_true", help="audit the units only")
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="NAME",
        help="grade this hostile submission only; may be repeated",
    )
    return parser


def _refused(options: argparse.Namespace, units: Sequence[str], cases: Sequence[str]) -> str:
    """Why what was asked for cannot be done, or nothing."""
    unknown = [name for name in units if name not in UNITS]
    if unknown:
        return f"there is no unit {unknown[0]!r}; the units are: {', '.join(UNITS)}."
    strangers = [name for name in cases if name not in case_names()]
    if strangers:
        return f"there is no hostile submission {strangers[0]!r}; they are the files of tests/hostile/cases."
    if options.no_hostile and (options.hostile or cases):
        return "--no-hostile leaves out what --hostile and --case ask for; give one of them."
    if units and (options.hostile or cases):
        return "--hostile and --case leave the units out; name no unit beside them."
    return ""


if __name__ == "__main__":
    sys.exit(main())
