"""Selection, reduce, connect, lift: what all pooling operators share."""

from __future__ import annotations

from pyg_pool.core.connect import connect
from pyg_pool.core.hierarchy import Hierarchy, Level
from pyg_pool.core.hierarchy_data import HierarchyData
from pyg_pool.core.lift import lift
from pyg_pool.core.pooling import Pooling, PoolOutput
from pyg_pool.core.reduce import reduce
from pyg_pool.core.select import Selection

__all__ = [
    "Hierarchy",
    "HierarchyData",
    "Level",
    "PoolOutput",
    "Pooling",
    "Selection",
    "connect",
    "lift",
    "reduce",
]
