"""Whole networks, put together from the operators of the library."""

from __future__ import annotations

from pyg_pool.models.convs import ColumnStochasticConv, MeanSkipConv, SymmetricConv
from pyg_pool.models.graph_unet import GraphUNet, GraphUNetOutput
from pyg_pool.models.hierarchical_classifier import (
    HierarchicalClassifier,
    HierarchicalOutput,
)

__all__ = [
    "ColumnStochasticConv",
    "GraphUNet",
    "GraphUNetOutput",
    "HierarchicalClassifier",
    "HierarchicalOutput",
    "MeanSkipConv",
    "SymmetricConv",
]
