"""A pooling operator of one's own, and the contract that it is checked against."""

# %% Only the selection is new: the rest of the operator comes from the base class
import argparse

import torch
from torch import Tensor

from pyg_pool import Pooling, Selection
from pyg_pool.kernels import topk
from pyg_pool.testing import check_pooling

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="fewer checks")
args = parser.parse_args()


class LoudPooling(Pooling):
    """Keeps the half of the nodes of each graph with the largest features."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels

    def select(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        batch: Tensor,
        batch_size: int,
    ) -> Selection:
        """The kept nodes, by descending length of their feature vector."""
        score = x.detach().norm(dim=-1)
        kept = topk(score, 0.5, batch=batch, batch_size=batch_size)
        return Selection.from_nodes(kept, x.size(0))

    def __repr__(self) -> str:
        """The call that builds it."""
        return f"LoudPooling({self.in_channels})"


# %% It is used like any other
star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
out = LoudPooling(2)(torch.arange(8.0).view(4, 2), star)
print(f"kept {out.selection.node_index.tolist()}, edges {out.edge_index.tolist()}")
print(f"features lifted back:\n{out.lift(out.x)}")

# %% Does it keep what every operator promises?
checks = ["adjacency", "ties", "batch_independence"] if args.smoke else None
for name, state in check_pooling(LoudPooling, only=checks).items():
    print(f"{name:24} {state}")
