"""The k,l-WL test against stored class counts of single graphs and of families."""

from __future__ import annotations

import json
from typing import Any

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch, Data

from pyg_pool.relational import kl_wl, kl_wl_details
from pyg_pool.relational.refine_options import UPDATES
from tests.golden_files import FOLDER
from tests.relational.families import TESTS, as_data, graph

COLORS = json.loads((FOLDER / "klwl" / "colors.json").read_text())["graphs"]
TABLES = json.loads((FOLDER / "klwl" / "separability.json").read_text())
BENCHMARKS = json.loads((FOLDER / "klwl" / "benchmarks.json").read_text())

COPIES: dict[str, dict[str, Any]] = {
    "kl_1_1": {"l": 1},
    "kl_1_2_distinct_ordered": {"l": 2},
    "kl_1_2_subset_unordered": {"l": 2, "domain": "subset", "ordered": False},
    "kl_1_2_star_ordered": {"l": 2, "domain": "star"},
    "kl_1_2_connected_set_unordered": {
        "l": 2,
        "domain": "connected_set",
        "ordered": False,
    },
}
# Steps of work (items, times one more node for k > 1) up to which a test runs here.
LIGHT = 60_000


@pytest.mark.parametrize("mode", ["exact", "hash"])
@pytest.mark.parametrize("name", COLORS)
def test_golden_colors(name: str, mode: Any) -> None:
    stored = COLORS[name]
    graphs = [graph(stored["graph6"])]
    plain = kl_wl_details(graphs, 1, 0, mode=mode)
    got = {"node_classes": plain.item_classes}
    assert got | {"rounds_until_stable": plain.stable_round} == stored["wl1"]
    for key, options in COPIES.items():
        if key in stored:
            found = kl_wl_details(graphs, 1, mode=mode, **options)
            sizes = torch.unique(found.tuple_colors, return_counts=True)[1]
            assert found.tuple_colors.numel() == stored[key]["tuples"]
            assert sizes.sort().values.tolist() == stored[key]["class_sizes"]
    for key, folklore in (("fwl2", True), ("oblivious2", False)):
        if key in stored:
            found = kl_wl_details(graphs, 2, 0, folklore=folklore, mode=mode)
            got = {"pair_classes": found.item_classes}
            assert got | {"rounds_until_stable": found.stable_round} == stored[key]
    context = kl_wl_details(graphs, 1, 1, mode=mode).node_colors[0]
    assert context.unique().numel() == stored["kl_1_1_context_node_classes"]


def work(test: str, family: dict[str, Any]) -> int:
    options = TESTS[test]
    size = family["num_nodes"]
    number = size ** (options["k"] + (options["k"] > 1))
    labels = size ** options["l"] // (2 if "domain" in options else 1)
    if options.get("update") in ("LFWL", "SLFWL"):
        number *= 3
    return int(family["num_graphs"] * number * labels)


def cases(*, light: bool) -> list[Any]:
    return [
        pytest.param(name, test, id=f"{name}-{test}")
        for name, family in TABLES["families"].items()
        for test in family["distinct_classes"]
        if (work(test, family) <= LIGHT) == light
        and not (test == "2-FWL with 2 labels" and family["num_nodes"] > 30)
    ]


def check_family(name: str, test: str) -> None:
    family = TABLES["families"][name]
    graphs = [graph(text) for text in family["graph6"]]
    colors = kl_wl(graphs, mode="hash", **TESTS[test])
    assert colors.unique().numel() == family["distinct_classes"][test]


@pytest.mark.parametrize(("name", "test"), cases(light=True))
def test_family(name: str, test: str) -> None:
    check_family(name, test)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "test"), cases(light=False))
def test_large_family(name: str, test: str) -> None:
    check_family(name, test)


def test_strict_differences() -> None:
    """What the families prove about the order of the tests."""

    def separates(name: str, **options: Any) -> bool:
        pair = [graph(text) for text in TABLES["families"][name]["graph6"]]
        colors = kl_wl(pair, mode="hash", **options)
        return bool(colors[0] != colors[1])

    fwl: dict[str, Any] = {"k": 2, "l": 0, "folklore": True}
    assert not separates("CFI_2tri", k=1, l=1)
    assert separates("CFI_2tri", **fwl)
    assert separates("CFI_2tri", k=1, l=1, pooling="node")
    assert separates("rook4x4_vs_shrikhande", k=1, l=2)
    assert not separates("rook4x4_vs_shrikhande", **fwl)
    assert not separates("CFI_3tri", k=1, l=2, domain="subset", ordered=False)
    assert separates("CFI_3tri", **fwl)
    assert separates("rook4x4_vs_shrikhande", **{**fwl, "l": 1})


