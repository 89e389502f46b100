from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.testing import assert_close
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GINConv, MeanAggregation, Set2Set

from pyg_pool import GPool, Pooling, Selection
from pyg_pool.models import HierarchicalClassifier


class PairPooling(Pooling):
    """Joins neighbouring rows of each graph; a clustering without parameters."""

    def select(self, x, edge_index, edge_attr, batch, batch_size):
        rows = torch.arange(x.size(0))
        first = torch.zeros(batch_size + 1, dtype=torch.long)
        first[1:] = torch.bincount(batch, minlength=batch_size).cumsum(0)
        inside = (rows - first[batch]) // 2
        return Selection.from_clusters(inside, batch=batch, per_graph=True)


def paper_names(num_levels: int) -> dict[str, str]:
    names = {
        "mlp_w1": "head.lins.0.weight",
        "mlp_b1": "head.lins.0.bias",
        "mlp_w2": "head.lins.1.weight",
        "mlp_b2": "head.lins.1.bias",
    }
    for level in range(num_levels):
        names[f"theta{level}"] = f"convs.{level}.lin_rel.weight"
        names[f"theta_skip{level}"] = f"convs.{level}.lin_root.weight"
        names[f"p{level}"] = f"pools.{level}.weight"
    return names


PAPER = ["batch_three_graphs", "single_edge_and_isolated", "two_levels_half"]


@pytest.mark.parametrize("name", PAPER)
def test_paper_golden(golden, name: str) -> None:
    case = golden(f"sparse_hierarchical/paper_{name}")
    levels = case.inputs["levels"]
    above, below = case.inputs["ratio"].split("/")
    model = HierarchicalClassifier(
        len(case.weights["theta0"]),
        len(case.weights["p0"]),
        len(case.weights["mlp_b2"]),
        levels,
        int(above) / int(below),
        preset="paper",
        head_channels=[len(case.weights["mlp_b1"])],
    )
    names = paper_names(levels)
    case.load(model, names, turned=True)
    x = case.leaf("x")
    batch = torch.tensor(case.inputs["batch"])
    result = model.run(x, torch.tensor(case.inputs["edge_index"]), batch=batch)
    read = torch.stack(result.readouts, dim=1)
    case.close(read, case.outputs["readout_per_level"])
    case.close(result.readout, case.outputs["readout"])
    case.close(result.out, case.outputs["logits"])
    assert (
        kept_inside(result.hierarchy)
        == case.outputs["node_index_per_level_within_graph"]
    )
    loss = cross_entropy(result.out, torch.tensor(case.inputs["labels"]))
    case.close(loss, case.outputs["loss"])
    loss.backward()
    case.check_gradients(model, {"x": x}, names.__getitem__, turned=True)


def kept_inside(hierarchy: Any) -> list[list[list[int]]]:
    """The kept rows of each graph and level, counted from the graph's first row."""
    graphs = []
    for graph in range(hierarchy.levels[0].batch_size):
        kept = []
        for level, selection in enumerate(hierarchy.selections):
            mine = hierarchy.levels[level + 1].batch == graph
            before = hierarchy.levels[level].batch
            first = (before == graph).nonzero()[0]
            kept.append((selection.node_index[mine] - first).tolist())
        graphs.append(kept)
    return graphs


def our_example_name(name: str) -> str:
    kind, rest = name[:3], name.partition(".")[2].replace("select.", "")
    index = int(name.partition(".")[0][-1]) - 1
    room = {"con": "convs", "poo": "pools", "lin": "head.lins"}[kind]
    return f"{room}.{index}.{rest}"


def test_pyg_example_golden(golden) -> None:
    case = golden("sparse_hierarchical/pyg_example_batch")
    ratio = case.inputs["ratio"]
    model = HierarchicalClassifier(3, 4, 2, 3, ratio, preset="pyg_example")
    case.load(model)
    x = case.leaf("x")
    batch = torch.tensor(case.inputs["batch"])
    result = model.run(x, torch.tensor(case.inputs["edge_index"]), batch=batch)
    case.close(result.readout, case.outputs["readout"])
    case.close(result.out.log_softmax(-1), case.outputs["log_probabilities"])
    loss = cross_entropy(result.out, torch.tensor(case.inputs["labels"]))
    case.close(loss, case.outputs["loss"])
    loss.backward()
    case.check_gradients(model, {"x": x}, our_example_name)


