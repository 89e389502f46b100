"""Four times as many channels at once, so that a row is read and written in order.

A loop over some rows for few channels jumps from row to row; writes that jump cost
several times as much as writes in order, and several exponentials side by side hide
how long each takes.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from pyg_pool.kernels.exponential_numba import exp, exp_down
from pyg_pool.kernels.lanes_numba import add_up, below, pick
from pyg_pool.kernels.segment_numba import four
from pyg_pool.kernels.softmax_numba import not_zero, shift_of

__all__ = [
    "all_exp", "all_exp_down", "all_not_zero", "all_shift_of", "divided", "larger",
    "minus", "product", "same", "times",
]  # fmt: skip


@njit(inline="always")
def same(value: Any) -> Any:
    """The same lanes four times."""
    return value, value, value, value


@njit(inline="always")
def minus(a: Any, b: Any) -> Any:
    """Differences."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3]


@njit(inline="always")
def times(a: Any, b: Any) -> Any:
    """Products."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]


@njit(inline="always")
def divided(a: Any, b: Any) -> Any:
    """Quotients."""
    return a[0] / b[0], a[1] / b[1], a[2] / b[2], a[3] / b[3]


@njit(inline="always")
def larger(a: Any, b: Any) -> Any:
    """The larger, the first where either is NaN."""
    return (
        pick(below(a[0], b[0]), b[0], a[0]), pick(below(a[1], b[1]), b[1], a[1]),
        pick(below(a[2], b[2]), b[2], a[2]), pick(below(a[3], b[3]), b[3], a[3]),
    )  # fmt: skip


@njit(inline="always")
def all_exp(a: Any) -> Any:
    """Exponentials."""
    return exp(a[0]), exp(a[1]), exp(a[2]), exp(a[3])


@njit(inline="always")
def all_exp_down(a: Any) -> Any:
    """Exponentials of what is not above 0."""
    return exp_down(a[0]), exp_down(a[1]), exp_down(a[2]), exp_down(a[3])


@njit(inline="always")
def all_shift_of(a: Any) -> Any:
    """What to take off before the exponential, see ``shift_of``."""
    return shift_of(a[0]), shift_of(a[1]), shift_of(a[2]), shift_of(a[3])


@njit(inline="always")
def all_not_zero(a: Any) -> Any:
    """Sums with 1 for 0."""
    return not_zero(a[0]), not_zero(a[1]), not_zero(a[2]), not_zero(a[3])


@njit(inline="always")
def product(a: Any, x: Any, at: int) -> Any:
    """Sum of products with neighbouring numbers."""
    b = times(a, four(x, at))
    return add_up((b[0] + b[1]) + (b[2] + b[3]))
