"""Primitives on segments, edges and sparse matrices, behind one dispatch."""

from __future__ import annotations

from pyg_pool.kernels.coalesce import coalesce
from pyg_pool.kernels.components import connected_components
from pyg_pool.kernels.dispatch import (
    available_backends,
    current_backend,
    use_backend,
    warm_up,
)
from pyg_pool.kernels.edges import filter_edges, incident_edges
from pyg_pool.kernels.pnorm import segment_pnorm
from pyg_pool.kernels.product import sparse_product
from pyg_pool.kernels.scatter import put_rows, take_rows
from pyg_pool.kernels.segment import (
    segment_extreme,
    segment_reduce,
    segment_softmax,
)
from pyg_pool.kernels.segment_attention import segment_attention
from pyg_pool.kernels.topk import topk

__all__ = [
    "available_backends",
    "coalesce",
    "connected_components",
    "current_backend",
    "filter_edges",
    "incident_edges",
    "put_rows",
    "segment_attention",
    "segment_extreme",
    "segment_pnorm",
    "segment_reduce",
    "segment_softmax",
    "sparse_product",
    "take_rows",
    "topk",
    "use_backend",
    "warm_up",
]
