"""What the tests compile: every primitive, operator, layer and network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GCN

from pyg_pool import (
    GPool,
    GUnpool,
    PrimalDualPooling,
    PrimalDualUnpooling,
    Selection,
    kernels,
    mesh,
    models,
    relational,
)
from pyg_pool.core import connect, lift, reduce
from pyg_pool.kernels.attention import attend, edge_softmax
from pyg_pool.kernels.coalesce import contract
from pyg_pool.kernels.gate import gated_rows
from pyg_pool.kernels.gather_sum import gather_sum
from pyg_pool.kernels.join_product import join_product
from pyg_pool.kernels.norm_sum import norm_sum
from pyg_pool.kernels.pairs import distinct_pairs, link_scores, pair_logits
from pyg_pool.kernels.parse import dominant_links, link_components
from pyg_pool.kernels.propagate import degree_scale, propagate
from pyg_pool.kernels.tuple_propagate import pair_ptr, tuple_propagate
from pyg_pool.relational.pairs import find_pairs_and_joins
from pyg_pool.testing import GraphSample, random_batch, random_primal_dual
from pyg_pool.testing.contract import OperatorSpec

SIZES = [(7, 5, 6), (9, 4, 8, 5, 3), (6, 30)]


@dataclass(frozen=True)
class Case:
    """Something to compile: how it is built, and what it is called with.

    Args:
        label: Its name, that of the function or class first.
        build: Builds the callable.
        inputs: Arguments of the ``turn``-th call, of other sizes in each.
        breaks: Functions of a network that are cut in one call: the one that takes
            the step which no graph can hold, and those that call it.
        reason: What breaks it.
        holds: Public modules that are compiled in it, beside the one it is named by.
    """

    label: str
    build: Callable[[], Callable[..., Any]]
    inputs: Callable[[int], tuple[Any, ...]]
    breaks: int = 0
    reason: str = ""
    holds: tuple[str, ...] = ()


PRIMITIVES: dict[str, Case] = {}
LAYERS: dict[str, Case] = {}
NETWORKS: dict[str, Case] = {}


def graphs(turn: int) -> GraphSample:
    """The batch of the ``turn``-th call."""
    return random_batch(SIZES[turn], 4).to("cpu", torch.float32)


def primitive(
    inputs: Callable[[GraphSample], tuple[Any, ...]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a case of a function, called with what is made of a batch of graphs."""

    def add(run: Callable[..., Any]) -> Callable[..., Any]:
        case = Case(run.__name__, lambda: run, lambda turn: inputs(graphs(turn)))
        PRIMITIVES[run.__name__] = case
        return run

    return add


def module(
    table: dict[str, Case],
    build: Callable[[], Module],
    inputs: Callable[[int], tuple[Any, ...]],
    word: str = "",
    holds: tuple[str, ...] = (),
) -> None:
    """Makes a case of a module in evaluation mode with fixed weights."""

    def seeded() -> Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            return build().eval()

    made = getattr(seeded(), "network", None) or seeded()
    label = f"{type(made).__name__}({word})"
    table[label] = Case(label, seeded, inputs, holds=holds)


def registered(spec: OperatorSpec) -> Case:
    """The case of an operator of the registry."""

    def inputs(turn: int) -> tuple[Any, ...]:
        args, named = spec.arguments(graphs(turn))
        return (*args, *named.values())

    def build() -> Module:
        return Called(spec)

    return Case(spec.label, build, inputs)


class Called(Module):
    """An operator of the registry that returns its tensors by name."""

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__()
        self.operator = spec.build(torch.float32)
        self.unpack = spec.unpack
        self.names = tuple(spec.arguments(graphs(0))[1])

    def forward(self, *args: Any) -> dict[str, Tensor]:
        plain = len(args) - len(self.names)
        named = dict(zip(self.names, args[plain:], strict=True))
        return self.unpack(self.operator(*args[:plain], **named))


def ptr_of(g: GraphSample) -> Tensor:
    """Offsets of the graphs' rows."""
    count = torch.bincount(g.batch, minlength=g.batch_size)
    return torch.cat([count.new_zeros(1), count.cumsum(0)])


def kept(g: GraphSample) -> Tensor:
    """Some nodes, not in order."""
    return torch.arange(g.num_nodes).flip(0)[::2].contiguous()


