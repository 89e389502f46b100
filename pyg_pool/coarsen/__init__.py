"""Coarsening of whole graphs, offline: clusters that keep spectrum and geometry."""

from __future__ import annotations

from pyg_pool.coarsen.api import coarsen, from_labels
from pyg_pool.coarsen.batch import coarsen_batch
from pyg_pool.coarsen.build import graph_from_edges, graph_from_rows
from pyg_pool.coarsen.coarsening import Coarsening
from pyg_pool.coarsen.graph import Graph
from pyg_pool.coarsen.gw import gw_distance, heat_trace
from pyg_pool.coarsen.quality import Quality
from pyg_pool.coarsen.read import read_graph

__all__ = [
    "Coarsening",
    "Graph",
    "Quality",
    "coarsen",
    "coarsen_batch",
    "from_labels",
    "graph_from_edges",
    "graph_from_rows",
    "gw_distance",
    "heat_trace",
    "read_graph",
]
