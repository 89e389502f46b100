"""GraphParsingNetwork against stored values and its own rules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pyg_pool.core.pair_scorer import CosineScorer
from pyg_pool.models import GraphParsingNetwork
from tests.golden_files import names

CONVS = {"GCN": "gcn", "GIN": "gin", "GAT": "gat"}


def from_settings(given: dict[str, Any], **options: Any) -> GraphParsingNetwork:
    """The network of the authors' settings."""
    levels = "layer_gnn_edge" in given
    return GraphParsingNetwork(
        given["hidden_channel" if levels else "in_channel"],
        given["hidden_channel"],
        given["out_channel"],
        task=given["task_type"].removeprefix("task_"),
        conv=CONVS[given.get("gnn_model", "GCN")],
        num_layers=given["layer_gnn1"],
        feature_layers=given["layer_gnn2"],
        up_layers=given["layer_gnn3"],
        mlp_layers=given["layer_trans"],
        input_layers=0 if levels else None,
        score_layers=given["layer_parsingnet"],
        deepsets_layers=given["layer_deepsets"],
        act_final=given["act_final"],
        self_loops=not given["link_ignore_self_loop"],
        readout="levels" if levels else "last",
        **options,
    )


def our_name(name: str) -> str:
    for old, new in (
        ("input_trans", "input_mlp"),
        ("gnn1", "score_convs"),
        ("gnn2", "feature_convs"),
        ("gnn3", "up_convs"),
        ("parsing_net", "pool"),
        ("deepsets_", "pool."),
        ("predictor", "head"),
    ):
        if name.startswith(old):
            return new + name.removeprefix(old)
    raise KeyError(name)


@pytest.mark.parametrize("name", names("gpn", "model_*"))
def test_golden(golden, name: str, backend: str) -> None:
    case = golden(f"gpn/{name}")
    given, wanted = case.inputs, case.outputs
    model = case.load(from_settings(given["settings"], freeze_finished=False))
    x, edges = case.leaf("x"), torch.tensor(given["edge_index"])
    batch = given["batch"]
    batch = None if batch is None else torch.tensor(batch)
    result = model.run(x, edges, batch=batch)
    case.close(result.out, wanted["out"])
    levels = wanted["levels"]
    assert len(result.counts) == wanted["num_pooling_layers"] == len(levels) - 1
    for level, selection in zip(levels, result.hierarchy.selections, strict=False):
        assert selection.cluster.tolist() == level["cluster"]
    rest = result.hierarchy.levels[1:]
    for level, count, found in zip(levels, result.counts, rest, strict=False):
        case.close(count, level["link_count"])
        case.close(found.score, level["score_mean"])
    (result.out * case.tensor(given["cotangent"])).sum().backward()
    case.check_gradients(model, {"x": x}, our_name)


def small(**options: Any) -> GraphParsingNetwork:
    """A network in double precision; weights as drawn."""
    options = {"hidden_channels": 6, "out_channels": 2, **options}
    return GraphParsingNetwork(3, **options).double().eval()


EMPTY = torch.empty(2, 0, dtype=torch.long)


