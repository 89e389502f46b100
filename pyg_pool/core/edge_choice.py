"""The rule by which edges are chosen for contraction, checked and applied."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from pyg_pool.errors import PygPoolWarning, reads_values
from pyg_pool.kernels import contraction
from pyg_pool.kernels.segment import segment_count
from pyg_pool.kernels.topk import rank
from pyg_pool.typing import OptTensor

__all__ = ["EdgeChoice"]

WAYS = ("threshold", "fraction_to_keep", "num_edges_to_keep")


@dataclass(frozen=True, kw_only=True, eq=False)
class EdgeChoice:
    """Chooses pairs of nodes by their scores, mesh by mesh.

    Args:
        owner: Name of the operator, for messages.
        threshold: Chooses every pair with a score above it.
        fraction_to_keep: Share of the pairs of each graph that stay.
        num_edges_to_keep: Number of pairs of each graph that stay.
        consecutive: Whether chosen pairs may share a node.
        max_cluster_size: Most nodes of a cluster.
        largest: Whether large scores are chosen, or small ones.

    Raises:
        ValueError: If options are out of range or contradict each other.

    Example:
        >>> import torch
        >>> from pyg_pool.core.edge_choice import EdgeChoice
        >>> choice = EdgeChoice(owner="Mine", num_edges_to_keep=1)
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> choice(torch.tensor([0.1, 0.7, 0.7]), path, None, 1, 4)
        tensor([False,  True,  True])
    """

    owner: str
    threshold: float | None = None
    fraction_to_keep: float | Tensor | None = None
    num_edges_to_keep: int | Tensor | None = None
    consecutive: bool = True
    max_cluster_size: int | None = None
    largest: bool = True

    def __post_init__(self) -> None:
        used = [name for name in WAYS if getattr(self, name) is not None]
        if len(used) != 1:
            raise ValueError(
                f"{self.owner} got {used or 'none'} of {list(WAYS)}, expected exactly "
                f"one; give the one that says how far to pool."
            )
        value = getattr(self, used[0])
        top = torch.inf if used[0] == "num_edges_to_keep" else 1.0
        numbers = torch.as_tensor(value, dtype=torch.float64)
        if not bool(((numbers >= 0) & (numbers <= top)).all()):
            raise ValueError(
                f"{self.owner} got {used[0]}={value}, expected "
                f"{'at least 0' if top > 1 else 'a number in [0, 1]'}; choose another."
            )
        if self.threshold is not None and not self.consecutive:
            raise ValueError(
                f"{self.owner} got consecutive=False with threshold={self.threshold}, "
                f"expected fraction_to_keep or num_edges_to_keep; give one of them."
            )
        most = self.max_cluster_size
        if most is not None and most < 2:
            raise ValueError(
                f"{self.owner} got max_cluster_size={most}, expected at least 2; leave "
                f"it out for no limit."
            )

    def __call__(
        self,
        score: Tensor,
        pairs: Tensor,
        graph: OptTensor,
        batch_size: int,
        num_nodes: int,
    ) -> Tensor:
        """Marks the chosen pairs.

        Args:
            score: ``[P]``; NaN is never chosen.
            pairs: ``[2, P]``, lower node first, ascending.
            graph: ``[P]`` graph of each pair, ``None`` for one graph.
            batch_size: Number of graphs.
            num_nodes: Number of nodes.

        Returns:
            ``[P]`` bool.
        """
        missing = score.isnan()
        if reads_values(score) and bool(missing.any()):
            warnings.warn(
                f"{self.owner} got {int(missing.sum())} scores of NaN among "
                f"{score.numel()}, expected numbers; these edges are not chosen, look "
                f"for NaN in the features.",
                PygPoolWarning,
                stacklevel=3,
            )
        allowed = ~missing
        if self.threshold is not None:
            limit = self.threshold
            allowed = score > limit if self.largest else score < limit
            if self.max_cluster_size is None:
                return allowed
        order = rank(score if self.largest else -score)
        order = order[allowed.index_select(0, order)]
        graph = torch.zeros_like(pairs[0]) if graph is None else graph
        budget = self.budget(segment_count(graph, batch_size))
        if not self.consecutive:
            return contraction.matched_pairs(pairs, order, graph, budget, num_nodes)
        if self.max_cluster_size is not None:
            return contraction.grown_pairs(
                pairs, order, graph, budget, num_nodes, self.max_cluster_size
            )
        return contraction.first_pairs(order, graph, budget)

    def budget(self, num_edges: Tensor) -> Tensor:
        """Number of pairs to choose in each graph, of so many."""
        if self.threshold is not None:
            return num_edges
        if self.num_edges_to_keep is not None:
            kept = torch.as_tensor(self.num_edges_to_keep, device=num_edges.device)
            return (num_edges - kept).clamp(min=0)
        share = torch.as_tensor(self.fraction_to_keep, dtype=torch.float64)
        # In this order and precision: 0.8 of 120 contracts 23, as 1 - 0.8 < 0.2.
        return ((1.0 - share.to(num_edges.device)) * num_edges.double()).long()
