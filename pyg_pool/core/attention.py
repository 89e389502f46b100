"""Attention over edges for the layers of the models room."""

from __future__ import annotations

from pyg_pool.kernels.attention import attend, edge_softmax

__all__ = ["attend", "edge_softmax"]
