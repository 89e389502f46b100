"""A pool of threads for compiled loops that release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """Runs functions on ranges, in order of the ranges; nothing starts for one thread.

    Args:
        count: Number of threads; ``None`` takes all cores that the process may use.
    """

    def __init__(self, count: int | None = None) -> None:
        if count is not None and count < 1:
            raise ValueError(
                f"coarsen got num_threads={count}, expected at least 1; leave it out "
                f"to use all cores."
            )
        self.count = count if count is not None else _cores()
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Threads:
        """Ready to be used in a ``with`` block."""
        return self

    def __exit__(self, *args: Any) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def map(self, work: Callable[[Any], T], items: Sequence[Any]) -> list[T]:
        """Results of ``work`` on each item, in order."""
        if self.count == 1 or len(items) < 2:
            return [work(item) for item in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.count)
        return list(self._pool.map(work, items))

    def ranges(self, size: int, least: int = 4096) -> list[tuple[int, int]]:
        """Ranges that together cover ``size``, a few for each thread."""
        parts = 1 if self.count == 1 else 4 * self.count
        step = max(least, -(-size // parts))
        return [(first, min(first + step, size)) for first in range(0, size, step)]


def _cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
