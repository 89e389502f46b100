r"""The two attentions of a readout of layer histories, as functions of tensors.

Layers are never projected one by one: with the weights :math:`W_l` and the constants
:math:`s_l = b_l + P_l` side by side in one matrix, the logits are forms in the raw
activations, and the weighted sum of all projections is a single product.

Rows carry the scale of their group, see :func:`pyg_pool.kernels.layer_mix.group_scale`;
a constant that is added to such rows is multiplied by it first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import layer_norm

from pyg_pool.core.history_form import HistoryForm, sinusoids
from pyg_pool.errors import reads_values
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.group_attention import (
    AttentionGroups,
    group_attention,
    self_attention,
)
from pyg_pool.kernels.layer_mix import History, group_scale, layer_dots, mixed_rows
from pyg_pool.kernels.layer_weights import LARGEST, layer_weights
from pyg_pool.kernels.segment import segment_count
from pyg_pool.typing import OptTensor

__all__ = [
    "HistoryTrace",
    "NodeRows",
    "affine",
    "attended",
    "induced",
    "joint_map",
    "layer_logits",
    "logit_maps",
    "mutual",
    "trace_history",
]


class HistoryTrace(NamedTuple):
    """What leads to the rows of the graphs, in the scales of their groups.

    Args:
        nodes: ``[N, F]`` rows of the nodes after attention.
        mixed: ``[N, F]`` before it.
        layer_weights: ``[B, L]``.
        layer_logits: ``[B, L]`` times the square of the scale.
        rows: ``[N, 1]`` scale of each node.
        scale: ``[B]`` scale of each group.
    """

    nodes: Tensor
    mixed: Tensor
    layer_weights: Tensor
    layer_logits: Tensor
    rows: Tensor
    scale: Tensor


def trace_history(
    x: Tensor,
    index: Tensor,
    size: int,
    form: HistoryForm,
    wide: Mapping[str, Tensor],
    dropout: float,
) -> HistoryTrace:
    """Runs both attentions.

    Args:
        x: ``[N, W]`` layers side by side.
        index: ``[N]`` int64 group of each node, in any order.
        size: Number of groups.
        form: Options.
        wide: Weights by name, in the type of ``x``.
        dropout: Rate on the attention; 0 outside training.
    """
    options = form.options
    scale = group_scale(x, index, size)
    rows = scale.index_select(0, index).unsqueeze(-1)
    history = History(x, form.starts, index, scale)
    maps = joint_map(wide, form, x)
    logits = x.new_zeros(size, form.num_layers)
    # Where no group is scaled, as nearly always, products with ones are left out.
    is_plain = reads_values(x) and not is_traced() and bool((scale == 1).all())
    factors = None if is_plain else rows
    if form.looks_at_layers:
        logits = layer_logits(history, maps, wide["w_q"], wide["w_k"], factors)
    weights = layer_weights(
        logits, scale.square(), options["layer_attention"], options["eps"],
        options["max_weight"],
    )  # fmt: skip
    mixed = mixed_rows(weights, history, maps)
    nodes = mixed
    if options["node_attention"]:
        among = NodeRows(
            index, factors, scale, options["heads"], options["chunk_size"], dropout
        )
        nodes = attended(mixed, among, wide, form)
    return HistoryTrace(nodes, mixed, weights, logits, rows, scale)


def joint_map(wide: Mapping[str, Tensor], form: HistoryForm, x: Tensor) -> Tensor:
    """Maps of all layers, then their constants, side by side, ``[F, W + L]``."""
    width, code = form.options["hidden_channels"], form.options["positional"]
    is_shared = form.options["shared_projection"]
    names = [f"hist.{0 if is_shared else i}" for i in range(form.num_layers)]
    constants = torch.stack([wide[f"{name}.bias"] for name in names])
    if code == "sinusoidal":
        constants = constants + sinusoids(form.num_layers, width, x)
    elif code == "learned":
        constants = constants + wide["positions"]
    return torch.cat([*(wide[f"{name}.weight"] for name in names), constants.t()], 1)


def attended(
    mixed: Tensor, nodes: NodeRows, wide: Mapping[str, Tensor], form: HistoryForm
) -> Tensor:
    """Rows of the nodes after attention among them."""
    qkv = affine(mixed, nodes.rows, wide["in_proj_weight"], wide["in_proj_bias"])
    if form.options["node_attention"] == "induced":
        weight, bias = wide["point_proj_weight"], wide["point_proj_bias"]
        found = induced(qkv, wide["points"], weight, bias, nodes)
    else:
        found = mutual(qkv, nodes)
    out = affine(found, nodes.rows, wide["out_proj_weight"], wide["out_proj_bias"])
    out = out + mixed if form.options["residual"] else out
    if not form.has_norm:
        return out
    # The eps of the norm does not show beside the numbers of a scaled group.
    return layer_norm(out, [out.size(1)], wide["norm.weight"], wide["norm.bias"], 1e-5)


def layer_logits(
    history: History, maps: Tensor, w_q: Tensor, w_k: Tensor, rows: OptTensor
) -> Tensor:
    r"""Mean over the nodes of each group of query times key, for each layer.

    .. math::
        \frac{1}{n} \sum_v (W^Q \tilde X_{v, L-1}) \cdot (W^K \tilde X_{vl}) / \sqrt F

    Args:
        history: The history.
        maps: Maps of all layers, then their constants, side by side.
        w_q: Map of the queries.
        w_k: Map of the keys.
        rows: Scale of each row; ``None`` for ones.

    Shapes:
        maps: ``[F, W + L]``; w_q, w_k: ``[F, F]``; rows: ``[N, 1]``; returns
        ``[B, L]``, each row times the square of the group's scale.
    """
    begin, end = history.starts[-2:]
    last = history.x[:, begin:end]
    slope, constant = logit_maps(history.starts, maps, w_q, w_k)
    last, constant = (
        (last, constant) if rows is None else (last * rows, rows @ constant)
    )
    r = torch.addmm(constant, last, slope)
    count = segment_count(history.index, history.scale.size(0)).clamp(min=1)
    return layer_dots(r, history) / count.to(r.dtype).unsqueeze(-1)


def logit_maps(
    starts: Sequence[int], maps: Tensor, w_q: Tensor, w_k: Tensor
) -> tuple[Tensor, Tensor]:
    """Map of the last layer, and constant, to what meets the history in the logits.

    Shapes:
        maps: ``[F, W + L]``; returns ``[C, W + L]`` and ``[1, W + L]``.
    """
    begin, end = starts[-2:]
    product = (w_q.t() @ w_k) / math.sqrt(w_q.size(0)) @ maps
    return maps[:, begin:end].t() @ product, maps[:, -1:].t() @ product


def affine(x: Tensor, rows: OptTensor, weight: Tensor, bias: Tensor) -> Tensor:
    """A linear layer on rows that are scaled.

    Shapes:
        x: ``[N, F]``; rows: ``[N, 1]``, ``None`` for ones; weight: ``[G, F]``; bias:
        ``[G]``; returns ``[N, G]``.
    """
    if rows is None:
        return torch.addmm(bias, x, weight.t())
    return torch.addmm(rows @ bias.unsqueeze(0), x, weight.t())


@dataclass(frozen=True)
class NodeRows:
    """Nodes that attend to one another inside their groups.

    Args:
        index: ``[N]`` int64 group of each node.
        rows: ``[N, 1]`` scale of each node's group; ``None`` for ones.
        scale: ``[B]`` the same for each group.
        heads: Number of heads.
        chunk_size: Weights per node that are held at a time.
        dropout: Rate on the attention; 0 outside training.
    """

    index: Tensor
    rows: OptTensor
    scale: Tensor
    heads: int
    chunk_size: int
    dropout: float = 0.0

    def groups(
        self, query: Tensor, key: Tensor, power: int, width: int
    ) -> AttentionGroups:
        """Groups for products that hold the scale ``power`` times."""
        inverse = 1.0 / (self.scale**power).clamp(min=1.0 / LARGEST)
        seed = None
        if self.dropout > 0.0:
            seed = torch.randint(2**31, (1,), device=self.index.device)
        return AttentionGroups(
            query, key, self.scale.size(0), inverse / math.sqrt(width // self.heads),
            self.heads, self.chunk_size, self.dropout, seed,
        )  # fmt: skip


def mutual(qkv: Tensor, nodes: NodeRows) -> Tensor:
    """Each node attends to all nodes of its group.

    Shapes:
        qkv: ``[N, 3F]``; returns ``[N, F]``.
    """
    width = qkv.size(1) // 3
    groups = nodes.groups(nodes.index, nodes.index, 2, width)
    return self_attention(qkv, groups)


def induced(
    qkv: Tensor, points: Tensor, weight: Tensor, bias: Tensor, nodes: NodeRows
) -> Tensor:
    """Learned points attend to the nodes of each group, then the nodes to these.

    Shapes:
        qkv: ``[N, 3F]``; points: ``[M, F]``; weight: ``[2F, F]``; bias: ``[2F]``;
        returns ``[N, F]``.
    """
    width, size, number = points.size(1), nodes.scale.size(0), points.size(0)
    q, k, v = qkv.split(width, 1)
    owner = torch.arange(size, device=q.device).unsqueeze(-1).expand(size, number)
    owner = owner.reshape(-1)
    asking = nodes.groups(owner, nodes.index, 1, width)
    summary = group_attention(points.repeat(size, 1), k, v, asking)
    scale = nodes.scale.index_select(0, owner).unsqueeze(-1)
    keys, values = affine(summary, scale, weight, bias).split(width, 1)
    return group_attention(q, keys, values, nodes.groups(nodes.index, owner, 2, width))
