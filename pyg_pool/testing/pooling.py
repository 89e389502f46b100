"""Checks of pooling operators: the shape of the result and what it depends on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.nn.pool.select import SelectOutput

from pyg_pool.core import PoolOutput, reduce
from pyg_pool.testing.contract import (
    POOLING_CHECKS,
    PoolingSpec,
    all_same,
    expect,
    listed,
    same,
    total,
)
from pyg_pool.testing.dense import (
    compare_views,
    dense_adjacency,
    dense_view,
    expected_edges,
)
from pyg_pool.testing.gallery import GraphSample, gallery

__all__ = [
    "check_adjacency",
    "check_batch_independence",
    "check_gallery",
    "check_groups",
    "check_levels",
    "check_lift",
    "check_nan",
    "check_permutation",
    "check_single_graph",
    "check_ties",
]


def samples(spec: PoolingSpec) -> list[GraphSample]:
    """The gallery and random graphs, without attributes where they are refused."""
    found = [each.to(spec.device, torch.float64) for each in gallery(spec.in_channels)]
    found += [spec.random(), spec.random(9, 0, 1, 4)]
    return [s for s in found if spec.takes_attributes or not s.has_attributes]


@listed("gallery", POOLING_CHECKS)
def check_gallery(spec: PoolingSpec) -> None:
    """Every graph of the gallery gives a well-formed, finite result and gradient."""
    for sample in samples(spec):
        operator = spec.build()
        leaf = sample.leaf()
        out = spec.call(operator, leaf)
        _check_form(out, sample)
        total(spec.unpack(out)).backward()
        grads = {"x": leaf.x.grad} | {
            name: p.grad for name, p in operator.named_parameters()
        }
        for name, grad in grads.items():
            expect(
                grad is None or bool(grad.isfinite().all()),
                f"{sample.name}: the gradient of {name} is not finite",
            )
    if not spec.takes_attributes:
        _check_refusal(spec)


def _check_refusal(spec: PoolingSpec) -> None:
    """An operator that cannot carry attributes says so."""
    sample = next(s for s in gallery(spec.in_channels) if s.has_attributes)
    try:
        spec.call(spec.build(), sample.to(spec.device, torch.float64))
    except ValueError as error:
        expect("[E]" in str(error), f"the message names no accepted shape: {error}")
        return
    raise AssertionError("edge_attr [E, D] is neither pooled nor refused")


def _check_form(out: PoolOutput, sample: GraphSample) -> None:
    """Shapes, types and ranges of a result."""
    name, size = sample.name, out.x.size(0)
    expect(isinstance(out, PoolOutput), f"{name}: got {type(out)}, expected PoolOutput")
    expect(isinstance(out.selection, SelectOutput), f"{name}: selection is foreign")
    for what, tensor, shape, dtype in (
        ("x", out.x, [size, out.x.size(-1)], sample.x.dtype),
        ("edge_index", out.edge_index, [2, out.edge_index.size(-1)], torch.long),
        ("batch", out.batch, [size], torch.long),
        ("score", out.score, [size], sample.x.dtype),
        ("loss", out.loss, [], None),
    ):
        if tensor is None:
            continue
        expect(
            list(tensor.shape) == shape and dtype in (None, tensor.dtype),
            f"{name}: {what} has shape {list(tensor.shape)} and dtype {tensor.dtype}, "
            f"expected {shape} and {dtype}",
        )
        expect(tensor.device == sample.x.device, f"{name}: {what} is on another device")
        if tensor.is_floating_point():
            expect(bool(tensor.isfinite().all()), f"{name}: {what} is not finite")
    _check_edges(out, sample)
    _check_selection(out, sample)


def _check_edges(out: PoolOutput, sample: GraphSample) -> None:
    name, attr = sample.name, out.edge_attr
    if sample.edge_attr is not None:
        expect(attr is not None, f"{name}: the edge attributes were dropped")
    if attr is not None:
        given = sample.edge_attr
        tail = [] if given is None else list(given.shape[1:])
        expect(
            list(attr.shape) == [out.edge_index.size(1), *tail],
            f"{name}: edge_attr has shape {list(attr.shape)} for "
            f"{out.edge_index.size(1)} edges, expected [E'] + {tail}",
        )
    row, col = out.edge_index
    if row.numel() > 0:
        ends = torch.cat([row, col])
        inside = int(ends.min()) >= 0 and int(ends.max()) < out.x.size(0)
        expect(inside, f"{name}: edges point to clusters that do not exist")
        joined = bool((out.batch[row] != out.batch[col]).any())
        expect(not joined, f"{name}: an edge joins two graphs")


def _check_selection(out: PoolOutput, sample: GraphSample) -> None:
    name, selection = sample.name, out.selection
    sizes = (selection.num_nodes, selection.num_clusters)
    wanted = (sample.num_nodes, out.x.size(0))
    expect(sizes == wanted, f"{name}: selection of sizes {sizes}, expected {wanted}")
    members = sample.batch[selection.node_index]
    clusters = out.batch[selection.cluster_index]
    expect(bool((members == clusters).all()), f"{name}: batch and selection differ")
    expect(out.batch_size == sample.batch_size, f"{name}: batch_size changed")
    lost = set(sample.batch.tolist()) - set(out.batch.tolist())
    expect(not lost, f"{name}: nothing is left of graphs {sorted(lost)}")


@listed("permutation", POOLING_CHECKS)
def check_permutation(spec: PoolingSpec) -> None:
    """Renumbering nodes and edges renumbers the result and changes nothing else."""
    operator = spec.build()
    for sample in samples(spec):
        chance = torch.Generator().manual_seed(7)
        order = torch.randperm(sample.num_nodes, generator=chance)
        edge_order = torch.randperm(sample.num_edges, generator=chance)
        moved = sample.permuted(order.to(spec.device), edge_order.to(spec.device))
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel())
        compare_views(
            dense_view(spec.call(operator, moved), nodes=back.to(spec.device)),
            dense_view(spec.call(operator, sample)),
            f"{sample.name} with other numbers",
        )


@listed("batch_independence", POOLING_CHECKS)
def check_batch_independence(spec: PoolingSpec) -> None:
    """A graph alone gives what it gives in a batch, also in training."""
    operator = spec.build()
    modes = [False, True] if _is_deterministic_in_training(spec) else [False]
    for sample in samples(spec):
        for training in modes:
            out = spec.call(operator.train(training), sample)
            for graph in range(sample.batch_size):
                alone, nodes = sample.single(graph)
                compare_views(
                    dense_view(out, nodes=nodes, graph=graph),
                    dense_view(spec.call(operator, alone)),
                    f"graph {graph} of {sample.name} (training: {training})",
                    with_batch=False,
                )


def _is_deterministic_in_training(spec: PoolingSpec) -> bool:
    operator, sample = spec.build().train(), spec.random(40)
    first, second = (spec.tensors(operator, sample)["x"] for _ in range(2))
    return first.shape == second.shape and torch.equal(first, second)


@listed("single_graph", POOLING_CHECKS)
def check_single_graph(spec: PoolingSpec) -> None:
    """``batch=None`` means one graph and gives the numbers of a batch of zeros."""
    operator = spec.build()
    for sample in samples(spec):
        if sample.batch_size != 1:
            continue
        args, _ = spec.arguments(sample)
        what = f"{sample.name} without batch"
        zeros = spec.tensors(operator, sample)
        all_same(spec.unpack(operator(*args)), zeros, what)
        all_same(spec.unpack(operator(*args, batch_size=1)), zeros, what)


@listed("groups", POOLING_CHECKS)
def check_groups(spec: PoolingSpec) -> None:
    """Interleaved graphs give what sorted ones give; the last id sets the size."""
    operator = spec.build()
    for sample in samples(spec):
        order = torch.sort(sample.batch, stable=True).indices
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel(), device=order.device)
        compare_views(
            dense_view(spec.call(operator, sample.permuted(order)), nodes=back),
            dense_view(spec.call(operator, sample)),
            f"{sample.name} in ascending graphs",
        )
        args, _ = spec.arguments(sample)
        size = operator(*args, batch=sample.batch).batch_size
        wanted = int(sample.batch.max()) + 1 if sample.num_nodes > 0 else 0
        expect(size == wanted, f"{sample.name}: batch_size {size}, expected {wanted}")


@listed("adjacency", POOLING_CHECKS)
def check_adjacency(spec: PoolingSpec) -> None:
    """The pooled edges are S'AS with the documented A, loops aside, at two levels."""
    operator = spec.build()
    for sample in samples(spec):
        out = spec.call(operator, sample)
        _compare_edges(spec, out, sample)
        if out.x.size(1) == spec.in_channels:
            level = _next_level(out)
            _compare_edges(spec, spec.call(operator, level), level)


