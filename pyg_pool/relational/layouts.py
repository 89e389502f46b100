"""Which layout a base network runs in: edges listed for each copy, or shared."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.kernels.gin_stack import RowPool
from pyg_pool.relational.blocks import copy_groups
from pyg_pool.relational.calls import call_base
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.gin import CopyGIN
from pyg_pool.relational.pooling import CopyPooling
from pyg_pool.relational.shared import run_shared, shares_edges
from pyg_pool.typing import OptTensor

__all__ = ["LAYOUTS", "Layout", "pool_in_base", "run_copies"]

Layout = Literal["auto", "listed", "shared"]
LAYOUTS = ("auto", "listed", "shared")
#: Rows of whole copies per graph from which on they share edges by themselves.
LARGE = 1024


def run_copies(
    base: Module,
    x: Tensor,
    copies: Copies,
    edge_attr: OptTensor,
    *,
    times: int = 1,
    layout: str = "auto",
    known: dict[bool, bool] | None = None,
) -> Tensor:
    """Runs a network on the rows of all copies.

    Args:
        base: The network.
        x: ``[times * P, F]`` rows of the copies.
        copies: The copies.
        edge_attr: ``[E, ...]`` attributes of the edges of the graphs.
        times: How often the table of pairs is repeated.
        layout: ``"listed"`` lists the edges of each copy, ``"shared"`` lets whole
            copies use the edges of their graph, ``"auto"`` shares where copies are
            large and the network can.
        known: What is known of the network, see :func:`shares_edges`.

    Raises:
        ValueError: If ``layout="shared"`` is asked for and cannot be had.
    """
    reads_copies = hasattr(base, "mixes_copies")
    may_share = layout != "listed" and not is_traced()
    if reads_copies or (times == 1 and may_share):
        run: Any = getattr(base, "on_copies", None)
        if run is not None:
            more = {"listed": layout == "listed"} if reads_copies else {}
            out: Tensor = run(x, copies, edge_attr, **more)
            return out
    number, size, owner = len(copies.tuples), copies.num_pairs, copies.pair_tuple
    if times > 1:
        owner = _repeated(owner, times, number)
    if may_share and _can_share(base, x, copies, edge_attr, layout, known):
        index, groups = copies.ground.edge_index, copy_groups(copies, times)
        return run_shared(base, x, index, edge_attr, groups, owner, number * times)
    edges, ids = copies.listed
    if times > 1:
        edges, ids = _repeated(edges, times, size), ids.repeat(times)
    attr = None if edge_attr is None else edge_attr.index_select(0, ids)
    return call_base(base, x, edges, attr, owner, number * times)


def _repeated(index: Tensor, times: int, step: int) -> Tensor:
    """Numbers several times in a row, each time larger by a step."""
    length = index.size(-1)
    shift = torch.arange(times, device=index.device).repeat_interleave(length)
    return index.repeat(*[1] * (index.dim() - 1), times) + step * shift


def _can_share(
    base: Module,
    x: Tensor,
    copies: Copies,
    edge_attr: OptTensor,
    layout: str,
    known: dict[bool, bool] | None,
) -> bool:
    """Whether messages go along shared edges: where they can, and where it pays."""
    graphs = max(copies.tuples.batch_size, 1)
    is_large = copies.is_full and copies.num_pairs >= graphs * LARGE
    if layout == "auto" and not is_large:
        return False
    answers = {} if known is None else known
    key = edge_attr is None
    if key not in answers and x.size(0):
        answers[key] = shares_edges(base, x, edge_attr)
    if layout == "shared" and not (copies.is_full and answers.get(key, True)):
        raise ValueError(
            f"RelationalPooling got layout='shared' with {type(base).__name__} and "
            f"{'whole' if copies.is_full else 'cut'} copies, expected whole copies "
            f"and layers that add up or average neighbours' rows; leave ego and "
            f"policy out, take such layers, or take layout='auto'."
        )
    return answers.get(key, False)


def pool_in_base(base: Module, pooling: CopyPooling, copies: Copies) -> RowPool | None:
    """The pooling of each copy's rows, if the network can do it block by block."""
    word = pooling.row_pool
    if word is None or not isinstance(base, CopyGIN) or is_traced():
        return None
    return RowPool(copies.pair_tuple, len(copies.tuples), word == "mean")
