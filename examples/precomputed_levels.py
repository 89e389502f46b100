"""Levels computed once and stored with the data drive a U-Net without pooling."""

# %% Coarsen each graph beforehand: here by pairing neighbours along a ring
import argparse
import tempfile
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from pyg_pool import Hierarchy, Selection
from pyg_pool.core import Level, connect
from pyg_pool.models import GraphUNet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="fewer graphs")
args = parser.parse_args()
torch.manual_seed(5)


def ring(size: int) -> Data:
    """A ring whose nodes carry a wave under noise; the wave is the target."""
    nodes = torch.arange(size)
    edge_index = torch.stack([nodes, (nodes + 1) % size])
    wave = torch.sin(nodes * (2 * torch.pi / size)).view(-1, 1)
    x = wave + 0.5 * torch.randn(size, 1)
    return Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], 1), y=wave)


def levels(data: Data, depth: int) -> Hierarchy:
    """Joins each two neighbours, ``depth`` times."""
    graphs, selections = [Level(data.num_nodes, data.edge_index)], []
    for _ in range(depth):
        size = graphs[-1].num_nodes
        pairs = Selection.from_clusters(torch.arange(size) // 2)
        edges = connect(pairs, graphs[-1].edge_index).edge_index
        graphs.append(Level(pairs.num_clusters, edges))
        selections.append(pairs)
    return Hierarchy(graphs, selections)


count = 32 if args.smoke else 200
rings = [ring(int(size)) for size in torch.randint(16, 65, (count,))]
stored = [levels(data, depth=2).attach(data) for data in rings]
print(stored[0].hierarchy())

# %% A hierarchy is saved without pickle and read back
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "ring.npz")
    stored[0].hierarchy().save(path)
    print(f"read back: {Hierarchy.load(path).num_levels} levels")

# %% PyG's loader batches the levels along with the graphs
model = GraphUNet(1, 16, 1, depth=2, pool="precomputed", conv="graph", act="relu")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2 if args.smoke else 20):
    total = 0.0
    for batch in DataLoader(stored, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        out = model(
            batch.x,
            batch.edge_index,
            batch=batch.batch,
            batch_size=batch.num_graphs,
            hierarchy=batch.hierarchy(),
        )
        loss = torch.nn.functional.mse_loss(out, batch.y)
        loss.backward()
        optimizer.step()
        total += loss.item() * batch.num_graphs
    print(f"epoch {epoch}: squared error {total / count:.3f} (of the input: 0.25)")
