"""What stops the build of the browser part, each as one sentence that says what to do."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["LiveError"]

_LEAVE_OUT = "or leave the browser part out with LIVE=0"


class LiveError(Exception):
    """The browser part was not built; the message names the file or the step, and what to do."""

    @classmethod
    def wrong_in_cache(cls, path: Path) -> "LiveError":
        """A file in the cache is not the one that is asked for."""
        return cls(
            f"{path} is not the file that was published under this name (its digest differs); "
            "delete it and run the command again."
        )

    @classmethod
    def wrong_from(cls, name: str, carrier: str) -> "LiveError":
        """A carrier delivered other bytes than those asked for."""
        return cls(
            f"{name} from {carrier} is not the file that was published under this name (its digest differs), and "
            f"was not kept; run the command again later, {_LEAVE_OUT}."
        )

    @classmethod
    def missing(cls, names: Sequence[str], carriers: Sequence[str], cache: Path) -> "LiveError":
        """No carrier delivered these files."""
        first, more = names[0], len(names) - 1
        what = first if not more else f"{first} and {more} other file{'s' if more > 1 else ''}"
        return cls(
            f"{what} could not be fetched ({', '.join(carriers)}); check the network and run the command again, "
            f"put {'it' if not more else 'them'} into {cache}, {_LEAVE_OUT}."
        )

    @classmethod
    def unknown_package(cls, name: str) -> "LiveError":
        """A root, or what it depends on, is not in Pyodide's lock."""
        return cls(f"Pyodide's lock has no package {name}; correct the roots in tools/live/pins.py.")

    @classmethod
    def too_large(cls, path: Path, size: int) -> "LiveError":
        """A file that static hosts refuse."""
        return cls(f"{path.name} has {size:,} bytes, more than static hosts take; find what made it grow.")

    @classmethod
    def no_source(cls, source: str) -> "LiveError":
        """A file that data.toml names is not in the course."""
        return cls(f"{source} is not there, and tools/live/data.toml names it; correct the list.")

    @classmethod
    def step_failed(cls, step: str, lines: Sequence[str]) -> "LiveError":
        """A program that was started failed; its last lines follow."""
        return cls("\n".join([f"{step} failed; what it said last:", *lines]))
