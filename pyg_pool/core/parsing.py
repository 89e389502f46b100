"""What the parse of a graph found: its clusters and the scores inside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
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

    @classmethod
    def of(
        cls, cluster: Tensor, score: Tensor, count: Tensor, kept: OptTensor = None
    ) -> Parsing:
        """The parsing that puts each node into one cluster.

        Example:
            >>> import torch
            >>> from pyg_pool.core.parsing import Parsing
            >>> Parsing.of(torch.tensor([0, 0]), torch.ones(1), torch.ones(1)).selection
            Selection(num_nodes=2, num_clusters=1, hard, entries=2)
        """
        size = cluster.size(0)
        nodes = torch.arange(size, device=cluster.device)
        selection = Selection(nodes, size, cluster, score.size(0), kind="hard")
        return cls(selection, score, count, kept)

    def factor(self, multiplier: Multiplier) -> OptTensor:
        """The sum or the mean of the scores inside each cluster, or ``None`` for 1.

        Example:
            >>> import torch
            >>> from pyg_pool import Selection
            >>> from pyg_pool.core.parsing import Parsing
            >>> one = Selection.from_clusters(torch.tensor([0, 0]))
            >>> Parsing(one, torch.tensor([0.5]), torch.tensor([2.0])).factor("sum")
            tensor([1.])
        """
        if multiplier == "none":
            return None
        return self.score * self.count if multiplier == "sum" else self.score