def doubled(g: GraphSample) -> Tensor:
    """Edges some of which are there twice."""
    return torch.cat([g.edge_index, g.edge_index[:, ::3]], 1)


def rows(g: GraphSample) -> tuple[Any, ...]:
    return g.x, g.batch, g.batch_size


for how in ("sum", "mean", "max", "min", "prod", "logsumexp"):

    def segment_reduce(x: Tensor, index: Tensor, size: int, how: str = how) -> Tensor:
        return kernels.segment_reduce(x, index, dim_size=size, reduce=how)

    segment_reduce.__name__ = f"segment_reduce_{how}"
    primitive(rows)(segment_reduce)


@primitive(lambda g: (g.x[:, 1:], ptr_of(g)))
def segment_reduce_by_offsets(x: Tensor, ptr: Tensor) -> Tensor:
    return kernels.segment_reduce(x, ptr=ptr, reduce="max")


@primitive(rows)
def segment_extreme(x: Tensor, index: Tensor, size: int) -> Any:
    return kernels.segment_extreme(x, index, dim_size=size)


@primitive(rows)
def segment_softmax(x: Tensor, index: Tensor, size: int) -> Tensor:
    return kernels.segment_softmax(x, index, dim_size=size)


@primitive(lambda g: (*rows(g), torch.tensor([-2.0, 0.5, 1.0, 3.0]), torch.rand(4)))
def segment_pnorm(x: Tensor, index: Tensor, size: int, p: Tensor, q: Tensor) -> Tensor:
    return kernels.segment_pnorm(x, p, q, index, dim_size=size, eps=0.01)


@primitive(rows)
def segment_attention(x: Tensor, index: Tensor, size: int) -> Tensor:
    return kernels.segment_attention(x, x + 1, index, dim_size=size)


@primitive(rows)
def segment_attention_of_heads(x: Tensor, index: Tensor, size: int) -> Tensor:
    values = x.view(-1, 2, 2)
    return kernels.segment_attention(x[:, :2], values, index, dim_size=size)


@primitive(rows)
def topk(x: Tensor, batch: Tensor, size: int) -> Tensor:
    return kernels.topk(x[:, 0], 0.6, batch=batch, batch_size=size)


@primitive(lambda g: (g.x,))
def topk_of_one_graph(x: Tensor) -> Tensor:
    return kernels.topk(x[:, 0], 0.6)


@primitive(lambda g: (doubled(g), torch.rand(doubled(g).size(1), 2), g.num_nodes))
def coalesce(edge_index: Tensor, attr: Tensor, size: int) -> Any:
    return kernels.coalesce(edge_index, attr, num_nodes=size)


@primitive(lambda g: (g.edge_index[:, ::3], g.num_nodes))
def connected_components(edge_index: Tensor, size: int) -> Tensor:
    return kernels.connected_components(edge_index, size)


@primitive(lambda g: (g.edge_index, kept(g), g.num_nodes))
def filter_edges(edge_index: Tensor, nodes: Tensor, size: int) -> Any:
    return kernels.filter_edges(edge_index, nodes, size)


@primitive(lambda g: (g.edge_index, kept(g), g.num_nodes))
def incident_edges(edge_index: Tensor, nodes: Tensor, size: int) -> Any:
    return kernels.incident_edges(edge_index, nodes, size, swap_loops=True)


@primitive(lambda g: (g.x, kept(g)))
def take_rows(x: Tensor, index: Tensor) -> Tensor:
    return kernels.take_rows(x, index)


@primitive(lambda g: (g.x[: kept(g).numel()], kept(g), g.num_nodes))
def put_rows(x: Tensor, index: Tensor, size: int) -> Tensor:
    return kernels.put_rows(x, index, size)


@primitive(lambda g: (g.edge_index, g.edge_attr, g.num_nodes))
def sparse_product(index: Tensor, value: Tensor, size: int) -> Any:
    shape = (size, size, size)
    return kernels.sparse_product(index, value, index, value, shape)


@primitive(lambda g: (g.edge_index, g.edge_attr, g.num_nodes))
def parse_links(edge_index: Tensor, score: Tensor, size: int) -> Any:
    return link_components(dominant_links(edge_index, score, size))


