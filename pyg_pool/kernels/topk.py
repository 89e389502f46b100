"""Per-graph top-k selection with a tie rule that is the same everywhere.

Inside each graph rows are ordered by descending score, ties by ascending row, NaN
after every number. The number of kept rows is computed in float64 with a guard, so
it does not depend on the type of the scores.
"""

from __future__ import annotations

import math
import numbers

import torch
from torch import Tensor

from pyg_pool.errors import check_batch, check_choice
from pyg_pool.kernels.dispatch import chosen, is_exported, runs_numba
from pyg_pool.kernels.segment import segment_count, segment_reduce
from pyg_pool.typing import OptTensor, Rounding

__all__ = ["topk"]

# t = ratio * N may miss an integer by a rounding error; 0.55 * 100 is not 55.0.
GUARD = 1e-9


def topk(
    score: Tensor,
    ratio: float | None = None,
    *,
    k: int | None = None,
    batch: OptTensor = None,
    batch_size: int | None = None,
    rounding: Rounding = "ceil",
    min_nodes: int = 1,
) -> Tensor:
    r"""Selects the highest scores of each graph.

    .. math::
        k_g = \min\bigl(N_g,\ \max(\mathrm{min\_nodes},\
        \lceil \mathrm{ratio} \cdot N_g \rceil)\bigr)

    Args:
        score: Scores.
        ratio: Share of the rows to keep, a float in (0, 1]; an int is a count.
        k: Number of rows to keep per graph, instead of ``ratio``.
        batch: Graph of each row, in any order; ``None`` means one graph.
        batch_size: Number of graphs.
        rounding: ``"ceil"`` or ``"floor"``.
        min_nodes: Lower bound of the rows kept per graph (never above its size).

    Returns:
        Row ids, graph by graph in ascending graph id, inside a graph by descending
        score.

    Shapes:
        score: ``[N]``; batch: ``[N]`` int64; returns ``[K]`` int64.

    Raises:
        ValueError: If neither or both of ``ratio`` and ``k`` are given, or one is
            out of range.

    Note:
        Equal scores: the lowest row first, on every device and in every type. NaN
        ranks after every number. An empty graph keeps nothing.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import topk
        >>> score = torch.tensor([1.0, 3.0, 2.0, 5.0, 5.0])
        >>> topk(score, 0.5, batch=torch.tensor([0, 0, 0, 1, 1]))
        tensor([1, 2, 3])
    """
    if (ratio is None) == (k is None):
        raise ValueError(
            f"topk got ratio={ratio} and k={k}, expected exactly one of them; give "
            f"the share or the number of rows to keep."
        )
    size = k if k is not None else ratio
    check_ratio("topk", size)
    check_choice("topk", "rounding", rounding, ("ceil", "floor"))
    if score.dim() != 1 or not score.is_floating_point():
        raise ValueError(
            f"topk got score of shape {list(score.shape)} and dtype {score.dtype}, "
            f"expected floating point numbers of shape [num_nodes]; squeeze the last "
            f"dimension, or convert it with score.double()."
        )
    batch_size = check_batch("topk", batch, batch_size, score.size(0))
    return best_rows(score, size, batch, batch_size, rounding, min_nodes)


def best_rows(
    score: Tensor,
    size: object,
    batch: OptTensor,
    batch_size: int,
    rounding: str = "ceil",
    min_nodes: int = 1,
) -> Tensor:
    """:func:`topk` of input that was checked before."""
    share, count = as_share_or_count(size)
    up = rounding == "ceil"
    if batch is None and is_exported():  # a count from the shape would be a guard
        batch = torch.zeros_like(score, dtype=torch.long)
    compiled = _takes_numba(score)
    if compiled and score.dtype != torch.float64:
        keep = (share, count, up, min_nodes)
        return _compiled_rows(_plain(score), batch, batch_size, keep)
    if batch is None:
        kept = num_kept(score.size(0), share, count, up, min_nodes)
        return rank(score)[:kept]
    if compiled:
        from pyg_pool.kernels import topk_numba

        ranked = topk_numba.ranked(_plain(score).numpy())
        rows = topk_numba.first_of_each(
            ranked, batch.numpy(), batch_size, share, count, up, min_nodes
        )
        return torch.from_numpy(rows)
    sizes = segment_count(batch, batch_size)
    if score.dtype != torch.float64 and chosen("topk", score, batch):
        from pyg_pool.kernels import topk_triton

        key, order = torch.sort(topk_triton.sort_keys(score, batch), stable=True)
        each = num_kept_each(sizes, share, count, up, min_nodes)
        found: Tensor = topk_triton.first_of_each(order, key, sizes, each)
        return found
    order, graph = _rank_batch(score, batch)
    start = sizes.cumsum(0) - sizes
    each = num_kept_each(sizes, share, count, up, min_nodes)
    position = torch.arange(order.numel(), device=order.device)
    mask = position < (start + each).index_select(0, graph)
    return order.index_select(0, mask.nonzero().view(-1))


