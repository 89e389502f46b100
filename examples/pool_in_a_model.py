"""gPool inside a PyG model of one's own: does a ring hang off the chain or not?"""

# %% Made-up graphs: a chain with a ring, or with a branch of the same size
import argparse

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import SAGEConv, global_mean_pool
from torch_geometric.utils import to_undirected

from pyg_pool import GPool

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="a few steps only")
args = parser.parse_args()
torch.manual_seed(7)


def graph(label: int) -> Data:
    """A chain of 6 to 14 nodes that ends in a ring of 5 (1) or a branch (0)."""
    size = int(torch.randint(6, 15, ()))
    edges = [[i, i + 1] for i in range(size + 4)]
    if label == 1:
        edges.append([size, size + 4])
    edge_index = to_undirected(torch.tensor(edges).t())
    degree = torch.bincount(edge_index[0], minlength=size + 5)
    x = torch.nn.functional.one_hot(degree.clamp(max=3), 4).float()
    return Data(x=x, edge_index=edge_index, y=torch.tensor([label]))


graphs = [graph(i % 2) for i in range(100 if args.smoke else 400)]
split = len(graphs) * 3 // 4
train = DataLoader(graphs[:split], batch_size=32, shuffle=True)
test = DataLoader(graphs[split:], batch_size=100)


# %% A model: the operator is a module, its result has names
class Net(torch.nn.Module):
    """Convolution, pooling, convolution, readout."""

    def __init__(self) -> None:
        super().__init__()
        self.first = SAGEConv(4, 32)
        self.pool = GPool(32, ratio=0.5, nonlinearity="tanh")
        self.second = SAGEConv(32, 32)
        self.head = torch.nn.Linear(32, 2)

    def forward(self, data: Data) -> torch.Tensor:
        """Class scores of each graph."""
        x = self.first(data.x, data.edge_index).relu()
        out = self.pool(
            x, data.edge_index, batch=data.batch, batch_size=data.num_graphs
        )
        x = self.second(out.x, out.edge_index).relu()
        return self.head(global_mean_pool(x, out.batch, size=out.batch_size))


# %% Training, as always
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(2 if args.smoke else 20):
    for data in train:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(data), data.y).backward()
        optimizer.step()

# %% What it learned, and which nodes it kept
model.eval()
data = next(iter(test))
correct = (model(data).argmax(dim=1) == data.y).float().mean()
print(f"test accuracy {correct:.1%} on {data.num_graphs} graphs")
x = model.first(data.x, data.edge_index).relu()
out = model.pool(x, data.edge_index, batch=data.batch, batch_size=data.num_graphs)
kept = out.selection.node_index[out.batch == 0]
print(f"nodes kept of the first graph, best first: {kept.tolist()}")