def _next_level(out: PoolOutput) -> GraphSample:
    """A pooled graph as the input of the next pool."""
    attr = None if out.edge_attr is None else out.edge_attr.detach()
    return GraphSample(
        "second level", out.x.detach(), out.edge_index, attr, out.batch, out.batch_size
    )


def _compare_edges(spec: PoolingSpec, out: PoolOutput, sample: GraphSample) -> None:
    """Compares pattern and, where they add up, values."""
    dense = dense_adjacency(sample.edge_index, sample.edge_attr, sample.num_nodes)
    # A is the weight where there is one, else the number of edges.
    dense = dense if sample.edge_attr is None else dense[..., 1:]
    if spec.adjacency is not None:
        dense = spec.adjacency(dense[..., 0]).unsqueeze(-1)
    found, wanted = expected_edges(out, sample, dense)
    pattern = found[..., 0] != 0
    allowed = (wanted != 0).any(dim=-1)
    straight = ~torch.eye(pattern.size(0), dtype=torch.bool, device=pattern.device)
    what = f"{sample.name}: pooled edges differ from S'AS"
    same((pattern & straight).long(), (allowed & straight).long(), f"{what} (pattern)")
    extra = (pattern & ~allowed).nonzero().tolist()
    expect(not extra, f"{what}: loops {extra} come from nowhere")
    if spec.sums_edges and out.edge_attr is not None:
        values, mask = found[..., 1:], pattern.unsqueeze(-1)
        same(values, wanted * mask, f"{what} (values)", rtol=1e-7)


