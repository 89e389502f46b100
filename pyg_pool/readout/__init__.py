"""Readouts: a set of rows to one row, as aggregations of PyTorch Geometric."""

from __future__ import annotations

from pyg_pool.core.history_cache import HistoryBatch, HistoryCache
from pyg_pool.readout.glot import GLOTAggregation, GLOTOutput
from pyg_pool.readout.gnp import GNPAggregation, parameter_groups
from pyg_pool.readout.histograph import HistographAggregation, HistographOutput
from pyg_pool.readout.history import collect_history
from pyg_pool.readout.norm import gnp
from pyg_pool.readout.token_graph import token_graph

__all__ = [
    "GLOTAggregation",
    "GLOTOutput",
    "GNPAggregation",
    "HistographAggregation",
    "HistographOutput",
    "HistoryBatch",
    "HistoryCache",
    "collect_history",
    "gnp",
    "parameter_groups",
    "token_graph",
]
