r"""GLOT: attention over tokens that a small GNN has refined on their similarities.

Mantri, Schönlieb, Lähner and Eliasof, "Towards Improved Sentence Representations using
Token Graphs", ICLR 2026. Departures from the released code: the tokens get a gradient,
through all but the choice of edges; padding may be anywhere; the graph is built in
blocks.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, Sequential, Tanh
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.core.blocks import run_layers
from pyg_pool.core.naming import spell_call
from pyg_pool.core.token_convs import GATLayer, GCNLayer
from pyg_pool.core.token_gin import GINELayer, GINLayer
from pyg_pool.core.token_gnn import JUMPS, edge_numbers, refine, shares
from pyg_pool.errors import check_choice, check_edges
from pyg_pool.kernels.segment import segment_index, segment_reduce
from pyg_pool.kernels.similarity import similar_pairs
from pyg_pool.typing import OptTensor

__all__ = ["GLOTAggregation", "GLOTOutput"]

Conv = Literal["gat", "gcn", "gin", "gine"] | Callable[[int, int], Module]
Jump = Literal["cat", "max", "mean", "last"]

CONVS = {"gat": GATLayer, "gcn": GCNLayer, "gin": GINLayer, "gine": GINELayer}
EDGE_WEIGHTS = ("binary", "cosine")


class GLOTOutput(NamedTuple):
    """What :meth:`GLOTAggregation.run` returns.

    Args:
        out: One row per sequence, ``[B, F']``.
        weight: Share of each token in its sequence, ``[N]``.
        score: What the shares are the softmax of, ``[N]``.
        edge_index: The token graph, ``[2, E]``.
    """

    out: Tensor
    weight: Tensor
    score: Tensor
    edge_index: Tensor


class GLOTAggregation(Aggregation):
    r"""Attention over elements that message passing between similar ones refined.

    .. math::
        h^{(k+1)} = \mathrm{relu}(\mathrm{conv}_k(h^{(k)}, \{(i, j): \cos(x_i, x_j) >
        \tau\})), \qquad u_i = [x_i \,\|\, h_i^{(1)} \,\|\, \ldots], \qquad
        z = \sum_i \mathrm{softmax}_i(v \cdot \tanh(W u_i + b) + b_v)\, u_i

    Without layers it is plain attention.

    Args:
        in_channels: Width of the elements.
        hidden_channels: Width of the layers.
        num_layers: Number of layers.
        conv: ``"gat"``, ``"gcn"``, ``"gin"``, ``"gine"``, or a function
            ``(in_channels, out_channels) -> module`` whose result is called with
            ``(x, edge_index, edge_attr)``.
        heads: Heads of ``"gat"``; they share the width.
        jk: ``"cat"`` joins the elements and all layers, ``"max"`` and ``"mean"``
            combine the layers, ``"last"`` takes the last one.
        tau: Threshold of the cosine, which an edge must exceed.
        scorer_channels: Hidden width of the scores; by default half of that of
            :math:`u`, at least 128.
        edge_weight: ``"binary"`` makes every edge attribute 1, ``"cosine"`` the
            similarity.
        self_loops: Whether an element is its own neighbour (``"gat"`` and ``"gcn"``
            add missing loops in any case).
        max_neighbors: Keeps only the most similar neighbours of each element.
        chunk_size: Elements that are compared at once; by default as many as make
            four million similarities.
        dropout: Dropout after each layer.
        window: Keeps only neighbours at most this many elements away.

    Shapes:
        x: ``[N, F]``; index: ``[N]`` int64; ptr: ``[B + 1]`` int64; returns
        ``[B, out_channels]``.

    Raises:
        ValueError: If an option or a shape does not fit.

    Note:
        Gradients flow through the elements, not through the choice of edges. Ties
        among the most similar go to the lower index. An empty sequence gives 0. Half
        precision is computed in float32. Training differs from evaluation by dropout,
        and by the BatchNorm of ``"gin"`` and ``"gine"``. Time grows with the sum of
        the squared sizes, memory with the edges: take ``max_neighbors`` or ``window``
        for long sequences. Weights saved by the authors' code load.

    Source:
        K. S. I. Mantri, C.-B. Schönlieb, Z. Lähner, M. Eliasof. Towards Improved
        Sentence Representations using Token Graphs. ICLR 2026.

    Example:
        >>> import torch
        >>> from pyg_pool import GLOTAggregation
        >>> readout = GLOTAggregation(8, hidden_channels=16)
        >>> readout(torch.randn(5, 8), torch.tensor([0, 0, 1, 1, 1])).shape
        torch.Size([2, 40])
        >>> hidden, mask = torch.randn(2, 7, 8), torch.ones(2, 7)
        >>> readout.from_padded(hidden, mask).shape
        torch.Size([2, 40])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int = 128,
        *,
        num_layers: int = 2,
        conv: Conv = "gat",
        heads: int = 1,
        jk: Jump = "cat",
        tau: float = 0.6,
        scorer_channels: int | None = None,
        edge_weight: Literal["binary", "cosine"] = "binary",
        self_loops: bool = True,
        max_neighbors: int | None = None,
        chunk_size: int | None = None,
        dropout: float = 0.0,
        window: int | None = None,
    ) -> None:
        super().__init__()
        self.in_channels, self.hidden_channels = in_channels, hidden_channels
        self.num_layers, self.conv, self.heads, self.jk = num_layers, conv, heads, jk
        self.tau, self.scorer_channels = tau, scorer_channels
        self.edge_weight, self.self_loops = edge_weight, self_loops
        self.max_neighbors, self.chunk_size = max_neighbors, chunk_size
        self.dropout, self.window = dropout, window
        self._check_options()
        widths = [in_channels] + [hidden_channels] * num_layers
        make: Any = CONVS[conv] if isinstance(conv, str) else conv
        if conv == "gat":
            make = partial(make, heads=heads)
        self.convs = ModuleList(make(a, hidden_channels) for a in widths[:-1])
        width = self.out_channels
        hidden = scorer_channels or max(128, width // 2)
        self.score_layer = Sequential(Linear(width, hidden), Tanh(), Linear(hidden, 1))

    def _check_options(self) -> None:
        """Raises ``ValueError`` for options that do not fit."""
        if isinstance(self.conv, str):
            check_choice("GLOTAggregation", "conv", self.conv, CONVS)
        check_choice("GLOTAggregation", "jk", self.jk, JUMPS)
        check_choice("GLOTAggregation", "edge_weight", self.edge_weight, EDGE_WEIGHTS)
        least = {
            "in_channels": 1, "hidden_channels": 1, "num_layers": 0, "heads": 1,
            "scorer_channels": 1, "max_neighbors": 1, "chunk_size": 1, "window": 0,
        }  # fmt: skip
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ValueError(
                    f"GLOTAggregation got {name}={value}, expected at least {bound}; "
                    f"correct this option."
                )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                f"GLOTAggregation got dropout={self.dropout}, expected a rate from 0 "
                f"to below 1; correct this option."
            )
        if self.heads > 1 and (self.conv != "gat" or self.hidden_channels % self.heads):
            raise ValueError(
                f"GLOTAggregation got heads={self.heads}, conv={self.conv!r} and "
                f"hidden_channels={self.hidden_channels}, expected heads of conv='gat' "
                f"that divide hidden_channels; change one of them."
            )

    @property
    def out_channels(self) -> int:
        """Width of the result."""
        if self.num_layers == 0:
            return self.in_channels
        if self.jk == "cat":
            return self.in_channels + self.num_layers * self.hidden_channels
        return self.hidden_channels

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        modules: list[Any] = [*self.convs, self.score_layer[0], self.score_layer[2]]
        for module in modules:
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        index: OptTensor = None,
        ptr: OptTensor = None,
        dim_size: int | None = None,
        dim: int = -2,
        *,
        edge_index: OptTensor = None,
    ) -> Tensor:
        """Returns one row per sequence; ``edge_index`` takes the graph's place."""
        return self.run(x, index, ptr, dim_size, dim, edge_index=edge_index).out

    def run(
        self,
        x: Tensor,
        index: OptTensor = None,
        ptr: OptTensor = None,
        dim_size: int | None = None,
        dim: int = -2,
        *,
        edge_index: OptTensor = None,
    ) -> GLOTOutput:
        """As a call, and returns the attention and the graph as well."""
        self._check_rows(x, dim)
        index, size = segment_index("GLOTAggregation", x, index, ptr, dim_size)
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        if edge_index is not None:
            edge_index = check_edges("GLOTAggregation", edge_index, None, x.size(0))
        elif self.num_layers > 0:
            edge_index = self._graph(wide, index, size)
        else:
            edge_index = index.new_empty(2, 0)
        with torch.autocast(x.device.type, enabled=False):
            rate = self.dropout if self.training else 0.0
            attr = edge_numbers(wide, edge_index, self.edge_weight)
            rows = refine(self.convs, wide, edge_index, attr, jk=self.jk, dropout=rate)
            score = run_layers(self.score_layer, rows).view(-1)
            weight = shares(score, index, size)
            out = segment_reduce(rows * weight.unsqueeze(1), index, dim_size=size)
        out, weight, score = (part.to(x.dtype) for part in (out, weight, score))
        return GLOTOutput(out, weight, score, edge_index)

    def from_padded(
        self, hidden: Tensor, attention_mask: Tensor, *, edge_index: OptTensor = None
    ) -> Tensor:
        """Reads what a language model returns.

        Args:
            hidden: States of the tokens, as in ``last_hidden_state``.
            attention_mask: 1 for tokens, 0 for padding, in any place.
            edge_index: Edges between the tokens, counted without the padding.

        Returns:
            One row per sequence, zeros for one without tokens.

        Shapes:
            hidden: ``[B, L, F]``; attention_mask: ``[B, L]``; returns
            ``[B, out_channels]``.

        Raises:
            ValueError: If the shapes do not fit.
        """
        if hidden.dim() != 3 or hidden.shape[:2] != attention_mask.shape:
            raise ValueError(
                f"GLOTAggregation got hidden of shape {list(hidden.shape)} and "
                f"attention_mask of shape {list(attention_mask.shape)}, expected "
                f"[B, L, F] and [B, L]; pass last_hidden_state and the mask that the "
                f"tokenizer made."
            )
        place = (attention_mask.reshape(-1) != 0).nonzero().view(-1)
        tokens = hidden.flatten(0, 1).index_select(0, place)
        index = place.div(max(hidden.size(1), 1), rounding_mode="floor")
        out: Tensor = self(
            tokens, index, dim_size=hidden.size(0), edge_index=edge_index
        )
        return out

    def _check_rows(self, x: Tensor, dim: int) -> None:
        """Raises ``ValueError`` unless x has a row of the right width per element."""
        fits = x.dim() == 2 and dim in (0, -2) and x.size(1) == self.in_channels
        if not fits or not x.is_floating_point():
            raise ValueError(
                f"GLOTAggregation got x of shape {list(x.shape)} and dtype {x.dtype} "
                f"with dim={dim}, expected floats of shape [num_elements, "
                f"{self.in_channels}]; build it with another in_channels, or call it "
                f"for each slice."
            )

    def _graph(self, x: Tensor, index: Tensor, size: int) -> Tensor:
        """The token graph."""
        return similar_pairs(
            x, index, size, self.tau, max_neighbors=self.max_neighbors,
            window=self.window, chunk_size=self.chunk_size, self_loops=self.self_loops,
        )  # fmt: skip

    def __repr__(self) -> str:
        names = inspect.signature(type(self)).parameters
        return spell_call(type(self), {name: getattr(self, name) for name in names})