FORMS = [{"preset": preset} for preset in ("paper", "pyg_example", None)]
VARIANTS = [
    *FORMS,
    {"conv": "gin", "combine": "cat", "norm": "layer_norm"},
    {"conv": "gat", "readout": ["sum", "softmax"], "head_channels": []},
    {"conv": GINConv, "pool": PairPooling, "readout": MeanAggregation()},
    {"conv": "sage", "pool": [GPool(4, 3, preset="authors"), GPool(4, 0.5)]},
    {"readout": [["max", "sum"], ["mean"]], "combine": "cat", "act": "elu"},
    {"readout": lambda width: Set2Set(width, 2), "norm": "graph"},
]


def build(options: dict[str, Any]) -> HierarchicalClassifier:
    torch.manual_seed(9)
    return HierarchicalClassifier(3, 4, 2, 2, **options).double().eval()


@pytest.mark.parametrize("options", VARIANTS)
def test_batch_equals_single_graphs(graphs, options: dict[str, Any]) -> None:
    model = build(options)
    singles = [model(x, e) for x, e in zip(graphs.xs, graphs.edges, strict=True)]
    batch = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    assert_close(batch, torch.cat(singles))


@pytest.mark.parametrize("options", VARIANTS)
def test_order_of_nodes_and_graphs_does_not_matter(
    graphs, options: dict[str, Any]
) -> None:
    if options.get("pool") is PairPooling:
        pytest.skip("pairs rows by their position")
    model = build(options)
    expected = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    x, edge_index, batch, _ = graphs.shuffled()
    assert_close(model(x, edge_index, batch=batch), expected)
    swap = torch.tensor([2, 0, 1])
    assert_close(model(x, edge_index, batch=swap[batch])[swap], expected)


@pytest.mark.parametrize("options", VARIANTS)
def test_empty_graphs_and_empty_batches(graphs, options: dict[str, Any]) -> None:
    model = build(options)
    spread = torch.tensor([1, 2, 4])[graphs.batch]
    result = model.run(graphs.x, graphs.edge_index, batch=spread, batch_size=6)
    expected = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    assert_close(result.out[[1, 2, 4]], expected)
    none = model.run(
        graphs.x[:0], graphs.edge_index[:, :0], batch=graphs.batch[:0], batch_size=2
    )
    assert_close(none.out, result.out[[0, 3]])
    if "readout" not in options:
        assert (none.readout == 0).all()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [*FORMS, {"norm": "batch_norm"}])
def test_one_node_alone(options: dict[str, Any], training: bool) -> None:
    model = build({**options, "ratio": 0.5}).train(training)
    x = torch.randn(1, 3, dtype=torch.float64, requires_grad=True)
    result = model.run(x, torch.empty(2, 0, dtype=torch.long))
    assert [level.num_nodes for level in result.hierarchy.levels] == [1, 1, 1]
    assert result.out.shape == (1, 2)
    result.out.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("options", VARIANTS)