def _compiled_rows(
    score: Tensor, batch: OptTensor, batch_size: int, keep: tuple[float, int, bool, int]
) -> Tensor:
    """:func:`best_rows` of contiguous float32 by the numba twin."""
    from pyg_pool.kernels import topk_numba as kernel

    rows = score.numel()
    counters = torch.empty(kernel.COUNTERS + 2 * batch_size, dtype=torch.int64)
    count = counters.data_ptr()
    table, ids = count + 8 * kernel.COUNTERS, 0
    if batch is None:
        total = num_kept(rows, *keep)
    else:
        batch = batch.contiguous()
        ids = batch.data_ptr()
        share, each, up, least = keep
        total = kernel.keeps.single(
            rows, batch_size, share, each, up, least, ids, table
        )
    scratch = torch.empty(2 * rows, dtype=torch.int64)
    first = scratch.data_ptr()
    out = torch.empty(total, dtype=torch.int64)
    kernel.best.single(
        rows, batch_size, total, score.data_ptr(), ids, table, count, first,
        first + 8 * rows, out.data_ptr(),
    )  # fmt: skip
    return out


def above(
    score: Tensor,
    raw: Tensor,
    threshold: float,
    batch: OptTensor,
    batch_size: int,
) -> Tensor:
    """Rows whose score exceeds a threshold, and the best of each graph.

    Args:
        score: ``[N]`` scores that are compared with the threshold.
        raw: ``[N]`` scores that say which row is best.
        threshold: Lower limit; capped just below the best score of the graph.
        batch: ``[N]`` graph of each row, checked before; ``None`` for one graph.
        batch_size: Number of graphs.

    Returns:
        Row ids, graph by graph, ascending inside a graph.
    """
    top = segment_reduce(score, batch, dim_size=batch_size, reduce="max") - 1e-7
    limit = top.clamp(max=threshold)
    limit = limit if batch is None else limit.index_select(0, batch)
    best = best_rows(raw, 1, batch, batch_size)
    kept = (score > limit).index_fill(0, best, True).nonzero().view(-1)
    if batch is None:
        return kept
    order = torch.sort(batch.index_select(0, kept), stable=True).indices
    return kept.index_select(0, order)


def _takes_numba(score: Tensor) -> bool:
    return runs_numba("topk", score.numel(), score)


def _plain(score: Tensor) -> Tensor:
    """The scores as contiguous float32 or float64."""
    wide = score.dtype == torch.float64
    return (score if wide else score.float()).detach().contiguous()


def rank(score: Tensor) -> Tensor:
    """Row ids by descending score, ties by row, NaN last; ``[N]`` int64."""
    wide = score.dtype == torch.float64
    if _takes_numba(score):
        from pyg_pool.kernels import topk_numba

        if not wide:
            return best_rows(score, 1.0, None, 1)
        return torch.from_numpy(topk_numba.ranked(_plain(score).numpy()))
    if wide:
        # Sorting -score upwards puts NaN last; + 0.0 makes -0 equal to 0.
        return torch.sort(-(score + 0.0), stable=True).indices
    return torch.sort(_descending_key(score), stable=True).indices


def _rank_batch(score: Tensor, batch: Tensor) -> tuple[Tensor, Tensor]:
    """Row ids by graph and descending score, and the graph of each."""
    if score.dtype == torch.float64:
        order = rank(score)
        graph, again = torch.sort(batch.index_select(0, order), stable=True)
        return order.index_select(0, again), graph
    # One integer sort of (graph, score) is several times faster than two sorts.
    key = (batch << 32) + (_descending_key(score).long() + 2**31)
    key, order = torch.sort(key, stable=True)
    return order, key >> 32


def _descending_key(score: Tensor) -> Tensor:
    """An int32 that ascends where the score descends; NaN has the largest."""
    score = score.float() + 0.0
    bits = score.view(torch.int32)
    ascending = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return torch.where(score.isnan(), 0x7FFFFFFF, ~ascending)


def check_ratio(owner: str, ratio: object) -> None:
    """Raises ``ValueError`` unless ``ratio`` is a share or a count."""
    is_count = isinstance(ratio, numbers.Integral)
    is_share = isinstance(ratio, numbers.Real) and not is_count
    if not isinstance(ratio, bool) and (
        (is_count and int(ratio) >= 1)  # type: ignore[call-overload]
        or (is_share and 0.0 < float(ratio) <= 1.0)  # type: ignore[arg-type]
    ):
        return
    raise ValueError(
        f"{owner} got ratio={ratio!r}, expected a float in (0, 1] (the share of "
        f"nodes to keep; 1.0 keeps all) or an int >= 1 (the number of nodes to keep "
        f"per graph); for a count write it without a decimal point."
    )


def as_share_or_count(ratio: object) -> tuple[float, int]:
    """A checked ratio as (share, 0) or (0.0, count)."""
    if isinstance(ratio, numbers.Integral):
        return 0.0, int(ratio)
    return float(ratio), 0  # type: ignore[arg-type]


def num_kept(num_nodes: int, share: float, count: int, up: bool, min_nodes: int) -> int:
    """Number of rows that a graph keeps: ``count``, or else a share rounded."""
    k = count
    if count == 0:
        exact = share * num_nodes
        guard = GUARD * max(1.0, exact)
        k = math.ceil(exact - guard) if up else math.floor(exact + guard)
    return min(num_nodes, max(min_nodes, k))


def num_kept_each(
    num_nodes: Tensor, share: float, count: int, up: bool, min_nodes: int
) -> Tensor:
    """:func:`num_kept` of each graph, ``[B]`` int64."""
    if count > 0:
        k = torch.full_like(num_nodes, count)
    else:
        exact = num_nodes.double() * share
        guard = GUARD * exact.clamp(min=1.0)
        k = ((exact - guard).ceil() if up else (exact + guard).floor()).long()
    return torch.minimum(k.clamp(min=min_nodes), num_nodes)
