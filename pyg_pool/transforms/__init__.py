"""Transforms of PyTorch Geometric that prepare graphs for the operators here."""

from __future__ import annotations

from pyg_pool.transforms.coarsen import Coarsen
from pyg_pool.transforms.kl_tuples import KLData, KLTuples

__all__ = ["Coarsen", "KLData", "KLTuples"]
