"""GraphParsingPooling against stored values, a slow procedure, and its own rules."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pyg_pool import GraphParsingPooling
from pyg_pool.core.blocks import PairMLP
from pyg_pool.core.parse_steps import node_links
from pyg_pool.kernels import coalesce, connected_components
from pyg_pool.kernels.pairs import link_scores
from pyg_pool.kernels.parse import dominant_links, rounded
from pyg_pool.pool.graph_parsing import parse
from tests.golden_files import load, names

SYMMETRIC = [n for n in names("gpn", "parse_*") if "asymmetric" not in n]
TWO_TYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


class Stored(PairMLP):
    """Scores that a golden gives, in place of the MLP."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__(1, 2)
        self.to(logits.dtype)
        self.logits = logits

    def forward(self, x: Tensor, pairs: Tensor, attr: Any = None) -> Tensor:
        return self.logits[pairs[0], pairs[1]]


def same(golden: dict[str, Any], got: Tensor, wanted: Tensor) -> None:
    limit = golden["tolerance"]["float_atol"]
    limit = limit if golden["dtype"] == torch.float64 else 1e-5
    torch.testing.assert_close(got, wanted.to(got.dtype), atol=limit, rtol=limit)


def ring(size: int) -> Tensor:
    nodes = torch.arange(size)
    return both(torch.stack([nodes, (nodes + 1) % size]))


