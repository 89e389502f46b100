from __future__ import annotations

import copy
import io
import pickle
from inspect import signature
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GATConv, GINEConv, SAGEConv
from torch_geometric.nn import GraphUNet as PyGGraphUNet

from pyg_pool import GPool, Hierarchy, Pooling, Selection
from pyg_pool.models import GraphUNet

PAPER_NAMES = {
    "w_in": "down_convs.0.lin.weight",
    "p0": "pools.0.weight",
    "w_down0": "down_convs.1.lin.weight",
    "p1": "pools.1.weight",
    "w_down1": "down_convs.2.lin.weight",
    "w_up0": "up_convs.0.lin.weight",
    "w_up1": "up_convs.1.lin.weight",
    "w_out": "out_conv.lin.weight",
}


class PairPooling(Pooling):
    """Joins neighbouring rows of each graph; a clustering without parameters."""

    def select(self, x, edge_index, edge_attr, batch, batch_size):
        rows = torch.arange(x.size(0))
        first = torch.zeros(batch_size + 1, dtype=torch.long)
        first[1:] = torch.bincount(batch, minlength=batch_size).cumsum(0)
        inside = (rows - first[batch]) // 2
        return Selection.from_clusters(inside, batch=batch, per_graph=True)


def our_pyg_name(name: str) -> str:
    return name.replace(".select.", ".")


@pytest.mark.parametrize("name", ["pyg_unet_sum", "pyg_unet_concat"])
def test_pyg_golden(golden, name: str) -> None:
    run_pyg_golden(golden(f"graph_unet/{name}"), {})


def test_pyg_golden_with_edge_weights(golden) -> None:
    case = golden("graph_unet/pyg_unet_edge_weight")
    run_pyg_golden(case, {"edge_weight": case.leaf("edge_weight")})


def run_pyg_golden(case: Any, leaves: dict[str, torch.Tensor]) -> None:
    given = case.inputs["arguments"]
    model = GraphUNet(
        given["in_channels"],
        given["hidden_channels"],
        given["out_channels"],
        depth=given["depth"],
        ratio=given["pool_ratios"],
        merge="sum" if given["sum_res"] else "cat",
        act=given["act"],
    )
    case.load(model)
    leaves["x"] = case.leaf("x")
    batch = torch.tensor(case.inputs["batch"])
    edges = torch.tensor(case.inputs["edge_index"])
    out = model(leaves["x"], edges, leaves.get("edge_weight"), batch=batch)
    case.close(out, case.outputs["out"])
    (out * case.tensor(case.inputs["cotangent"])).sum().backward()
    case.check_gradients(model, leaves, our_pyg_name)


def test_paper_golden(golden) -> None:
    case = golden("graph_unet/paper_node_unet")
    ratio = case.inputs["k"]
    model = GraphUNet(4, 3, 2, depth=2, ratio=ratio, preset="paper")
    case.load(model, PAPER_NAMES, turned=True)
    x = case.leaf("x")
    result = model.run(x, torch.tensor(case.inputs["edge_index"]))
    case.close(result.out, case.outputs["logits"])
    kept = [s.node_index.tolist() for s in result.hierarchy.selections]
    assert kept == case.outputs["node_index_per_level"]
    (result.out * case.tensor(case.inputs["cotangent"])).sum().backward()
    case.check_gradients(model, {"x": x}, PAPER_NAMES.__getitem__, turned=True)


def our_authors_name(name: str) -> str:
    found = {
        "g_unet.": "",
        "down_gcns.": "down_convs.",
        "up_gcns.": "up_convs.",
        "bottom_gcn.": "down_convs.3.",
        "s_gcn.": "stem.",
        "out_l_1.": "head.lins.0.",
        "out_l_2.": "head.lins.1.",
    }
    for old, new in found.items():
        name = name.replace(old, new)
    inside = "" if name.startswith("pools.") else "lin."
    return name.replace("proj.", inside)


