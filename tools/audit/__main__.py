"""Audit the exercises: python -m tools.audit [UNIT]... (make audit).

Prints a table of all units, then what is not as it should be, and writes _build/audit.json. Exit status 1 where a bar
is missed: every misconception rejected, 95 % named and none misnamed, ten alternatives of every function with full
marks, 95 % of the mutants caught and every survivor with a reason.
"""

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ffn.misconceptions import UNITS
from tools.audit.figures import Audit, audit
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


def store(total: Audit, target: Path) -> None:
    """Write the figures, and leave what else the file holds."""
    try:
        known = dict(json.loads(target.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        known = {}
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(known | total.figures(), indent=2) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit the units and print the table."""
    parser = argparse.ArgumentParser(prog="make audit", description="What the exercises' tests are worth.")
    parser.add_argument("units", nargs="*", metavar="UNIT", help=f"units to audit (default: {', '.join(UNITS)})")
    chosen = list(dict.fromkeys(parser.parse_args(arguments).units)) or list(UNITS)
    unknown = [name for name in chosen if name not in UNITS]
    if unknown:
        sys.stderr.write(f"error: there is no unit {unknown[0]!r}; the units are: {', '.join(UNITS)}.\n")
        return 2
    total, counts = Audit(), {}
    terminal = Console(stderr=True)
    try:
        with Progress(console=terminal, disable=not terminal.is_terminal, transient=True) as bar:
            task = bar.add_task("Auditing", total=len(chosen))
            for name, found in audit_all(chosen):
                counts[name] = found
                total.add(found)
                bar.advance(task)
    except (ModuleNotFoundError, FileNotFoundError) as error:
        sys.stderr.write(f"error: a part of a unit is missing: {error}.\n")
        return 2
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    show({**counts, "all": total}, console)
    for line in [*total.faults, *total.bars_missed]:
        console.print(line, markup=False, soft_wrap=True)
    if chosen == list(UNITS):
        store(total, BUILD / "audit.json")
    return 0 if total.met() else 1


if __name__ == "__main__":
    sys.exit(main())
