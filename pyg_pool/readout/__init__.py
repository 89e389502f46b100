"""Readouts: a set of rows to one row, as aggregations of PyTorch Geometric."""

from __future__ import annotations

from pyg_pool.readout.gnp import GNPAggregation, parameter_groups
from pyg_pool.readout.norm import gnp

__all__ = ["GNPAggregation", "gnp", "parameter_groups"]