@pytest.mark.parametrize("name", ["authors_unet_tiny", "authors_unet_three_levels"])
def test_authors_golden(golden, name: str) -> None:
    case = golden(f"graph_unet/{name}")
    x = case.leaf("x")
    width = x.size(1)
    model = GraphUNet(
        width,
        width,
        width,
        depth=3,
        ratio=case.inputs["ratios"],
        preset="authors",
        act=case.inputs["activation"],
        stem=False,
        out_conv=False,
    )
    case.load(model)
    result = model.run(x, torch.tensor(case.inputs["edge_index"]))
    loss = 0.0
    for actual, expected, cotangent in zip(
        result.outputs, case.outputs["hs"], case.inputs["cotangents"], strict=True
    ):
        case.close(actual, expected)
        loss = loss + (actual * case.tensor(cotangent)).sum()
    assert result.output_levels == [2, 1, 0, 0]
    assert_close(result.out, result.outputs[-1])
    loss.backward()
    case.check_gradients(model, {"x": x}, our_authors_name)


def authors_batch(case: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    parts = case.inputs["graphs"]
    sizes = torch.tensor([part["num_nodes"] for part in parts])
    starts = [0, *sizes.cumsum(0).tolist()]
    edges = [
        torch.tensor(p["edge_index"]) + s for p, s in zip(parts, starts, strict=False)
    ]
    x = torch.cat([case.tensor(part["x"]) for part in parts])
    batch = torch.repeat_interleave(torch.arange(len(parts)), sizes)
    return x, torch.cat(edges, dim=1), batch


def authors_classifier(case: Any) -> GraphUNet:
    model = GraphUNet(
        3,
        4,
        2,
        depth=3,
        ratio=case.inputs["ratios"],
        preset="authors",
        task="graph",
        act=case.inputs["act_network"],
        head_act=case.inputs["act_classifier"],
        head_channels=[5],
    )
    return case.load(model)


def test_authors_classifier_golden(golden) -> None:
    case = golden("graph_unet/authors_graph_classifier")
    model = authors_classifier(case)
    x, edge_index, batch = authors_batch(case)
    result = model.run(x, edge_index, batch=batch)
    case.close(result.readout, case.outputs["readout"])
    case.close(result.out.log_softmax(-1), case.outputs["log_probabilities"])
    labels = torch.tensor(case.inputs["labels"])
    loss = torch.nn.functional.cross_entropy(result.out, labels)
    case.close(loss, case.outputs["loss"])
    loss.backward()
    case.check_gradients(model, {}, our_authors_name)


def test_authors_weights_load_with_and_without_prefix(golden) -> None:
    case = golden("graph_unet/authors_graph_classifier")
    with_prefix = authors_classifier(case).state_dict()
    case.weights = {k.removeprefix("g_unet."): v for k, v in case.weights.items()}
    without = authors_classifier(case).state_dict()
    assert with_prefix.keys() == without.keys()
    assert all(torch.equal(with_prefix[k], without[k]) for k in without)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize(("ratio", "sum_res"), [(0.5, True), ([0.75, 0.5], False)])
def test_equals_pyg_on_an_unsorted_batch(graphs, ratio: Any, sum_res: bool) -> None:
    theirs = PyGGraphUNet(3, 4, 2, 2, pool_ratios=ratio, sum_res=sum_res).double()
    merge = "sum" if sum_res else "cat"
    ours = GraphUNet(3, 4, 2, depth=2, ratio=ratio, merge=merge).double()
    ours.load_state_dict(theirs.state_dict())
    x, edge_index, batch, _ = graphs.shuffled()
    weight = torch.rand(edge_index.size(1), dtype=x.dtype)
    takes_weights = "edge_weight" in signature(theirs.forward).parameters
    if not takes_weights:  # PyG before 2.7
        weight = torch.ones_like(weight)
    given = (weight,) if takes_weights else ()
    expected = theirs(x, edge_index, batch, *given)
    assert_close(ours(x, edge_index, weight, batch=batch), expected)
    assert_close(ours(x, edge_index, weight.view(-1, 1), batch=batch), expected)


FORMS = [
    {"preset": preset, "task": task}
    for preset in ("pyg", "paper", "authors", None)
    for task in ("node", "graph")
]
VARIANTS = [
    *FORMS,
    {"conv": "sage", "skip": "post", "out_conv": True},
    {"conv": "gin", "merge": "cat", "task": "graph", "readout_levels": "all"},
    {"conv": "gat", "augment": "none", "norm": "layer_norm", "stem": True},
    {"conv": SAGEConv, "skip": "post", "merge": "cat", "out_conv": True},
    {
        "conv": "graph",
        "pool": PairPooling,
        "long_skip": True,
        "task": "graph",
        "stem": True,
    },
    {"preset": "authors", "pool": PairPooling, "task": "graph"},
    {"conv": "gatv2", "conv_options": {"heads": 2}, "ratio": [3, 1.0], "norm": "graph"},
    {"task": "graph", "readout": ["mean", "softmax", "std"]},
]


def build(options: dict[str, Any]) -> GraphUNet:
    torch.manual_seed(12)
    options = {"out_channels": 2, "depth": 2, "ratio": 0.6, **options}
    return GraphUNet(3, 4, **options).double().eval()


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
    x, edge_index, batch, order = graphs.shuffled()
    actual = model(x, edge_index, batch=batch)
    assert_close(actual, expected if model.task == "graph" else expected[order])
    swap = torch.tensor([2, 0, 1])
    actual = model(x, edge_index, batch=swap[batch])
    if model.task == "graph":
        assert_close(actual[swap], expected)
    else:
        assert_close(actual, expected[order])


@pytest.mark.parametrize("options", FORMS)
def test_empty_graphs_and_empty_batches(graphs, options: dict[str, Any]) -> None:
    model = build(options)
    spread = torch.tensor([1, 2, 4])[graphs.batch]
    out = model(graphs.x, graphs.edge_index, batch=spread, batch_size=6)
    expected = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    none = model(
        graphs.x[:0],
        graphs.edge_index[:, :0],
        batch=graphs.batch[:0],
        batch_size=2,
    )
    if model.task == "node":
        assert_close(out, expected)
        assert none.shape == (0, 2)
    else:
        assert_close(out[[1, 2, 4]], expected)
        assert_close(out[0], out[5])
        assert_close(none, out[[0, 3]])


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


def test_loops_come_back_where_pooling_drops_them() -> None:
    # Without its loop a node alone would hear nothing at the lowest level.
    model = build({"preset": "authors", "pool": PairPooling, "act": "elu"})
    model(
        torch.ones(1, 3).double(), torch.empty(2, 0, dtype=torch.long)
    ).sum().backward()
    assert all(conv.lin.weight.grad.any() for conv in model.down_convs)


@pytest.mark.parametrize("options", VARIANTS)
def test_every_parameter_gets_a_gradient(graphs, options: dict[str, Any]) -> None:
    model = build({**options, "act": "elu"}).train()
    with torch.no_grad():  # a fresh graph norm cancels the bias before it exactly
        for parameter in model.parameters():
            parameter += 0.1 * torch.rand_like(parameter)
    out = model(graphs.x, graphs.edge_index, batch=graphs.batch)
    (out * torch.randn_like(out)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.any(), name


@pytest.mark.parametrize("options", [{}, {"preset": "authors", "task": "graph"}])
def test_training_with_isolated_nodes_stays_finite(options: dict[str, Any]) -> None:
    model = build({**options, "depth": 1}).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    edges = torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    x, batch = torch.randn(5, 3, dtype=torch.float64), torch.tensor([0, 0, 0, 0, 1])
    for _ in range(200):
        optimizer.zero_grad()
        loss = model(x, edges, batch=batch).square().mean()
        assert loss.isfinite()
        loss.backward()
        optimizer.step()


def test_attention_on_edges_gets_a_gradient_at_every_level(graphs) -> None:
    edge_attr = torch.rand(graphs.edge_index.size(1), 1, dtype=torch.float64)
    for augment in ("none", "weighted", "binary"):
        model = build({"conv": "gat", "edge_channels": 1, "augment": augment})
        out = model(graphs.x, graphs.edge_index, edge_attr, batch=graphs.batch)
        out.sum().backward()
        assert all(p.grad is not None for p in model.parameters())


def test_edge_attributes_are_used_or_refused(graphs) -> None:
    num_edges = graphs.edge_index.size(1)
    wide = torch.rand(num_edges, 5, dtype=torch.float64)
    narrow = torch.rand(num_edges, dtype=torch.float64)
    options = {"conv": "gine", "edge_channels": 5, "augment": "none"}
    model = build(options)
    first = model(graphs.x, graphs.edge_index, wide, batch=graphs.batch)
    second = model(graphs.x, graphs.edge_index, wide + 1, batch=graphs.batch)
    assert not torch.allclose(first, second)
    with pytest.raises(ValueError, match=r"expected \[num_edges, 5\]"):
        model(graphs.x, graphs.edge_index)
    with pytest.raises(ValueError, match="expected 5 channels"):
        model(graphs.x, graphs.edge_index, narrow)
    with pytest.raises(ValueError, match=r"expected \[E\] or \[E, 1\]"):
        build({})(graphs.x, graphs.edge_index, wide)
    with pytest.raises(ValueError, match="takes no edge weights"):
        build({"conv": "sage"})(graphs.x, graphs.edge_index, narrow)
    with pytest.raises(ValueError, match="set augment='none'"):
        build({"conv": "gat", "edge_channels": 5})


def test_without_edge_attributes_only_the_pooling_sees_them(graphs) -> None:
    model = build({"conv": "sage", "use_edge_attr": False})
    weight = torch.rand(graphs.edge_index.size(1), dtype=torch.float64)
    result = model.run(graphs.x, graphs.edge_index, weight, batch=graphs.batch)
    assert_close(result.out, model(graphs.x, graphs.edge_index, batch=graphs.batch))
    assert result.hierarchy.levels[0].edge_attr is weight
    assert not (result.hierarchy.levels[1].edge_attr == 1).all()


def test_gradient_reaches_edge_weights(graphs) -> None:
    model = build({})

    def f(weight: torch.Tensor) -> torch.Tensor:
        return model(graphs.x, graphs.edge_index, weight, batch=graphs.batch)

    weight = torch.rand(graphs.edge_index.size(1), dtype=torch.float64) + 0.5
    assert torch.autograd.gradcheck(f, weight.requires_grad_())


@pytest.mark.parametrize("options", [{}, {"preset": "authors", "task": "graph"}])
def test_run_agrees_with_forward_and_lifts_back(graphs, options) -> None:
    model = build(options)
    result = model.run(graphs.x, graphs.edge_index, batch=graphs.batch)
    assert_close(result.out, model(graphs.x, graphs.edge_index, batch=graphs.batch))
    hierarchy = result.hierarchy
    assert hierarchy.num_levels == 3
    sizes = [hierarchy.levels[level].num_nodes for level in result.output_levels]
    assert [out.size(0) for out in result.outputs] == sizes
    assert hierarchy.lift(hierarchy.levels[2].x, 2).size(0) == graphs.x.size(0)
    assert result.loss == 0


def test_precomputed_hierarchy_replaces_pooling(graphs) -> None:
    source = build({})
    found = source.run(graphs.x, graphs.edge_index, batch=graphs.batch).hierarchy
    model = build({"pool": "precomputed"})
    assert "pools" not in "".join(model.state_dict())
    out = model(graphs.x, graphs.edge_index, batch=graphs.batch, hierarchy=found)
    alone = model(graphs.x, graphs.edge_index, hierarchy=found)
    assert_close(out, alone)
    assert out.shape == (graphs.x.size(0), 2)
    result = model.run(graphs.x, graphs.edge_index, hierarchy=found)
    assert result.hierarchy is found


def test_precomputed_clusters_match_the_same_pooling(graphs) -> None:
    pooled = build({"pool": PairPooling, "reduce": "sum"})
    model = build({"pool": "precomputed", "reduce": "sum"})
    model.load_state_dict(pooled.state_dict())
    first = pooled.run(graphs.x, graphs.edge_index, batch=graphs.batch)
    out = model(graphs.x, graphs.edge_index, hierarchy=first.hierarchy)
    assert_close(out, first.out)
    for level in first.hierarchy.levels[1:]:
        level.batch = None
    graph_model = build({"pool": "precomputed", "task": "graph"})
    inputs = (graphs.x, graphs.edge_index)
    assert graph_model(*inputs, hierarchy=first.hierarchy).shape == (3, 2)


def test_hierarchy_is_asked_for_and_checked(graphs) -> None:
    hierarchy = build({}).run(graphs.x, graphs.edge_index).hierarchy
    with pytest.raises(ValueError, match="pass hierarchy="):
        build({"pool": "precomputed"})(graphs.x, graphs.edge_index)
    with pytest.raises(ValueError, match="build it with pool='precomputed'"):
        build({})(graphs.x, graphs.edge_index, hierarchy=hierarchy)
    model = build({"pool": "precomputed"})
    short = Hierarchy(hierarchy.levels[:2], hierarchy.selections[:1])
    with pytest.raises(ValueError, match="expected at least 2"):
        model(graphs.x, graphs.edge_index, hierarchy=short)
    other = Hierarchy(hierarchy.levels[1:], hierarchy.selections[1:])
    last = other.levels[-1]
    whole = Selection.from_nodes(torch.arange(last.num_nodes), last.num_nodes)
    deep = Hierarchy([*other.levels, last], [*other.selections, whole])
    with pytest.raises(ValueError, match="expected the same graph"):
        model(graphs.x, graphs.edge_index, hierarchy=deep)


def test_pools_may_be_given_one_by_one(graphs) -> None:
    pools = [GPool(4, ratio=3), PairPooling()]
    model = build({"pool": pools})
    result = model.run(graphs.x, graphs.edge_index, batch=graphs.batch)
    assert [level.num_nodes for level in result.hierarchy.levels] == [12, 7, 5]
    model = build({"pool": lambda width, ratio: GPool(width, ratio, bias=True)})
    assert model.pools[1].bias is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", FORMS)
def test_half_precision(graphs, options: dict[str, Any], dtype: torch.dtype) -> None:
    model = build(options).to(dtype)
    out = model(graphs.x.to(dtype), graphs.edge_index, batch=graphs.batch)
    assert out.dtype == dtype
    assert out.isfinite().all()
    out.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("options", FORMS)
def test_autocast(graphs, options: dict[str, Any]) -> None:
    model = build(options).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(graphs.x.float(), graphs.edge_index, batch=graphs.batch)
    assert out.isfinite().all()
    out.float().sum().backward()


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 1},
        {"preset": "authors", "task": "graph", "depth": 1},
        pytest.param({"preset": "paper", "task": "graph"}, marks=pytest.mark.slow),
        pytest.param({"preset": None, "task": "graph"}, marks=pytest.mark.slow),
        pytest.param({"conv": "sage", "norm": "graph"}, marks=pytest.mark.slow),
    ],
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
    inputs = {"batch": graphs.batch}
    expected = model(graphs.x, graphs.edge_index, **inputs)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    copies = [
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(buffer, weights_only=False),
    ]
    for each in copies:
        assert_close(each(graphs.x, graphs.edge_index, **inputs), expected)
        # The renaming of weights on loading goes along.
        each.load_state_dict(model.state_dict())
        each.down_convs = None
        assert model.down_convs is not None


