"""Primal-dual pooling against stored values, and the rules that it documents."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyg_pool import PrimalDualPooling, PrimalDualUnpooling
from tests.golden_files import load, names
from tests.pool.sequential_mesh_pooling import pool_sequentially, random_graphs

SPELLING = {
    "primal_att_coeff_threshold": "threshold",
    "fraction_primal_edges_to_keep": "fraction_to_keep",
    "num_primal_edges_to_keep": "num_edges_to_keep",
    "allow_pooling_consecutive_edges": "consecutive",
    "use_decreasing_attention_coefficient": "largest",
    "self_loops": "dual_self_loops",
    "aggr_primal_features": "reduce",
    "aggr_dual_features": "reduce_dual",
}


def options_of(golden: dict[str, Any]) -> dict[str, Any]:
    """The options of a golden under the names of this library."""
    words = {"add": "sum", "mean": "mean"}
    return {
        "config": golden["config"],
        **{
            SPELLING[name]: words.get(value, value) if isinstance(value, str) else value
            for name, value in golden["options"].items()
        },
    }


def near(golden: dict[str, Any], got: Tensor, expected: Any) -> None:
    expected = torch.as_tensor(expected, dtype=got.dtype).view(got.shape)
    limit = golden["tolerance"]
    torch.testing.assert_close(got.detach(), expected, atol=limit, rtol=limit)


@pytest.mark.parametrize("name", names("mesh", "pool_*"))
def test_golden(name: str, backend: str) -> None:
    golden = load("mesh", name)
    inputs, outputs, grads = golden["inputs"], golden["outputs"], golden["gradients"]
    x = inputs["primal_x"].requires_grad_()
    x_dual = inputs["dual_x"].requires_grad_()
    out = PrimalDualPooling(**options_of(golden))(
        x, x_dual, inputs["primal_edge_index"], inputs["dual_edge_index"],
        inputs["edge_to_dual"], inputs["attention"], batch=inputs["batch"],
        batch_dual=inputs["dual_batch"], batch_size=int(inputs["batch"].max()) + 1,
    )  # fmt: skip
    for got, key in (
        (out.selection.cluster, "cluster"),
        (out.selection_dual.cluster, "old_dual_to_new"),
        (out.edge_index, "primal_edge_index"),
        (out.edge_index_dual, "dual_edge_index"),
        (out.batch, "batch"),
        (out.batch_dual, "dual_batch"),
        (out.selected_edges.t(), "selected_edges"),
    ):
        assert torch.equal(got, outputs[key]), key
    ends = outputs["dual_nodes"].t()
    both = torch.cat([ends, ends.flip(0)], 1) if golden["config"] == "A" else ends
    for edge, dual in zip(out.edge_index.t(), out.edge_to_dual, strict=True):
        assert any(torch.equal(edge, both[:, k]) for k in (dual, dual - ends.size(1)))
    near(golden, out.x, outputs["primal_x"])
    near(golden, out.x_dual, outputs["dual_x"])
    # The stored ratios were held in float32.
    torch.testing.assert_close(
        out.ratio_nodes, outputs["ratio_nodes"], atol=1e-7, rtol=0.0
    )
    torch.testing.assert_close(
        out.ratio_edges, outputs["ratio_edges"], atol=1e-7, rtol=0.0
    )
    loss = (out.x * inputs["loss_weights_primal"]).sum()
    (loss + (out.x_dual * inputs["loss_weights_dual"]).sum()).backward()
    near(golden, x.grad, grads["primal_x"])
    near(golden, x_dual.grad, grads["dual_x"])
    unpool = PrimalDualUnpooling(x_dual.size(1)).double()
    stored = golden["unpool"]
    vector = torch.tensor(stored["new_dual_feature"], dtype=torch.float64)
    unpool.load_state_dict({"new_dual_feature": vector})
    back, back_dual = unpool(out.x, out.x_dual, out.selection, out.selection_dual)
    near(golden, back, stored["primal_x"])
    near(golden, back_dual, stored["dual_x"])


WAYS = [
    {"threshold": 0.6},
    {"threshold": 0.4, "largest": False},
    {"fraction_to_keep": 0.7},
    {"fraction_to_keep": 0.0},
    {"num_edges_to_keep": 3},
    {"fraction_to_keep": 0.5, "consecutive": False},
    {"fraction_to_keep": 0.3, "max_cluster_size": 3},
    {"threshold": 0.3, "max_cluster_size": 2},
    {"fraction_to_keep": 0.6, "dual_self_loops": True},
]


@pytest.mark.parametrize("config", ["A", "B", "C"])
@pytest.mark.parametrize("options", WAYS, ids=str)
def test_as_one_edge_after_the_other(
    config: Any, options: dict[str, Any], backend: str
) -> None:
    for seed in range(4):
        chance = torch.Generator().manual_seed(seed)
        graphs = random_graphs([7, 1, 12, 0], chance, config)
        if seed == 3:  # ties
            graphs["attention"] = (graphs["attention"] * 3).round() / 3
        out = PrimalDualPooling(config=config, **options)(**graphs)
        slow = pool_sequentially(
            graphs["edge_index"], graphs["edge_to_dual"], graphs["attention"],
            20, graphs["x_dual"].size(0), graphs["batch"].tolist(), config, **options,
        )  # fmt: skip
        assert out.selection.cluster.tolist() == slow.cluster
        assert [tuple(e) for e in out.edge_index.t().tolist()] == slow.edges
        assert out.selection_dual.cluster.tolist() == slow.dual_map
        assert [tuple(e) for e in out.selected_edges.t().tolist()] == slow.selected
        assert [tuple(e) for e in out.edge_index_dual.t().tolist()] == slow.dual_edges
        ends = [(min(e), max(e)) if config == "A" else e for e in slow.edges]
        assert out.edge_to_dual.tolist() == [slow.duals[e] for e in ends]
        assert out.batch_dual.tolist() == [
            int(out.batch[a]) for a, _ in sorted(slow.duals, key=slow.duals.get)
        ]
        most = options.get("max_cluster_size")
        if most is not None:
            assert int(out.selection.cluster.bincount().max()) <= most


def call(graphs: dict[str, Any], **options: Any) -> Any:
    return PrimalDualPooling(**options)(**graphs)


def test_batch_is_its_members_one_by_one() -> None:
    chance = torch.Generator().manual_seed(5)
    single = [random_graphs([size], chance) for size in (6, 9)]
    both = {
        key: torch.cat([single[0][key], single[1][key]])
        for key in ("x", "x_dual", "attention")
    }
    duals = single[0]["x_dual"].size(0)
    for key, step, dim in (
        ("edge_index", 6, 1),
        ("edge_index_dual", duals, 1),
        ("edge_to_dual", duals, 0),
        ("batch", 1, 0),
    ):
        both[key] = torch.cat([single[0][key], single[1][key] + step], dim)
    out = call({**both, "batch_size": 3}, fraction_to_keep=0.5)
    parts = [call(graphs, fraction_to_keep=0.5) for graphs in single]
    assert torch.equal(out.x, torch.cat([part.x for part in parts]))
    assert torch.equal(out.x_dual, torch.cat([part.x_dual for part in parts]))
    shares = torch.cat([part.ratio_edges for part in parts])
    assert torch.equal(out.ratio_edges, torch.cat([shares, torch.ones(1).double()]))


def test_nothing_chosen_leaves_the_graphs() -> None:
    graphs = random_graphs([8], torch.Generator().manual_seed(2))
    for options in ({"fraction_to_keep": 1.0}, {"threshold": 1.0}):
        out = call(graphs, **options)
        for key in ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual"):
            assert torch.equal(getattr(out, key), graphs[key])
    many = call(graphs, num_edges_to_keep=1000)
    assert torch.equal(many.edge_index, graphs["edge_index"])


def test_a_number_for_each_mesh() -> None:
    graphs = random_graphs([8, 8], torch.Generator().manual_seed(2))
    out = call(graphs, fraction_to_keep=torch.tensor([1.0, 0.0]))
    kept = out.batch.bincount()
    assert kept.tolist()[0] == 8
    assert kept[1] < 8
    assert call(graphs, num_edges_to_keep=torch.tensor([99, 0])).batch.tolist() == (
        out.batch.tolist()
    )


def test_half_precision_ranks_in_float32() -> None:
    graphs = random_graphs([9], torch.Generator().manual_seed(1))
    for key in ("x", "x_dual", "attention"):
        graphs[key] = graphs[key].bfloat16()
    out = call(graphs, fraction_to_keep=0.5)
    assert out.x.dtype == out.x_dual.dtype == torch.bfloat16
    assert out.score.dtype == torch.float32


def test_call_is_written_out() -> None:
    pool = PrimalDualPooling(fraction_to_keep=0.8, config="B")
    assert repr(pool) == "PrimalDualPooling(fraction_to_keep=0.8, config='B')"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "expected exactly one"),
        ({"threshold": 0.5, "num_edges_to_keep": 3}, "expected exactly one"),
        ({"fraction_to_keep": 1.5}, r"in \[0, 1\]"),
        ({"num_edges_to_keep": -1}, "at least 0"),
        ({"threshold": 0.5, "consecutive": False}, "consecutive=False"),
        ({"threshold": 0.5, "max_cluster_size": 1}, "at least 2"),
        ({"threshold": 0.5, "config": "D"}, "config='D'"),
        ({"threshold": 0.5, "reduce": "max"}, "reduce='max'"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrimalDualPooling(**options)


def test_graphs_that_do_not_fit(backend: str) -> None:
    graphs = random_graphs([9], torch.Generator().manual_seed(1))
    with pytest.raises(ValueError, match="dual nodes"):
        call(graphs, threshold=0.5, config="B")
    unsorted = {**graphs, "edge_index": graphs["edge_index"].flip(1)}
    with pytest.raises(ValueError, match="sorted and symmetric"):
        call(unsorted, threshold=0.5)
    one_way = graphs["edge_index"].clone()
    one_way[1, 0] = one_way[1, 0] - 1 if one_way[1, 0] > 1 else 8
    with pytest.raises(ValueError, match="sorted and symmetric"):
        call({**graphs, "edge_index": one_way}, threshold=0.5)
