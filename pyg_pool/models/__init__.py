"""Whole networks, put together from the operators of the library."""

from __future__ import annotations

from pyg_pool.mesh import PrimalDualConv, PrimalDualConvOutput
from pyg_pool.models.convs import ColumnStochasticConv, MeanSkipConv, SymmetricConv
from pyg_pool.models.gpn import GraphParsingNetwork, GraphParsingOutput
from pyg_pool.models.graph_unet import GraphUNet, GraphUNetOutput
from pyg_pool.models.hierarchical_classifier import (
    HierarchicalClassifier,
    HierarchicalOutput,
)
from pyg_pool.models.history_gnn import HistoryGNN
from pyg_pool.models.id_mpnn import IDMPNN
from pyg_pool.models.id_ppgn import IDPPGN
from pyg_pool.models.kl_gnn import KLGNN
from pyg_pool.models.kl_local import LocalKLGNN
from pyg_pool.models.pd_mesh_net import (
    MeshClassifier,
    MeshOutput,
    MeshSegmenter,
    MeshUNet,
)

__all__ = [
    "IDMPNN",
    "IDPPGN",
    "KLGNN",
    "ColumnStochasticConv",
    "GraphParsingNetwork",
    "GraphParsingOutput",
    "GraphUNet",
    "GraphUNetOutput",
    "HierarchicalClassifier",
    "HierarchicalOutput",
    "HistoryGNN",
    "LocalKLGNN",
    "MeanSkipConv",
    "MeshClassifier",
    "MeshOutput",
    "MeshSegmenter",
    "MeshUNet",
    "PrimalDualConv",
    "PrimalDualConvOutput",
    "SymmetricConv",
]
