"""Networks on labelled copies against stored values, and what they promise."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Module, ModuleList, SiLU
from torch_geometric.nn import GCN, GIN, GINConv

from pyg_pool.relational import RelationalPooling
from tests.golden_files import FOLDER
from tests.relational.families import gather

CASES = json.loads((FOLDER / "klwl" / "forward.json").read_text())["cases"]


class GoldenGIN(Module):
    """GIN with one linear map and SiLU per layer, weights from a golden."""

    def __init__(self, layers: list[dict[str, Any]], dtype: torch.dtype) -> None:
        super().__init__()
        self.convs = ModuleList()
        for layer in layers:
            weight = torch.tensor(layer["W"], dtype=dtype)
            conv = GINConv(Linear(*weight.shape, dtype=dtype))
            conv.nn.load_state_dict(
                {"weight": weight.t(), "bias": torch.tensor(layer["b"], dtype=dtype)}
            )
            self.convs.append(conv)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Layers with SiLU after each."""
        for conv in self.convs:
            x = SiLU()(conv(x, edge_index))
        return x


def options(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key != "l"}


@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any], dtype: torch.dtype, chunk: int | None) -> None:
    word = "float64" if dtype == torch.float64 else "float32"
    limits = {"atol": case["tolerance"][word], "rtol": case["tolerance"][word]}
    config, inputs = case["inputs"]["config"], gather(case["inputs"]["graphs"], dtype)
    x = inputs.pop("x").requires_grad_()
    base = GoldenGIN(case["weights"]["gin_layers"], dtype)
    model = RelationalPooling(
        base, config["l"], chunk_size=chunk, **options(config)
    ).to(dtype)
    size = len(case["inputs"]["graphs"])
    out = model(x, **inputs, batch_size=size)
    want = torch.tensor(case["outputs"]["out"], dtype=dtype)
    torch.testing.assert_close(out, want, **limits)
    grads = case["gradients"]
    if grads is None or "x" not in grads:
        return
    rows = torch.arange(1, out.size(0) + 1, dtype=dtype).view(-1, 1)
    (out * rows * torch.tensor([1.0, -2.0, 0.5], dtype=dtype)).sum().backward()
    first = base.convs[0].nn
    for got, expected in (
        (x.grad, [row for each in grads["x"] for row in each]),
        (first.weight.grad.t(), grads["W_layer0"]),
        (first.bias.grad, grads["b_layer0"]),
    ):
        expected = torch.tensor(expected, dtype=dtype)
        scale = max(float(expected.abs().max()), 1.0)
        limits = {"atol": case["tolerance"][word] * scale, "rtol": 0.0}
        torch.testing.assert_close(got, expected, **limits)


def test_unknown_domains_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean 'star'"):
        RelationalPooling(GoldenGIN([], torch.float32), 1, domain="stars")


EDGES = torch.tensor([[0, 1, 1, 2, 3, 3], [1, 2, 0, 3, 3, 2]])


