"""Build what runs in the browser, below the built book; nothing is done where nothing has changed.

python -m tools.live
"""

import sys

from rich.console import Console

from tools.live import step
from tools.live.exceptions import LiveError
from tools.places import HTML


def main() -> int:
    """Build; exit status 1 with one sentence where that is not possible."""
    console = Console(stderr=True, highlight=False)
    try:
        if not (HTML / "index.html").exists():
            raise LiveError("the book is not built yet; run `make book` first.")
        step.build(console)
    except LiveError as error:
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
