"""Graphs from graph6 text, and the stored names of tests as options."""

from __future__ import annotations

from functools import cache
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Data

#: Options of ``kl_wl`` for each test that the stored tables name.
TESTS: dict[str, dict[str, Any]] = {
    "1,0 (1-WL)": {"k": 1, "l": 0},
    "2,0 oblivious (2-WL)": {"k": 2, "l": 0},
    "2-FWL (= 3,0 oblivious)": {"k": 2, "l": 0, "folklore": True},
    "3,0 oblivious (3-WL)": {"k": 3, "l": 0},
    "3-FWL (= 4,0 oblivious)": {"k": 3, "l": 0, "folklore": True},
    "2,1 oblivious": {"k": 2, "l": 1},
    "2-FWL with 1 label": {"k": 2, "l": 1, "folklore": True},
    "2-FWL with 2 labels": {
        "k": 2,
        "l": 2,
        "folklore": True,
        "domain": "subset",
        "ordered": False,
    },
    "1,1 all nodes, pool nodes then tuples": {"k": 1, "l": 1},
    "1,1 pool tuples per node, then nodes": {"k": 1, "l": 1, "pooling": "node"},
    "1,1 root readout": {"k": 1, "l": 1, "pooling": "root"},
    "1,2 distinct ordered": {"k": 1, "l": 2},
    "1,2 subsets unordered": {"k": 1, "l": 2, "domain": "subset", "ordered": False},
    "1,2 connected ordered": {"k": 1, "l": 2, "domain": "connected"},
    "1,2 connected subsets unordered": {
        "k": 1,
        "l": 2,
        "domain": "connected_set",
        "ordered": False,
    },
    "1,2 root+neighbour": {"k": 1, "l": 2, "domain": "star"},
    "1,3 distinct ordered": {"k": 1, "l": 3},
    "1,3 subsets unordered": {"k": 1, "l": 3, "domain": "subset", "ordered": False},
    "1,3 connected ordered (no cover rule)": {"k": 1, "l": 3, "domain": "connected"},
    "1,2 root+neighbour ego 1 (root)": {"k": 1, "l": 2, "domain": "star", "ego": 1},
    "1,2 root+neighbour ego 1 (union)": {
        "k": 1,
        "l": 2,
        "domain": "star",
        "ego": 1,
        "ego_mode": "union",
    },
    "1,2 connected, induced on labelled nodes": {
        "k": 1,
        "l": 2,
        "domain": "connected",
        "ego": 0,
        "ego_mode": "union",
    },
    "1,3 connected, induced on labelled nodes": {
        "k": 1,
        "l": 3,
        "domain": "connected",
        "ego": 0,
        "ego_mode": "union",
    },
    "SWL(VS)": {"k": 1, "l": 1, "update": "SWL"},
    "SWL(SV)": {"k": 1, "l": 1, "update": "SWL", "pooling": "node"},
    "PSWL(VS)": {"k": 1, "l": 1, "update": "PSWL"},
    "PSWL(SV)": {"k": 1, "l": 1, "update": "PSWL", "pooling": "node"},
    "GSWL(VS)": {"k": 1, "l": 1, "update": "GSWL"},
    "SSWL(VS)": {"k": 1, "l": 1, "update": "SSWL"},
    "SSWL(SV)": {"k": 1, "l": 1, "update": "SSWL", "pooling": "node"},
    "DSS-style": {"k": 1, "l": 1, "update": "DSS"},
    "LFWL(2)": {"k": 1, "l": 1, "update": "LFWL"},
    "SLFWL(2)": {"k": 1, "l": 1, "update": "SLFWL"},
    "node deletion (DS, 1-WL base)": {"k": 1, "l": 1, "policy": "delete_node"},
    "edge deletion (DS, 1-WL base)": {"k": 1, "l": 1, "policy": "delete_edge"},
    **{f"1,1 ego {h}": {"k": 1, "l": 1, "ego": h} for h in (1, 2, 3)},
    **{
        f"1,1 ego {h} root readout": {"k": 1, "l": 1, "ego": h, "pooling": "root"}
        for h in (1, 2, 3)
    },
    **{
        f"no mark, ego {h}": {"k": 1, "l": 1, "ego": h, "policy": "none"}
        for h in (1, 2, 3)
    },
    **{
        f"1,2 root+neighbour ego {h}": {"k": 1, "l": 2, "domain": "star", "ego": h}
        for h in (2, 3)
    },
}


@cache
def graph(text: str) -> Data:
    """The graph of a line of graph6."""
    return as_data(nx.from_graph6_bytes(text.encode()))


def as_data(source: nx.Graph) -> Data:
    """A networkx graph as PyG has it."""
    edges = torch.tensor(list(source.edges), dtype=torch.long).view(-1, 2).t()
    both = torch.cat([edges, edges.flip(0)], dim=1)
    return Data(edge_index=both, num_nodes=source.number_of_nodes())


def gather(graphs: list[dict[str, Any]], dtype: torch.dtype) -> dict[str, Tensor]:
    """Golden graphs side by side."""
    start, edges, batch, x = 0, [], [], []
    for number, each in enumerate(graphs):
        pairs = torch.tensor(each["undirected_edges"], dtype=torch.long)
        pairs = pairs.view(-1, 2).t() + start
        edges.append(torch.cat([pairs, pairs.flip(0)], dim=1))
        batch += [number] * each["num_nodes"]
        x += each["x"]
        start += each["num_nodes"]
    return {
        "x": torch.tensor(x, dtype=dtype),
        "edge_index": torch.cat(edges, dim=1),
        "batch": torch.tensor(batch),
    }
