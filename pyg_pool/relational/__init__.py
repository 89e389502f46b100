"""Label some nodes, run a network on the copies, pool over the choices: k,l-WL."""

from __future__ import annotations

from pyg_pool.relational.refine import WLDetails, kl_wl, kl_wl_details
from pyg_pool.relational.tuples import TupleSet, enumerate_tuples, find_tuples

__all__ = [
    "TupleSet",
    "WLDetails",
    "enumerate_tuples",
    "find_tuples",
    "kl_wl",
    "kl_wl_details",
]
