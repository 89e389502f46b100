"""Segment kernels beside PyG's aggregations and utilities, torch and torch-scatter.

Besides the graph inputs there is ``skew``, segments of very different size. The fact
``read_once_ms`` is the time to read the rows once at the memory bandwidth that was
measured in the same process: ours / read_once_ms is how far a step is from that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch_geometric.nn import (
    MaxAggregation,
    MeanAggregation,
    MinAggregation,
    PowerMeanAggregation,
    SoftmaxAggregation,
    SumAggregation,
)
from torch_geometric.utils import scatter, softmax

from benchmarks.harness import Forward, Row, Side
from benchmarks.inputs import GraphInput
from benchmarks.runner import main

Built = tuple[Sequence[torch.nn.Module], Forward]
Reduce = Callable[[Tensor, Tensor, int], Tensor]

INPUTS = ("a", "b", "c", "skew")
PROBE_FLOATS = 1 << 24
OURS = ("pyg_pool",)
SCATTER = ("torch_scatter",)


def read_once(graph: GraphInput) -> dict[str, float]:
    """Milliseconds to read the rows once, from the best of several sums."""
    probe, best = torch.ones(PROBE_FLOATS), float("inf")
    for _ in range(8):
        start = time.perf_counter()
        probe.sum()
        best = min(best, time.perf_counter() - start)
    return {"read_once_ms": 1e3 * best * graph.x.numel() / PROBE_FLOATS}


def built(run: Reduce, modules: Sequence[torch.nn.Module], graph: GraphInput) -> Built:
    """A step that reduces the rows to the graphs."""

    def forward(x: Tensor, edge_weight: Tensor) -> list[Tensor]:
        return [run(x, graph.batch, graph.num_graphs)]

    return modules, forward


def plain(run: Reduce, graph: GraphInput) -> Built:
    """A function without weights."""
    return built(run, [], graph)


def aggregation(make: Callable[[], torch.nn.Module], graph: GraphInput) -> Built:
    """One of PyG's aggregations."""
    module = make()
    return built(lambda x, i, n: module(x, i, dim_size=n), [module], graph)


def ours_reduce(how: str, x: Tensor, index: Tensor, size: int) -> Tensor:
    """Our segment reduction."""
    from pyg_pool.kernels import segment_reduce

    return segment_reduce(x, index, dim_size=size, reduce=how)  # type: ignore[arg-type]


def ours_softmax(x: Tensor, index: Tensor, size: int) -> Tensor:
    """Our softmax over segments."""
    from pyg_pool.kernels import segment_softmax

    return segment_softmax(x, index, dim_size=size)


def peer_softmax(x: Tensor, index: Tensor, size: int) -> Tensor:
    """PyG's softmax over segments."""
    return softmax(x, index, num_nodes=size)


def ours_weighted(x: Tensor, index: Tensor, size: int) -> Tensor:
    """Our softmax-weighted sum, each channel weighted by itself."""
    from pyg_pool.kernels import segment_attention

    return segment_attention(x, x, index, dim_size=size)


def ours_tempered(graph: GraphInput) -> Built:
    """The same with a learned temperature, as PyG's aggregation has it."""
    from pyg_pool.kernels import segment_attention

    module = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(1))])

    def run(x: Tensor, index: Tensor, size: int) -> Tensor:
        return segment_attention(x * module[0], x, index, dim_size=size)

    return built(run, [module], graph)


def attentive(is_ours: bool, graph: GraphInput) -> Built:
    """One learned score per row, as a gate network would give it."""
    from pyg_pool.kernels import segment_attention

    gate = torch.randn(graph.x.size(0), 1, generator=torch.Generator().manual_seed(0))
    module = torch.nn.ParameterList([torch.nn.Parameter(gate)])

    def run(x: Tensor, index: Tensor, size: int) -> Tensor:
        if is_ours:
            return segment_attention(module[0], x, index, dim_size=size)
        weight = softmax(module[0], index, num_nodes=size)
        return scatter(weight * x, index, 0, size, "sum")

    return built(run, [module], graph)


def ours_pnorm(graph: GraphInput) -> Built:
    """Our norm with learned exponents, a power mean at the start."""
    from pyg_pool.kernels import segment_pnorm

    start = [torch.nn.Parameter(torch.tensor([value])) for value in (2.0, 0.5)]
    module = torch.nn.ParameterList(start)
    return built(
        lambda x, i, n: segment_pnorm(x, module[0], module[1], i, dim_size=n),
        [module],
        graph,
    )


def peer_logsumexp(x: Tensor, index: Tensor, size: int) -> Tensor:
    """Logarithm of the sum of exponentials, by torch-scatter."""
    from torch_scatter import scatter_logsumexp

    return scatter_logsumexp(x, index, 0, dim_size=size)


def peer_scatter_max(x: Tensor, index: Tensor, size: int) -> Tensor:
    """The maximum, by torch-scatter."""
    from torch_scatter import scatter_max

    return scatter_max(x, index, 0, dim_size=size)[0]


