"""The modules of a graph U-Net, built from its form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch.nn.functional import dropout

from pyg_pool.core.naming import rename_on_load
from pyg_pool.models.conv_factory import apply_conv, edge_input, make_conv
from pyg_pool.models.layers import Head, NodeNorm, Readout, make_act, reset
from pyg_pool.models.pool_stack import Graph, PoolStack, per_level
from pyg_pool.models.unet_forms import (
    OWNER,
    UNetForm,
    UNetWidths,
    authors_names,
    ends_in_up_conv,
    loses_loops,
    unet_form,
    unet_widths,
)
from pyg_pool.typing import OptTensor

__all__ = ["UNetParts"]


class UNetParts(Module):
    """Everything in a graph U-Net that has weights, and how each part is applied.

    Level l has ``down_convs[l]`` and ``pools[l]``; the last of ``down_convs`` is at
    the lowest level, and ``up_convs`` start there.

    Args:
        given: Arguments of :class:`pyg_pool.models.GraphUNet` by name.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__()
        depth: int = given["depth"]
        if depth < 1:
            raise ValueError(
                f"{OWNER} got depth={depth}, expected at least 1; use a plain stack of "
                f"convolutions for a network without pooling."
            )
        form = unet_form(given)
        widths = unet_widths(form, given)
        self.in_channels: int = given["in_channels"]
        self.depth, self.task = depth, given["task"]
        self.edge_channels: int | None = given["edge_channels"]
        self.use_edge_attr: bool = given["use_edge_attr"]
        self.dropout: float = given["dropout"]
        self.unpool = given["unpool"]
        self.skip, self.merge, self.long_skip = form.skip, form.merge, form.long_skip
        self.self_loops, self.loops_below = form.self_loops, loses_loops(form)
        self.ends_in_up_conv = ends_in_up_conv(form, self.task)
        self.output_levels = [*reversed(range(depth)), *([0] if self.long_skip else [])]
        self.act = make_act(form.act)
        self.pools = PoolStack(
            OWNER,
            form.pool,
            given["hidden_channels"],
            per_level(OWNER, "ratio", given["ratio"], depth),
            form.pool_options,
            given["reduce"],
        )
        self._build_convs(form, widths, given["out_channels"])
        self._build_norms(widths, given["norm"])
        self._build_head(form, widths, given)
        rename_on_load(self, authors_names(depth))

    def _build_convs(
        self, form: UNetForm, widths: UNetWidths, out_channels: int
    ) -> None:
        """Builds the convolution before, down, up and after the U."""

        def conv(level: int, source: int, target: int) -> Module:
            return make_conv(
                OWNER,
                form.conv,
                source,
                target,
                edge_channels=self.pools.edge_channels(level, self.edge_channels),
                options=form.conv_options,
            )

        top = self.depth - 1
        self.stem = conv(0, self.in_channels, widths.entry) if form.stem else None
        self.down_convs = ModuleList(conv(i, *w) for i, w in enumerate(widths.down))
        self.up_convs = ModuleList(conv(top - i, *w) for i, w in enumerate(widths.up))
        last = widths.emitted[-1]
        self.out_conv = conv(0, last, out_channels) if form.out_conv else None
        self.takes = [
            edge_input(each) if self.use_edge_attr else "none"
            for each in self.down_convs
        ]

    def _build_norms(self, widths: UNetWidths, norm: Any) -> None:
        """Builds a normalisation for every convolution but the last."""
        self.stem_norm = NodeNorm(norm if self.stem is not None else None, widths.entry)
        self.down_norms = ModuleList(NodeNorm(norm, width) for _, width in widths.down)
        plain = self.ends_in_up_conv and self.skip == "pre"
        self.up_norms = ModuleList(
            NodeNorm(None if plain and step == self.depth - 1 else norm, width)
            for step, (_, width) in enumerate(widths.up)
        )

    def _build_head(
        self, form: UNetForm, widths: UNetWidths, given: Mapping[str, Any]
    ) -> None:
        """Builds readouts and classifier of a graph task."""
        self.readouts = ModuleList()
        self.head: Head | None = None
        if self.task == "node":
            return
        read = widths.emitted
        read = read[-1:] if form.readout_levels == "last" else read
        readouts = [Readout(OWNER, form.readout, width) for width in read]
        self.readouts.extend(readouts)
        size = sum(sum(readout.out_channels) for readout in readouts)
        hidden = given["head_channels"]
        hidden = [given["hidden_channels"]] if hidden is None else list(hidden)
        channels = [size, *hidden, given["out_channels"]]
        rates = [given["head_dropout"]] * (len(channels) - 1)
        self.head = Head(channels, form.head_act, rates)

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        parts = [self.stem, self.stem_norm, self.pools, self.out_conv, self.head]
        for each in (self.down_convs, self.down_norms, self.up_convs, self.up_norms):
            parts.extend(each)
        for part in [*parts, *self.readouts]:
            reset(part)

    def convolve(
        self, conv: Module, norm: Module | None, x: Tensor, graphs: list[Graph], at: int
    ) -> Tensor:
        """Dropout and convolution; then normalisation and activation, if any."""
        graph = graphs[at]
        x = dropout(x, self.dropout, self.training)
        x = apply_conv(conv, self.takes[at], x, graph.edge_index, graph.edge_attr)
        return x if norm is None else self.act(norm(x, graph.batch, graph.batch_size))

    def join(self, skip: Tensor, x: Tensor) -> Tensor:
        """Brings the features of the way down and of the way up together."""
        return skip + x if self.merge == "sum" else torch.cat([skip, x], dim=-1)

    def finish(
        self, outputs: list[Tensor], graphs: list[Graph]
    ) -> tuple[Tensor, OptTensor]:
        """The rows of the task, and the readout of a graph task."""
        if self.head is None:
            x = outputs[-1]
            if self.out_conv is not None:
                x = self.convolve(self.out_conv, None, x, graphs, 0)
            return x, None
        last = len(outputs) - len(self.readouts)
        parts = [
            readout(x, graphs[level].batch, graphs[level].batch_size)
            for x, level, readout in zip(
                outputs[last:], self.output_levels[last:], self.readouts, strict=True
            )
        ]
        # All levels of the first readout, then all of the second, and so on.
        columns = [part[kind] for kind in range(len(parts[0])) for part in parts]
        read = torch.cat(columns, dim=-1)
        return self.head(read), read
