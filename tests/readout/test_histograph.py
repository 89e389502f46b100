"""HISTOGRAPH: reference values, options, and that no input breaks it."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import JumpingKnowledge

from pyg_pool import HistographAggregation
from pyg_pool.errors import PygPoolWarning
from pyg_pool.testing import check_readout
from pyg_pool.testing.contract import ReadoutSpec
from tests.golden_files import close, load, names

INDEX = torch.tensor([2, 0, 0, 2, 0])
FORMS: list[dict[str, Any]] = [
    {"heads": 2},
    {"heads": 1, "norm": None, "residual": False, "pool": "sum"},
    {"heads": 2, "node_attention": "induced", "num_points": 3, "norm": None},
    {"node_attention": False, "layer_attention": "softmax"},
    {"heads": 4, "layer_attention": "signed_abs", "pool": "max"},
]


def readout_of(golden: dict[str, Any]) -> HistographAggregation:
    config = golden["config"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PygPoolWarning)
        readout = HistographAggregation(
            [layer.size(1) for layer in golden["inputs"]["history"]],
            config["hidden_channels"],
            heads=config["heads"],
            layer_attention=config["layer_attention"],
            node_attention=config["node_attention"],
            residual=config["residual"],
            norm="layer" if config["layer_norm"] else None,
            positional=config["positional"],
            scope=config["scope"],
            eps=config["eps"],
        ).to(golden["dtype"])
    known = readout.state_dict()
    weights = {n: w for n, w in golden["weights"].items() if n in known}
    readout.load_state_dict(weights)
    return readout


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("histograph"))
def test_golden(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("histograph", name, dtype)
    if dtype == torch.float32:
        golden["tolerance"] = {"float64_rel": 0.0, **golden["tolerance"]}
    inputs, outputs = golden["inputs"], golden["outputs"]
    history = [layer.requires_grad_() for layer in inputs["history"]]
    readout = readout_of(golden)
    index, size = inputs["batch"], inputs["num_graphs"]
    out = readout.run(torch.cat(history, -1), index, dim_size=size)
    close(golden, out.out, outputs["graph_embedding"])
    close(golden, out.nodes, outputs["node_embedding_Z"])
    close(golden, out.mixed, outputs["H"])
    close(golden, out.layer_weights, outputs["layer_weights"])
    if golden["config"]["layer_attention"] != "mean":  # which takes no logits
        close(golden, out.layer_logits, outputs["layer_logits_mean"])
    assert_close(readout.from_history(history, index, dim_size=size), out.out)
    (out.out * torch.tensor(golden["cotangent"], dtype=dtype)).sum().backward()
    found = {f"history.{i}": layer.grad for i, layer in enumerate(history)}
    found |= {n: p.grad for n, p in readout.named_parameters()}
    for leaf, gradient in golden["gradients"].items():
        close(golden, found[leaf], gradient)


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    "check", ["forms", "batch_independence", "empty", "extremes", "nan", "autocast"]
)
def test_forms_keep_the_contract(check: str, form: dict[str, Any]) -> None:
    spec = ReadoutSpec(lambda _: HistographAggregation([2, 2], 4, **form), str(form))
    assert check_readout(spec, only=[check]) == {check: "passed"}


@pytest.mark.parametrize("form", FORMS, ids=str)
@settings(max_examples=15)
@given(data=st.data())
def test_no_finite_input_gives_nan(form: dict[str, Any], data: st.DataObject) -> None:
    numbers = st.floats(-(2**40), 2**40, width=32) | st.sampled_from([0.0, 1e12])
    rows = data.draw(st.lists(st.lists(numbers, min_size=4, max_size=4), max_size=6))
    x = torch.tensor(rows).view(-1, 4).requires_grad_()
    index = torch.arange(x.size(0)) % 2
    torch.manual_seed(0)
    readout = HistographAggregation([2, 2], 4, **form)
    out = readout(x, index, dim_size=3)
    assert out.isfinite().all()
    out.sum().backward()
    grads = [x.grad, *(p.grad for p in readout.parameters())]
    assert all(g is None or bool(g.isfinite().all()) for g in grads)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_mates_do_not_matter(form: dict[str, Any]) -> None:
    readout = HistographAggregation(8, 16, 3, **form)
    x = torch.randn(60, 24)
    alone = readout(x[:20])
    index = torch.cat([torch.zeros(20), torch.ones(40)]).long()
    for factor in (1.0, 1e6, 1e-6):
        mates = torch.cat([x[:20], factor * x[20:]])
        assert_close(readout(mates, index)[:1], alone, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_computes_in_float32(dtype: torch.dtype) -> None:
    readout = HistographAggregation([4, 4], 8).to(dtype)
    x = (100 * torch.randn(30, 8)).to(dtype)
    out = readout(x)
    assert out.dtype == dtype
    wanted = readout.float()(x.float())
    assert_close(out.float(), wanted, atol=2e-2, rtol=2e-2)


def test_alternating_weights_subtract_layers() -> None:
    readout = HistographAggregation(4, 4, 3, node_attention=False, positional="none")
    readout = readout.double()
    history = [torch.randn(6, 4, dtype=torch.float64) for _ in range(3)]
    with torch.no_grad():
        for layer in readout.hist:
            layer.weight.copy_(torch.eye(4))
            layer.bias.zero_()
        # A last layer of fixed direction, so that each logit is what its layer says.
        history[2] = torch.ones(6, 4, dtype=torch.float64)
        history[1] = -0.5 * history[2]
        history[0] = torch.zeros(6, 4, dtype=torch.float64)
        readout.w_q.copy_(torch.eye(4))
        readout.w_k.copy_(torch.eye(4))
    found = readout.run(torch.cat(history, -1))
    assert_close(found.layer_weights[0], torch.tensor([0.0, -1.0, 2.0]).double())
    assert_close(found.out, (2 * history[2] - history[1])[:1])


def test_sums_near_zero_give_equal_weights_or_bounded_ones() -> None:
    x = torch.tensor([[1.0, -1.0 + 2e-5, 1.0]])
    options: dict[str, Any] = {"node_attention": False, "positional": "none"}
    readout = HistographAggregation(1, 1, 3, **options)
    with torch.no_grad():
        for weight in readout.parameters():
            weight.fill_(1.0)
        for layer in readout.hist:
            layer.bias.zero_()
    assert readout.run(x).layer_weights.tolist()[0] == pytest.approx(
        [1, -1, 1], abs=1e-3
    )
    x = torch.tensor([[-0.5, -0.5 + 1e-3, 1.0]])
    assert readout.run(x).layer_weights.abs().max() > 900
    bounded = HistographAggregation(1, 1, 3, max_weight=2.0, **options)
    bounded.load_state_dict(readout.state_dict())
    assert bounded.run(x).layer_weights.abs().max().item() == pytest.approx(2.0)
    x = torch.tensor([[-0.5, -0.5, 1.0]]).requires_grad_()
    found = readout.run(x)
    assert_close(found.layer_weights, torch.full((1, 3), 1 / 3))
    found.layer_weights.sum().backward()
    assert x.grad is None or bool((x.grad == 0).all())


def test_weights_of_layers_sum_to_one() -> None:
    x = torch.randn(5, 9)
    for how in ("signed", "softmax", "mean", "last"):
        readout = HistographAggregation(3, 4, 3, layer_attention=how)
        total = readout.run(x, INDEX).layer_weights.sum(-1)
        assert_close(total, torch.ones(3), atol=1e-4, rtol=1e-4)
    readout = HistographAggregation(3, 4, 3, layer_attention="signed_abs")
    assert_close(readout.run(x).layer_weights.abs().sum(), torch.tensor(1.0))


def test_takes_what_jumping_knowledge_gives() -> None:
    history = [torch.randn(5, 3) for _ in range(4)]
    readout = HistographAggregation(3, 8, 4)
    wanted = readout.from_history(history, INDEX, dim_size=3)
    assert_close(readout(JumpingKnowledge("cat")(history), INDEX), wanted)
    stacked = torch.stack(history, 1)
    assert_close(readout(stacked, INDEX, dim_size=3, dim=0), wanted)
    with pytest.raises(ValueError, match=r"shape \[5, 4, 3\].*dim=-2, expected"):
        readout(stacked, INDEX)


def test_nodes_instead_of_graphs() -> None:
    x = torch.randn(5, 6)
    readout = HistographAggregation(3, 4, 2, pool="none")
    out = readout(x, INDEX, dim_size=3)
    assert out.shape == (5, 4)
    pooled = HistographAggregation(3, 4, 2)
    pooled.load_state_dict(readout.state_dict())
    wanted = torch.stack([out[INDEX == 0].mean(0), out[INDEX == 2].mean(0)])
    assert_close(pooled(x, INDEX)[[0, 2]], wanted)


def test_batch_scope_warns_and_depends_on_mates() -> None:
    with pytest.warns(PygPoolWarning, match="depends on the other graphs"):
        readout = HistographAggregation(3, 4, 2, scope="batch")
    x = torch.randn(5, 6)
    assert not torch.allclose(readout(x, INDEX)[:1], readout(x[INDEX == 0]))


def test_large_graph_beside_small_ones(backend: str) -> None:
    sizes = torch.tensor([1, 700, 0, 3, 1, 60])
    index = torch.repeat_interleave(torch.arange(6), sizes)
    x = torch.randn(index.numel(), 8)
    readout = HistographAggregation(4, 8, 2)
    out = readout(x, index, dim_size=6)
    for graph in range(6):
        wanted = readout(x[index == graph], dim_size=1)
        assert_close(out[graph : graph + 1], wanted, atol=1e-5, rtol=1e-5)
    assert (out[2] == 0).all()


def test_chunks_do_not_matter() -> None:
    x = torch.randn(50, 8)
    readout = HistographAggregation(4, 8, 2, chunk_size=8)
    whole = HistographAggregation(4, 8, 2, chunk_size=10_000)
    whole.load_state_dict(readout.state_dict())
    assert_close(readout(x), whole(x))


def test_dropout_is_random_in_training_only() -> None:
    x, index = torch.randn(40, 8), torch.arange(40) % 3
    readout = HistographAggregation(4, 8, 2, dropout=0.5)
    assert not torch.equal(readout(x, index), readout(x, index))
    torch.manual_seed(3)
    first = readout(x, index)
    torch.manual_seed(3)
    assert torch.equal(readout(x, index), first)
    readout.eval()
    assert torch.equal(readout(x, index), readout(x, index))


def test_tied_start_favours_the_last_layer() -> None:
    readout = HistographAggregation(4, 8, 3)
    assert torch.equal(readout.w_q, readout.w_k)
    assert (
        readout.run(torch.randn(9, 12), torch.arange(9)).layer_logits[:, -1] > 0
    ).all()
    free = HistographAggregation(4, 8, 3, init="free")
    assert not torch.equal(free.w_q, free.w_k)


def test_repr_and_options() -> None:
    readout = HistographAggregation([3, 4], 8, heads=2, norm=None)
    assert repr(readout) == "HistographAggregation([3, 4], 8, heads=2, norm=None)"
    shared = HistographAggregation(4, 8, 3, shared_projection=True)
    assert len(shared.hist) == 1
    assert shared(torch.randn(5, 12), INDEX).shape == (3, 8)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((4, 8), {}, r"num_layers=None, expected the width of each layer"),
        (([4, 4], 8, 3), {}, r"num_layers=3, expected"),
        (([4, 0], 8), {}, r"in_channels=\[4, 0\]"),
        ((4, 8, 2), {"heads": 3}, r"heads=3, expected a multiple"),
        ((4, 8, 2), {"layer_attention": "sign"}, r"layer_attention='sign'.*signed"),
        ((4, 8, 2), {"pool": "median"}, r"pool='median', expected one of"),
        ((4, 8, 2), {"max_weight": 0.1}, r"max_weight=0.1.*at least 0.5"),
        ((4, 8, 2), {"dropout": 1.0}, r"dropout=1.0, expected"),
        (([4, 5], 8), {"shared_projection": True}, r"\[4, 5\], expected equal widths"),
    ],
)
def test_options_are_checked(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        HistographAggregation(*arguments, **options)


def test_shapes_are_checked() -> None:
    readout = HistographAggregation([3, 4], 8)
    with pytest.raises(ValueError, match=r"\[5, 8\].*expected floats of shape .* 7\]"):
        readout(torch.randn(5, 8))
    short: list[Tensor] = [torch.randn(5, 3)]
    with pytest.raises(ValueError, match=r"got a history of shapes \[\[5, 3\]\]"):
        readout.from_history(short)