class Ones(Module):
    """Keeps the rows, so that sums count pairs and labels."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """The rows as they are."""
        return x


@pytest.mark.parametrize("readout", ["tuple", "node", "root", "labelled", "nested"])
@pytest.mark.parametrize("pool", ["sum", "mean", "max", "min"])
def test_graphs_without_nodes_give_zeros(pool: str, readout: str) -> None:
    nested = [pool, pool] if readout == "nested" else None
    base = GoldenGIN([], torch.float32)
    model = RelationalPooling(
        base, 2, domain="star", readout=readout, node_pool=pool, tuple_pool=pool,
        nested=nested,
    )  # fmt: skip
    batch = torch.tensor([1, 1, 1, 1, 3])  # graphs 0, 2 and 4 are empty
    out = model(-torch.ones(5, 2), EDGES, batch=batch, batch_size=5)
    assert out.isfinite().all()
    assert not out[[0, 2, 4]].any()
    assert out[[1, 3]].any(1).all()
    none = model(torch.ones(0, 2), EDGES[:, :0], batch_size=2, batch=batch[:0])
    assert torch.equal(none, torch.zeros(2, 4))


@pytest.mark.parametrize("domain", ["distinct", "subset", "star", "path", "connected"])
def test_graphs_smaller_than_a_tuple_are_covered(domain: str) -> None:
    model = RelationalPooling(Ones(), 3, domain=domain, tuple_pool="sum")
    batch = torch.tensor([0, 1, 1])
    edges = torch.tensor([[1, 2], [2, 1]])
    copies = model.make_copies(edges, batch, 2)
    assert copies.tuples.index.tolist() == [[0, -1, -1], [1, -1, -1], [2, -1, -1]]
    out = model(torch.ones(3, 1), edges, batch=batch)
    assert out.tolist() == [[1.0, 1.0, 0.0, 0.0], [4.0, 2.0, 0.0, 0.0]]


def test_isolated_nodes_are_covered_and_their_copies_have_no_edges() -> None:
    model = RelationalPooling(Ones(), 2, domain="star", ego=1)
    copies = model.make_copies(EDGES[:, :0], torch.zeros(3).long(), 1)
    assert copies.tuples.index.tolist() == [[0, -1], [1, -1], [2, -1]]
    assert copies.pair_node.tolist() == [0, 1, 2]
    assert copies.edge_index.shape == (2, 0)


@pytest.mark.parametrize("encoding", ["mark", "spd", "resistance"])
def test_loops_doubles_and_direction_matter_to_messages_only(encoding: str) -> None:
    simple = torch.tensor([[0, 1, 2], [1, 2, 3]])
    odd = torch.cat([simple, simple.flip(0), simple, torch.tensor([[1], [1]])], dim=1)
    options: dict[str, Any] = {"domain": "star", "ego": 1, "encoding": encoding}
    model = RelationalPooling(Ones(), 2, **options, tuple_pool="sum")
    x = torch.arange(4.0).view(4, 1)
    torch.testing.assert_close(model(x, odd), model(x, simple))
    batch = torch.zeros(4, dtype=torch.long)
    some, many = (model.make_copies(edges, batch, 1) for edges in (simple, odd))
    assert torch.equal(some.tuples.index, many.tuples.index)
    assert torch.equal(some.pair_node, many.pair_node)
    # Each copy holds the edges among its nodes as often and as directed as given.
    inside = [
        sum(u in ball and v in ball for u, v in odd.t().tolist())
        for ball in (some.pair_node[some.pair_tuple == t].tolist() for t in range(6))
    ]
    assert many.edge_index.size(1) == sum(inside)
    assert some.edge_index.size(1) < many.edge_index.size(1)


def test_rows_follow_the_sum_of_the_sizes() -> None:
    ring = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    batch = torch.cat([torch.zeros(60), torch.arange(1, 41)]).long()
    copies = RelationalPooling(Ones(), 1).make_copies(ring, batch, 41)
    assert copies.num_pairs == 60 * 60 + 40
    assert copies.edge_index.size(1) == 60 * 60


def test_sums_over_tuples_of_half_precision_are_added_up_in_float32() -> None:
    for readout in ("tuple", "node"):
        model = RelationalPooling(Ones(), 1, readout=readout, tuple_pool="sum")
        model.labeller.encoding = "none"
        out = model(torch.ones(60, 1, dtype=torch.float16), EDGES)
        assert out.dtype == torch.float16
        assert float(out) == 3600


def test_seeds_and_modes_decide_what_is_drawn() -> None:
    model = RelationalPooling(GCN(3, 4, 1, 4), 1, num_samples=2)
    x = torch.randn(6, 2)

    def run(seed: int) -> Tensor:
        return model(x, EDGES, generator=torch.Generator().manual_seed(seed))

    torch.testing.assert_close(run(1), run(1))
    assert any(not torch.allclose(run(1), run(seed)) for seed in range(2, 6))
    model.eval()
    assert torch.equal(run(1), run(2))
    model.sample_in_eval = True
    assert any(not torch.allclose(run(1), run(seed)) for seed in range(2, 6))


def test_means_of_samples_are_unbiased() -> None:
    model = RelationalPooling(GCN(3, 4, 2, 4), 1, num_samples=2)
    x = torch.randn(5, 2)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        draws = torch.stack([model(x, EDGES, generator=generator) for _ in range(600)])
        want = model.eval()(x, EDGES)
    slack = 5 * float(draws.std(0).max()) / 600**0.5
    torch.testing.assert_close(draws.mean(0), want, atol=slack, rtol=0.0)


def test_not_a_number_stays_in_its_graph() -> None:
    x = torch.ones(6, 2)
    x[5] = torch.nan
    batch = torch.tensor([0, 0, 0, 0, 0, 1])
    for base in (GCN(3, 4, 2, 4), GIN(3, 4, 2, 4)):
        out = RelationalPooling(base, 1, layout="shared")(x, EDGES, batch=batch)
        assert out[0].isfinite().all()
        assert out[1].isnan().all()
