"""A Dask cluster inside this process: a scheduler and a worker that talk through memory, and to nobody else.

Import it late: it imports Dask.
"""

import logging
from typing import Any

from distributed import Scheduler, SpecCluster, Worker

__all__ = ["local_cluster"]


class _Scheduler(Scheduler):
    """A scheduler without an HTTP server: Dask's own opens a port even where its dashboard is off."""

    def start_http_server(self, *arguments: Any, **more: Any) -> None:
        """Start nothing."""


class _Worker(Worker):
    """A worker without an HTTP server."""

    def start_http_server(self, *arguments: Any, **more: Any) -> None:
        """Start nothing."""


def local_cluster(threads: int, folder: str) -> SpecCluster:
    """A cluster of one worker with some threads; what it keeps on disk is below ``folder``."""
    worker = {
        "nthreads": threads,
        "protocol": "inproc://",
        "memory_limit": 0,
        "local_directory": folder,
        "dashboard": False,
        "silence_logs": logging.CRITICAL,
    }
    return SpecCluster(  # type: ignore[no-untyped-call]
        workers={0: {"cls": _Worker, "options": worker}},
        scheduler={"cls": _Scheduler, "options": {"protocol": "inproc://", "dashboard": False}},
        silence_logs=logging.CRITICAL,
    )
