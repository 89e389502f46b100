"""The contract of pooling operators that work on a primal and a dual graph."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.nn import Module

from pyg_pool.core.primal_dual import PrimalDualPoolOutput
from pyg_pool.errors import check_choice
from pyg_pool.kernels.dual_graph import both_ways, dual_edges
from pyg_pool.kernels.pairs import distinct_pairs
from pyg_pool.testing.contract import expect, same

__all__ = ["check_primal_dual_pooling", "random_primal_dual"]

FIELDS = ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual")


def random_primal_dual(
    sizes: list[int], config: str = "A", *, seed: int = 0
) -> dict[str, Any]:
    """Random adjacent nodes and their dual graph, as a pooling operator takes them.

    Args:
        sizes: Nodes of each graph of the batch, 0 among them.
        config: Kind of the dual graph, ``"A"``, ``"B"`` or ``"C"``.
        seed: Of the random numbers.

    Returns:
        Arguments by name.

    Example:
        >>> from pyg_pool.testing import random_primal_dual
        >>> graphs = random_primal_dual([5, 0, 3])
        >>> graphs["x"].shape, graphs["batch_size"]
        (torch.Size([8, 3]), 3)
    """
    chance = torch.Generator().manual_seed(seed)
    columns, start = [torch.empty(2, 0, dtype=torch.long)], 0
    for size in sizes:
        if size > 1:
            found = torch.randint(size, (2, 2 * size), generator=chance)
            columns.append(found + start)
        start += size
    pairs = distinct_pairs(torch.cat(columns, 1), start)
    edges, place = both_ways(pairs, start)
    flat, position = place.view(-1), torch.arange(2 * pairs.size(1))
    opposite = torch.empty_like(flat).index_copy(0, flat, place.flip(0).view(-1))
    dual, number = position, 2 * pairs.size(1)
    if config == "A":
        number = pairs.size(1)
        owner = position % max(number, 1)
        dual = torch.empty_like(flat).index_copy(0, flat, owner)
    links = dual_edges(edges, dual, opposite, start, number, config=config)
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return {
        "x": torch.randn(start, 3, generator=chance, dtype=torch.double),
        "x_dual": torch.randn(number, 2, generator=chance, dtype=torch.double),
        "edge_index": edges,
        "edge_index_dual": links,
        "edge_to_dual": dual,
        "attention": torch.rand(position.numel(), 2, generator=chance).double(),
        "batch": batch,
        "batch_size": len(sizes),
    }


def check_primal_dual_pooling(
    operator: Callable[[], Module],
    *,
    config: str = "A",
    only: list[str] | None = None,
) -> dict[str, str]:
    """Runs the contract of pooling operators on two graphs.

    Args:
        operator: Builds the operator.
        config: Kind of dual graph that it takes.
        only: Names of checks to run; all where left out.

    Returns:
        ``"passed"`` for each check by name.

    Raises:
        AssertionError: If a check fails; names it.
        ValueError: If a name is unknown.

    Example:
        >>> from pyg_pool import PrimalDualPooling
        >>> from pyg_pool.testing import check_primal_dual_pooling
        >>> build = lambda: PrimalDualPooling(threshold=0.6)
        >>> check_primal_dual_pooling(build, only=["form", "alone"])
        {'form': 'passed', 'alone': 'passed'}
    """
    names = list(CHECKS) if only is None else only
    for name in names:
        check_choice("check_primal_dual_pooling", "only", name, CHECKS)
    done = {}
    for name in names:
        check = CHECKS[name]
        for seed in range(3):
            graphs = random_primal_dual([7, 1, 0, 12, 0], config, seed=seed)
            try:
                check(operator, graphs, config)
            except AssertionError as error:
                raise AssertionError(f"check {name!r} failed: {error}") from error
        done[name] = "passed"
    return done


def _form(operator: Callable[[], Module], graphs: Any, config: str) -> None:
    """Sizes fit together, edges are sorted and symmetric, dual nodes belong to them."""
    out: PrimalDualPoolOutput = operator()(**graphs)
    number, size = out.x.size(0), out.edge_index.size(1)
    wanted = size // 2 if config == "A" else size
    expect(out.x_dual.size(0) == wanted, f"{wanted} dual nodes for {size} edges")
    key = out.edge_index[0] * number + out.edge_index[1]
    expect(bool((key[1:] > key[:-1]).all()), "edges sorted by source and target")
    other = out.edge_index[1] * number + out.edge_index[0]
    expect(torch.equal(other.sort().values, key), "both directions of each edge")
    expect(not bool((out.edge_index[0] == out.edge_index[1]).any()), "no loops")
    found = out.edge_to_dual.sort().values
    times = 2 if config == "A" else 1
    owed = torch.arange(wanted).repeat_interleave(times)
    expect(torch.equal(found, owed), "each dual node belongs to its edges")
    owner = graphs["batch"]
    for face, cluster in enumerate(out.selection.cluster.tolist()):
        same_mesh = int(out.batch[cluster]) == int(owner[face])  # type: ignore[index]
        expect(same_mesh, "clusters inside one mesh")
    expect(out.ratio_nodes.numel() == graphs["batch_size"], "a ratio for each mesh")
    limits = (out.ratio_edges >= 0) & (out.ratio_edges <= 1)
    expect(bool(limits.all()), "ratios between 0 and 1")


def _alone(operator: Callable[[], Module], graphs: Any, config: str) -> None:
    """A mesh gives the same in a batch and alone."""
    pool, first = operator(), 7
    out = pool(**graphs)
    edges = int((graphs["edge_index"][0] < first).sum())
    duals = edges // 2 if config == "A" else edges
    links = int((graphs["edge_index_dual"][0] < duals).sum())
    alone = pool(
        graphs["x"][:first], graphs["x_dual"][:duals], graphs["edge_index"][:, :edges],
        graphs["edge_index_dual"][:, :links], graphs["edge_to_dual"][:edges],
        graphs["attention"][:edges],
    )  # fmt: skip
    left = alone.x.size(0)
    same(out.x[:left], alone.x, "features of the first mesh")
    cluster = out.selection.cluster[:first]
    same(cluster, alone.selection.cluster, "clusters of the first mesh")


def _gradients(operator: Callable[[], Module], graphs: Any, config: str) -> None:
    """Features get the gradient of the reduction, attention none."""
    pool = operator()
    attention = graphs["attention"].clone().requires_grad_()

    def both(x: Tensor, x_dual: Tensor) -> tuple[Tensor, Tensor]:
        given = {**graphs, "x": x, "x_dual": x_dual, "attention": attention}
        out = pool(**given)
        return out.x, out.x_dual

    leaves = [graphs[name].clone().requires_grad_() for name in ("x", "x_dual")]
    expect(bool(gradcheck(both, leaves)), "gradients that agree with differences")
    sum(each.sum() for each in both(*leaves)).backward()  # type: ignore[union-attr]
    expect(attention.grad is None, "no gradient to the attention")


def _types(operator: Callable[[], Module], graphs: Any, config: str) -> None:
    """Half precision stays what it is and finite."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        names = ("x", "x_dual", "attention")
        out = operator()(**{**graphs, **{n: graphs[n].to(dtype) for n in names}})
        expect(out.x.dtype == out.x_dual.dtype == dtype, f"results of type {dtype}")
        expect(bool(out.x.isfinite().all()), f"finite numbers in {dtype}")


