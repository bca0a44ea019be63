"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path

from grader.exceptions import CannotWriteError

__all__ = ["write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Put a file in its place when all of it is written; its folder is made if it is missing.

    Raises:
        CannotWriteError: the folder is closed, the disk is full, or a folder has the file's name.
    """
    draft: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix=f".{path.name[:50]}-", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        # What mkstemp makes only its owner can read, and the instructors' group may share the results.
        Path(draft).chmod(0o644)
        Path(draft).replace(path)
    except (FileExistsError, NotADirectoryError) as error:
        raise CannotWriteError(path, "its folder is a file") from error
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise CannotWriteError(path, (error.strerror or type(error).__name__).lower()) from error
