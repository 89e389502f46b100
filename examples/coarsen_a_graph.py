"""Coarsen one graph, look at what was lost, and hand a result back to its nodes.

Run ``python examples/coarsen_a_graph.py --path graph.csv.gz`` on a graph of your own,
or without a path on a generated one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch_geometric.utils import stochastic_blockmodel_graph

from pyg_pool.coarsen import coarsen, read_graph

parser = argparse.ArgumentParser()
parser.add_argument("--path", type=Path)
parser.add_argument("--ratio", type=float, default=0.1)
parser.add_argument("--picture", type=Path)
parser.add_argument("--smoke", action="store_true", help="a small graph")
args = parser.parse_args()

# %% A graph: from a file, or blocks of nodes with few edges between them.
if args.path is not None:
    graph = read_graph(args.path)
else:
    torch.manual_seed(7)
    blocks, size = (6, 30) if args.smoke else (40, 50)
    inside = torch.full((blocks, blocks), 0.2 / blocks)
    inside.fill_diagonal_(0.3)
    graph = stochastic_blockmodel_graph([size] * blocks, inside)

# %% Two levels, each with a share of the nodes of the one before.
found = coarsen(graph, ratio=args.ratio**0.5, levels=2)
print(found)
print(found.hierarchy)

# %% What merging cost.
quality = found.quality(k=5)
print(quality)

# %% Work on the small graph, here its slowest vector, and hand it back.
small = found.graph(self_loops=True)
dense = torch.zeros(2 * [found.num_clusters], dtype=small.edge_weight.dtype)
if 2 <= found.num_clusters <= 5000:
    dense[small.edge_index[0], small.edge_index[1]] = small.edge_weight
    degree = dense.sum(1).clamp(min=1e-9).rsqrt()
    _, vectors = torch.linalg.eigh(degree[:, None] * dense * degree)
    slow = found.lift(vectors[:, -2])
    print(f"the second eigenvector on {slow.numel():,} nodes: {slow.std():.4f} spread")

# %% A picture of the report.
if args.picture is not None:
    from pyg_pool.view import draw_quality

    draw_quality(quality.to_dict()).savefig(args.picture, dpi=130)
    print(f"picture: {args.picture}")
