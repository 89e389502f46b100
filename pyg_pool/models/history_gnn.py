"""A network whose readout sees the activations of all its layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.nn.models.basic_gnn import BasicGNN

from pyg_pool.core.history_hooks import default_layers, frozen, recording
from pyg_pool.readout import HistographAggregation
from pyg_pool.typing import OptTensor

__all__ = ["HistoryGNN", "history_widths"]

MakeReadout = Callable[[list[int]], Aggregation]


class HistoryGNN(Module):
    r"""A PyG model, a readout of all its layers, and a head.

    .. math::
        y = \mathrm{head}(\mathrm{readout}([X^{(0)} \Vert X^{(1)} \Vert \dots]))

    Args:
        backbone: One of PyG's basic models (``GCN``, ``GIN``, ``GraphSAGE``, ``GAT``,
            ``PNA``, ...), or another model with ``layers``.
        readout: Aggregation of the layers side by side; a function from the widths of
            the layers to one; or the width of a :class:`HistographAggregation`.
        head: Maps the row of a graph to its outputs; without it the row is returned.
        layers: Names of modules as ``named_modules()`` gives them, ``"input"`` for the
            features; ``None`` for the input and all layers of a basic model, after
            normalisation, activation and dropout.
        is_frozen: Whether the backbone stays in evaluation mode and gets no gradient,
            as in :func:`pyg_pool.readout.collect_history`.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; batch: ``[N]`` in any order; returns
        ``[B, *]``.

    Raises:
        ValueError: If the layers are unknown, or not named for a model that is no
            basic one.

    Source:
        Y. Galron, H. Sinai, H. Maron, M. Eliasof. Learning from Historical Activations
        in Graph Neural Networks. ICLR 2026.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import GIN
        >>> from pyg_pool.models import HistoryGNN
        >>> model = HistoryGNN(GIN(3, 8, 4), 16, torch.nn.Linear(16, 2))
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> model(torch.rand(3, 3), edge_index, batch=torch.tensor([0, 0, 1])).shape
        torch.Size([2, 2])
    """

    def __init__(
        self,
        backbone: Module,
        readout: Aggregation | MakeReadout | int,
        head: Module | None = None,
        *,
        layers: Sequence[str] | None = None,
        is_frozen: bool = False,
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.is_frozen = backbone, head, is_frozen
        self.layers = default_layers(backbone) if layers is None else list(layers)
        with recording(backbone, self.layers):
            pass  # names are checked
        if isinstance(readout, int):
            width = readout
            self.readout: Module = HistographAggregation(
                history_widths(backbone, self.layers), width,
                heads=4 if width % 4 == 0 else 1,
            )  # fmt: skip
        elif isinstance(readout, Module):
            self.readout = readout
        else:
            self.readout = readout(history_widths(backbone, self.layers))
        self.train(self.training)

    def reset_parameters(self) -> None:
        """Draws all weights anew, those of a frozen backbone excepted."""
        parts: list[Any] = [self.readout, self.head]
        if not self.is_frozen:
            parts.append(self.backbone)
        for part in parts:
            if hasattr(part, "reset_parameters"):
                part.reset_parameters()

    def train(self, mode: bool = True) -> HistoryGNN:
        """Sets the mode; a frozen backbone stays in evaluation mode."""
        super().train(mode)
        if self.is_frozen:
            self.backbone.eval()
        return self

    def history(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: OptTensor = None,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> list[Tensor]:
        """Returns the activations of all layers, ``[N, F_l]`` each."""
        edges = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        given: dict[str, Any] = {n: v for n, v in edges.items() if v is not None}
        if isinstance(self.backbone, BasicGNN):
            given.update(batch=batch, batch_size=batch_size)
        if not self.is_frozen:
            with recording(self.backbone, self.layers) as record:
                self.backbone(x, edge_index, **given)
            return record.history(x)
        with frozen(self.backbone), recording(self.backbone, self.layers) as record:
            self.backbone(x, edge_index, **given)
        return [layer.detach() for layer in record.history(x)]

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: OptTensor = None,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Returns one row per graph."""
        layers = self.history(
            x, edge_index, edge_weight, edge_attr, batch=batch, batch_size=batch_size
        )
        out: Tensor = self.readout(torch.cat(layers, -1), batch, dim_size=batch_size)
        return out if self.head is None else self.head(out)


def history_widths(model: Module, layers: Sequence[str] | None = None) -> list[int]:
    """Widths of the layers of one of PyG's basic models.

    Args:
        model: ``GCN``, ``GIN``, ``GraphSAGE``, ``GAT``, ``PNA``, ...
        layers: What is recorded; ``None`` for the input and all layers.

    Raises:
        ValueError: If the model is of another kind.

    Example:
        >>> from torch_geometric.nn import GCN
        >>> from pyg_pool.models.history_gnn import history_widths
        >>> history_widths(GCN(3, 8, 3, out_channels=5))
        [3, 8, 8, 5]
    """
    names = default_layers(model)
    widths: dict[str, list[int]] = {}
    if isinstance(model, BasicGNN):
        number, hidden = model.num_layers, model.hidden_channels
        has_jk = model.jk_mode is not None
        last = hidden if has_jk else model.out_channels
        widths["input"] = [model.in_channels]
        widths["dropout"] = [hidden] * (number if has_jk else number - 1)
        widths |= {f"convs.{i}": [hidden] for i in range(number - 1)}
        widths[f"convs.{number - 1}"] = [last]
    chosen = names if layers is None else layers
    unknown = [name for name in chosen if name not in widths]
    if unknown:
        raise ValueError(
            f"history_widths got the layers {unknown}, expected some of "
            f"{sorted(widths)}; pass the aggregation itself, built for the widths."
        )
    return [width for name in chosen for width in widths[name]]
