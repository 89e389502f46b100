"""What the parse of a graph found: its clusters and the scores inside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from pyg_pool.core.select import Selection
from pyg_pool.typing import OptTensor

__all__ = ["Multiplier", "Parsing"]

Multiplier = Literal["sum", "mean", "none"]


@dataclass(eq=False)
class Parsing:
    """Clusters, and what the edges inside each of them scored.

    Args:
        selection: Nodes to clusters.
        score: ``[K]`` mean score of the edges inside each cluster.
        count: ``[K]`` their number, both directions counted; 1 where there are none.
        kept: Positions of the edges that dropout left, ``None`` for all.
    """

    selection: Selection
    score: Tensor
    count: Tensor
    kept: OptTensor = None

    def scaled(self, x: Tensor, multiplier: Multiplier) -> Tensor:
        """Rows of the clusters times the sum or mean of the scores, or as they are.

        Example:
            >>> import torch
            >>> from pyg_pool import Selection
            >>> from pyg_pool.core.parsing import Parsing
            >>> one = Selection.from_clusters(torch.tensor([0, 0]))
            >>> found = Parsing(one, torch.tensor([0.5]), torch.tensor([2.0]))
            >>> found.scaled(torch.tensor([[3.0]]), "sum")
            tensor([[3.]])
        """
        if multiplier == "none":
            return x
        factor = self.score * self.count if multiplier == "sum" else self.score
        return x * factor.unsqueeze(-1)