def test_every_parameter_gets_a_gradient(graphs, options: dict[str, Any]) -> None:
    model = build({**options, "act": "elu"}).train()
    out = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    (out * torch.randn_like(out)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


def test_self_loops_of_the_input_do_not_count_twice(graphs) -> None:
    model = build({"preset": "paper"})
    loops = torch.arange(graphs.x.size(0)).expand(2, -1)
    edges = torch.cat([graphs.edge_index, loops], dim=1)
    expected = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    assert_close(model(graphs.x, edges, batch=graphs.batch), expected)


def test_edge_weights_act_in_both_shapes(graphs) -> None:
    model = build({"preset": "paper"})
    weight = torch.rand(graphs.edge_index.size(1), dtype=torch.float64)
    inputs = (graphs.x, graphs.edge_index)
    first = model(*inputs, weight, batch=graphs.batch)
    assert_close(model(*inputs, weight.unsqueeze(-1), batch=graphs.batch), first)
    assert not torch.allclose(first, model(*inputs, batch=graphs.batch))
    ones = torch.ones_like(weight)
    assert_close(
        model(*inputs, ones, batch=graphs.batch), model(*inputs, batch=graphs.batch)
    )


def test_edge_attributes_follow_their_edges(graphs) -> None:
    model = build({"conv": "gat", "edge_channels": 2})
    edge_attr = torch.rand(graphs.edge_index.size(1), 2, dtype=torch.float64)
    result = model.run(graphs.x, graphs.edge_index, edge_attr, batch=graphs.batch)
    level = result.hierarchy.levels[1]
    assert level.edge_attr.shape == (level.edge_index.size(1), 2)
    result.out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    with pytest.raises(ValueError, match="takes no edge weights"):
        build({"conv": "gin"})(graphs.x, graphs.edge_index, edge_attr)
    blind = build({"conv": "gin", "use_edge_attr": False})
    assert_close(
        blind(graphs.x, graphs.edge_index, edge_attr),
        blind(graphs.x, graphs.edge_index),
    )


def test_max_readout_sends_its_gradient_to_the_lowest_row() -> None:
    read = build({"readout": "max"}).readouts[0]
    x = torch.ones(5, 4, dtype=torch.float64, requires_grad=True)
    batch = torch.tensor([1, 0, 1, 0, 0])
    read(x, batch, 2)[0].sum().backward()
    assert x.grad[:, 0].tolist() == [1, 1, 0, 0, 0]


def test_training_with_isolated_nodes_stays_finite() -> None:
    model = build({}).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    edges = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    x, batch = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 0, 0, 0, 1])
    for _ in range(200):
        optimizer.zero_grad()
        loss = cross_entropy(model(x, edges, batch=batch), torch.tensor([0, 1]))
        assert loss.isfinite()
        loss.backward()
        optimizer.step()


def test_hierarchies_come_through_a_loader(graphs) -> None:
    source = build({"pool": PairPooling})
    data = []
    for x, edges in zip(graphs.xs, graphs.edges, strict=True):
        found = source.run(x, edges).hierarchy.detach()
        data.append(found.attach(Data(x=x, edge_index=edges)))
    model = build({"pool": "precomputed", "reduce": "sum"})
    model.load_state_dict(source.state_dict())
    expected = source(graphs.x, graphs.edge_index, batch=graphs.batch)
    for batch in DataLoader(data, batch_size=3):
        out = model(batch.x, batch.edge_index, hierarchy=batch.hierarchy())
        assert_close(out, expected)


def test_precomputed_hierarchy_replaces_pooling(graphs) -> None:
    source = build({"pool": PairPooling})
    found = source.run(graphs.x, graphs.edge_index, batch=graphs.batch).hierarchy
    model = build({"pool": "precomputed", "reduce": "sum"})
    model.load_state_dict(source.state_dict())
    result = model.run(graphs.x, graphs.edge_index, hierarchy=found)
    assert_close(result.out, source(graphs.x, graphs.edge_index, batch=graphs.batch))
    assert result.hierarchy is found
    with pytest.raises(ValueError, match="pass hierarchy="):
        model(graphs.x, graphs.edge_index)


def test_run_agrees_with_forward(graphs) -> None:
    model = build({"combine": "cat", "readout": "mean"})
    result = model.run(graphs.x, graphs.edge_index, batch=graphs.batch)
    assert_close(result.out, model(graphs.x, graphs.edge_index, batch=graphs.batch))
    assert_close(result.readout, torch.cat(result.readouts, dim=-1))
    assert result.hierarchy.num_levels == 3
    assert [read.shape for read in result.readouts] == [(3, 4)] * 2
    assert result.loss == 0


def test_losses_of_the_pools_are_added(graphs) -> None:
    class Costly(PairPooling):
        def forward(self, *args, **kwargs):
            out = super().forward(*args, **kwargs)
            out.loss = out.x.new_tensor(2.5)
            return out

    result = build({"pool": Costly}).run(graphs.x, graphs.edge_index)
    assert result.loss == 5.0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", FORMS)
