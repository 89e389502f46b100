"""Primal-dual pooling: merges faces along the edges with the largest attention.

Milano et al., "Primal-Dual Mesh Convolutional Neural Networks", NeurIPS 2020.
Departures from the authors' program: ties go to the lowest pair of faces, a NaN score
is never chosen, clusters are numbered by their smallest face, the dual graph may grow
without limit (or clusters be bounded), and a matching takes what it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from pyg_pool.core import Selection, reduce
from pyg_pool.core.connect import pooled_batch
from pyg_pool.core.edge_choice import EdgeChoice
from pyg_pool.core.naming import spell_call
from pyg_pool.core.primal_dual import (
    PrimalDualPoolOutput,
    contract_duals,
    graph_of_pairs,
    shares,
)
from pyg_pool.errors import (
    check_batch,
    check_choice,
    check_edges,
    check_features,
)
from pyg_pool.kernels import contraction
from pyg_pool.typing import OptTensor

__all__ = ["PrimalDualPoolOutput", "PrimalDualPooling"]

OWNER = "PrimalDualPooling"
Config = Literal["A", "B", "C"]
Reduction = Literal["mean", "sum"]
Size = float | Tensor


class PrimalDualPooling(torch.nn.Module):
    r"""Contracts the edges of the primal graph that get the most attention.

    .. math::
        s_{ij} = \tfrac{1}{2 H} \sum_h
        \bigl(\alpha^h_{i \to j} + \alpha^h_{j \to i}\bigr)

    The clusters are the connected components of the chosen edges. Dual nodes inside
    a cluster vanish, those between the same two clusters merge, and the dual edges
    are built anew from the clusters.

    Args:
        threshold: Chooses every edge with a score above it.
        fraction_to_keep: Chooses ``int((1 - fraction) * P)`` of the P edges of each
            mesh: a number in [0, 1], or a tensor ``[B]`` with one for each mesh.
        num_edges_to_keep: Chooses all but so many edges of each mesh, a number or
            a tensor ``[B]``. Exactly one of these three is given.
        consecutive: Whether a face may be merged along several of its edges;
            otherwise a greedy matching is taken, which is not for ``threshold``.
        max_cluster_size: Edges that would give a cluster of more nodes are passed
            over; ``None`` sets no limit.
        largest: Whether large scores are chosen, or small ones.
        add_to_score: Constant that is added to the scores.
        reduce: ``"mean"`` or ``"sum"`` of the members' features.
        reduce_dual: The same for dual nodes; ``None`` takes that of ``reduce``.
        config: Kind of dual graph. ``"A"``: one node an edge; ``"B"``: one for each
            direction, links both ways; ``"C"``: links along the direction.
        dual_self_loops: Whether the dual graph gets a loop at each node.

    Shapes:
        x: ``[F, Cp]``; x_dual: ``[D, Cd]``; edge_index: ``[2, 2P]`` int64, sorted;
        edge_index_dual: ``[2, Q]``; edge_to_dual: ``[2P]``; attention: ``[2P, H]`` or
        ``[2P]``; batch: ``[F]``; batch_dual: ``[D]``.

    Raises:
        ValueError: If options or shapes do not fit, or the edges are not sorted.

    Note:
        The choice is hard: no gradient reaches the scores. Ties go to the lowest
        pair. A NaN score is never chosen and warned of. Contracting all but one edge
        of a closed fan contracts the last one too, so fewer edges than asked may
        remain. A cluster with d neighbours has d (d - 1) dual edges (twice that
        in B): quadratic in the size of large clusters, since a cluster of m
        triangles has up to m + 2 neighbours. ``max_cluster_size=m`` bounds them by
        (m + 2) (m + 1) a cluster on a triangle mesh; it copies the edges to
        the CPU. Cost otherwise: a sort of P scores, O(F + P + Q).

    Source:
        Milano, Loquercio, Rosinol, Scaramuzza and Carlone, "Primal-Dual Mesh
        Convolutional Neural Networks", NeurIPS 2020, section 3.3.

    Example:
        >>> import torch
        >>> from pyg_pool import PrimalDualPooling
        >>> row = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # three faces
        >>> dual, links = torch.tensor([0, 0, 1, 1]), torch.tensor([[0, 1], [1, 0]])
        >>> attention = torch.tensor([0.9, 0.7, 0.3, 1.0])
        >>> pool = PrimalDualPooling(num_edges_to_keep=1)
        >>> x, x_dual = torch.tensor([[1.0], [3.0], [9.0]]), torch.ones(2, 1)
        >>> out = pool(x, x_dual, row, links, dual, attention)
        >>> out.selection.cluster, out.x.view(-1)
        (tensor([0, 0, 1]), tensor([2., 9.]))
    """

    def __init__(
        self,
        *,
        threshold: float | None = None,
        fraction_to_keep: Size | None = None,
        num_edges_to_keep: int | Tensor | None = None,
        consecutive: bool = True,
        max_cluster_size: int | None = None,
        largest: bool = True,
        add_to_score: float = 0.0,
        reduce: Reduction = "mean",
        reduce_dual: Reduction | None = None,
        config: Config = "A",
        dual_self_loops: bool = False,
    ) -> None:
        given = dict(locals())
        super().__init__()
        names = list(signature(PrimalDualPooling).parameters)
        self._given = {name: given[name] for name in names}
        _check_words(self._given)
        self.choice = EdgeChoice(
            owner=OWNER,
            threshold=threshold,
            fraction_to_keep=fraction_to_keep,
            num_edges_to_keep=num_edges_to_keep,
            consecutive=consecutive,
            max_cluster_size=max_cluster_size,
            largest=largest,
        )
        self.add_to_score = add_to_score
        self.reduce = reduce
        self.reduce_dual = reduce if reduce_dual is None else reduce_dual
        self.config = config
        self.dual_self_loops = dual_self_loops

    def forward(
        self,
        x: Tensor,
        x_dual: Tensor,
        edge_index: Tensor,
        edge_index_dual: Tensor,
        edge_to_dual: Tensor,
        attention: Tensor,
        *,
        batch: OptTensor = None,
        batch_dual: OptTensor = None,
        batch_size: int | None = None,
    ) -> PrimalDualPoolOutput:
        """Returns both pooled graphs.

        Args:
            x: Features of the faces.
            x_dual: Features of the dual nodes.
            edge_index: Adjacent faces, both directions.
            edge_index_dual: Links between dual nodes.
            edge_to_dual: Dual node of each edge.
            attention: Attention of each edge, as the convolution returns it.
            batch: Mesh of each face.
            batch_dual: Mesh of each dual node.
            batch_size: Number of meshes.
        """
        x, x_dual = check_features(OWNER, x), check_features(OWNER, x_dual)
        size = check_batch(OWNER, batch, batch_size, x.size(0))
        edge_index = check_edges(OWNER, edge_index, attention, x.size(0))
        links = check_edges(OWNER, edge_index_dual, None, x_dual.size(0))
        _check_duals(edge_index, edge_to_dual, x_dual.size(0), self.config)
        reverse = contraction.reverse_edges(OWNER, edge_index, x.size(0))
        up = (edge_index[0] < edge_index[1]).nonzero().view(-1)
        both = torch.stack([up, reverse.index_select(0, up)])
        pairs = edge_index.index_select(1, up)
        mesh = graph_of_pairs(batch, pairs)
        score = self.score(attention.detach(), both)
        chosen = self.choice(score, pairs, mesh, size, x.size(0))
        selected = pairs.index_select(1, chosen.nonzero().view(-1))
        cluster, count = contraction.merge_pairs(selected, x.size(0))
        faces = torch.arange(x.size(0), device=x.device)
        selection = Selection(faces, x.size(0), cluster, count, kind="hard")
        coarse = contract_duals(
            pairs, both, edge_to_dual, x_dual.size(0), selection, self.config
        )
        # A traced graph does not know whether anything was merged.
        is_new = torch.compiler.is_compiling() or count < x.size(0)
        if is_new or self.dual_self_loops:
            links = coarse.links(self.config, loops=self.dual_self_loops)
        if batch_dual is None and batch is not None:
            owner = batch.index_select(0, edge_index[0])
            batch_dual = owner.new_zeros(x_dual.size(0))
            batch_dual = batch_dual.index_copy(0, edge_to_dual, owner)
        new_batch = pooled_batch(selection, batch)
        left = coarse.pairs.size(1), graph_of_pairs(new_batch, coarse.pairs)
        return PrimalDualPoolOutput(
            x=reduce(x, selection, self.reduce),
            x_dual=reduce(x_dual, coarse.selection, self.reduce_dual),
            edge_index=coarse.edge_index,
            edge_index_dual=links,
            edge_to_dual=coarse.edge_to_dual,
            batch=new_batch,
            batch_dual=pooled_batch(coarse.selection, batch_dual),
            batch_size=size,
            selection=selection,
            selection_dual=coarse.selection,
            score=score,
            selected_edges=selected,
            ratio_nodes=shares((count, new_batch), (x.size(0), batch), size, score),
            ratio_edges=shares(left, (pairs.size(1), mesh), size, score),
        )

    def score(self, attention: Tensor, both: Tensor) -> Tensor:
        """Score of each pair, from the attention of its two directions."""
        wide = attention.to(torch.promote_types(attention.dtype, torch.float32))
        mean = wide if wide.dim() == 1 else wide.flatten(1).mean(1)
        ends = mean.index_select(0, both.view(-1)).view(2, -1)
        return (ends[0] + ends[1]) / 2 + self.add_to_score

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)


def _check_duals(
    edge_index: Tensor, edge_to_dual: Tensor, num_dual: int, config: str
) -> None:
    """Raises ``ValueError`` if there is not a dual node for each edge."""
    size = edge_index.size(1)
    wanted = size // 2 if config == "A" else size
    if edge_to_dual.shape != (size,) or num_dual != wanted:
        raise ValueError(
            f"{OWNER} got edge_to_dual of shape {list(edge_to_dual.shape)} and "
            f"{num_dual} dual nodes for {size} directed edges, expected [{size}] and "
            f"{wanted} with config={config!r}; pass the config that the graphs were "
            f"built with."
        )


def _check_words(given: Mapping[str, Any]) -> None:
    """Raises ``ValueError`` for a word that is not among the choices."""
    check_choice(OWNER, "config", given["config"], get_args(Config))
    for name in ("reduce", "reduce_dual"):
        if given[name] is not None:
            check_choice(OWNER, name, given[name], get_args(Reduction))
