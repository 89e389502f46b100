"""GNP against stored values; its exponents, options and hosts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import (
    DegreeScalerAggregation,
    MultiAggregation,
    SAGEConv,
    SimpleConv,
    aggr,
)

import pyg_pool
from pyg_pool import GNPAggregation
from pyg_pool.kernels import segment_pnorm, use_backend
from pyg_pool.readout import parameter_groups
from pyg_pool.testing import READOUT_CHECKS, check_readout
from pyg_pool.testing.contract import ReadoutSpec
from tests.golden_files import close, load, names

INDEX = torch.tensor([2, 0, 0, 2, 0])
FORMS: list[dict[str, Any]] = [
    {"mode": "proj"},
    {"mode": "cat", "channels": 4},
    {"mode": "pos", "negative": "split", "p": 2.0, "q": 0.5},
    {"mode": "neg", "negative": "relu"},
    {"learn": False, "negative": "split"},
]


@pytest.fixture
def registered() -> Iterator[None]:
    pyg_pool.register()
    yield
    pyg_pool.unregister()


def exponents(golden: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Exponents of both branches, one row each."""
    weights = golden["weights"]
    p = torch.stack([weights["p_pos"], weights["p_neg"]])
    return p, torch.stack([weights["q_pos"], weights["q_neg"]])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("gnp"))
