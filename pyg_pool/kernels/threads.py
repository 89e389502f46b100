"""A thread pool per process for kernels that hold no lock.

A process made by fork starts with a pool of its own: threads do not survive a fork,
and a pool that waits for those of the parent would wait for ever. Worker processes of
data loaders run with one thread and never make one.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

__all__ = ["run_spans", "shared", "spans"]

# Elements from which a second thread pays.
PARALLEL_FROM = 1 << 17
# Floats of one cache line: no two threads write to the same one.
LINE = 16

_pool: ThreadPoolExecutor | None = None


def _forget() -> None:
    """Drops the pool without waiting for its threads."""
    global _pool
    _pool = None


os.register_at_fork(after_in_child=_forget)


def _workers() -> ThreadPoolExecutor:
    """The pool of this process."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(os.cpu_count() or 1, "pyg_pool")
    return _pool


def spans(length: int, elements: int, *, step: int = 1) -> list[tuple[int, int]]:
    """Cuts a range into one span per thread, at multiples of ``step``.

    Args:
        length: Length of the range.
        elements: Size of the work, below which one thread does all.
        step: What each span but the last is a multiple of.

    Returns:
        Starts and stops.

    Example:
        >>> from pyg_pool.kernels.threads import spans
        >>> spans(100, 10)
        [(0, 100)]
    """
    threads = torch.get_num_threads() if elements >= PARALLEL_FROM else 1
    blocks = -(-length // step)
    parts = max(1, min(threads, blocks))
    cuts = [min(length, part * blocks // parts * step) for part in range(parts + 1)]
    return list(itertools.pairwise(cuts))


def run_spans(function: Callable[..., Any], parts: list[tuple[int, int]]) -> None:
    """Calls ``function(start, stop)`` for every span, in threads if there are several.

    Example:
        >>> from pyg_pool.kernels.threads import run_spans
        >>> seen = []
        >>> run_spans(lambda start, stop: seen.append((start, stop)), [(0, 3)])
        >>> seen
        [(0, 3)]
    """
    if len(parts) == 1:
        function(*parts[0])
        return
    pool = _workers()
    others = [pool.submit(function, *part) for part in parts[1:]]
    function(*parts[0])
    for other in others:
        other.result()


def shared(
    run: Callable[..., Any], length: int, elements: int, *args: Any, step: int = LINE
) -> None:
    """Calls ``run(start, stop, *args)`` for spans that cover a range, in threads.

    Args:
        run: A kernel that takes a span.
        length: Length of the range.
        elements: Size of the work, below which one thread does all.
        args: What else the kernel takes.
        step: What each span but the last is a multiple of.

    Example:
        >>> from pyg_pool.kernels.threads import shared
        >>> shared(print, 3, 3, "a")
        0 3 a
    """
    if elements < PARALLEL_FROM or torch.get_num_threads() == 1:
        run(0, length, *args)
        return
    parts = spans(length, elements, step=step)
    run_spans(lambda start, stop: run(start, stop, *args), parts)
