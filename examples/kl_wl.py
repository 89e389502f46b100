"""Two molecules that message passing cannot tell apart, until one atom is labelled."""

# %% Decalin and bicyclopentyl: same atoms, same neighbourhoods, different rings
import argparse

import torch
from torch_geometric.data import Batch

from pyg_pool.models import KLGNN
from pyg_pool.relational import from_graph6, kl_wl, kl_wl_details

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="a few steps only")
args = parser.parse_args()
torch.manual_seed(5)
decalin, bicyclopentyl = from_graph6("IhEGGC@_G"), from_graph6("Ihe?GC@@G")
pair = [decalin, bicyclopentyl]

# %% What theory says, before any training
for labels, ego in ((0, None), (1, 1), (1, 2), (1, None)):
    colors = kl_wl(pair, 1, labels, ego=ego)
    answer = "separated" if colors[0] != colors[1] else "not separated"
    print(f"{labels} label(s), copies of radius {ego or 'any'}: {answer}")
number = kl_wl_details(pair, 1, 1).separating_round()
print(f"with one label they differ after {number} rounds, so take as many layers")

# %% What training says: the same two classes, with and without a label
batch = Batch.from_data_list(pair)
x, target = torch.ones(batch.num_nodes, 1), torch.tensor([0, 1])
for labels in (0, 1):
    model = KLGNN(1, 16, 2, 4, l=labels, norm="batch")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20 if args.smoke else 40):
        optimizer.zero_grad()
        out = model(x, batch.edge_index, batch=batch.batch, batch_size=2)
        torch.nn.functional.cross_entropy(out, target).backward()
        optimizer.step()
    right = int((out.argmax(1) == target).sum())
    print(f"{labels} label(s): {right} of 2 right after training")
