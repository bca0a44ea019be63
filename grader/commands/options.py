"""Options that the commands share which grade: where, by how many, and how learner code is kept apart."""

import re
from collections.abc import Callable
from typing import Any

import click

__all__ = ["grading_options", "require_one_place"]

_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d{1,5}")


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _ADDRESS.fullmatch(value):
        raise click.BadParameter(f"{value!a} is no address of a Dask scheduler; one is tcp://localhost:8786.")
    return value


_OPTIONS = (
    click.option(
        "--sandbox",
        type=click.Choice(["full", "none"]),
        default="full",
        show_default=True,
        help="How learner code is kept apart; none runs it with your rights, for code that you trust.",
    ),
    click.option("--workers", type=click.IntRange(1, 64), help="Submissions at a time (default: one a core)."),
    click.option(
        "--scheduler", metavar="ADDRESS", callback=_address, help="Grade on the Dask cluster at this address."
    ),
)


def grading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--sandbox``, ``--workers`` and ``--scheduler``, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def require_one_place(workers: int | None, scheduler: str | None) -> None:
    """Check that a number of workers is not asked of a cluster.

    Raises:
        click.UsageError: both were given.
    """
    if scheduler is not None and workers is not None:
        raise click.UsageError("--workers is for this machine; a Dask cluster has the workers that were started.")