@primitive(lambda g: (g.x, g.edge_index))
def scaled_propagation(x: Tensor, edge_index: Tensor) -> Tensor:
    return propagate(x, edge_index, degree_scale(edge_index, x.size(0), x.dtype))


@primitive(lambda g: (g.x, g.edge_index))
def sum_of_neighbours(x: Tensor, edge_index: Tensor) -> Tensor:
    return gather_sum(x, edge_index, x.size(0), own=True)


def pairs_and_path(g: GraphSample) -> tuple[Any, ...]:
    """Pairs of the nodes of each graph, and a path through each."""
    ptr, ids = ptr_of(g), torch.arange(g.num_nodes - 1)
    inside = ~torch.isin(ids + 1, ptr)
    path = torch.stack([ids, ids + 1])[:, inside]
    return torch.randn(int(pair_ptr(ptr)[-1]), 5), path, ptr


@primitive(pairs_and_path)
def messages_of_pairs(x: Tensor, edge_index: Tensor, ptr: Tensor) -> Any:
    return tuple(tuple_propagate(x, edge_index, ptr, axis=axis) for axis in (0, 1))


@primitive(lambda g: (g.x, torch.cat([g.edge_index, g.edge_index[1:]])))
def product_of_joins(x: Tensor, triples: Tensor) -> Tensor:
    return join_product(x, x + 1, triples, x.size(0))


@primitive(lambda g: (g.x, g.edge_index))
def edge_attention(x: Tensor, edge_index: Tensor) -> Tensor:
    score = x[:, :2].index_select(0, edge_index[0])
    weight = edge_softmax(score, edge_index[1], x.size(0))
    return attend(x.view(-1, 2, 2), weight, edge_index)


@primitive(lambda g: (g.x, torch.rand(4), torch.rand(4), g.batch, g.batch_size))
def sum_of_norms(
    x: Tensor, scale: Tensor, shift: Tensor, group: Tensor, size: int
) -> Tensor:
    return norm_sum(x, scale, shift, 1e-5, group, size)


@primitive(lambda g: (g.x, torch.rand(4), g.edge_index))
def pairs_of_neighbours(x: Tensor, weight: Tensor, edge_index: Tensor) -> Any:
    pairs = distinct_pairs(edge_index, x.size(0))
    score = pair_logits(x, pairs, weight)
    cluster = torch.arange(x.size(0)) // 2
    return link_scores(pairs, score, cluster, x.size(0))


@primitive(lambda g: (g.x, kept(g), torch.rand(4), torch.rand(1)))
def gates(x: Tensor, index: Tensor, vector: Tensor, bias: Tensor) -> Any:
    return gated_rows(x, index, vector, bias, "tanh")


