"""Label some nodes, run a network on the copies, pool over the choices: k,l-WL."""

from __future__ import annotations

from pyg_pool.relational.context import ContextGIN
from pyg_pool.relational.conv import RelationalPooling
from pyg_pool.relational.copies import Copies, expand_copies
from pyg_pool.relational.cost import Cost, estimate_cost
from pyg_pool.relational.ensemble import sampled_median
from pyg_pool.relational.fwl import FWLConv, FWLNet
from pyg_pool.relational.gin import CopyGIN, ResidualConv, residual_mlp
from pyg_pool.relational.graph6 import from_graph6
from pyg_pool.relational.labels import label_features, label_width
from pyg_pool.relational.local import local_stars
from pyg_pool.relational.pooling import CopyPooling
from pyg_pool.relational.presets import PRESETS, preset_options, wl_options
from pyg_pool.relational.refine import WLDetails, kl_wl, kl_wl_details
from pyg_pool.relational.tuples import (
    TupleSet,
    enumerate_tuples,
    find_tuples,
    lay_ground,
)

__all__ = [
    "PRESETS",
    "ContextGIN",
    "Copies",
    "CopyGIN",
    "CopyPooling",
    "Cost",
    "FWLConv",
    "FWLNet",
    "RelationalPooling",
    "ResidualConv",
    "TupleSet",
    "WLDetails",
    "enumerate_tuples",
    "estimate_cost",
    "expand_copies",
    "find_tuples",
    "from_graph6",
    "kl_wl",
    "kl_wl_details",
    "label_features",
    "label_width",
    "lay_ground",
    "local_stars",
    "preset_options",
    "residual_mlp",
    "sampled_median",
    "wl_options",
]