@pytest.mark.parametrize("size", [6, 7])
def test_all_small_graphs(size: int) -> None:
    exhaustive(size, [t for t in TESTS if light_enough(t, size)])


@pytest.mark.slow
@pytest.mark.parametrize("size", [6, 7])
def test_all_small_graphs_by_the_costly_tests(size: int) -> None:
    exhaustive(size, [test for test in TESTS if not light_enough(test, size)])


def light_enough(test: str, size: int) -> bool:
    options = TESTS[test]
    is_light = options["k"] + options["l"] < 3 and options.get("update") is None
    return is_light or (size == 6 and options["k"] + options["l"] < 4)


def exhaustive(size: int, tests: list[str]) -> None:
    atlas = [g for g in nx.graph_atlas_g() if g.number_of_nodes() == size]
    linked = [nx.is_connected(g) for g in atlas]
    graphs = [as_data(g) for g in atlas]
    checked = 0
    for test in tests:
        rows = TABLES["exhaustive"].get(test, {})
        colors = kl_wl(graphs, mode="hash", **TESTS[test])
        kept = colors[torch.tensor(linked)]
        parts = {f"all_n{size}": colors, f"connected_n{size}": kept}
        for key, part in parts.items():
            if key in rows:
                count = torch.unique(part, return_counts=True)[1]
                pairs = int((count * (count - 1) // 2).sum())
                assert pairs == rows[key]["unseparated_pairs"], (test, key)
                assert count.numel() == rows[key]["classes"], (test, key)
                checked += 1
    assert checked > 3


#: Pairs of connected graphs with eight nodes that a test does not separate.
EIGHT = {
    "1,0 (1-WL)": 312,
    "1,1 ego 1": 3216,
    "no mark, ego 1": 3216,
    "no mark, ego 2": 124,
    "no mark, ego 3": 288,
    "1,2 root+neighbour ego 1 (root)": 3216,
    "1,2 root+neighbour ego 1 (union)": 10,
    "1,2 connected, induced on labelled nodes": 6242094,
    "1,3 connected, induced on labelled nodes": 248315,
    **dict.fromkeys(
        (
            "1,1 all nodes, pool nodes then tuples",
            "1,1 pool tuples per node, then nodes",
            "1,1 root readout",
            "1,1 ego 2",
            "1,1 ego 3",
            "1,2 root+neighbour",
            "2-FWL (= 3,0 oblivious)",
            "SWL(VS)",
            "PSWL(VS)",
            "GSWL(VS)",
            "SSWL(VS)",
            "node deletion (DS, 1-WL base)",
            "edge deletion (DS, 1-WL base)",
        ),
        0,
    ),
}


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("test", EIGHT)
def test_all_graphs_of_eight_nodes(test: str, data_root: Any) -> None:
    lines = (data_root / "graph_c" / "graph8c.g6").read_text().split()
    graphs = [graph(line) for line in lines]
    assert len(graphs) == 11117
    colors = kl_wl(graphs, mode="hash", **TESTS[test])
    count = torch.unique(colors, return_counts=True)[1]
    assert int((count * (count - 1) // 2).sum()) == EIGHT[test]


@pytest.mark.parametrize("size", [5])
def test_exact_and_hashed_colours_agree(size: int) -> None:
    atlas = [as_data(g) for g in nx.graph_atlas_g() if g.number_of_nodes() == size]
    for test, options in TESTS.items():
        if options["k"] + options["l"] > 3 or options["k"] > 2:
            continue
        exact, hashed = (kl_wl(atlas, mode=m, **options) for m in ("exact", "hash"))
        both = torch.stack([exact, hashed]).unique(dim=1)
        assert both.size(1) == exact.unique().numel() == hashed.unique().numel(), test


def test_colours_of_nodes_and_edges_count() -> None:
    """Pairs of EXP differ only together with the types of their nodes."""
    for pair in BENCHMARKS["exp_sample_pairs"]:
        graphs = [graph(each["graph6"]) for each in pair]
        types = [torch.tensor([int(c) for c in each["node_type"]]) for each in pair]
        plain = kl_wl(graphs, 1, 0, node_colors=types, mode="hash")
        assert plain[0] == plain[1]
        marked = kl_wl(graphs, 1, 1, node_colors=types, mode="hash")
        assert marked[0] != marked[1]
    square = graph("Cr")
    sides = square.edge_index[0] + square.edge_index[1]
    one, two = (sides == 1).long(), (sides == sides.min()).long()
    same = kl_wl([square, square], 1, 0, edge_colors=[one, one])
    assert same[0] == same[1]
    other = kl_wl([square, square], 1, 0, edge_colors=[two, 1 - one])
    assert other[0] != other[1]
    square.tint = one.double().view(-1, 1)
    assert kl_wl([square], 2, 0, folklore=True, edge_colors="tint").tolist() == [0]


def test_stored_unseparated_classes() -> None:
    for name, groups in TABLES["unseparated_classes_graph6"].items():
        test = name.split(" connected")[0].replace("1-WL", "1,0 (1-WL)")
        if test not in TESTS:
            continue
        for group in groups:
            colors = kl_wl([graph(text) for text in group], **TESTS[test])
            assert colors.unique().numel() == 1


def test_cycle_counts_with_equal_colours() -> None:
    for case in TABLES["cycle_counting"]["conflicts"]:
        pair = [graph(case["graph6_a"]), graph(case["graph6_b"])]
        found = kl_wl_details(pair, 1, 1, pooling="root", mode="hash")
        one, two = (
            found.tuple_colors[found.tuple_batch == i][case[f"node_{side}"]]
            for i, side in enumerate("ab")
        )
        assert one == two


def test_rule_on_furer_graphs() -> None:
    rows = [r for r in TABLES["cfi_theory"]["rows"] if r["graph_nodes"] <= 16]
    assert rows
    for row in rows:
        base = nx.from_graph6_bytes(row["base_graph6"].encode())
        pair = [as_data(furer(base, twist)) for twist in (False, True)]
        for test, answer in row["separated"].items():
            if test.startswith(("3-FWL", "1,2 distinct")):
                continue
            colors = kl_wl(pair, mode="hash", **TESTS[test])
            assert bool(colors[0] != colors[1]) == answer, (row["base_graph6"], test)


def furer(base: nx.Graph, twist: bool) -> nx.Graph:
    """The graph with a node per even set of edges at each node of the base."""
    out = nx.Graph()
    edges = {frozenset(edge): number for number, edge in enumerate(base.edges)}
    states: dict[Any, list[dict[Any, int]]] = {}
    for node in base.nodes:
        near = list(base.neighbors(node))
        states[node] = [
            {u: bits >> i & 1 for i, u in enumerate(near)}
            for bits in range(2 ** len(near))
            if bin(bits).count("1") % 2 == 0
        ]
        out.add_nodes_from((node, i) for i in range(len(states[node])))
    for edge, number in edges.items():
        a, b = sorted(edge)
        flip = int(twist and number == 0)
        for i, one in enumerate(states[a]):
            for j, two in enumerate(states[b]):
                if one[b] ^ two[a] == flip:
                    out.add_edge((a, i), (b, j))
    return nx.convert_node_labels_to_integers(out)


def test_witnessing_round() -> None:
    pair = [graph(t) for t in TABLES["families"]["C12_vs_2C6"]["graph6"]]
    found = kl_wl_details(pair, 1, 1)
    number = found.separating_round()
    assert number is not None
    for rounds, is_equal in ((number - 1, True), (number, False)):
        colors = kl_wl(pair, 1, 1, rounds=rounds)
        assert bool(colors[0] == colors[1]) == is_equal
    assert kl_wl_details(pair, 1, 0).separating_round() is None


def test_pieces_give_the_same_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    atlas = [as_data(g) for g in nx.graph_atlas_g() if g.number_of_nodes() == 6]
    whole = kl_wl(atlas, 1, 1, ego=1, mode="hash")
    monkeypatch.setattr("pyg_pool.relational.refine.CHUNK", 1000)
    parts = kl_wl(atlas, 1, 1, ego=1, mode="hash")
    both = torch.stack([whole, parts]).unique(dim=1)
    assert both.size(1) == whole.unique().numel() == parts.unique().numel()


@pytest.mark.parametrize("mode", ["exact", "hash"])
def test_poolings_and_odd_graphs(mode: Any) -> None:
    empty = Data(edge_index=torch.empty((2, 0), dtype=torch.long), num_nodes=0)
    graphs = [empty, graph("@"), graph("A?"), graph("Bw"), empty, graph("Bw")]
    for pooling in ("tuple", "node", "root", "labelled", "nested"):
        for domain, ordered in (("star", True), ("subset", False)):
            for folklore in (False, True):
                colors = kl_wl(
                    graphs,
                    1 + folklore,
                    2,
                    pooling=pooling,
                    domain=domain,
                    ordered=ordered,
                    folklore=folklore,
                    cover=True,
                    mode=mode,
                )
                assert colors[0] == colors[4]
                assert colors[3] == colors[5]
                if pooling in ("tuple", "node"):
                    assert colors.unique().numel() == 4
    assert kl_wl([], 1, 1).numel() == 0
    assert kl_wl([empty], 1, 1).tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k >= 1"),
        ({"l": 0, "pooling": "root"}, "at least one label"),
        ({"node_colors": [torch.full((3,), torch.nan)]}, "with NaN"),
        ({"node_colors": torch.zeros(3)}, "one row per node"),
        ({"node_colors": [torch.zeros(2)]}, "one row per node"),
        ({"edge_colors": "tint"}, "expected"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    arguments = {"k": 1, "l": 1, **options}
    for call in (kl_wl, kl_wl_details):
        with pytest.raises(ValueError, match=message):
            call([graph("Bw")], **arguments)


def test_rounds_are_asked_of_graphs_that_are_there() -> None:
    found = kl_wl_details([graph("Bw"), graph("Bg")], 1, 0)
    assert found.separating_round(1, -2) == found.separating_round() == 1
    with pytest.raises(ValueError, match="a=0 and b=2 for 2 graph"):
        found.separating_round(0, 2)
    with pytest.raises(ValueError, match="a=0 and b=1 for 1 graph"):
        kl_wl_details([graph("Bw")], 1, 0).separating_round()


def test_parallel_edges_count_in_messages() -> None:
    one = graph("Bw")
    edges = one.edge_index
    double = Data(edge_index=torch.cat([edges, edges[:, :1]], 1), num_nodes=3)
    loop = Data(edge_index=torch.cat([edges, edges.new_zeros(2, 1)], 1), num_nodes=3)
    for update in (None, "SWL", "PSWL", "GSWL", "DSS", "SSWL", "LFWL"):
        assert kl_wl([one, double, loop], 1, 1, update=update).unique().numel() == 3
    assert kl_wl([one, double], 1, 1, update="SLFWL").unique().numel() == 1


def test_graphs_without_copies_are_one_class() -> None:
    bare = [Data(num_nodes=number) for number in range(4)]
    assert kl_wl(bare, 1, 1, policy="delete_edge").tolist() == [0] * 4
    assert kl_wl(bare, 1, 2, domain="star").tolist() == [0] * 4
    assert kl_wl(bare, 1, 2, domain="star", cover=True).unique().numel() == 4


def test_graphs_of_other_types_are_refused() -> None:
    one = graph("Bw")
    batch: Any = Batch.from_data_list([one, one])
    for given in (one, batch, "Bw", iter([one])):
        with pytest.raises(TypeError, match="a list of PyG Data"):
            kl_wl(given, 1, 1)  # type: ignore[arg-type]
    for other in ("Bw", 3, nx.path_graph(3)):
        with pytest.raises(TypeError, match="a graph of type"):
            kl_wl([other], 1, 1)
    far = Data(edge_index=torch.tensor([[0], [2]]), num_nodes=2)
    with pytest.raises(ValueError, match="0 to 2 for 2 nodes"):
        kl_wl([far, one], 1, 1)
    sparse = Data(adj_t=torch.eye(3).to_sparse(), num_nodes=3)
    with pytest.raises(ValueError, match="adj_t and no edge_index"):
        kl_wl([sparse], 1, 1)
    wide = [torch.zeros(3), torch.zeros(3, 2)]
    with pytest.raises(ValueError, match="all of one width"):
        kl_wl([one, one], 1, 1, node_colors=wide)


def test_isomorphic_graphs_have_equal_colours() -> None:
    source = nx.gnm_random_graph(7, 9, seed=4)
    for number, (test, options) in enumerate(TESTS.items()):
        if options["k"] + options["l"] > 3:
            continue
        order = torch.randperm(7).tolist()
        moved = nx.relabel_nodes(source, dict(enumerate(order)))
        other = nx.Graph()
        other.add_nodes_from(range(7))
        other.add_edges_from(moved.edges)
        mode: Any = "exact" if number % 2 else "hash"
        colors = kl_wl([as_data(source), as_data(other)], mode=mode, **options)
        assert colors[0] == colors[1], test


@pytest.mark.parametrize("mode", ["exact", "hash"])
@pytest.mark.parametrize(
    "options",
    [
        {"k": 1, "l": 2, "pooling": "labelled", "ordered": False},
        {"k": 1, "l": 2, "pooling": "nested", "domain": "star", "cover": True},
        {"k": 2, "l": 1, "pooling": "node", "ego": 1},
        {"k": 2, "l": 0, "folklore": True, "edge_colors": "tint"},
        *({"k": 1, "l": 1, "update": word} for word in UPDATES),
        *({"k": 1, "l": 1, "policy": word} for word in ("delete_node", "delete_edge")),
    ],
)
def test_every_list_is_made_where_the_graphs_are(
    options: dict[str, Any], mode: Any
) -> None:
    given = [graph("Bw"), graph("Bg"), Data(num_nodes=2, tint=torch.zeros(0))]
    for each in given[:2]:
        each.tint = torch.arange(each.num_edges) / 2
    # A list on the default device would not go together with the others.
    with torch.device("meta"):
        found = kl_wl_details(given, mode=mode, **options)
    assert torch.equal(found.colors, kl_wl_details(given, mode=mode, **options).colors)
