"""GPool against stored values, and the rules that it documents."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import TopKPooling
from torch_geometric.utils import add_self_loops, dense_to_sparse, to_dense_adj

from pyg_pool import GPool, Selection, as_pyg_tuple
from pyg_pool.core.augment import augmented
from pyg_pool.kernels import topk
from tests.golden_files import close, load, names

PATH4 = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])


def dense(edge_index: Tensor, weight: Tensor | None, size: int) -> Tensor:
    """The adjacency that a golden stores."""
    adjacency = to_dense_adj(edge_index, edge_attr=weight, max_num_nodes=size)[0]
    return adjacency.double()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("gpool", "pyg_topk_*"))
def test_golden_pyg(name: str, dtype: torch.dtype) -> None:
    golden = load("gpool", name, dtype)
    inputs, outputs, grads = golden["inputs"], golden["outputs"], golden["gradients"]
    options = dict(inputs["arguments"])
    x = inputs["x"].requires_grad_()
    attn = inputs.get("attn")
    channels = (x if attn is None else attn).size(1)
    pool = GPool(channels, options.pop("ratio"), preset="pyg", **options).to(dtype)
    pool.load_state_dict(golden["weights"])
    if attn is not None:
        attn.requires_grad_()
    out = pool(
        x, inputs["edge_index"], inputs["edge_attr"], batch=inputs["batch"], attn=attn
    )
    pooled, edge_index, edge_attr, batch, perm, score = as_pyg_tuple(out)
    assert torch.equal(perm, outputs["perm"])
    assert torch.equal(batch, outputs["batch_out"])
    assert torch.equal(edge_index, outputs["edge_index_out"])
    close(golden, pooled, outputs["x_out"])
    close(golden, score, outputs["score"])
    if outputs["edge_attr_out"] is None:
        assert edge_attr is None
    else:
        close(golden, edge_attr, outputs["edge_attr_out"])
    (pooled * inputs["cotangent_of_x_out"]).sum().backward()
    close(golden, x.grad, grads["x"])
    close(golden, pool.weight.grad, grads["weight"])
    if attn is not None:
        close(golden, attn.grad, grads["attn"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("gpool", "authors_pool_*"))
def test_golden_authors(name: str, dtype: torch.dtype) -> None:
    golden = load("gpool", name, dtype)
    inputs, outputs, grads = golden["inputs"], golden["outputs"], golden["gradients"]
    x = inputs["x"].requires_grad_()
    pool = GPool(x.size(1), inputs["ratio"], preset="authors").to(dtype)
    weights = golden["weights"]
    pool.load_state_dict(
        {"proj.weight": weights["proj_weight"], "proj.bias": weights["proj_bias"]}
    )
    edges, _ = add_self_loops(inputs["edge_index"], num_nodes=x.size(0))
    out = pool(x, edges)
    kept = out.selection.node_index
    assert torch.equal(kept, outputs["node_index"])
    close(golden, out.score, outputs["score"][kept])
    close(golden, out.x, outputs["x_out"])
    pattern = dense(out.edge_index, None, outputs["k"])
    assert torch.equal(pattern, outputs["adj_binary_augmented"].double())
    (out.x * inputs["cotangent_of_x_out"]).sum().backward()
    close(golden, x.grad, grads["x"])
    close(golden, pool.weight.grad, grads["proj_weight"])
    close(golden, pool.bias.grad, grads["proj_bias"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("gpool", "paper_gpool_*"))
def test_golden_paper(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("gpool", name, dtype)
    inputs, outputs, grads = golden["inputs"], golden["outputs"], golden["gradients"]
    k = inputs["k"]
    x = inputs["x"].requires_grad_()
    pool = GPool(x.size(1), k, preset="paper", nonlinearity=inputs["gate"]).to(dtype)
    pool.load_state_dict({"weight": golden["weights"]["p"].view(1, -1)})
    edges, weight = inputs["edge_index"], inputs["edge_weight"]
    out = pool(x, edges, weight)
    assert torch.equal(out.selection.node_index, outputs["node_index"])
    close(golden, out.x, outputs["x_out"])
    square = dense(out.edge_index, out.edge_attr, k)
    close(golden, square, outputs["adj_square_filtered"])
    plain = GPool(x.size(1), k, nonlinearity=inputs["gate"], augment="none").to(dtype)
    plain.load_state_dict(pool.state_dict())
    kept = plain(x, edges, weight)
    filtered = dense(kept.edge_index, kept.edge_attr, k)
    close(golden, filtered, outputs["adj_filtered"])
    (out.x * inputs["cotangent_of_x_out"]).sum().backward()
    close(golden, x.grad, grads["x"])
    close(golden, pool.weight.grad.view(-1), grads["p"])


@pytest.mark.parametrize("name", names("gpool", "connectivity_*"))
@pytest.mark.parametrize(
    ("how", "stored"),
    [
        ("binary", "authors_binary"),
        ("weighted", "pyg"),
        ("square", "paper_square"),
    ],
)
def test_golden_connectivity(name: str, how: Any, stored: str, backend: str) -> None:
    golden = load("gpool", name)
    edges, weight = dense_to_sparse(golden["inputs"]["adjacency"])
    size = golden["inputs"]["num_nodes"]
    for nodes, key in (
        (golden["inputs"]["node_index"], f"{stored}_filtered"),
        (torch.arange(size), f"{stored}_full"),
    ):
        kept = Selection.from_nodes(nodes, size)
        index, value = augmented(kept, edges, weight, how=how)
        got = dense(index, value, nodes.numel())
        close(golden, got, golden["outputs"][key])


@pytest.mark.parametrize("name", names("gpool", "ties_*"))
def test_golden_ties(name: str) -> None:
    golden = load("gpool", name)
    inputs = golden["inputs"]
    score, batch = inputs["score"], inputs["batch"]
    found = [
        (batch == int(graph)).nonzero().view(-1)[topk(score[batch == int(graph)], k=k)]
        for graph, k in inputs["k"].items()
    ]
    assert torch.equal(torch.cat(found), golden["outputs"]["node_index"])
    if len(set(inputs["k"].values())) == 1:
        k = next(iter(inputs["k"].values()))
        together = topk(score, k=k, batch=batch)
        assert torch.equal(together, golden["outputs"]["node_index"])


@pytest.mark.parametrize("name", names("gpool", "k_table"))
@pytest.mark.parametrize("batched", [False, True])
def test_golden_k_table(name: str, batched: bool) -> None:
    for row in load("gpool", name)["outputs"]["rows"]:
        n = row["num_nodes"]
        ratio = float(Fraction(row["ratio_numerator"], row["ratio_denominator"]))
        batch = torch.zeros(n, dtype=torch.long) if batched else None
        for dtype in (torch.float32, torch.bfloat16):
            score = torch.zeros(n, dtype=dtype)
            up = topk(score, ratio, batch=batch, min_nodes=0)
            assert up.numel() == row["ceil_exact"]
            down = topk(score, ratio, batch=batch, min_nodes=0, rounding="floor")
            assert down.numel() == row["floor_exact"]
            two = topk(score, ratio, batch=batch, min_nodes=2, rounding="floor")
            exact = max(2, row["floor_exact"])
            assert two.numel() == min(n, exact)


@pytest.mark.parametrize("prefix", ["", "select.", "proj."])
def test_reads_other_names(prefix: str) -> None:
    pool = GPool(3)
    pool.load_state_dict({f"{prefix}weight": torch.tensor([[1.0, 2.0, 3.0]])})
    assert pool.weight.tolist() == [[1.0, 2.0, 3.0]]


def test_equals_pyg_on_a_batch() -> None:
    x = torch.randn(40, 5)
    batch = torch.arange(40) // 8
    edges = torch.randint(0, 8, (2, 100))
    edges = edges + 8 * (torch.arange(100) // 20)
    theirs = TopKPooling(5, ratio=0.6)
    ours = GPool(5, ratio=0.6, preset="pyg")
    ours.load_state_dict(theirs.state_dict())
    expected = theirs(x, edges, torch.arange(100.0), batch)
    got = as_pyg_tuple(ours(x, edges, torch.arange(100.0), batch=batch))
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_gradient_of_everything() -> None:
    pool = GPool(3, 3, augment="weighted").double()
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    weight = torch.rand(6, dtype=torch.double, requires_grad=True)

    def run(x: Tensor, weight: Tensor, vector: Tensor) -> tuple[Tensor, Tensor]:
        out = torch.func.functional_call(pool, {"weight": vector}, (x, PATH4, weight))
        return out.x, out.edge_attr

    assert torch.autograd.gradcheck(run, (x, weight, pool.weight))


def test_vector_gradient_is_orthogonal_to_the_vector() -> None:
    pool = GPool(4, 3).double()
    pool(torch.randn(9, 4, dtype=torch.double), PATH4).x.sum().backward()
    inner = (pool.weight * pool.weight.grad).sum()
    torch.testing.assert_close(inner, torch.zeros_like(inner), atol=1e-12, rtol=0)


@pytest.mark.parametrize("gate", ["sigmoid", "tanh"])
def test_ranks_on_the_raw_projection(gate: str) -> None:
    # Both values saturate the gate in float32: only the projection tells them apart.
    pool = GPool(1, 1, nonlinearity=gate)
    pool.load_state_dict({"weight": torch.ones(1, 1)})
    out = pool(torch.tensor([[30.0], [90.0]]), PATH4[:, :0])
    assert out.selection.node_index.tolist() == [1]


def test_unknown_gate_ranks_on_its_output() -> None:
    pool = GPool(1, 1, nonlinearity=torch.neg)
    pool.load_state_dict({"weight": torch.ones(1, 1)})
    out = pool(torch.tensor([[3.0], [1.0]]), PATH4[:, :0])
    assert out.selection.node_index.tolist() == [1]
    assert out.score.tolist() == [-1.0]


def test_nan_ranks_last_and_stays_visible() -> None:
    pool = GPool(1, 2)
    pool.load_state_dict({"weight": torch.ones(1, 1)})
    x = torch.tensor([[float("nan")], [-5.0], [1.0]])
    assert pool(x, PATH4[:, :0]).selection.node_index.tolist() == [2, 1]
    assert pool(x[:1], PATH4[:, :0]).x.isnan().all()


def test_softmax_gate_is_normalised_over_each_graph() -> None:
    pool = GPool(2, 1.0, nonlinearity="softmax")
    batch = torch.tensor([1, 0, 1, 0, 1])
    out = pool(torch.randn(5, 2), PATH4, batch=batch)
    total = torch.zeros(2).index_add(0, out.batch, out.score)
    torch.testing.assert_close(total, torch.ones(2))


def test_min_score_keeps_the_best_even_with_nan() -> None:
    pool = GPool(1, min_score=0.9)
    pool.load_state_dict({"weight": torch.ones(1, 1)})
    x = torch.tensor([[float("nan")], [2.0], [0.0], [0.1]])
    out = pool(x, PATH4, batch=torch.tensor([0, 0, 1, 1]))
    assert out.selection.node_index.tolist() == [1, 3]
    assert out.x.isnan().any(dim=1).tolist() == [True, False]


def test_weights_keep_their_form_and_attributes_are_refused() -> None:
    pool = GPool(2, 3, augment="weighted")
    x = torch.randn(4, 2)
    out = pool(x, PATH4, torch.ones(6, 1))
    assert out.edge_attr.shape == (out.edge_index.size(1), 1)
    with pytest.raises(ValueError, match=r"shape \[6, 3\].*augment='none'"):
        pool(x, PATH4, torch.ones(6, 3))
    assert GPool(2, 3)(x, PATH4, torch.ones(6, 3)).edge_attr.shape[1] == 3


def test_max_edges_refuses_before_allocating(backend: str) -> None:
    hub = torch.stack([torch.zeros(50, dtype=torch.long), torch.arange(1, 51)])
    hub = torch.cat([hub, hub.flip(0)], 1)
    pool = GPool(1, 1.0, augment="weighted", max_edges=100)
    with pytest.raises(ValueError, match=r"max_edges=100; raise max_edges"):
        pool(torch.randn(51, 1), hub)


def test_dropout_acts_on_the_score_in_training_only() -> None:
    pool = GPool(64, 1.0, dropout=0.9)
    x = torch.randn(10, 64)
    edges = PATH4[:, :0]
    scores = {tuple(pool(x, edges).score.tolist()) for _ in range(3)}
    assert len(scores) == 3
    pool.eval()
    scores = {tuple(pool(x, edges).score.tolist()) for _ in range(3)}
    assert len(scores) == 1


def test_carry_brings_positions_labels_and_masks() -> None:
    pool = GPool(2, 0.5)
    x = torch.randn(4, 2)
    y, mask = torch.arange(4), torch.tensor([True, False, True, False])
    out = pool(x, PATH4)
    carried = pool.carry(out, pos=x, y=y, mask=mask)
    kept = out.selection.node_index
    assert torch.equal(carried["pos"], x[kept])
    assert torch.equal(carried["y"], kept)
    assert torch.equal(carried["mask"], mask[kept])
    with pytest.raises(ValueError, match=r"carry got y of shape \[2\] for 4 nodes"):
        pool.carry(out, y=y[:2])


def test_takes_edge_index_subclass_and_refuses_sparse() -> None:
    from torch_geometric import EdgeIndex

    pool = GPool(2, 0.5)
    x = torch.randn(4, 2)
    out = pool(x, EdgeIndex(PATH4, sparse_size=(4, 4)))
    assert torch.equal(out.edge_index, pool(x, PATH4).edge_index)
    adjacency = torch.sparse_coo_tensor(
        PATH4, torch.ones(6), (4, 4), check_invariants=True
    )
    with pytest.raises(TypeError, match=r"sparse adjacency.*to_edge_index"):
        pool(x, adjacency)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"ratio": 0.0}, ValueError, r"ratio=0.0, expected a float in \(0, 1\]"),
        ({"ratio": 1.5}, ValueError, r"ratio=1.5"),
        ({"ratio": True}, ValueError, r"ratio=True"),
        ({"ratio": 0}, ValueError, r"ratio=0,"),
        ({"preset": "papr"}, ValueError, r"did you mean 'paper'"),
        ({"augment": "squared"}, ValueError, r"did you mean 'square'"),
        ({"rounding": "round"}, ValueError, r"rounding='round'"),
        ({"ratoi": 0.1}, TypeError, r"ratoi"),
    ],
)
def test_refuses_bad_options(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        GPool(4, **options)


def test_refuses_bad_input() -> None:
    pool = GPool(4)
    with pytest.raises(ValueError, match=r"shape \[4, 5\].*in_channels=5"):
        pool(torch.randn(4, 5), PATH4)
    with pytest.raises(ValueError, match=r"node ids 0 to 3 for 2 nodes"):
        pool(torch.randn(2, 4), PATH4)
    with pytest.raises(TypeError, match=r"dtype torch.int64"):
        pool(torch.ones(4, 4, dtype=torch.long), PATH4)
    with pytest.raises(ValueError, match=r"batch_size=2, expected ids in 0..1"):
        pool(torch.randn(4, 4), PATH4, batch=torch.tensor([0, 0, 1, 2]), batch_size=2)


@pytest.mark.parametrize(
    "pool",
    [
        GPool(3),
        GPool(3, 2, preset="authors"),
        GPool(3, 0.5, preset="pyg", nonlinearity="sigmoid", multiplier=2.0),
        GPool(3, min_score=0.2, augment="square", max_edges=7),
    ],
)
def test_repr_can_be_read_back(pool: GPool) -> None:
    again = eval(repr(pool), {"GPool": GPool})
    assert repr(again) == repr(pool)
    again.load_state_dict(pool.state_dict())


def test_result_can_be_copied_and_sent() -> None:
    pool = GPool(2, 0.5, preset="pyg")
    x = torch.randn(4, 2)
    with torch.no_grad():
        out = pool(x, PATH4)
    for copied in (pickle.loads(pickle.dumps(out)), copy.deepcopy(out), out.to("cpu")):
        assert torch.equal(copied.x, out.x)
        assert copied.selection == out.selection
    again = pickle.loads(pickle.dumps(pool))
    assert torch.equal(again(x, PATH4).x, pool(x, PATH4).x)


def test_batch_of_data_objects() -> None:
    graphs = [Data(x=torch.randn(n, 3), edge_index=PATH4[:, :2]) for n in (2, 5, 3)]
    batch = Batch.from_data_list(graphs)
    pool = GPool(3, 0.5)
    out = pool(
        batch.x, batch.edge_index, batch=batch.batch, batch_size=batch.num_graphs
    )
    assert torch.bincount(out.batch).tolist() == [1, 3, 2]
    alone = torch.cat([pool(g.x, g.edge_index).x for g in graphs])
    torch.testing.assert_close(out.x, alone)
