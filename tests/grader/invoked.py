"""The command `grader` run in the tests' own process, which spares each command its start."""

import subprocess

from click.testing import CliRunner

from grader.cli import cli
from grader.exceptions import GraderError
from tests.helpers import CourseCopy

__all__ = ["invoked"]


def invoked(copy: CourseCopy, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """What `grader ARGUMENTS` comes to in a copy of the course; a fault that it does not expect is raised."""
    result = CliRunner().invoke(cli, ["--course", str(copy.root), *arguments], prog_name="grader")
    said, code = result.stderr, result.exit_code
    if isinstance(result.exception, GraderError):
        # As grader.cli.main says it.
        said, code = f"{said}error: {result.exception}\n", 1
    elif result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, code, result.stdout, said)