def test_repr_builds_the_same_model() -> None:
    model = GraphUNet(3, 8, 2, depth=2, ratio=[0.9, 4], preset="authors", skip="pre")
    assert repr(model) == (
        "GraphUNet(3, 8, 2, depth=2, ratio=[0.9, 4], preset='authors', skip='pre')"
    )
    twin = eval(repr(model), {"GraphUNet": GraphUNet})
    assert twin.state_dict().keys() == model.state_dict().keys()
    assert "conv=GATConv" in repr(GraphUNet(3, 8, 2, conv=GATConv))


def test_reset_parameters_draws_anew() -> None:
    for options in ({"preset": "authors", "task": "graph"}, {"norm": "batch_norm"}):
        model = build(options)
        before = {k: v.clone() for k, v in model.state_dict().items()}
        torch.manual_seed(99)
        model.reset_parameters()
        same = [
            k
            for k, v in model.named_parameters()
            if torch.equal(v, before[k]) and v.abs().sum() > 0 and "norm" not in k
        ]
        assert same == []


def test_dropout_acts_in_training_only(graphs) -> None:
    model = build({"preset": "authors", "dropout": 0.5})
    assert model.pools[0].dropout == 0.5
    inputs = (graphs.x, graphs.edge_index)
    assert_close(model(*inputs), model(*inputs))
    model.train()
    assert not torch.allclose(model(*inputs), model(*inputs))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "pgy"}, "did you mean 'pyg'"),
        ({"task": "edge"}, "expected one of"),
        ({"depth": 0}, "expected at least 1"),
        ({"skip": "mid"}, "got skip='mid'"),
        ({"merge": "add"}, "got merge='add'"),
        ({"readout_levels": "first", "task": "graph"}, "got readout_levels"),
        ({"augment": "twice"}, "got augment='twice'"),
        ({"augment": "none", "pool": PairPooling}, "with pool='gpool' only"),
        ({"task": "graph", "out_conv": True}, "task='node' only"),
        ({"readout": ["max"]}, "task='graph' only"),
        ({"skip": "post"}, "set out_conv=True"),
        ({"long_skip": True}, "at the long skip"),
        ({"merge": "cat", "skip": "post"}, "at the output"),
        ({"ratio": [0.5, 0.5, 0.5, 0.5]}, "expected 1 to 3, one per level"),
        ({"ratio": 1.5}, "ratio"),
        ({"conv": "gcnn"}, "did you mean 'gcn'"),
        ({"pool": "topk"}, "expected one of"),
        ({"pool": GPool(4)}, "expected 3, one per level"),
        ({"pool": [GPool(4)] * 3, "pool_options": {"ratio": 1}}, "got pool_options"),
        ({"task": "graph", "readout": ["men"]}, "did you mean 'mean'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GraphUNet(3, 4, 2, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"ratoi": 0.1},
        {"pool_options": {"ratoi": 0.1}},
        {"conv_options": {"improvd": True}},
        {"conv": GINEConv, "conv_options": {"esp": 1}},
        {"pool": lambda width, ratio: torch.nn.Identity()},
        {"conv": lambda source, target: "conv"},
    ],
)
def test_misspelt_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        GraphUNet(3, 4, 2, **options)


def test_wrong_input_is_refused(graphs) -> None:
    model = build({})
    with pytest.raises(ValueError, match="in_channels=2"):
        model(graphs.x[:, :2], graphs.edge_index)
    with pytest.raises(TypeError, match="floating point"):
        model(graphs.x.long(), graphs.edge_index)
    with pytest.raises(ValueError, match="one graph id per row"):
        model(graphs.x, graphs.edge_index, batch=graphs.batch[:3])
