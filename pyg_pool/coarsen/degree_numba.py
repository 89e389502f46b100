"""Compiled loop that finds best partners by degree alone.

Without weights, self loops and other masses than degrees, all of a node's costs are
``1 - 2 / (c_i + c_j)``, so that the neighbour of least degree is the best one; two
bytes for each node tell all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
# Degrees beyond count as this one; what is taken is above all of them.
MOST, TAKEN = 65534, 65535
_ODD = 0x9E3779B1
GOLDEN = np.uint32(_ODD)
_INVERSE = np.uint32(pow(_ODD, -1, 1 << 32))


@njit(nogil=True, cache=True)
def least_degrees(
    bounds: tuple[int, int],
    indptr: Array,
    indices: Array,
    degree: Array,
    best: Array,
    seed: int,
) -> None:
    """The neighbour of least degree of each free node, or -1; by a hash on ties.

    A partner found earlier that is still free stays the best one. The hash can be
    undone, so that the least of degree and hash in one integer names the neighbour.
    """
    start, half, low = np.uint32(tie_start(seed)), np.int64(32), np.int64(0xFFFFFFFF)
    nothing = np.int64(TAKEN) << half
    for i in range(bounds[0], bounds[1]):
        k = np.uintp(i)
        b = best[k]
        if degree[k] == TAKEN or (b >= 0 and degree[np.uintp(b)] != TAKEN):
            continue
        least, name = nothing, np.uint32(i)
        for e in range(np.uintp(indptr[k]), np.uintp(indptr[k + np.uintp(1)])):
            j = np.uint32(indices[e])
            tie = np.uint32(np.uint32(np.uint32(name ^ j) * GOLDEN) + start)
            least = min(least, (np.int64(degree[np.uintp(j)]) << half) | np.int64(tie))
        tie = np.uint32(np.uint32(least & low) - start)
        name ^= np.uint32(tie * _INVERSE)
        best[k] = np.int64(name) if least < nothing else -1


@njit(nogil=True, cache=True)
def tie_start(seed: int) -> int:
    """What is added to the hash of a pair, which is in order of its last 32 bits.

    For a seed of 0, neighbours whose numbers differ in the last bit alone come first:
    rings, paths and grids in their usual order then fall into pairs.
    """
    product: Any = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    start: Any = np.int64(product >> np.uint64(32)) - np.int64(_ODD)
    return start