def test_half_precision(graphs, options: dict[str, Any], dtype: torch.dtype) -> None:
    model = build(options).to(dtype)
    out = model(graphs.x.to(dtype), graphs.edge_index, batch=graphs.batch)
    assert out.dtype == dtype
    assert out.isfinite().all()
    out.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_half_precision_counts_past_256() -> None:
    # bfloat16 cannot tell 256 from 257: a mean must not be counted in it.
    model = build({"ratio": 1.0, "readout": "mean"})
    edges = torch.stack([torch.arange(1, 1500), torch.zeros(1499, dtype=torch.long)])
    x = torch.rand(1500, 3, dtype=torch.float64)
    wide = model(x, edges)
    assert_close(
        model.bfloat16()(x.bfloat16(), edges).double(), wide, atol=0.02, rtol=0.02
    )


@pytest.mark.parametrize("options", FORMS)
def test_autocast(graphs, options: dict[str, Any]) -> None:
    model = build(options).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(graphs.x.float(), graphs.edge_index, batch=graphs.batch)
    assert out.isfinite().all()
    out.float().sum().backward()


@pytest.mark.parametrize(
    "options", [FORMS[0], pytest.param(FORMS[1], marks=pytest.mark.slow)]
)
def test_compiled_equals_eager(graphs, options: dict[str, Any]) -> None:
    torch.compiler.reset()
    model = build(options)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    out = compiled(graphs.x, graphs.edge_index, batch=graphs.batch, batch_size=3)
    assert_close(out, model(graphs.x, graphs.edge_index, batch=graphs.batch))


@pytest.mark.parametrize("options", FORMS)
def test_copies_and_files(graphs, options: dict[str, Any]) -> None:
    model = build(options)
    expected = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(buffer, weights_only=False),
    ]
    for each in copies:
        each.load_state_dict(model.state_dict())
        assert_close(each(graphs.x, graphs.edge_index, batch=graphs.batch), expected)


def test_repr_builds_the_same_model() -> None:
    model = HierarchicalClassifier(3, 8, 2, ratio=[0.9, 4], preset=None, combine="cat")
    text = repr(model)
    assert text == (
        "HierarchicalClassifier(3, 8, 2, ratio=[0.9, 4], preset=None, combine='cat')"
    )
    twin = eval(text, {"HierarchicalClassifier": HierarchicalClassifier})
    assert twin.state_dict().keys() == model.state_dict().keys()
    assert "conv=GATConv" in repr(HierarchicalClassifier(3, 8, 2, conv=GATConv))


def test_reset_parameters_draws_anew() -> None:
    model = build({"preset": "pyg_example", "readout": [lambda w: Set2Set(w, 1)]})
    before = {k: v.clone() for k, v in model.state_dict().items()}
    torch.manual_seed(99)
    model.reset_parameters()
    for name, value in model.named_parameters():
        assert value.abs().sum() == 0 or not torch.equal(value, before[name]), name


def test_dropout_of_the_example_comes_once(graphs) -> None:
    assert build({"preset": "pyg_example"}).head.dropout == [0.0, 0.5, 0.0]
    model = build({"dropout": 0.5, "head_channels": [4, 4], "act": "elu"}).train()
    assert model.head.dropout == [0.0, 0.5, 0.5]
    inputs = (graphs.x, graphs.edge_index)
    assert not torch.allclose(model(*inputs), model(*inputs))
    model.eval()
    assert_close(model(*inputs), model(*inputs))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "papr"}, "did you mean 'paper'"),
        ({"combine": "mean"}, "got combine='mean'"),
        ({"num_levels": 0}, "expected at least 1"),
        ({"ratio": [0.5] * 4}, "expected 1 to 3, one per level"),
        ({"conv": "gcnn"}, "did you mean 'gcn'"),
        ({"readout": [["max"], ["max", "mean"]]}, "set combine='cat'"),
        ({"readout": "men"}, "did you mean 'mean'"),
        ({"readout": "set2set"}, "pass the aggregation itself"),
        ({"pool": "topk"}, "expected one of"),
        (
            {"pool_options": {"augment": "square"}, "edge_channels": 3, "conv": "gat"},
            "set augment='none'",
        ),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HierarchicalClassifier(3, 4, 2, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"raedout": "max"},
        {"pool_options": {"ratoi": 0.1}},
        {"conv_options": {"biass": True}},
        {"pool": lambda width, ratio: torch.nn.Identity()},
    ],
)
def test_misspelt_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        HierarchicalClassifier(3, 4, 2, **options)