@primitive(lambda g: (g.edge_index, torch.arange(g.num_nodes) // 2, g.num_nodes))
def contracted_edges(edge_index: Tensor, cluster: Tensor, size: int) -> Any:
    return contract(edge_index, cluster, size)


@primitive(lambda g: (g.x, g.edge_index, g.edge_attr, torch.arange(g.num_nodes) // 2))
def steps_of_pooling(x: Tensor, edge_index: Tensor, attr: Tensor, ids: Tensor) -> Any:
    selection = Selection.from_clusters(ids, x.size(0))
    coarse = reduce(x, selection, "mean")
    edges = connect(selection, edge_index, attr)
    return coarse, edges.edge_index, edges.edge_attr, lift(coarse, selection)


def with_edges(turn: int) -> tuple[Any, ...]:
    g = graphs(turn)
    return g.x, g.edge_index


def mesh_graphs(turn: int) -> tuple[Any, ...]:
    found = random_primal_dual([[7, 5, 6], [9, 4, 12], [3, 20, 2]][turn], seed=turn)
    floats = ("x", "x_dual", "attention")
    for name in floats:
        found[name] = found[name].float()
    names = ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual")
    return (*(found[name] for name in names), found["attention"], found["batch"], 3)


class PoolAndUnpool(Module):
    """gPool and back, as a network calls them."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.unpool = GPool(4), GUnpool()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int) -> Any:
        out = self.pool(x, edge_index, batch=batch, batch_size=size)
        return self.unpool(out.x, out.selection)


class MeshPoolAndUnpool(Module):
    """Primal-dual pooling and back."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.pool, self.unpool = PrimalDualPooling(**options), PrimalDualUnpooling(2)

    def forward(self, *args: Any) -> Any:
        *graphs, batch, size = args
        out = self.pool(*graphs, batch=batch, batch_size=size)
        links = out.edge_index, out.edge_index_dual, out.edge_to_dual
        chosen = out.selection, out.selection_dual
        return *links, *self.unpool(out.x, out.x_dual, *chosen)


def pooled(turn: int) -> tuple[Any, ...]:
    g = graphs(turn)
    return g.x, g.edge_index, g.batch, g.batch_size


module(LAYERS, PoolAndUnpool, pooled, holds=("GPool", "GUnpool"))
for options in (
    {"fraction_to_keep": 0.6},
    {"num_edges_to_keep": 3, "consecutive": False},
    {"threshold": 0.7, "max_cluster_size": 3},
):
    module(
        LAYERS, lambda options=options: MeshPoolAndUnpool(**options), mesh_graphs,
        next(iter(options)), ("PrimalDualPooling", "PrimalDualUnpooling"),
    )  # fmt: skip
module(
    LAYERS,
    lambda: models.PrimalDualConv(3, 2, 4, heads=2),
    lambda turn: mesh_graphs(turn)[:5],
)
for layer in (
    models.SymmetricConv,
    models.MeanSkipConv,
    models.ColumnStochasticConv,
):
    module(LAYERS, lambda layer=layer: layer(4, 3), with_edges)
module(LAYERS, lambda: relational.ResidualConv(4), with_edges)
module(LAYERS, lambda: relational.CopyGIN(4, 4, 2), with_edges)


class Batched(Module):
    """A network called with its batch by name."""

    def __init__(self, network: Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int) -> Any:
        return self.network(x, edge_index, batch=batch, batch_size=size)


def network(word: str, build: Callable[[], Module]) -> None:
    """Makes a case of a network."""

    def seeded() -> Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            return Batched(build()).eval()

    NETWORKS[word] = Case(word, seeded, pooled)


network("HierarchicalClassifier", lambda: models.HierarchicalClassifier(4, 8, 3))
network("GraphUNet", lambda: models.GraphUNet(4, 8, 3, depth=2))


class WithCopies(Module):
    """A network on copies that were listed ahead, as data are prepared."""

    def __init__(self, network: Module) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, size: int, copies: Any
    ) -> Any:
        return self.network(x, edge_index, batch=batch, batch_size=size, copies=copies)


def in_order(turn: int) -> tuple[Any, ...]:
    """A batch whose graphs come one after the other."""
    g = graphs(turn)
    order = torch.sort(g.batch, stable=True)
    place = torch.empty_like(order.indices)
    place[order.indices] = torch.arange(g.num_nodes)
    return g.x, place[g.edge_index], order.values, g.batch_size


def copied(ego: int | None, labels: int = 1) -> Callable[[int], tuple[Any, ...]]:
    def inputs(turn: int) -> tuple[Any, ...]:
        x, edges, batch, size = in_order(turn)
        tuples = relational.find_tuples(
            edges, batch, labels, "distinct", batch_size=size
        )
        ground = relational.lay_ground(edges, batch, size)
        copies = relational.expand_copies(ground, tuples, ego=ego)
        # Edges of whole copies are listed as data are prepared, too.
        assert copies.listed[0].size(0) == 2
        return x, edges, batch, size, copies

    return inputs


for word, ego in (("full", None), ("balls", 2)):
    module(
        NETWORKS,
        lambda ego=ego: WithCopies(models.KLGNN(4, 8, 3, 2, ego=ego, norm="none")),
        copied(ego), word,
    )  # fmt: skip
module(NETWORKS, lambda: WithCopies(models.IDMPNN(4, 8, 3)), copied(None, 2))
module(
    NETWORKS,
    lambda: WithCopies(relational.RelationalPooling(relational.CopyGIN(5, 8, 2))),
    copied(None),
)


def pairs_of_copies(turn: int) -> tuple[Any, ...]:
    """Rows of pairs of a node and its copy, and the copies."""
    _, _, batch, _, copies = copied(2)(turn)
    return torch.randn(copies.num_pairs, 4), copies, batch


def pairs_and_joins(turn: int) -> tuple[Any, ...]:
    """Rows of pairs of nodes, and the pairs."""
    _, edges, batch, size = in_order(turn)
    pairs = find_pairs_and_joins(relational.lay_ground(edges, batch, size), 2)
    return torch.randn(pairs.batch.numel(), 4), pairs


module(LAYERS, lambda: relational.CopyPooling("node"), pairs_of_copies)
module(LAYERS, lambda: relational.FWLConv(4), pairs_and_joins)
module(
    LAYERS,
    lambda: relational.ContextGIN(4, 8, 2, ("root", "node")),
    lambda turn: pairs_of_copies(turn)[:2],
)


def mesh_data(turn: int) -> tuple[mesh.PrimalDualData]:
    """A batch of meshes."""
    x, x_dual, edges, links, dual, _, batch, size = mesh_graphs(turn)
    data = mesh.PrimalDualData(x, x_dual, edges, links, dual)
    data.batch = batch
    data.batch_dual = batch.new_zeros(x_dual.size(0))
    data.batch_dual.index_copy_(0, dual, batch.index_select(0, edges[0]))
    data.num_graphs = size
    return (data,)


class Scaled(Module):
    """Features of meshes, scaled."""

    def __init__(self) -> None:
        super().__init__()
        self.network = mesh.FeatureScaling(3, 2)

    def forward(self, data: Any) -> Any:
        out = self.network(data)
        return out.x, out.x_dual


def mesh_network(name: str) -> Module:
    """A small network for meshes; no feature of a face is 0 by construction."""
    built = getattr(models, name)(3, 2, 4, channels=(4, 8), norm_groups=4)
    for weight in built.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    return built


for name in ("MeshClassifier", "MeshSegmenter", "MeshUNet"):
    module(NETWORKS, lambda name=name: mesh_network(name), mesh_data)


class Stars(Module):
    """A network on local copies, which needs no features."""

    def __init__(self) -> None:
        super().__init__()
        self.network = models.LocalKLGNN(8, 3)

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor, size: int) -> Tensor:
        return self.network(edges, batch=batch, batch_size=size)


# The graph breaks here, in one call as often as it says.
BROKEN: dict[str, Case] = {}
LISTS = "tuples and their copies are listed on the way, as data are prepared"


def broken(
    label: str, breaks: int, reason: str, build: Callable[[], Module], inputs: Any
) -> None:
    """Makes a case of what is not one graph."""

    def seeded() -> Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            return build().eval()

    BROKEN[label] = Case(label, seeded, inputs, breaks, reason)


broken(
    "RelationalPooling(lists)", 1, LISTS,
    lambda: Batched(relational.RelationalPooling(relational.CopyGIN(5, 8, 2))),
    in_order,
)  # fmt: skip
broken("KLGNN(lists)", 2, LISTS, lambda: Batched(models.KLGNN(4, 8, 3)), in_order)
broken("IDMPNN(lists)", 1, LISTS, lambda: Batched(models.IDMPNN(4, 8, 3)), in_order)
broken("LocalKLGNN", 1, LISTS, Stars, in_order)
broken("FWLNet", 1, LISTS, lambda: Batched(relational.FWLNet(4, 8, 3)), in_order)
broken(
    "FWLNet(max_distance)", 1, LISTS,
    lambda: Batched(relational.FWLNet(4, 8, 3, max_distance=2)), in_order,
)  # fmt: skip
broken("IDPPGN", 2, LISTS, lambda: Batched(models.IDPPGN(4, 8, 3)), in_order)
broken(
    "HistoryGNN", 1, "hooks hang on the layers of the network while it runs",
    lambda: Batched(models.HistoryGNN(GCN(4, 8, 2), 8)), in_order,
)  # fmt: skip
broken(
    "GraphParsingNetwork",
    0,
    "how many levels there are depends on the scores: a few graphs each",
    lambda: Batched(models.GraphParsingNetwork(4, 8, 3)), in_order,
)  # fmt: skip
broken(
    "FeatureScaling", 2, "PyG copies the store of the data", Scaled, mesh_data
)  # fmt: skip
