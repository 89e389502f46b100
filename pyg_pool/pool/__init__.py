"""Operators that turn a graph into a smaller one."""

from __future__ import annotations

from pyg_pool.pool.gpool import GPool
from pyg_pool.pool.graph_parsing import GraphParsingPooling
from pyg_pool.pool.gunpool import GUnpool
from pyg_pool.pool.primal_dual import PrimalDualPooling, PrimalDualPoolOutput
from pyg_pool.pool.primal_dual_unpooling import PrimalDualUnpooling
from pyg_pool.pool.pyg_form import as_pyg_tuple
from pyg_pool.pool.score_levels import parse_levels

__all__ = [
    "GPool",
    "GUnpool",
    "GraphParsingPooling",
    "PrimalDualPoolOutput",
    "PrimalDualPooling",
    "PrimalDualUnpooling",
    "as_pyg_tuple",
    "parse_levels",
]
