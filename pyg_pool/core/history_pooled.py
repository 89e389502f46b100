"""The usual readout of a history in one step, where the compiled twin knows it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pyg_pool.core.history_attention import (
    NodeRows,
    attended,
    joint_map,
    logit_maps,
)
from pyg_pool.core.history_form import HistoryForm
from pyg_pool.kernels.dispatch import is_traced, runs_numba
from pyg_pool.kernels.group_attention_twin import twin_plan
from pyg_pool.kernels.history_blocks import history_readout
from pyg_pool.kernels.history_run import BlockPlan, BlockWeights
from pyg_pool.kernels.layer_mix import History, group_scale, layer_dots, mixed_rows
from pyg_pool.kernels.layer_weights import layer_weights
from pyg_pool.kernels.segment import segment_count, segment_reduce

__all__ = ["pooled_history"]

# Widths that fill the lanes of every processor.
LANES = 16


def pooled_history(
    x: Tensor,
    index: Tensor,
    size: int,
    form: HistoryForm,
    wide: Mapping[str, Tensor],
    dropout: float,
) -> Tensor | None:
    """Rows of the groups, if options and input are those that the twin knows.

    Args:
        x: ``[N, W]`` layers side by side.
        index: ``[N]`` int64 group of each node.
        size: Number of groups.
        form: Options.
        wide: Weights by name, in the type of ``x``.
        dropout: Rate on the attention; 0 outside training.

    Returns:
        ``[size, F]``, or ``None``.

    Example:
        >>> import torch
        >>> from pyg_pool import HistographAggregation
        >>> from pyg_pool.core.history_pooled import pooled_history
        >>> readout = HistographAggregation(4, 8, 2)  # 8 channels fill no register
        >>> wide = dict(readout.named_parameters())
        >>> index = torch.zeros(3, dtype=torch.long)
        >>> pooled_history(torch.rand(3, 8), index, 1, readout.form, wide, 0.0)
    """
    if is_traced() or dropout > 0.0 or not _is_usual(form):
        return None
    fits = x.dtype == torch.float32 and runs_numba("layer_mix", x.numel(), x, index)
    if not fits or not bool((index[1:] >= index[:-1]).all()):
        return None
    scale = group_scale(x, index, size)
    if not bool((scale == 1).all()):
        return None
    options = form.options
    nodes = NodeRows(index, None, scale, options["heads"], options["chunk_size"])
    groups = nodes.groups(index, index, 2, options["hidden_channels"])
    twin = twin_plan(x, groups)
    if twin is None:
        return None
    maps, slope, constant = joint_map(wide, form, x), None, None
    if form.looks_at_layers:
        slope, constant = logit_maps(form.starts, maps, wide["w_q"], wide["w_k"])
    weights = BlockWeights(slope, constant, maps, *(wide[name] for name in NAMES))
    steps = _Steps(index, form, nodes)
    history = History(x.detach(), form.starts, index, scale)
    is_mean = options["pool"] == "mean"
    plan = BlockPlan(history, groups, twin, steps.softened, is_mean, steps)
    return history_readout(x, weights, plan)


NAMES = (
    "in_proj_weight", "in_proj_bias", "out_proj_weight", "out_proj_bias",
    "norm.weight", "norm.bias",
)  # fmt: skip


def _is_usual(form: HistoryForm) -> bool:
    """Whether these are the options that the twin knows."""
    options = form.options
    return (
        options["node_attention"] is True
        and form.has_norm
        and bool(options["residual"])
        and options["pool"] in ("mean", "sum")
        and options["hidden_channels"] % LANES == 0
    )


class _Steps:
    """The same readout in differentiable steps."""

    def __init__(self, index: Tensor, form: HistoryForm, nodes: NodeRows) -> None:
        self.index, self.form, self.nodes = index, form, nodes

    def softened(self, logits: Tensor) -> Tensor:
        """Weights of layers from their logits."""
        options, scale = self.form.options, self.nodes.scale
        return layer_weights(
            logits, scale.square(), options["layer_attention"], options["eps"],
            options["max_weight"],
        )  # fmt: skip

    def __call__(self, x: Tensor, weights: BlockWeights) -> Tensor:
        """Rows of the groups."""
        size, starts = self.nodes.scale.size(0), self.form.starts
        history = History(x, starts, self.index, self.nodes.scale)
        logits = x.new_zeros(size, self.form.num_layers)
        if weights.slope is not None and weights.constant is not None:
            last = x[:, starts[-2] : starts[-1]]
            r = torch.addmm(weights.constant, last, weights.slope)
            count = segment_count(self.index, size).clamp(min=1).to(x.dtype)
            logits = layer_dots(r, history) / count.unsqueeze(-1)
        mixed = mixed_rows(self.softened(logits), history, weights.maps)
        wide = dict(zip(NAMES, weights[3:], strict=True))
        rows = attended(mixed, self.nodes, wide, self.form)
        how = self.form.options["pool"]
        return segment_reduce(rows, self.index, dim_size=size, reduce=how)
