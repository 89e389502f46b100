"""From which size the compiled CPU twins are faster, measured on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.kernels.coalesce import coalesce
from pyg_pool.kernels.dispatch import NUMBA_FROM, use_backend
from pyg_pool.kernels.pnorm import segment_pnorm
from pyg_pool.kernels.segment import segment_reduce, segment_softmax
from pyg_pool.kernels.segment_attention import segment_attention
from pyg_pool.kernels.topk import topk

__all__ = ["Crossover", "measure_crossovers"]

CHANNELS = 16
SIZES = tuple(1 << power for power in range(8, 20, 2))
REPEATS = 7


@dataclass(frozen=True)
class Crossover:
    """Where a twin starts to pay.

    Args:
        primitive: Key of the table of sizes.
        measured: Smallest measured size from which the twin is faster, ``None`` if
            it never is.
        used: The size from which the twin is used.
        gain: How many times faster the twin is at the largest measured size.
    """

    primitive: str
    measured: int | None
    used: int
    gain: float


def _step(run: Callable[[Tensor, Tensor], Tensor]) -> Callable[[int], None]:
    """Forward and backward over so many elements in segments of 25 rows."""

    def step(size: int) -> None:
        rows = max(1, size // CHANNELS)
        x = torch.ones(rows, CHANNELS, requires_grad=True)
        run(x, torch.arange(rows) // 25).sum().backward()

    return step


def _pick(size: int) -> None:
    topk(torch.arange(size).sin(), 0.5, batch=torch.arange(size) // 25)


def _merge(size: int) -> None:
    ends = torch.arange(2 * size).view(2, -1) % max(1, size // 4)
    coalesce(ends, torch.ones(size))


STEPS: dict[str, Callable[[int], None]] = {
    "segment_reduce": _step(lambda x, i: segment_reduce(x, i, reduce="max")),
    "segment_softmax": _step(lambda x, i: segment_softmax(x, i)),
    "segment_attention": _step(lambda x, i: segment_attention(x, x, i)),
    "segment_pnorm": _step(lambda x, i: segment_pnorm(x, 2.0, 0.5, i)),
    "topk": _pick,
    "coalesce": _merge,
}


def _seconds(step: Callable[[int], None], size: int, name: str) -> float:
    """The best of several runs in one backend."""
    best = float("inf")
    with use_backend(name):  # type: ignore[arg-type]
        step(size)
        for _ in range(REPEATS):
            start = time.perf_counter()
            step(size)
            best = min(best, time.perf_counter() - start)
    return best


def measure_crossovers(sizes: tuple[int, ...] = SIZES) -> list[Crossover]:
    """Times native operations against the compiled twins; a few seconds.

    Args:
        sizes: Numbers of elements or edges to measure, ascending.

    Returns:
        One entry per primitive.

    Example:
        >>> from pyg_pool.kernels.crossover import measure_crossovers
        >>> [c.primitive for c in measure_crossovers((64,))][:2]
        ['segment_reduce', 'segment_softmax']
    """
    out = []
    for primitive, step in STEPS.items():
        gains = [
            _seconds(step, size, "native") / _seconds(step, size, "numba")
            for size in sizes
        ]
        pays = [all(gain > 1 for gain in gains[k:]) for k in range(len(sizes))]
        first = sizes[pays.index(True)] if any(pays) else None
        out.append(Crossover(primitive, first, NUMBA_FROM[primitive], gains[-1]))
    return out
