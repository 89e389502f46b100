"""A selection of nodes by scores with all that follows, compiled for the CPU.

Rows are scored and ranked, the picked ones gated, and edges between them taken along:
one step of autograd. The gradient of a row that was not picked costs one write. Small
graphs spend more time on calls than on the work, so there are few of them: buffers
share one piece of memory and kernels get addresses inside it.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pyg_pool.kernels import threads
from pyg_pool.kernels.dispatch import runs_numba
from pyg_pool.kernels.pick_step import Form, Plan, picked, room
from pyg_pool.kernels.segment_twin import typed
from pyg_pool.kernels.topk import as_share_or_count, best_rows, num_kept
from pyg_pool.typing import OptTensor

__all__ = ["Form", "Picked", "pick"]

FLOATS = (torch.float32, torch.float64)
PLAIN = (Tensor, torch.nn.Parameter)
LIMIT = 2**31


class Picked(NamedTuple):
    """The result of :func:`pick`.

    Args:
        x: Gated rows.
        score: Their gates.
        kept: Their positions in the input.
        clusters: 0, 1, 2 and so on, one for each of them.
        edge_index: Edges between them.
        edge_attr: Attributes of these edges.
        batch: Graph of each row.
        batch_size: Number of graphs.
    """

    x: Tensor
    score: Tensor
    kept: Tensor
    clusters: Tensor
    edge_index: Tensor
    edge_attr: OptTensor
    batch: Tensor
    batch_size: int


def pick(
    x: Tensor, edge_index: Tensor, edge_attr: OptTensor, batch: OptTensor,
    batch_size: int | None, weight: Tensor, bias: OptTensor, form: Form,
) -> Picked | None:  # fmt: skip
    """Picks rows by their projections on a vector.

    Args:
        x: Rows.
        edge_index: Edges.
        edge_attr: Their attributes.
        batch: Graph of each row, in any order; ``None`` for one graph.
        batch_size: Number of graphs.
        weight: The vector.
        bias: Added to each product.
        form: What to keep, and its gate.

    Returns:
        What was picked; ``None`` where this way is not open: under a trace, on other
        devices, below the size from which it pays, or for input with a fault.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; edge_attr: ``[E, *]``; batch:
        ``[N]`` int64; weight: ``[1, F]``; bias: ``[1]``.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import use_backend
        >>> from pyg_pool.kernels.pick import Form, pick
        >>> x, weight = torch.tensor([[5.0], [2.0]]), torch.tensor([[-1.0]])
        >>> loop = torch.tensor([[1], [1]])
        >>> with use_backend("numba"):
        ...     out = pick(x, loop, None, None, 1, weight, None, Form(gate="identity"))
        >>> out.x, out.kept, out.edge_index.tolist()
        (tensor([[-4.]]), tensor([1]), [[0], [0]])
    """
    if not _is_open(x, edge_index, edge_attr, batch, batch_size, weight):
        return None
    size = 1
    if batch is not None:
        batch = batch.contiguous()
        size = int(batch.max()) + 1 if batch_size is None else batch_size
    edge_index = edge_index.contiguous()
    found = _planned(x, edge_index, batch, size, weight, bias, form)
    if found is None:
        return None
    plan, work, first, raw = found
    kept = plan.kept
    clusters, graph = torch.empty_like(kept), torch.empty_like(kept)
    edges = torch.empty((2, plan.between), dtype=torch.int64)
    rest = (
        first, 0 if batch is None else batch.data_ptr(), edge_index.data_ptr(), raw,
        clusters.data_ptr(), graph.data_ptr(), edges.data_ptr(), batch is not None,
    )  # fmt: skip
    pooled, score, attr = picked(x, weight, bias, edge_attr, plan, rest)
    del work  # not before: ``rest`` holds addresses inside
    return Picked(pooled, score, kept, clusters, edges, attr, graph, size)


def _is_open(
    x: Tensor, edge_index: Tensor, edge_attr: OptTensor, batch: OptTensor,
    batch_size: int | None, weight: Tensor,
) -> bool:  # fmt: skip
    """Whether the compiled way takes such input; faults are left to the other."""
    if not isinstance(x, Tensor) or not runs_numba("pick", x.numel(), x):
        return False
    if type(x) not in PLAIN or type(edge_index) is not Tensor:
        return False
    shape, kind, ends = x.shape, x.dtype, edge_index.shape
    is_fit = (
        len(shape) == 2
        and shape[1] == weight.shape[1]
        and shape[0] < LIMIT
        and kind in FLOATS
        and weight.dtype is kind
        and weight.is_cpu
        and x.is_contiguous()
        and len(ends) == 2
        and ends[0] == 2
        and ends[1] < LIMIT
        and edge_index.dtype is torch.int64
        and edge_index.layout is torch.strided
        and edge_index.is_cpu
    )
    if is_fit and edge_attr is not None:
        is_fit = (
            type(edge_attr) in PLAIN
            and edge_attr.dtype is kind
            and edge_attr.shape[:1] == ends[1:]
            and edge_attr.is_cpu
        )
    if not is_fit or batch is None:
        return is_fit and batch_size in (None, 1)
    return (
        type(batch) is Tensor
        and batch.dtype is torch.int64
        and batch.shape == shape[:1]
        and shape[0] > 0
        and batch.is_cpu
    )


def _planned(
    x: Tensor, edge_index: Tensor, batch: OptTensor, size: int, weight: Tensor,
    bias: OptTensor, form: Form,
) -> tuple[Plan, Tensor, int, int] | None:  # fmt: skip
    """The choice of rows and edges; working memory, its list of rows, its scores.

    ``None`` where a graph or a row is out of range.
    """
    kernel, (rows, width), edges = room(), x.shape, edge_index.shape[1]
    held = torch.empty(2 * (width + 1) + rows + edges, dtype=torch.int32)
    vector = held.data_ptr()
    place = vector + 8 * (width + 1)
    ids = place + 4 * rows
    work = torch.empty(kernel.COUNTERS + 2 * size + 3 * rows, dtype=torch.int64)
    count = work.data_ptr()
    keep = count + 8 * kernel.COUNTERS
    first = keep + 16 * size
    raw = first + 16 * rows
    weight, shift = weight.contiguous(), 0 if bias is None else bias.data_ptr()
    run, size_of_work = typed(kernel.scores, x), rows * width
    alone = size_of_work < threads.PARALLEL_FROM or torch.get_num_threads() == 1
    given = width, shift != 0, x.data_ptr(), weight.data_ptr(), vector, shift, raw
    run(0, rows if alone else 0, form.normalize, *given)
    if not alone:  # the vector is there now
        threads.shared(run, rows, size_of_work, -1, *given)
    share, each = as_share_or_count(form.ratio)
    how = share, each, form.rounding == "ceil", form.min_nodes
    total = num_kept(rows, *how) if batch is None else -1
    is_wide = x.dtype is torch.float64
    if is_wide:
        ranked = _ranked(work, rows, size, batch, form)
        total = -1 if ranked is None else ranked.size(0)
        if ranked is None:
            return None
    code = kernel.choose.single(
        rows, size, edges, total, is_wide, *how, raw,
        0 if batch is None else batch.data_ptr(), edge_index.data_ptr(), count, keep,
        first, first + 8 * rows, place, ids,
    )  # fmt: skip
    if code < 0:
        return None
    kept = torch.empty(code >> 31, dtype=torch.int64)
    between = code & (LIMIT - 1)
    plan = Plan(form, held, vector, place, ids, edges, between, kept)
    return plan, work, first, raw


def _ranked(
    work: Tensor, rows: int, size: int, batch: OptTensor, form: Form
) -> OptTensor:
    """Rows to keep by scores in float64, also written to where they are looked for."""
    if batch is not None and not bool(((batch >= 0) & (batch < size)).all()):
        return None
    raw = work[work.numel() - rows :].view(torch.float64)
    how = form.rounding, form.min_nodes
    found = best_rows(raw, form.ratio, batch, size, *how)
    start = work.numel() - 3 * rows
    work[start : start + found.size(0)] = found
    return found