def peer_scatter_sum(x: Tensor, index: Tensor, size: int) -> Tensor:
    """The sum, by torch-scatter."""
    from torch_scatter import scatter_sum

    return scatter_sum(x, index, 0, dim_size=size)


def torch_scatter_reduce(x: Tensor, index: Tensor, size: int) -> Tensor:
    """The maximum, by torch alone."""
    spread = index.unsqueeze(1).expand_as(x)
    out = x.new_zeros(size, x.size(1))
    return out.scatter_reduce(0, spread, x, "amax", include_self=False)


def torch_segment_reduce(graph: GraphInput) -> Built:
    """The maximum, by torch for sorted rows; shuffled ones are sorted first."""
    order = torch.argsort(graph.batch, stable=True)
    is_sorted = bool((graph.batch.diff() >= 0).all())
    lengths = torch.bincount(graph.batch, minlength=graph.num_graphs)

    def run(x: Tensor, index: Tensor, size: int) -> Tensor:
        rows = x if is_sorted else x[order]
        return torch.segment_reduce(rows, "max", lengths=lengths, axis=0)

    return built(run, [], graph)


def ours(how: str) -> Side:
    """Our side of a reduction."""
    label = f'pyg_pool.kernels.segment_reduce(reduce="{how}")'
    return Side(label, partial(plain, partial(ours_reduce, how)), OURS)


def pyg(make: Callable[[], torch.nn.Module], label: str) -> Side:
    """One of PyG's aggregations."""
    return Side(f"torch_geometric.nn.{label}", partial(aggregation, make))


ATTENTION = "pyg_pool.kernels.segment_attention"
ALIKE = "Peers get the same tensors, also in random order."
CLAMPED = "The peer clamps its input to 1e-4..100 and has no size exponent."
PAIRS: tuple[tuple[str, Side, Side, str], ...] = (
    ("sum", ours("sum"), pyg(SumAggregation, "SumAggregation"), ALIKE),
    ("mean", ours("mean"), pyg(MeanAggregation, "MeanAggregation"), ALIKE),
    ("max", ours("max"), pyg(MaxAggregation, "MaxAggregation"), ALIKE),
    ("min", ours("min"), pyg(MinAggregation, "MinAggregation"), ALIKE),
    (
        "softmax",
        Side("pyg_pool.kernels.segment_softmax", partial(plain, ours_softmax), OURS),
        Side("torch_geometric.utils.softmax", partial(plain, peer_softmax)),
        ALIKE,
    ),
    (
        "softmax_sum",
        Side(f"{ATTENTION}(x, x)", partial(plain, ours_weighted), OURS),
        pyg(SoftmaxAggregation, "SoftmaxAggregation"),
        ALIKE,
    ),
    (
        "softmax_sum_learned",
        Side(f"{ATTENTION}(t * x, x)", ours_tempered, OURS),
        pyg(partial(SoftmaxAggregation, learn=True), "SoftmaxAggregation(learn=True)"),
        ALIKE,
    ),
    (
        "attention",
        Side(f"{ATTENTION}(gate, x)", partial(attentive, True), OURS),
        Side("AttentionalAggregation's softmax and sum", partial(attentive, False)),
        ALIKE,
    ),
    (
        "pnorm",
        Side("pyg_pool.kernels.segment_pnorm", ours_pnorm, OURS),
        pyg(
            partial(PowerMeanAggregation, learn=True, p=2.0),
            "PowerMeanAggregation(learn=True, p=2)",
        ),
        CLAMPED,
    ),
    (
        "max_torch_scatter_reduce",
        ours("max"),
        Side("torch.scatter_reduce", partial(plain, torch_scatter_reduce)),
        "The peer shares the gradient among ties.",
    ),
    (
        "max_torch_segment_reduce",
        ours("max"),
        Side("torch.segment_reduce", torch_segment_reduce),
        "The peer gets the sizes of the segments, and sorts shuffled rows.",
    ),
    (
        "max_torch_scatter",
        ours("max"),
        Side("torch_scatter.scatter_max", partial(plain, peer_scatter_max), SCATTER),
        ALIKE,
    ),
    (
        "sum_torch_scatter",
        ours("sum"),
        Side("torch_scatter.scatter_sum", partial(plain, peer_scatter_sum), SCATTER),
        ALIKE,
    ),
    (
        "logsumexp_torch_scatter",
        ours("logsumexp"),
        Side(
            "torch_scatter.scatter_logsumexp", partial(plain, peer_logsumexp), SCATTER
        ),
        ALIKE,
    ),
)

ROWS = tuple(
    Row(
        name,
        mine,
        peer,
        inputs=INPUTS,
        weight_gradient=False,
        note=note,
        check=read_once,
    )
    for name, mine, peer, note in PAIRS
)

if __name__ == "__main__":
    raise SystemExit(main(["bench_kernels"]))