def _copies(operator: Callable[[], Module], graphs: Any, config: str) -> None:
    """Copies, pickles and saved states give the same, and inputs are not changed."""
    pool = operator()
    before = {name: graphs[name].clone() for name in FIELDS}
    out = pool(**graphs)
    for name, value in before.items():
        expect(torch.equal(graphs[name], value), f"{name} unchanged")
    file = io.BytesIO()
    torch.save(pool.state_dict(), file)
    other = operator()
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for each in (copy.deepcopy(pool), pickle.loads(pickle.dumps(pool)), other):
        again = each(**graphs)
        for name in FIELDS:
            same(getattr(again, name), getattr(out, name), f"{name} of a copy")
    expect(type(pool).__name__ in repr(pool), "a name in repr")


def _empty(operator: Callable[[], Module], graphs: Any, config: str) -> None:
    """Meshes without edges and without faces stay as they are."""
    for sizes in ([1], [0], [1, 0, 1]):
        small = random_primal_dual(sizes, config)
        out = operator()(**small)
        expect(out.x.size(0) == sum(sizes), f"{sum(sizes)} clusters of {sizes} faces")
        expect(out.batch_size == len(sizes), f"{len(sizes)} meshes")


CHECKS: dict[str, Callable[[Callable[[], Module], Any, str], None]] = {
    "form": _form,
    "alone": _alone,
    "gradients": _gradients,
    "types": _types,
    "copies": _copies,
    "empty": _empty,
}
