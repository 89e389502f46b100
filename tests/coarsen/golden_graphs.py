"""The stored coarsening values and the graphs they belong to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from pyg_pool.coarsen import Graph, graph_from_edges

FOLDER = Path(__file__).parent.parent / "golden" / "coarsening"


def stored(pattern: str) -> list[str]:
    found = sorted(path.stem for path in FOLDER.glob(f"{pattern}.json"))
    if not found:
        raise FileNotFoundError(f"no golden {pattern}.json in {FOLDER}")
    return found


def read(name: str) -> dict[str, Any]:
    out: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return out


def graph_of(inputs: dict[str, Any]) -> Graph:
    """The graph of a golden; its edges are listed once, self loops too."""
    row, col = np.array(inputs["edge_index_undirected"], dtype=np.int64).reshape(2, -1)
    weight = np.array(inputs.get("edge_weight") or np.ones(row.size), dtype=np.float64)
    other = row != col
    both = (np.concatenate([row, col[other]]), np.concatenate([col, row[other]]))
    weights = np.concatenate([weight, weight[other]])
    return graph_from_edges(*both, weights, num_nodes=inputs["num_nodes"])