def path(size: int) -> Tensor:
    nodes = torch.arange(size - 1)
    pairs = torch.stack([nodes, nodes + 1])
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Several graphs as one batch."""
    edges, first = [], 0
    for x, edge_index in parts:
        edges.append(edge_index + first)
        first += x.size(0)
    sizes = torch.tensor([x.size(0) for x, _ in parts])
    batch = torch.repeat_interleave(torch.arange(len(parts)), sizes)
    return torch.cat([x for x, _ in parts]), torch.cat(edges, dim=1), batch


def two_pieces() -> tuple[Tensor, Tensor]:
    """A graph that stays disconnected, so that it is finished before its company."""
    return torch.randn(5, 3).double(), torch.cat([path(3), path(2) + 3], dim=1)


VARIANTS = [
    {},
    {"self_loops": True},
    {"readout": "levels"},
    {"min_nodes": 3},
    {"max_levels": 1},
    {"feature_layers": 1, "multiplier": "mean"},
    {"conv": "gat", "feature_layers": 0, "multiplier": "none"},
    {"task": "node"},
    {"task": "node", "self_loops": False, "up_layers": "share"},
]


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_a_graph_does_not_depend_on_its_company(options, backend: str) -> None:
    parts = [two_pieces(), (torch.randn(40, 3).double(), path(40))]
    parts += [(torch.randn(1, 3).double(), EMPTY), (torch.randn(3, 3).double(), EMPTY)]
    model = small(**options)
    x, edges, batch = joined(parts)
    together = model(x, edges, batch=batch, batch_size=5)
    alone = torch.cat([model(*part) for part in parts])
    assert_close(together[: alone.size(0)], alone)
    if options.get("task") != "node":
        nothing = model(x[:0], EMPTY, batch=batch[:0], batch_size=1)
        assert_close(together[4:], nothing)
    order = torch.randperm(x.size(0))
    moved = model(x[order], order.argsort()[edges], batch=batch[order], batch_size=5)
    wanted = together[order] if options.get("task") == "node" else together
    assert_close(moved, wanted)


@pytest.mark.parametrize("name", ["alone", "with_long"])
def test_finished_graphs_are_left_alone(golden, name: str) -> None:
    case = golden(f"gpn/model_graph_disconnected_{name}")
    model = case.load(from_settings(case.inputs["settings"]))
    batch = case.inputs["batch"]
    batch = None if batch is None else torch.tensor(batch)
    edges = torch.tensor(case.inputs["edge_index"])
    out = model(case.tensor(case.inputs["x"]), edges, batch=batch)
    first = golden("gpn/model_graph_disconnected_alone").outputs["out"]
    case.close(out[:1], first)


def test_levels_end_as_asked() -> None:
    x, edges = torch.randn(64, 3).double(), path(64)
    free = small().run(x, edges).hierarchy
    assert free.levels[-1].num_nodes == 1
    assert free.num_levels >= 4
    assert small(max_levels=0).run(x, edges).hierarchy.num_levels == 1
    assert small(max_levels=2).run(x, edges).hierarchy.num_levels == 3
    sizes = [level.num_nodes for level in free.levels]
    torch.manual_seed(0)
    few = small(min_nodes=9)
    torch.manual_seed(0)
    free = small().run(x, edges).hierarchy
    sizes = [level.num_nodes for level in free.levels]
    held = few.run(x, edges).hierarchy
    assert held.levels[-1].num_nodes == next(s for s in sizes if s <= 9)
    assert held.levels[-1].edge_index.size(1) > 0


def test_coarse_edges_carry_weights_and_attributes() -> None:
    x, edges = torch.randn(16, 3).double(), path(16)
    weight = torch.rand(15).repeat(2).double().requires_grad_()
    for how in ("sum", "mean", "max", "binary"):
        model = small(edge_reduce=how)
        result = model.run(x, edges, weight)
        inner = result.hierarchy.levels[1]
        assert inner.edge_attr.shape == inner.edge_index.shape[1:]
        (grad,) = torch.autograd.grad(result.out.sum(), weight)
        assert grad.abs().sum() > 0
        assert (inner.edge_attr == 1).all() == (how == "binary")
    attr = torch.rand(30, 4).double()
    model = small(conv="gat", edge_channels=4, edge_reduce="mean")
    assert model.run(x, edges, attr).hierarchy.levels[1].edge_attr.size(1) == 4
    with pytest.raises(ValueError, match="choose edge_reduce"):
        small(conv="gat", edge_channels=4)(x, edges, attr)
    blind = small(use_edge_attr=False, edge_reduce="sum")
    assert_close(blind(x, edges, weight), blind(x, edges))


def test_scorers_edges_and_bounds_reach_the_operator() -> None:
    x, edges = torch.randn(30, 3).double(), path(30)
    called = []

    def falling(h: Tensor, pairs: Tensor) -> Tensor:
        called.append(pairs.size(1))
        return -pairs[0].double()

    model = small(scorer=falling)
    assert model.run(x, edges).hierarchy.levels[1].num_nodes == 1
    assert called[0] == 29
    assert type(small(scorer="cosine").pool.edge_net) is CosineScorer
    weight = torch.rand(29).double().repeat(2).requires_grad_()
    for scores in (True, False):
        model = small(score_edges=scores, use_edge_attr=False, edge_reduce="mean")
        out = model(x, edges, weight).sum()
        slope = torch.autograd.grad(out, weight, allow_unused=True)[0]
        assert (slope is not None and bool(slope.any())) == scores
    bounded = small(max_cluster_size=2).run(x, edges).hierarchy
    sizes = [level.num_nodes for level in bounded.levels]
    assert len(sizes) > 2
    assert all(2 * b >= a for a, b in pairwise(sizes))
    with pytest.raises(ValueError, match="edge_attr of None, expected"):
        small(score_edges=True)(x, edges)


def test_input_edges_are_tidied() -> None:
    x, edges = torch.randn(6, 3).double(), path(6)
    model = small()
    loops = torch.arange(6).expand(2, -1)
    untidy = torch.cat([edges.flip(1), loops, edges[:, :3]], dim=1)
    assert_close(model(x, untidy), model(x, edges))
    with pytest.raises(ValueError, match="5 edges without their opposite among 5"):
        model(x, edges[:, :5])
    torch.manual_seed(3)
    model = small(to_undirected=True)
    assert_close(model(x, edges[:, :5]), model(x, edges))
    weight = torch.rand(5).double()
    assert_close(model(x, edges[:, :5], weight), model(x, edges, weight.repeat(2)))


def test_dropout_is_seeded_and_only_in_training() -> None:
    x, edges = torch.randn(20, 3).double(), path(20)
    model = small(dropout=0.3, dropout_parsing=0.5, self_loops=True)
    assert torch.equal(model(x, edges), model(x, edges))
    model.train()
    torch.manual_seed(1)
    first = model.run(x, edges)
    torch.manual_seed(1)
    assert torch.equal(first.out, model(x, edges))
    assert not torch.equal(first.out, model(x, edges))
    # Edges that were dropped are missing above.
    assert first.hierarchy.levels[-1].edge_index.size(1) == 0
    assert first.hierarchy.levels[-1].num_nodes > 1


@pytest.mark.parametrize("task", ["graph", "node"])
def test_half_precision_and_saved_weights(task: str) -> None:
    x, edges = torch.randn(9, 3), path(9)
    model = GraphParsingNetwork(3, 8, 2, task=task).eval()
    out = model.bfloat16()(x.bfloat16(), edges)
    assert out.dtype == torch.bfloat16
    assert out.isfinite().all()
    other = GraphParsingNetwork(3, 8, 2, task=task).bfloat16().eval()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(x.bfloat16(), edges), out)
    other.reset_parameters()
    assert not torch.equal(other(x.bfloat16(), edges), out)
    wanted = f"GraphParsingNetwork(3, 8, 2{', task=' + repr(task)})"
    assert repr(model) == (wanted if task == "node" else "GraphParsingNetwork(3, 8, 2)")


def test_gradients_reach_every_weight() -> None:
    for task in ("graph", "node"):
        model = small(task=task, feature_layers=1, deepsets_layers=2)
        x = torch.randn(30, 3).double()
        model(x, path(30)).square().sum().backward()
        missing = [n for n, p in model.named_parameters() if not p.grad.abs().sum()]
        # The mean over LayerNorm's output does not see a bias in front of it.
        assert all(n.endswith("bias") for n in missing), missing


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"task": "edge"}, "task='edge'"),
        ({"readout": "sum"}, "readout='sum'"),
        ({"feature_layers": "shared"}, "did you mean 'share'"),
        ({"num_layers": -1}, "num_layers=-1, expected an int of at least 0"),
        ({"min_nodes": 0}, "min_nodes=0, expected an int of at least 1"),
        ({"input_layers": 0}, "input_layers=0 with in_channels=3"),
    ],
)
def test_refuses_bad_options(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        small(**options)