def test_golden_norms_and_gradients(
    name: str, dtype: torch.dtype, backend: str
) -> None:
    golden = load("gnp", name, dtype)
    x = golden["inputs"]["x"].requires_grad_()
    p, q = (t.requires_grad_() for t in exponents(golden))
    groups = golden["inputs"]["index"], None, golden["inputs"]["dim_size"]
    config = golden["config"]
    part = "pos" if config["negative"] == "relu" else "abs"
    norms = segment_pnorm(x, p, q, *groups, eps=config["eps"], part=part)
    close(golden, norms[0], golden["outputs"]["gnp_pos"])
    close(golden, norms[1], golden["outputs"]["gnp_neg"])
    cotangent = torch.tensor(golden["cotangent"], dtype=dtype)
    (torch.cat([*norms], -1) * cotangent).sum().backward()
    close(golden, x.grad, golden["gradients"]["x"])
    for row, branch in enumerate(("pos", "neg")):
        for leaf, letter in ((p, "p"), (q, "q")):
            assert leaf.grad is not None
            close(golden, leaf.grad[row], golden["gradients"][f"{letter}_{branch}"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", names("gnp"))
def test_golden_module(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("gnp", name, dtype)
    p, q = exponents(golden)
    config, inputs = golden["config"], golden["inputs"]
    readout = GNPAggregation(
        mode="cat",
        channels=p.size(1),
        negative=config["negative"],
        eps=config["eps"],
    ).to(dtype)
    with torch.no_grad():
        readout.raw_p.copy_((p.abs() - readout.p_min).expm1().log())
        large = p.abs() > 20  # where softplus is the identity
        readout.raw_p[large] = (p.abs() - readout.p_min)[large]
        readout.raw_q.copy_(q)
    out = readout(inputs["x"], inputs["index"], dim_size=inputs["dim_size"])
    wanted = [golden["outputs"][f"gnp_{branch}"] for branch in ("pos", "neg")]
    close(golden, out, torch.cat(wanted, -1))


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(
    "check", sorted(set(READOUT_CHECKS) - {"compile", "compile_gradients"})
)
def test_forms_keep_the_contract(check: str, form: dict[str, Any]) -> None:
    spec = ReadoutSpec(lambda channels: GNPAggregation(channels, **form), str(form))
    assert check_readout(spec, only=[check]) == {check: "passed"}


@pytest.mark.parametrize("form", [{}, {"mode": "proj", "negative": "split"}], ids=str)
def test_compiles(form: dict[str, Any]) -> None:
    spec = ReadoutSpec(lambda channels: GNPAggregation(channels, **form), str(form))
    check_readout(spec, only=["compile", "compile_gradients"])


def fixed(p: float, q: float, **options: Any) -> GNPAggregation:
    mode = "pos" if p > 0 else "neg"
    return GNPAggregation(mode=mode, p=p, q=q, learn=False, **options)


@pytest.mark.parametrize(
    ("p", "q", "name"),
    [
        (1.0, 0.0, "SumAggregation"),
        (1.0, 1.0, "MeanAggregation"),
        (1.0, 0.5, "VariancePreservingAggregation"),
    ],
)
def test_signed_settings_are_the_plain_poolings(
    p: float, q: float, name: str, backend: str
) -> None:
    x = 5 * torch.randn(5, 3)
    readout = fixed(p, q, negative="split")
    wanted = getattr(aggr, name)()(x, INDEX, dim_size=4)
    assert_close(readout(x, INDEX, dim_size=4), wanted, atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize(("p", "name"), [(500.0, "max"), (-500.0, "min")])
def test_large_exponents_near_the_extremes(p: float, name: str, backend: str) -> None:
    x = torch.rand(5, 3) + 0.1
    wanted = getattr(aggr, f"{name.title()}Aggregation")()(x, INDEX, dim_size=4)
    # n elements move an extreme by a factor of n^(1/p) at most.
    assert_close(fixed(p, 0.0)(x, INDEX, dim_size=4), wanted, rtol=0.004, atol=1e-5)


def test_harmonic_mean_and_norms() -> None:
    x = torch.tensor([[2.0], [6.0]])
    assert fixed(-1.0, -1.0)(x).item() == pytest.approx(3.0, rel=1e-5)
    assert fixed(2.0, 0.0)(x).item() == pytest.approx(math.sqrt(40), rel=1e-5)
    assert fixed(2.0, 0.5)(x).item() == pytest.approx(math.sqrt(20), rel=1e-5)


@pytest.mark.parametrize(
    ("negative", "wanted"), [("abs", 4.0), ("relu", 1.0), ("split", -2.0)]
)
def test_negative_numbers(negative: str, wanted: float) -> None:
    readout = fixed(1.0, 0.0, negative=negative, eps=0.0)
    assert readout(torch.tensor([[1.0], [-3.0]])).item() == pytest.approx(wanted)


def test_negative_numbers_are_refused_on_demand() -> None:
    readout = GNPAggregation(negative="error")
    assert readout(torch.tensor([[0.0], [3.0]])).shape == (1, 1)
    with pytest.raises(ValueError, match=r"got x with numbers down to -3, expected"):
        readout(torch.tensor([[1.0], [-3.0]]))


def test_modes() -> None:
    x = torch.rand(5, 4) + 0.1
    both = GNPAggregation(mode="cat")(x, INDEX, dim_size=3)
    upper = GNPAggregation(mode="pos")(x, INDEX, dim_size=3)
    lower = GNPAggregation(mode="neg")(x, INDEX, dim_size=3)
    assert_close(both, torch.cat([upper, lower], -1))
    assert_close(GNPAggregation()(x, INDEX, dim_size=3), upper + lower)
    proj = GNPAggregation(4, 6, mode="proj")
    wanted = proj.lin(both)
    assert_close(proj(x, INDEX, dim_size=3)[[0, 2]], wanted[[0, 2]])
    assert (proj(x, INDEX, dim_size=3)[1] == 0).all(), "an empty group has no bias"
    assert GNPAggregation(4, mode="proj")(x).shape == (1, 4)


def test_own_exponents_per_channel_on_higher_rank() -> None:
    readout = GNPAggregation(channels=2, mode="pos", p=2.0)
    with torch.no_grad():
        readout.raw_p[0, 1] = 5.0
    x = torch.rand(3, 5, 2)
    out = readout(x, INDEX, dim_size=3)
    for slice_, found in zip(x, out, strict=True):
        assert_close(found, readout(slice_, INDEX, dim_size=3))
    assert_close(readout(x[..., [1, 0]], INDEX, dim_size=3)[..., 0].shape, (3, 3))
    assert not torch.allclose(readout(x[..., [1, 0]], INDEX)[..., [1, 0]], out)


def test_exponents_keep_their_signs() -> None:
    readout = GNPAggregation()
    with torch.no_grad():
        readout.raw_p.fill_(-50.0)
    assert readout.p.flatten().tolist() == pytest.approx([0.05, -0.05])
    assert readout.q.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize(
    ("p", "q", "wanted"),
    [
        ((1.1, -1.2), (0.1, -0.8), ["sum", "harmonic mean"]),
        ((30.0, -40.0), (0.0, 0.1), ["max", "min"]),
        ((2.2, -1.0), (0.4, -0.1), ["root mean square", "harmonic sum"]),
    ],
)
def test_closest(p: tuple[float, ...], q: tuple[float, ...], wanted: list[str]) -> None:
    found = GNPAggregation(p=p, q=q, channels=2).closest()
    assert found == {"pos": 2 * wanted[:1], "neg": 2 * wanted[1:]}


def test_repr_shows_what_was_learned() -> None:
    readout = GNPAggregation(4, mode="cat", negative="split")
    with torch.no_grad():
        readout.raw_q[1] = 0.25
    text = "GNPAggregation(in_channels=4, mode='cat', negative='split', "
    assert repr(readout) == text + "p=(1.0, -1.0), q=(0.0, 0.25))"
    own = GNPAggregation(channels=4, p=2.0)
    assert repr(own) == "GNPAggregation(channels=4, p=2.0)"


def test_exponents_are_a_group_of_their_own() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), GNPAggregation())
    others, slow = parameter_groups(model, lr=0.05)
    assert slow["weight_decay"] == 0.0
    assert slow["lr"] == 0.05
    assert {id(p) for p in slow["params"]} == {id(model[1].raw_p), id(model[1].raw_q)}
    every = {id(p) for p in model.parameters()}
    assert {id(p) for p in (*others["params"], *slow["params"])} == every
    assert "lr" not in model[1].parameter_groups()[1]
    assert len(model[1].parameter_groups()[0]["params"]) == 1
    fixed_groups = GNPAggregation(learn=False).parameter_groups()
    assert fixed_groups[1]["params"] == []


def test_training_turns_a_sum_into_a_mean() -> None:
    readout = GNPAggregation(mode="pos")
    optimiser = torch.optim.Adam(readout.parameter_groups(lr=0.05)[1:])
    index = torch.repeat_interleave(torch.arange(12), torch.arange(1, 13))
    x = torch.rand(index.numel(), 2) + 0.5
    wanted = aggr.MeanAggregation()(x, index)
    losses = []
    for _ in range(300):
        optimiser.zero_grad()
        loss = (readout(x, index, dim_size=12) - wanted).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 1e-3 * losses[0]


def test_known_to_pyg_by_name(registered: None) -> None:
    x, edges = torch.rand(4, 8), torch.tensor([[0, 1, 2, 2], [1, 1, 0, 3]])
    conv = SAGEConv(8, 8, aggr="gnp")
    assert isinstance(conv.aggr_module, GNPAggregation)
    conv(x, edges).sum().backward()
    assert conv.aggr_module.raw_p.grad is not None
    own = SAGEConv(8, 8, aggr="gnp", aggr_kwargs={"channels": 8, "mode": "pos"})
    assert own.aggr_module.raw_p.shape == (1, 8)
    several = MultiAggregation(["gnp", "max"])
    index = torch.tensor([0, 0, 1, 1])
    assert several(x, index, dim_size=2).shape == (2, 16)
    histogram = torch.tensor([1, 2, 1])
    scaled = DegreeScalerAggregation(["gnp", "max"], ["identity"], histogram)
    assert scaled(x, index, dim_size=2).shape == (2, 16)


def test_isolated_nodes_loops_and_double_edges(backend: str) -> None:
    edges = torch.tensor([[0, 0, 1], [1, 1, 1]])
    conv = SimpleConv(aggr=GNPAggregation(mode="pos", p=1.0, eps=0.0))
    x = torch.tensor([[2.0], [5.0], [7.0]])
    assert_close(conv(x, edges), torch.tensor([[0.0], [9.0], [0.0]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "sum"}, r"mode='sum', expected one of"),
        ({"negative": "clip"}, r"negative='clip', expected one of"),
        ({"p": 0.01}, r"got p=0.01, p_min=0.05.*expected p of the sign"),
        ({"p": (1.0, 1.0)}, r"got p=\(1.0, 1.0\).*correct these options"),
        ({"p_min": 0.0}, r"p_min=0.0.*expected"),
        ({"eps": -1.0}, r"eps=-1.0.*expected"),
        ({"channels": 0}, r"channels=0, expected"),
        ({"mode": "proj"}, r"in_channels=None.*expected in_channels with mode='proj'"),
        ({"out_channels": 3}, r"out_channels=3, expected.*set or drop them"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GNPAggregation(**options)


def test_width_is_checked() -> None:
    with pytest.raises(ValueError, match=r"shape \[2, 3\], expected 4 channels"):
        GNPAggregation(4)(torch.rand(2, 3))
    with pytest.raises(ValueError, match=r"2 exponents per norm, expected floats"):
        GNPAggregation(channels=2)(torch.rand(2, 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_computes_in_float32(dtype: torch.dtype) -> None:
    # 300^2 and a count of 1,000 are beyond half precision.
    x = torch.full((1000, 1), 300.0, dtype=dtype).requires_grad_()
    readout = GNPAggregation(mode="pos", p=2.0, q=0.5)
    out = readout(x)
    assert out.dtype == dtype
    assert out.item() == pytest.approx(300.0, rel=0.01)
    out.sum().backward()
    grads = [x.grad, readout.raw_p.grad, readout.raw_q.grad]
    assert all(g is not None and bool(g.isfinite().all()) for g in grads)


def test_backends_agree_in_float32() -> None:
    x = torch.randn(200, 7)
    index = torch.randint(20, (200,))
    found = []
    for name in ("native", "numba"):
        readout = GNPAggregation(channels=7, p=(1.7, -2.3), q=(0.3, 0.2))
        leaf = x.clone().requires_grad_()
        with use_backend(name):  # type: ignore[arg-type]
            out = readout(leaf, index, dim_size=22)
            out.square().sum().backward()
        grads = [p.grad for p in readout.parameters()]
        found.append([out.detach(), leaf.grad, *grads])
    for native, twin in zip(*found, strict=True):
        assert native is not None
        assert_close(twin, native, rtol=1e-4, atol=1e-5 * float(native.abs().max()))
