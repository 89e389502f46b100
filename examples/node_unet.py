"""A graph U-Net labels the members of Zachary's karate club from four of them."""

# %% The club comes with PyG: 34 members, one labelled member of each community
import argparse

import torch
from torch_geometric.datasets import KarateClub

from pyg_pool.models import GraphUNet

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="a few steps only")
args = parser.parse_args()
torch.manual_seed(11)
data = KarateClub()[0]

# %% Two levels down and up again; two-hop links keep the coarse graphs connected
model = GraphUNet(data.num_features, 16, 4, depth=2, ratio=[0.6, 0.6], preset="pyg")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
for _ in range(5 if args.smoke else 200):
    optimizer.zero_grad()
    logits = model(data.x, data.edge_index)
    loss = torch.nn.functional.cross_entropy(
        logits[data.train_mask], data.y[data.train_mask]
    )
    loss.backward()
    optimizer.step()

# %% The result, and the levels behind it
model.eval()
with torch.no_grad():
    result = model.run(data.x, data.edge_index)
hidden = ~data.train_mask
correct = (result.out.argmax(dim=1) == data.y)[hidden].float().mean()
print(f"{correct:.1%} of the {int(hidden.sum())} unlabelled members are right")
print(result.hierarchy)
both = result.hierarchy.selection(0, 2)
print(f"members that represent the club at the coarsest level: {both.perm.tolist()}")
