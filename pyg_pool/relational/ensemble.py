"""Several draws of tuples at test time, and their median."""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import Module

from pyg_pool.errors import check_choice
from pyg_pool.relational.conv import RelationalPooling
from pyg_pool.typing import OptTensor

__all__ = ["sampled_median"]


@torch.no_grad()
def sampled_median(
    model: Module,
    x: Tensor,
    edge_index: Tensor,
    edge_attr: OptTensor = None,
    *,
    batch: OptTensor = None,
    batch_size: int | None = None,
    draws: int = 5,
    reduce: str = "median",
    generator: Generator | None = None,
) -> Tensor:
    """Runs a network in evaluation on several samples of tuples and joins the outputs.

    Args:
        model: A network with ``num_samples`` or ``drop_perm``, such as
            :class:`pyg_pool.models.KLGNN`.
        x: Features.
        edge_index: Edges.
        edge_attr: Attributes of the edges.
        batch: Graph of each node.
        batch_size: Number of graphs.
        draws: Number of samples.
        reduce: ``"median"`` or ``"mean"`` of their outputs, entry by entry.
        generator: Source of the draws.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]``; returns what the model returns.

    Raises:
        ValueError: If the model draws nothing, or ``draws`` is below 1.

    Note:
        The model's mode and options are afterwards what they were. Of an even number
        of draws the lower of the two middle ones is taken, as in torch.

    Example:
        >>> import torch
        >>> from pyg_pool.models import KLGNN
        >>> from pyg_pool.relational import sampled_median
        >>> model = KLGNN(2, 8, 1, num_samples=2)
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> sampled_median(model, torch.ones(4, 2), edges, draws=3).shape
        torch.Size([1, 1])
    """
    check_choice("sampled_median", "reduce", reduce, ("median", "mean"))
    parts = [m for m in model.modules() if isinstance(m, RelationalPooling)]
    drawing = [m for m in parts if m.num_samples is not None or m.labeller.drop_perm]
    if not drawing or draws < 1:
        raise ValueError(
            f"sampled_median got {type(model).__name__} with {len(drawing)} parts that "
            f"draw, and draws={draws}, expected at least one of each; build it with "
            f"num_samples, or call the model itself."
        )
    modes = [(module, module.training) for module in model.modules()]
    before = [part.sample_in_eval for part in drawing]
    model.eval()
    for part in drawing:
        part.sample_in_eval = True
    sizes = {"batch": batch, "batch_size": batch_size}
    try:
        outputs = [
            model(x, edge_index, edge_attr, generator=generator, **sizes)
            for _ in range(draws)
        ]
    finally:
        for module, mode in modes:
            module.training = mode
        for part, value in zip(drawing, before, strict=True):
            part.sample_in_eval = value
    stack = torch.stack(outputs)
    return stack.median(0).values if reduce == "median" else stack.mean(0)
