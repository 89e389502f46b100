"""Graph parsing: each graph gets its own number of levels; look at the parse tree."""

# %% Made-up graphs: rings of rings, or chains of rings, of many sizes
import argparse
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import to_undirected

from pyg_pool.models import GraphParsingNetwork
from pyg_pool.view import draw_parse_tree

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="a few steps only")
parser.add_argument("--out", type=Path, default=Path("parse_tree.png"))
args = parser.parse_args()
torch.manual_seed(3)


def graph(label: int) -> Data:
    """From 3 to 7 rings of 4 to 6 nodes, joined to a chain (0) or a circle (1)."""
    sizes = torch.randint(4, 7, (int(torch.randint(3, 8, ())),)).tolist()
    edges, firsts, count = [], [], 0
    for size in sizes:
        ring = [[count + i, count + (i + 1) % size] for i in range(size)]
        edges, firsts = edges + ring, [*firsts, count]
        count += size
    ends = zip(firsts, firsts[1:] + firsts[:1], strict=True)
    edges += [list(pair) for pair in ends][: len(firsts) - 1 + label]
    edge_index = to_undirected(torch.tensor(edges).t())
    degree = torch.bincount(edge_index[0], minlength=count)
    # A little noise, since equal scores would leave the choice to the numbering.
    x = torch.nn.functional.one_hot(degree.clamp(max=5), 6) + 0.1 * torch.randn(
        count, 6
    )
    return Data(x=x, edge_index=edge_index, y=torch.tensor([label]))


graphs = [graph(i % 2) for i in range(60 if args.smoke else 400)]
split = len(graphs) * 3 // 4
train = DataLoader(graphs[:split], batch_size=32, shuffle=True)
test = DataLoader(graphs[split:], batch_size=200)

# %% The network: no ratio, no number of levels
model = GraphParsingNetwork(6, 32, 2, num_layers=2, dropout=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(2 if args.smoke else 30):
    model.train()
    for data in train:
        optimizer.zero_grad()
        out = model(data.x, data.edge_index, batch=data.batch)
        torch.nn.functional.cross_entropy(out, data.y).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

# %% What came of it
model.eval()
data = next(iter(test))
with torch.no_grad():
    result = model.run(data.x, data.edge_index, batch=data.batch)
correct = (result.out.argmax(dim=1) == data.y).float().mean()
print(f"test accuracy {correct:.1%} on {data.num_graphs} graphs")
print(result.hierarchy)

# %% One graph as a tree of merges
figure = draw_parse_tree(result.hierarchy, 0, title="How the first graph was parsed")
figure.savefig(args.out, dpi=120)
print(f"its parse tree is in {args.out}")