def both(pairs: Tensor) -> Tensor:
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def random_graphs(
    seed: int, levels: int | None, sizes: tuple[int, ...] = (9, 1, 14, 6)
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Edges, symmetric scores of some levels (or distinct), loop scores, batch."""
    chance = torch.Generator().manual_seed(seed)
    parts, first = [], 0
    for size in sizes:
        drawn = torch.randint(size, (2, int(1.3 * size)), generator=chance)
        parts.append(drawn[:, drawn[0] < drawn[1]] + first)
        first += size
    pairs, _ = coalesce(torch.cat(parts, 1), num_nodes=first)
    count = pairs.size(1) + first
    if levels is None:
        score = torch.randperm(count, generator=chance).double()
    else:
        score = torch.randint(levels, (count,), generator=chance).double()
    edge, loops = score.split([pairs.size(1), first])
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return both(pairs), torch.cat([edge, edge]), loops, batch


def canonical(groups: list[int]) -> list[int]:
    """Numbers groups by their first member."""
    number: dict[int, int] = {}
    return [number.setdefault(group, len(number)) for group in groups]


def sequential(
    edges: Tensor, score: Tensor, size: int, loops: Tensor | None = None
) -> list[int]:
    """The authors' procedure: best link first, then all that point into its ends."""
    best: dict[int, tuple[float, int]] = {}
    for u, v, s in zip(*edges.tolist(), score.tolist(), strict=True):
        best[u] = min(best.get(u, (float("inf"), -1)), (-s, v))
    for node, own in enumerate([] if loops is None else loops.tolist()):
        if node in best and own > -best[node][0]:
            best[node] = (-own, node)
    left = sorted((value, u, v) for u, (value, v) in best.items())
    group = list(range(-size, 0))  # a node without edges stays by itself
    for number in range(size):
        if not left:
            break
        inside = set(left[0][1:])
        while joining := [link for link in left if link[2] in inside]:
            left = [link for link in left if link not in joining]
            inside.update(u for _, u, _ in joining)
        for node in inside:
            group[node] = number
    return canonical(group)


def union_find(link: list[int]) -> list[int]:
    root = list(range(len(link)))

    def find(node: int) -> int:
        while root[node] != node:
            node = root[node]
        return node

    for node, other in enumerate(link):
        root[find(node)] = find(other)
    return canonical([find(node) for node in range(len(link))])


@TWO_TYPES
@pytest.mark.parametrize("name", SYMMETRIC)
def test_golden_parse(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("gpn", name, dtype)
    given, wanted = golden["inputs"], golden["outputs"]
    edges, size, batch = given["edge_index"], given["num_nodes"], given["batch"]
    score, loops = given["edge_score"].to(dtype), given["self_loop_score"]
    link = dominant_links(edges, score, size, loops)
    assert torch.equal(link, wanted["dominant_neighbour"])
    cluster = parse(edges, score, size, batch, loop_score=loops)
    assert torch.equal(cluster, wanted["cluster"])
    nodes = torch.arange(size)
    if loops is not None:
        edges = torch.cat([edges, nodes.expand(2, -1)], dim=1)
        score = torch.cat([score, loops])
    mean, count = link_scores(edges, score, cluster, wanted["num_clusters"])
    same(golden, mean, wanted["score_mean"])
    same(golden, count, wanted["link_count"])


@TWO_TYPES
@pytest.mark.parametrize("name", SYMMETRIC)
def test_golden_operator(name: str, dtype: torch.dtype, backend: str) -> None:
    golden = load("gpn", name, dtype)
    given, wanted = golden["inputs"], golden["outputs"]
    size, loops = given["num_nodes"], given["self_loop_score"]
    logits = torch.zeros(size, size, dtype=dtype)
    logits[tuple(given["edge_index"])] = given["edge_score"].to(dtype).logit()
    if loops is not None:
        logits.diagonal().copy_(loops.logit())
    pool = GraphParsingPooling(1, self_loops=loops is not None, deepsets_layers=0)
    pool.edge_net = Stored(logits)
    x = torch.ones(size, 1, dtype=dtype)
    out = pool(x, given["edge_index"], batch=given["batch"])
    assert torch.equal(out.selection.cluster, wanted["cluster"])
    assert out.selection.num_clusters == wanted["num_clusters"]
    assert (out.x.size(0) != size) == wanted["changed"]
    assert torch.equal(out.edge_index, wanted["edge_index_out"].view(2, -1))
    assert torch.equal(out.batch, wanted["batch_out"])
    same(golden, out.score, wanted["score_mean"])
    members = torch.bincount(out.selection.cluster).to(dtype)
    same(golden, out.x.view(-1) / members, wanted["multiplier"])
    same(golden, pool.parse(x, given["edge_index"]).count, wanted["link_count"])


@pytest.mark.parametrize("name", names("gpn", "parse_asymmetric_*"))
def test_golden_asymmetric(name: str, backend: str) -> None:
    golden = load("gpn", name)
    given, wanted = golden["inputs"], golden["outputs"]
    edges, size = given["edge_index"], given["num_nodes"]
    score = given["edge_score_directed"]
    link = dominant_links(edges, score, size)
    assert torch.equal(link, wanted["dominant_neighbour"])
    cluster = parse(edges, score, size, given["batch"])
    assert torch.equal(cluster, wanted["cluster_components"])
    old = sequential(edges, score, size)
    assert old == wanted["cluster_sequential"].tolist()
    assert (old != cluster.tolist()) == wanted["differs"]


@pytest.mark.parametrize("levels", [1, 2, 3, None])
@pytest.mark.parametrize("with_loops", [False, True])
def test_equals_the_sequential_procedure(
    levels: int | None, with_loops: bool, backend: str
) -> None:
    for seed in range(60):
        edges, score, loops, batch = random_graphs(seed, levels)
        own = loops if with_loops else None
        size = batch.numel()
        cluster = parse(edges, score, size, batch, loop_score=own)
        assert cluster.tolist() == sequential(edges, score, size, own)
        link = dominant_links(edges, score, size, own)
        assert cluster.tolist() == union_find(link.tolist())
        nodes = torch.arange(size)
        mutual = ((link[link] == nodes) & (nodes < link)).sum()
        assert int(cluster.max()) + 1 == int(mutual + (link == nodes).sum())


@pytest.mark.parametrize("levels", [2, None])
def test_clusters_are_connected_and_inside_a_graph(levels, backend: str) -> None:
    for seed in range(30):
        edges, score, _, batch = random_graphs(seed, levels)
        cluster = parse(edges, score, batch.numel())
        inside = edges[:, cluster[edges[0]] == cluster[edges[1]]]
        assert torch.equal(connected_components(inside, batch.numel()), cluster)
        graph = torch.empty(int(cluster.max()) + 1, dtype=torch.long)
        graph[cluster] = batch
        assert torch.equal(graph[cluster], batch)


def test_increasing_maps_and_other_numbers(backend: str) -> None:
    for seed in range(30):
        edges, score, loops, batch = random_graphs(seed, None)
        size = batch.numel()
        cluster = parse(edges, score, size, loop_score=loops)
        for map_ in (lambda s: 3 * s - 7, lambda s: (s / 50).sigmoid(), torch.sqrt):
            mapped = parse(edges, map_(score), size, loop_score=map_(loops))
            assert torch.equal(mapped, cluster)
        order = torch.randperm(size)
        moved = torch.empty(size)
        moved[order] = loops.float()
        moved = parse(order[edges], score, size, loop_score=moved.double())
        assert canonical(moved[order].tolist()) == cluster.tolist()


@pytest.mark.parametrize(
    "edges",
    [
        both(torch.stack([torch.arange(99), torch.arange(1, 100)])),
        ring(100),
        both(torch.combinations(torch.arange(10)).t()),
        both(torch.stack([torch.zeros(9).long(), torch.arange(1, 10)])),
        random_graphs(0, None, (50, 50))[0],
    ],
    ids=["path", "ring", "clique", "star", "random"],
)
def test_mean_number_of_clusters(edges: Tensor) -> None:
    size = int(edges.max()) + 1
    degree = torch.bincount(edges[0], minlength=size).double()
    half = edges.size(1) // 2
    share = 1 / (degree[edges[0, :half]] + degree[edges[1, :half]] - 1)
    expected = share.sum() + (degree == 0).sum()
    counts = []
    for _ in range(200):
        score = torch.rand(half)
        counts.append(parse(edges, score.repeat(2), size).max() + 1)
    found = torch.stack(counts).double()
    error = found.std() / 200**0.5
    assert (found.mean() - expected).abs() <= 4 * error + 1e-9


@pytest.mark.parametrize("levels", [2, None])
def test_other_graphs_change_nothing(levels, backend: str) -> None:
    edges, score, loops, batch = random_graphs(3, levels)
    more, other, extra, _ = random_graphs(4, levels)
    size = batch.numel()
    alone = parse(edges, score, size, loop_score=loops)
    together = parse(
        torch.cat([edges, more + size], 1),
        torch.cat([score, other]),
        2 * size,
        loop_score=torch.cat([loops, extra]),
    )
    assert torch.equal(together[:size], alone)
    assert torch.equal(
        together[size:] - alone.max() - 1, parse(more, other, size, loop_score=extra)
    )


@pytest.mark.parametrize("falling", [False, True])
def test_a_monotone_path_of_a_million_nodes(falling: bool, backend: str) -> None:
    size = 2**20
    nodes = torch.arange(size - 1)
    score = (nodes.flip(0) if falling else nodes).double()
    path = both(torch.stack([nodes, nodes + 1]))
    assert not parse(path, score.repeat(2), size).any()


PATH = both(torch.tensor([[0, 1, 2], [1, 2, 3]]))


def by_product(**options: Any) -> GraphParsingPooling:
    """The score of an edge is the product of the single features."""
    pool = GraphParsingPooling(1, deepsets_layers=0, **options)
    torch.nn.init.ones_(pool.edge_net.mlp[0].weight)
    torch.nn.init.zeros_(pool.edge_net.mlp[0].bias)
    return pool


X = torch.tensor([[2.0], [2.0], [-1.0], [-3.0]])


@pytest.mark.parametrize(
    ("how", "factor"),
    [
        ("sum", lambda s: 2 * s),
        ("mean", lambda s: s),
        ("none", torch.ones_like),
    ],
)
def test_multiplier(how: Any, factor) -> None:
    out = by_product(multiplier=how)(X, PATH)
    assert out.selection.cluster.tolist() == [0, 0, 1, 1]
    score = torch.tensor([4.0, 3.0]).sigmoid()
    torch.testing.assert_close(out.score, score)
    sums = torch.tensor([4.0, -4.0])
    torch.testing.assert_close(out.x.view(-1), sums * factor(score))


def test_only_inner_edges_train_the_score(backend: str) -> None:
    x = X.clone().requires_grad_()
    pool = by_product()
    out = pool(x, PATH)
    # Pairs (0, 1) and (2, 3) are inside; (1, 2) must not move anything.
    (grad,) = torch.autograd.grad(out.score.sum(), x)
    score = out.score.detach()
    slope = score * (1 - score)
    wanted = slope[[0, 0, 1, 1]] * X.view(-1)[[1, 0, 3, 2]]
    torch.testing.assert_close(grad.view(-1), wanted)


@pytest.mark.parametrize(
    ("how", "wanted"),
    [("binary", 1.0), ("sum", 7.0), ("mean", 3.5), ("max", 5.0), ("count", 2.0)],
)
def test_coarse_edges(how: Any, wanted: float) -> None:
    ladder = both(torch.tensor([[0, 2, 1, 0], [1, 3, 2, 3]]))
    weight = torch.tensor([9.0, 9.0, 2.0, 5.0]).repeat(2)
    pool = by_product(edge_reduce=how)
    out = pool(X, ladder, weight)
    assert out.edge_index.tolist() == [[0, 1], [1, 0]]
    assert out.edge_attr.tolist() == [wanted, wanted]
    assert pool(X, ladder, weight.view(-1, 1)).edge_attr.shape == (2, 1)
    without = pool(X, ladder).edge_attr
    assert without is None if how != "count" else without.tolist() == [2.0, 2.0]
    if how in ("binary", "count"):
        with pytest.raises(ValueError, match=r"\[8, 2\], expected \[E\] or \[E, 1\]"):
            pool(X, ladder, torch.ones(8, 2))


def test_edges_listed_once_count_like_both_directions(backend: str) -> None:
    pool = GraphParsingPooling(3).double()
    x = torch.randn(9, 3).double()
    edges, *_ = random_graphs(1, None, (9,))
    half = edges[:, : edges.size(1) // 2]
    wanted = pool(x, edges)
    for listed in (half, half.flip(0), torch.cat([edges, half], 1)):
        out = pool(x, listed)
        assert torch.equal(out.selection.cluster, wanted.selection.cluster)
        assert torch.equal(out.x, wanted.x)


def test_dropped_edges_are_gone_from_parse_and_pooled_graph() -> None:
    pool = by_product(dropout_parsing=0.5, self_loops=True, edge_reduce="sum")
    edges, *_ = random_graphs(2, None, (400,))
    x = torch.randn(400, 1)
    wanted = pool.eval()(x, edges)
    found = [pool.train()(x, edges) for _ in range(5)]
    sizes = {out.x.size(0) for out in found}
    assert min(sizes) > wanted.x.size(0)
    assert len(sizes) > 1
    for out in found:
        parsing = pool.parse(x, edges)
        selection, kept = parsing.selection, parsing.kept
        # Both directions stay or go together.
        there = {tuple(pair) for pair in edges[:, kept].t().tolist()}
        assert there == {(b, a) for a, b in there}
        assert 0.35 < len(there) / edges.size(1) < 0.65
        inside = edges[:, kept]
        cluster = selection.cluster
        inside = inside[:, cluster[inside[0]] == cluster[inside[1]]]
        assert torch.equal(connected_components(inside, 400), cluster)
        assert out.edge_index.size(1) < kept.numel()
    assert torch.equal(pool.eval()(x, edges).x, wanted.x)


def test_dropout_inside_the_score_draws_once() -> None:
    pool = GraphParsingPooling(4, score_layers=2, dropout=0.5, deepsets_layers=0)
    x = torch.randn(9, 4, requires_grad=True)
    edges, *_ = random_graphs(1, None, (9,))
    torch.manual_seed(0)
    first = pool(x, edges)
    with torch.no_grad():
        torch.manual_seed(0)
        again = pool(x, edges)
    assert torch.equal(first.x, again.x)
    assert not torch.equal(pool(x, edges).x, first.x)


def test_nearly_equal_scores_can_be_made_equal() -> None:
    # The pair (1, 2) is better than (0, 1) by a rounding error.
    x = torch.tensor([[1.0], [2.0], [1.0 + 1e-6], [0.1]])
    assert by_product()(x, PATH).selection.cluster.tolist() == [0, 0, 0, 0]
    logit = by_product().edge_net(x, PATH[:, :3])
    for step, wanted in ((2**-12, [1, 0, 1, 2]), (None, [1, 2, 1, 2])):
        link = node_links(rounded(logit, step), PATH[:, :3], PATH[0, :0], 4)
        assert link.tolist() == wanted
    rounding = by_product(score_round=2**-12)
    assert rounding(x, PATH).selection.cluster.tolist() == [0, 0, 0, 0]


def test_loop_keeps_a_node_alone(backend: str) -> None:
    x = torch.tensor([[3.0], [1.0], [1.0], [1.0]])
    out = by_product(self_loops=True)(x, PATH)
    # The loop of node 0 scores 9, its edge 3; node 1 still points at node 0.
    assert out.selection.cluster.tolist() == [0, 0, 0, 0]
    x = torch.tensor([[3.0], [0.5], [2.0], [2.0]])
    out = by_product(self_loops=True)(x, PATH[:, :0])
    assert out.selection.cluster.tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(out.score, (x * x).sigmoid().view(-1))


def test_nan_node_stays_by_itself(backend: str) -> None:
    x = X.clone()
    x[1] = torch.nan
    out = by_product()(x, PATH)
    assert out.selection.cluster.tolist() == [0, 1, 2, 2]
    assert out.x.isnan().view(-1).tolist() == [False, True, False]


def test_a_large_star_in_half_precision() -> None:
    leaves = torch.arange(1, 3000)
    star = both(torch.stack([torch.zeros_like(leaves), leaves]))
    out = by_product(multiplier="mean").half()(torch.full((3000, 1), 0.1).half(), star)
    assert out.x.dtype == torch.float16
    torch.testing.assert_close(out.x.item(), 300 * 0.5025, rtol=1e-2, atol=0.0)


def test_reads_the_authors_names() -> None:
    pool = GraphParsingPooling(3, score_layers=2, deepsets_layers=2)
    state = {}
    for name, value in pool.state_dict().items():
        old = name.replace("edge_net.", "parsing_net.edge_net.")
        old = old.replace("pre.", "deepsets_pre.").replace("post.", "deepsets_post.")
        state[old] = torch.randn_like(value)
    assert "parsing_net.edge_net.mlp.4.weight" in state
    assert "deepsets_post.mlp.3.weight" in state
    pool.load_state_dict(dict(state))
    assert all(map(torch.equal, pool.state_dict().values(), state.values()))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"multiplier": "su"}, "did you mean 'sum'"),
        ({"edge_reduce": "bin"}, "did you mean 'binary'"),
        ({"score_layers": 0}, "score_layers=0, expected an int of at least 1"),
        ({"deepsets_layers": -1}, "deepsets_layers=-1, expected an int of at least 0"),
        ({"dropout": 1.0}, r"dropout=1.0, expected a float in \[0, 1\)"),
        ({"dropout_parsing": -0.1}, "dropout_parsing=-0.1"),
        ({"score_round": 2.0}, "score_round=2.0"),
        ({"max_cluster_size": 0}, "max_cluster_size=0, expected an int of at least 1"),
        ({"edge_channels": 0}, "edge_channels=0, expected an int of at least 1"),
        ({"scorer": "dots"}, "did you mean 'dot'"),
    ],
)
def test_refuses_bad_options(options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        GraphParsingPooling(4, **options)


def test_repeated_pooling_ends_by_itself() -> None:
    pool = GraphParsingPooling(4).double()
    edges, _, _, batch = random_graphs(5, None)
    whole = connected_components(edges, batch.numel())
    x = torch.randn(batch.numel(), 4).double()
    sizes = [x.size(0)]
    while True:
        out = pool(x, edges, batch=batch, batch_size=4)
        if out.x.size(0) == sizes[-1]:
            break
        sizes.append(out.x.size(0))
        x, edges, batch = out.x, out.edge_index, out.batch
    assert sizes[-1] == int(whole.max()) + 1
    assert edges.numel() == 0
    assert len(sizes) <= 6


@pytest.mark.parametrize("scorer", ["dot", "cosine"])
def test_scorers_without_weights(scorer: Any, backend: str) -> None:
    x = torch.randn(30, 4).double().requires_grad_()
    edges, *_ = random_graphs(1, None)
    pool = GraphParsingPooling(4, scorer=scorer, deepsets_layers=0)
    assert not list(pool.parameters())
    out = pool(x, edges)
    rows = x if scorer == "dot" else torch.nn.functional.normalize(x)
    score = (rows[edges[0]] * rows[edges[1]]).sum(1)
    cluster = parse(edges, score, 30)
    assert torch.equal(out.selection.cluster, cluster)
    mean, count = link_scores(edges, score.sigmoid(), cluster, out.x.size(0))
    wanted = x.new_zeros(out.x.shape).index_add(0, cluster, x) * (mean * count)[:, None]
    torch.testing.assert_close(out.x, wanted)
    slopes = [torch.autograd.grad(each.sum(), x)[0] for each in (out.x, wanted)]
    torch.testing.assert_close(*slopes)


def test_scorer_of_the_user() -> None:
    edges, *_ = random_graphs(1, None)
    x = torch.randn(30, 4, requires_grad=True)

    def closeness(x: Tensor, pairs: Tensor) -> Tensor:
        return -(x[pairs[0]] - x[pairs[1]]).norm(dim=1)

    pool = GraphParsingPooling(4, scorer=closeness)
    assert "scorer=" in repr(pool)
    for mode in (True, False):
        out = pool.train(mode)(x, edges)
        wanted = parse(edges, closeness(x, edges), 30)
        assert torch.equal(out.selection.cluster, wanted)
        assert torch.autograd.grad(out.score.sum(), x)[0].any()
    trained = GraphParsingPooling(4, scorer=Bilinear(4))
    trained(x, edges).x.sum().backward()
    assert all(part.grad is not None for part in trained.parameters())


class Bilinear(torch.nn.Module):
    """A scorer with weights."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(channels, channels, bias=False)

    def forward(self, x: Tensor, pairs: Tensor) -> Tensor:
        return (self.layer(x[pairs[0]]) * self.layer(x[pairs[1]])).sum(1)


@pytest.mark.parametrize("depth", [1, 2])
def test_scores_read_edge_attributes(depth: int) -> None:
    edges, score, *_ = random_graphs(1, None)
    pool = GraphParsingPooling(
        2, score_layers=depth, edge_channels=1, edge_reduce="mean", multiplier="mean"
    )
    x = torch.randn(30, 2, requires_grad=True)
    if depth == 1:  # the attribute alone decides
        weight = torch.tensor([[0.0, 0.0, 1.0]])
        pool.edge_net.mlp[0].weight = torch.nn.Parameter(weight)
    weight = (score.float() / 50).requires_grad_()
    out = pool(x, edges, weight)
    if depth == 1:
        assert torch.equal(out.selection.cluster, parse(edges, score, 30))
    assert torch.autograd.grad(out.x.sum(), weight)[0].any()
    again = pool(out.x, out.edge_index, out.edge_attr)
    assert again.x.size(0) < out.x.size(0)
    # Attributes that differ by direction count with their mean.
    uneven = weight.detach().clone()
    uneven[: edges.size(1) // 2] += 1.0
    uneven[edges.size(1) // 2 :] -= 1.0
    torch.testing.assert_close(pool(x, edges, uneven).score, out.score)
    with pytest.raises(ValueError, match="edge_attr of None, expected"):
        pool(x, edges)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_bounded_clusters(most: int, backend: str) -> None:
    edges, *_ = random_graphs(1, None, (40, 40))
    x = torch.randn(80, 4)
    pool = GraphParsingPooling(4, max_cluster_size=most)
    out = pool(x, edges)
    sizes = torch.bincount(out.selection.cluster)
    assert int(sizes.max()) == most
    inside = edges[:, out.selection.cluster[edges].diff(dim=0).view(-1) == 0]
    whole = connected_components(inside, 80)
    assert torch.equal(whole, out.selection.cluster)
    pool.max_cluster_size = None
    free = pool(x, edges)
    pool.max_cluster_size = 80
    assert torch.equal(pool(x, edges).selection.cluster, free.selection.cluster)
    assert free.x.size(0) < out.x.size(0)


def test_validation_on_request() -> None:
    pool = by_product(validate=True)
    pool(X, PATH)
    with pytest.raises(ValueError, match="3 edges without their opposite"):
        pool(X, PATH[:, :3])
    x = X.clone()
    x[1] = torch.nan
    with pytest.raises(ValueError, match="a score of nan for 2 of 3 edges"):
        pool(x, PATH)


def test_nothing_and_isolated_nodes(backend: str) -> None:
    pool = GraphParsingPooling(2)
    none = torch.empty(2, 0, dtype=torch.long)
    batch = torch.empty(0, dtype=torch.long)
    out = pool(torch.empty(0, 2), none, batch=batch, batch_size=3)
    assert out.x.shape == (0, 2)
    assert out.batch_size == 3
    for count in (1, 4):
        out = pool(torch.randn(count, 2), none)
        assert out.selection.cluster.tolist() == list(range(count))
        assert out.score.tolist() == [1.0] * count


def test_repeats_and_loops_are_passed_over(backend: str) -> None:
    x, pool = torch.randn(4, 3), GraphParsingPooling(3)
    given = torch.cat([PATH, PATH[:, :2], torch.tensor([[1, 3], [1, 3]])], dim=1)
    wanted, found = pool(x, PATH), pool(x, given)
    assert torch.equal(found.selection.cluster, wanted.selection.cluster)
    assert torch.equal(found.x, wanted.x)
    assert torch.equal(found.edge_index, wanted.edge_index)
