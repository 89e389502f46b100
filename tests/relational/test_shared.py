"""PyG layers on shared edges give what they give on the edges of each copy."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, Module, ReLU, Sequential
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    BatchNorm,
    GATConv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    GraphSAGE,
    SAGEConv,
    SGConv,
)

from pyg_pool.relational import RelationalPooling
from pyg_pool.relational.shared import shares_edges

# Two graphs; a loop, a parallel edge, a one-way edge and an isolated node.
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 2, 5, 6, 6], [1, 0, 2, 1, 2, 0, 1, 6, 5, 6]])
BATCH = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])


def mlp(width: int) -> Sequential:
    return Sequential(Linear(width, 6), BatchNorm1d(6), ReLU(), Linear(6, 6))


class Net(Module):
    """Two layers with batch norm between, edge attributes where they are taken."""

    def __init__(self, layer: Callable[[int], Module], word: str | None = None) -> None:
        super().__init__()
        self.first, self.second, self.norm = layer(4), layer(6), BatchNorm(6)
        self.word = word

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None
    ) -> Tensor:
        given = {} if self.word is None else {self.word: edge_attr}
        x = self.norm(self.first(x, edge_index, **given)).relu()
        return self.second(x, edge_index, **given)


NETS: dict[str, Callable[[], Module]] = {
    "GINConv": lambda: Net(lambda w: GINConv(mlp(w), train_eps=True)),
    "GINConv mean": lambda: Net(lambda w: GINConv(mlp(w), aggr="mean")),
    "GINEConv": lambda: Net(
        lambda w: GINEConv(mlp(w), train_eps=True, edge_dim=3), "edge_attr"
    ),
    "SAGEConv": lambda: Net(lambda w: SAGEConv(w, 6, project=True, normalize=True)),
    "SAGEConv sum": lambda: Net(lambda w: SAGEConv(w, 6, aggr="sum")),
    "GraphConv": lambda: Net(lambda w: GraphConv(w, 6)),
    "GraphConv weights": lambda: Net(lambda w: GraphConv(w, 6), "edge_weight"),
    "GraphConv mean": lambda: Net(
        lambda w: GraphConv(w, 6, aggr="mean"), "edge_weight"
    ),
    "GCNConv": lambda: Net(lambda w: GCNConv(w, 6)),
    "GCNConv weights": lambda: Net(
        lambda w: GCNConv(w, 6, improved=True), "edge_weight"
    ),
    "GCNConv plain": lambda: Net(
        lambda w: GCNConv(w, 6, normalize=False), "edge_weight"
    ),
    "GCNConv no loops": lambda: Net(lambda w: GCNConv(w, 6, add_self_loops=False)),
    "GIN": lambda: GIN(4, 6, 2, 6, norm="batch_norm", jk="cat"),
    "GCN": lambda: GCN(4, 6, 2, 6, norm="batch_norm"),
    "GraphSAGE": lambda: GraphSAGE(4, 6, 2, 6, norm="layer_norm"),
}
#: Networks whose messages cannot take shared edges, or whose norm sees edges.
OTHERS: dict[str, Callable[[], Module]] = {
    "GATConv": lambda: Net(lambda w: GATConv(w, 6)),
    "GAT": lambda: GAT(4, 6, 2, 6),
    "SAGEConv max": lambda: Net(lambda w: SAGEConv(w, 6, aggr="max")),
    "SGConv": lambda: Net(lambda w: SGConv(w, 6)),
    "target to source": lambda: Net(lambda w: GINConv(mlp(w), flow="target_to_source")),
    "GCNConv cached": lambda: Net(lambda w: GCNConv(w, 6, cached=True)),
}


def inputs(word: str | None) -> tuple[Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(8, 3, dtype=torch.float64, generator=generator)
    shape = (10,) if word == "edge_weight" else (10, 3)
    attr = torch.rand(shape, dtype=torch.float64, generator=generator)
    return x, attr if word else None


def results(model: Module, layout: str, word: str | None, train: bool) -> list[Tensor]:
    """Output, gradients and batch statistics of one step."""
    x, attr = inputs(word)
    x.requires_grad_()
    leaves = [x]
    if attr is not None:
        leaves.append(attr.requires_grad_())
    model.layout = layout
    model.train(train)
    out = model(x, EDGES, attr, batch=BATCH)
    weights = torch.arange(float(out.numel()), dtype=out.dtype).cos().view_as(out)
    leaves += list(model.parameters())
    grads = torch.autograd.grad((out * weights).sum(), leaves)
    return [out.detach(), *grads, *[buffer.clone() for buffer in model.buffers()]]


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", NETS)
def test_equals_listed_edges(name: str, train: bool, backend: str) -> None:
    torch.manual_seed(2)
    base = NETS[name]()
    word = getattr(base, "word", None)
    model = RelationalPooling(base, 1, readout="node", tuple_pool="max").double()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    want = results(model, "listed", word, train)
    model.load_state_dict(state)
    got = results(model, "shared", word, train)
    for one, two in zip(got, want, strict=True):
        torch.testing.assert_close(one, two)
    assert all("propagate" not in vars(module) for module in base.modules())


def test_gcn_keeps_its_options() -> None:
    model = RelationalPooling(NETS["GCN"](), 1, layout="shared")
    model(torch.ones(8, 3), EDGES, batch=BATCH)
    convs = [m for m in model.modules() if isinstance(m, GCNConv)]
    assert convs
    assert all(conv.normalize for conv in convs)


@pytest.mark.parametrize("name", OTHERS)
def test_other_layers_list_their_edges(name: str) -> None:
    model = RelationalPooling(OTHERS[name](), 1)
    x = torch.randn(8, 4)
    assert not shares_edges(model.base, x)
    assert model.base.training
    with pytest.raises(ValueError, match="layout='shared' with"):
        RelationalPooling(model.base, 1, layout="shared")(x[:, :3], EDGES, batch=BATCH)


def test_norms_of_edges_list_their_edges() -> None:
    class Edged(Net):
        def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
            return super().forward(x, edge_index, self.edges(edge_attr))

    base = Edged(lambda w: GINEConv(mlp(w), edge_dim=3), "edge_attr")
    attr = torch.rand(10, 3)
    base.edges = Linear(3, 3)
    assert shares_edges(base, torch.randn(8, 4), attr)
    base.edges = BatchNorm1d(3)
    assert not shares_edges(base, torch.randn(8, 4), attr)
    assert not base.edges._forward_pre_hooks


def test_edges_used_beside_the_layers_are_seen() -> None:
    class Degree(Net):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            rows = torch.zeros(x.size(0), 1).index_add(
                0, edge_index[1], torch.ones(edge_index.size(1), 1)
            )
            return super().forward(x * rows, edge_index)

    assert not shares_edges(Degree(lambda w: GINConv(mlp(w))), torch.randn(8, 4))


def test_the_trial_leaves_no_trace() -> None:
    base = GIN(4, 6, 2, 6, norm="batch_norm", dropout=0.5)
    before = {key: value.clone() for key, value in base.state_dict().items()}
    state = torch.get_rng_state()
    assert shares_edges(base, torch.randn(2, 4, generator=torch.Generator()))
    assert torch.equal(torch.get_rng_state(), state)
    for key, value in base.state_dict().items():
        torch.testing.assert_close(value, before[key])
    assert all(module.training for module in base.modules())


@pytest.mark.parametrize("perms", [False, True])
def test_chunks_and_orders(perms: bool) -> None:
    torch.manual_seed(4)
    base = GIN(5, 6, 2, 6)
    options = {"domain": "star", "layout": "shared", "perms": perms}
    model = RelationalPooling(base, 2, chunk_size=3, **options).double()
    got = results(model, "shared", None, True)
    model.chunk_size = None
    for layout in ("shared", "listed"):
        for one, two in zip(got, results(model, layout, None, True), strict=True):
            torch.testing.assert_close(one, two)
