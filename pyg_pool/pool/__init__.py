"""Operators that turn a graph into a smaller one."""

from __future__ import annotations

from pyg_pool.pool.gpool import GPool
from pyg_pool.pool.graph_parsing import GraphParsingPooling
from pyg_pool.pool.gunpool import GUnpool
from pyg_pool.pool.pyg_form import as_pyg_tuple

__all__ = ["GPool", "GUnpool", "GraphParsingPooling", "as_pyg_tuple"]
