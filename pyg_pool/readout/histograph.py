r"""HISTOGRAPH: attention over the layers of a network, then among the nodes.

Galron, Sinai, Maron and Eliasof, "Learning from Historical Activations in Graph
Neural Networks", ICLR 2026. Departures: weights of layers, and attention, stay inside
each graph, where the paper's text averages over the batch; a sum of logits that is
lost in its rounding error gives equal weights; attention may go through learned
points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import LayerNorm, Linear, ModuleList, Parameter
from torch.nn.init import xavier_uniform_, zeros_
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.core.history_attention import HistoryTrace, trace_history
from pyg_pool.core.history_form import HistoryForm, sinusoids
from pyg_pool.core.history_pooled import pooled_history
from pyg_pool.core.naming import spell_call
from pyg_pool.errors import PygPoolWarning
from pyg_pool.kernels.segment import segment_index, segment_reduce
from pyg_pool.typing import OptTensor

__all__ = ["HistographAggregation", "HistographOutput"]

LayerAttention = Literal["signed", "softmax", "signed_abs", "mean", "last"]
NodeAttention = bool | Literal["induced"]


@dataclass
class HistographOutput:
    """What a HISTOGRAPH readout computed.

    Attributes:
        out: ``[B, hidden_channels]`` one row per graph; ``[N, hidden_channels]`` with
            ``pool="none"``.
        nodes: ``[N, hidden_channels]`` rows of the nodes after attention.
        mixed: ``[N, hidden_channels]`` rows of the nodes before it.
        layer_weights: ``[B, L]`` weight of each layer in each graph.
        layer_logits: ``[B, L]`` what they were made of.
    """

    out: Tensor
    nodes: Tensor
    mixed: Tensor
    layer_weights: Tensor
    layer_logits: Tensor


class HistographAggregation(Aggregation):
    r"""Readout of the activations of all layers, with signed weights.

    .. math::
        \tilde X_{vl} = W_l x_v^{(l)} + b_l + P_l, \qquad
        c_l = \frac{1}{n} \sum_{v} \frac{(W^Q \tilde X_{v,L-1}) \cdot
        (W^K \tilde X_{vl})}{\sqrt F}, \qquad
        \alpha_l = \frac{c_l}{\sum_k c_k}, \qquad
        h_v = \sum_l \alpha_l \tilde X_{vl}

    .. math::
        Z = \mathrm{LayerNorm}(H + \mathrm{MHSA}(H)), \qquad
        y = \frac{1}{n} \sum_v z_v

    Args:
        in_channels: Width of each layer, or one width with ``num_layers``.
        hidden_channels: Width of the output.
        num_layers: Number of layers, the input of the first among them.
        heads: Heads of the attention among nodes.
        layer_attention: ``"signed"`` (the formula; weights may be negative or above
            1), ``"signed_abs"`` (divides by the sum of magnitudes), ``"softmax"``,
            ``"mean"``, ``"last"``.
        node_attention: ``False`` for none (then Z = H), ``"induced"`` to go through
            ``num_points`` learned points, which is linear in the nodes.
        num_points: Number of points of ``"induced"``.
        residual: Whether H is added to the attention.
        norm: ``"layer"`` or ``None``.
        positional: Position code of the layers: ``"sinusoidal"``, ``"learned"``,
            ``"none"``.
        pool: ``"mean"``, ``"sum"``, ``"max"``, or ``"none"`` for the rows Z.
        scope: ``"batch"`` runs weights and attention over the whole batch, as the
            paper may be read: a graph's row then depends on its batch-mates. For
            comparison only.
        shared_projection: One map for all layers, which then have the same width.
        init: ``"tied"`` starts with equal query and key maps, so that the last layer
            has a positive logit; ``"free"`` does not.
        max_weight: Bound of the magnitude of the layer weights.
        dropout: Rate on the attention among nodes.
        eps: See the note.
        chunk_size: Attention weights per node that are held at a time.

    Shapes:
        x: ``[N, sum of in_channels]``, layers side by side as ``JumpingKnowledge``
        with ``"cat"`` puts them, or ``[N, L, F]`` with ``dim=0``; returns
        ``[B, hidden_channels]``.

    Raises:
        ValueError: If an option or a shape does not fit.

    Note:
        A sum of logits below ``eps``, or below its own rounding error, gives equal
        weights without a gradient. Sums somewhat above it give large weights: clip
        gradients, set ``max_weight``, or use ``"signed_abs"``. An empty graph gives
        0. Half precision is computed in float32, also under autocast. Time: a linear
        part, and the squares of the graphs' sizes unless ``"induced"``; memory:
        O(N (W + hidden_channels)) and the sizes times ``chunk_size``. Attention reads
        the sizes of the graphs on the host.

    Source:
        Y. Galron, H. Sinai, H. Maron, M. Eliasof. Learning from Historical Activations
        in Graph Neural Networks. ICLR 2026.

    Example:
        >>> import torch
        >>> from pyg_pool import HistographAggregation
        >>> readout = HistographAggregation([3, 8, 8], 16)
        >>> history = [torch.rand(5, 3), torch.rand(5, 8), torch.rand(5, 8)]
        >>> readout.from_history(history, torch.tensor([0, 0, 0, 1, 1])).shape
        torch.Size([2, 16])
        >>> readout
        HistographAggregation([3, 8, 8], 16)
    """

    def __init__(
        self,
        in_channels: int | Sequence[int],
        hidden_channels: int,
        num_layers: int | None = None,
        *,
        heads: int = 4,
        layer_attention: LayerAttention = "signed",
        node_attention: NodeAttention = True,
        num_points: int = 16,
        residual: bool = True,
        norm: Literal["layer"] | None = "layer",
        positional: Literal["sinusoidal", "learned", "none"] = "sinusoidal",
        pool: Literal["mean", "sum", "max", "none"] = "mean",
        scope: Literal["graph", "batch"] = "graph",
        shared_projection: bool = False,
        init: Literal["tied", "free"] = "tied",
        max_weight: float | None = None,
        dropout: float = 0.0,
        eps: float = 1e-6,
        chunk_size: int = 256,
    ) -> None:
        given = {name: value for name, value in locals().items() if name != "self"}
        super().__init__()
        self.form = form = HistoryForm.of("HistographAggregation", given)
        self._call = spell_call(
            HistographAggregation, {**given, "in_channels": form.given_channels}
        )
        if scope == "batch":
            warnings.warn(
                "HistographAggregation got scope='batch', with which the row of a "
                "graph depends on the other graphs of the batch; use scope='graph'.",
                PygPoolWarning,
                stacklevel=2,
            )
        self.hidden_channels = self.out_channels = width = hidden_channels
        self.pool, self.scope, self.init = pool, scope, init
        self.dropout = dropout
        maps = 1 if shared_projection else form.num_layers
        self.hist = ModuleList(Linear(c, width) for c in form.widths[:maps])
        for name, shape in form.parameter_shapes().items():
            parameter = None if shape is None else Parameter(torch.empty(shape))
            self.register_parameter(name, parameter)
        self.norm = LayerNorm(width) if form.has_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        parts: list[Any] = [*self.hist, *([] if self.norm is None else [self.norm])]
        for part in parts:
            part.reset_parameters()
        for name, parameter in self.named_parameters(recurse=False):
            if name.endswith("bias"):
                zeros_(parameter)
            elif name == "positions":
                with torch.no_grad():
                    # Rounded like a new parameter, whatever the dtype is by now.
                    like = torch.zeros((), device=parameter.device)
                    parameter.copy_(
                        sinusoids(parameter.size(0), parameter.size(1), like)
                    )
            else:
                xavier_uniform_(parameter)
        if self.form.looks_at_layers and self.init == "tied":
            with torch.no_grad():
                self.w_k.copy_(self.w_q)

    def forward(
        self,
        x: Tensor,
        index: OptTensor = None,
        ptr: OptTensor = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """Returns one row per graph."""
        like, (x, index, size) = x, self._groups(x, index, ptr, dim_size, dim)
        out = None
        if self.scope == "graph":
            out = self._read(x, index, size, pooled_history)
        if out is None:
            found = self._read(x, index, size, trace_history)
            out = self._pooled(found, index, size)
        return out.to(like.dtype)

    def from_history(
        self,
        history: Sequence[Tensor],
        index: OptTensor = None,
        ptr: OptTensor = None,
        dim_size: int | None = None,
    ) -> Tensor:
        """Returns one row per graph from a list of layers, ``[N, F_l]`` each."""
        x = self.form.join("HistographAggregation", history)
        out: Tensor = self(x, index, ptr, dim_size)
        return out

    def run(
        self,
        x: Tensor,
        index: OptTensor = None,
        ptr: OptTensor = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> HistographOutput:
        """Returns the rows of the graphs together with all weights and nodes.

        Example:
            >>> import torch
            >>> from pyg_pool import HistographAggregation
            >>> readout = HistographAggregation(4, 8, 3)
            >>> round(readout.run(torch.rand(5, 12)).layer_weights.sum().item(), 5)
            1.0
        """
        like, (x, index, size) = x, self._groups(x, index, ptr, dim_size, dim)
        found: HistoryTrace = self._read(x, index, size, trace_history)
        parts = (
            self._pooled(found, index, size),
            found.nodes if self.form.has_norm else found.nodes / found.rows,
            found.mixed / found.rows,
            found.layer_weights,
            found.layer_logits / found.scale.square().unsqueeze(-1),
        )
        return HistographOutput(*(part.to(like.dtype) for part in parts))

    def _groups(
        self,
        x: Tensor,
        index: OptTensor,
        ptr: OptTensor,
        dim_size: int | None,
        dim: int,
    ) -> tuple[Tensor, Tensor, int]:
        """The history as a matrix in float32 at least, groups, and their number."""
        x = self.form.check("HistographAggregation", x, dim)
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        index, size = segment_index("HistographAggregation", x, index, ptr, dim_size)
        return x, index, size

    def _read(
        self, x: Tensor, index: Tensor, size: int, how: Callable[..., Any]
    ) -> Any:
        """Calls a reader of histories with all weights."""
        groups = (index, size)
        if self.scope == "batch":
            groups = (torch.zeros_like(index), 1)
        rate = self.dropout if self.training else 0.0
        with torch.autocast(x.device.type, enabled=False):
            wide = {name: p.to(x.dtype) for name, p in self.named_parameters()}
            return how(x, *groups, self.form, wide, rate)

    def _pooled(self, found: HistoryTrace, index: Tensor, size: int) -> Tensor:
        """One row per graph, or those of the nodes with ``pool="none"``."""
        if self.pool == "none":
            return found.nodes if self.form.has_norm else found.nodes / found.rows
        out = segment_reduce(found.nodes, index, dim_size=size, reduce=self.pool)
        return out if self.form.has_norm else out / found.scale.unsqueeze(-1)

    def __repr__(self) -> str:
        """The call that builds it."""
        return self._call