@listed("levels", POOLING_CHECKS)
def check_levels(spec: PoolingSpec) -> None:
    """Two selections compose to the one from the first input to the last result."""
    operator = spec.build()
    for sample in samples(spec):
        first = spec.call(operator, sample)
        if first.x.size(1) != spec.in_channels:
            continue
        second = spec.call(operator, _next_level(first))
        both = first.selection.compose(second.selection).to_dense()
        product = first.selection.to_dense() @ second.selection.to_dense()
        same(both.double(), product.double(), f"{sample.name}: composed selection")
        graph = sample.batch.double() @ both.double() / both.double().sum(0)
        same(graph, second.batch.double(), f"{sample.name}: batch after two levels")


@listed("lift", POOLING_CHECKS)
def check_lift(spec: PoolingSpec) -> None:
    """Lifted features lie on their nodes, dropped nodes are 0, sizes are checked."""
    operator = spec.build()
    for sample in samples(spec):
        out = spec.call(operator, sample)
        assignment = out.selection.to_dense().detach().to(out.x)
        covered = assignment.sum(dim=1) > 0
        for how in ("transpose", "mean", "pinv"):
            fine = out.lift(out.x, how)
            what = f"{sample.name}: lift {how!r}"
            wanted = [sample.num_nodes, out.x.size(1)]
            expect(list(fine.shape) == wanted, f"{what} has shape {list(fine.shape)}")
            same(fine[~covered], torch.zeros_like(fine[~covered]), f"{what}, dropped")
        same(out.lift(out.x), assignment @ out.x, f"{sample.name}: lift")
        ones = out.lift(torch.ones_like(out.x), "mean")[covered]
        same(ones, torch.ones_like(ones), f"{sample.name}: lifted mean of ones")
        again = reduce(out.lift(out.x, "pinv"), out.selection, "weighted")
        same(again, out.x, f"{sample.name}: pooled pseudo-inverse", rtol=1e-5)
        _expect_size_error(out)


def _expect_size_error(out: PoolOutput) -> None:
    try:
        out.lift(torch.cat([out.x, out.x[:1], out.x.new_zeros(1, out.x.size(1))]))
    except ValueError:
        return
    raise AssertionError("lift takes features of another level without an error")


@listed("ties", POOLING_CHECKS)
def check_ties(spec: PoolingSpec) -> None:
    """Equal nodes: the same choice in every run and dtype; the lowest node first.

    The lowest nodes are asked of operators that keep single nodes.
    """
    batch = torch.tensor([0] * 50 + [1] * 7, device=spec.device)
    x = torch.ones(57, spec.in_channels, device=spec.device)
    edges = torch.empty(2, 0, dtype=torch.long, device=spec.device)
    flat = GraphSample("57 equal nodes", x, edges, None, batch, 2)
    chosen = []
    for dtype in (torch.float64, torch.float64, torch.float32, torch.bfloat16):
        out = spec.call(spec.build(dtype), flat.to(spec.device, dtype))
        selection = out.selection
        chosen.append(torch.stack([selection.node_index, selection.cluster_index]))
        if not out.selection.is_one_to_one:
            continue
        for graph, first in ((0, 0), (1, 50)):
            kept = _sorted(out.selection.node_index, batch, graph)
            lowest = torch.arange(first, first + kept.numel(), device=spec.device)
            same(kept, lowest, f"graph {graph} of equal nodes in {dtype}")
    for other in chosen[1:]:
        same(other, chosen[0], "equal nodes, another run or dtype")


def _sorted(nodes: Tensor, batch: Tensor, graph: int) -> Tensor:
    return nodes[batch[nodes] == graph].sort().values


@listed("nan", POOLING_CHECKS)
def check_nan(spec: PoolingSpec) -> None:
    """A NaN reaches the clusters of its node, and no other graph."""
    operator, sample = spec.build(), spec.random(7, 5, 6)
    clean = spec.call(operator, sample)
    for rows in ([0], [3], list(range(7))):
        sample.x[rows, 1] = torch.nan
        out = spec.call(operator, sample)
        for graph in (1, 2):
            nodes = (sample.batch == graph).nonzero().view(-1)
            compare_views(
                dense_view(out, nodes=nodes, graph=graph),
                dense_view(clean, nodes=nodes, graph=graph),
                f"graph {graph} beside a NaN",
                rtol=0.0,
                atol=0.0,
            )
        expect(0 in out.batch.tolist(), "the graph with the NaN is gone")
        hit = torch.isin(out.selection.node_index, torch.tensor(rows).to(out.batch))
        clusters = out.selection.cluster_index[hit]
        shown = out.x[clusters].isnan().any(dim=1)
        expect(bool(shown.all()), f"a NaN of nodes {rows} is hidden in their clusters")
        sample = spec.random(7, 5, 6)
