"""Numbers for pairs of nodes: the forms that have no weights, and what all share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.functional import normalize

from pyg_pool.kernels.cluster_scores import cluster_scores
from pyg_pool.kernels.pairs import link_scores, links_inside, pair_logits
from pyg_pool.typing import OptTensor

__all__ = ["CosineScorer", "DotScorer", "OwnScorer", "PairScorer"]


class PairScorer(Module):
    """A number for each pair of nodes, the same for both orders. To be derived from.

    Attributes:
        is_random: Whether two calls in training give different numbers.

    Shapes:
        x: ``[N, F]``; pairs: ``[2, P]``; attr: ``[P, D]`` or ``None``; returns
        ``[P]``.
    """

    is_random = False

    @property
    def dtype(self) -> torch.dtype | None:
        """Type of the weights, ``None`` where there are none."""
        return next((each.dtype for each in self.parameters()), None)

    def only_layer(self, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        """Weight and bias on the product of features, where this is all."""
        return None

    def forward(self, x: Tensor, pairs: Tensor, attr: OptTensor = None) -> Tensor:
        """Returns one number per pair. To be overridden."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how it scores, expected a method "
            f"forward(x, pairs, attr) -> Tensor; write it."
        )

    def mean_scores(
        self,
        x: Tensor,
        links: Tensor,
        logit: Tensor,
        cluster: Tensor,
        num_clusters: int,
        *,
        again: bool,
        attr: OptTensor = None,
    ) -> tuple[Tensor, Tensor]:
        """Mean sigmoid and number of the links inside each cluster.

        Args:
            x: ``[N, F]`` features.
            links: ``[2, P]`` pairs, which count twice, and loops, which count once.
            logit: ``[P]`` their numbers.
            cluster: ``[N]`` int64 cluster of each node.
            num_clusters: Number of clusters.
            again: Whether ``logit`` has no gradient, so that the numbers inside
                clusters must be computed again where one is asked for.
            attr: ``[P, D]`` attributes of the links.
        """
        layer = None if attr is not None else self.only_layer(x.dtype)
        if layer is not None and again:
            return cluster_scores(x, *layer, links, logit, cluster, num_clusters)
        inside = links_inside(links, cluster)
        links, logit = links.index_select(1, inside), logit.index_select(0, inside)
        if again and torch.is_grad_enabled():
            attr = None if attr is None else attr.index_select(0, inside)
            logit = self(x, links, attr)
        times = 2 - (links[0] == links[1]).long()
        return link_scores(links, logit.sigmoid(), cluster, num_clusters, times=times)


class DotScorer(PairScorer):
    """The inner product of the features.

    Args:
        channels: Number of features.

    Example:
        >>> import torch
        >>> from pyg_pool.core.pair_scorer import DotScorer
        >>> x, pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0], [1]])
        >>> DotScorer(2)(x, pairs)
        tensor([11.])
    """

    ones: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("ones", torch.ones(channels), persistent=False)

    def only_layer(self, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        """Ones, and no offset."""
        ones = self.ones.to(dtype)
        return ones, ones.new_zeros(1)

    def forward(self, x: Tensor, pairs: Tensor, attr: OptTensor = None) -> Tensor:
        """Returns one number per pair."""
        return pair_logits(x, pairs, self.ones.to(x.dtype))


class CosineScorer(DotScorer):
    """The cosine of the angle between the features; 0 where they are zeros."""

    def only_layer(self, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
        """Nothing: features are normalised first."""
        return None

    def forward(self, x: Tensor, pairs: Tensor, attr: OptTensor = None) -> Tensor:
        """Returns one number per pair."""
        return super().forward(normalize(x, dim=-1), pairs)


class OwnScorer(PairScorer):
    """A function or module of the user.

    Args:
        function: Called with features, pairs and, where the operator has
            ``edge_channels``, attributes; returns a number per pair.

    Example:
        >>> import torch
        >>> from pyg_pool.core.pair_scorer import OwnScorer
        >>> near = OwnScorer(lambda x, pairs: -(x[pairs[0]] - x[pairs[1]]).norm(dim=1))
        >>> near(torch.tensor([[1.0], [4.0]]), torch.tensor([[0], [1]]))
        tensor([-3.])
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        # It may draw at random for all we know: what it said is used as it is.
        self.is_random = True

    def forward(self, x: Tensor, pairs: Tensor, attr: OptTensor = None) -> Tensor:
        """Returns one number per pair."""
        given = (x, pairs) if attr is None else (x, pairs, attr)
        logit = self.function(*given)
        if not isinstance(logit, Tensor) or logit.shape != pairs.shape[1:]:
            found = list(logit.shape) if isinstance(logit, Tensor) else type(logit)
            raise ValueError(
                f"scorer returned {found} for {pairs.size(1)} pairs, expected a tensor "
                f"of shape [{pairs.size(1)}]; return one number per pair."
            )
        return logit
