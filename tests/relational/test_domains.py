"""Domain words, and tuples of each domain against their definition."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_pool.relational.domains import Domain, grow, sort_rows
from pyg_pool.relational.tuples import lay_ground


def near(graph: nx.Graph, limit: int) -> Callable[[tuple[int, ...]], bool]:
    far = dict(nx.all_pairs_shortest_path_length(graph))
    return lambda t: all(
        a != b and far[a].get(b, 99) <= limit for a, b in itertools.combinations(t, 2)
    )


def rules(graph: nx.Graph) -> dict[str, Callable[[tuple[int, ...]], bool]]:
    """What makes a tuple a member, word for word as documented."""

    def different(t: tuple[int, ...]) -> bool:
        return len(set(t)) == len(t)

    def star(t: tuple[int, ...]) -> bool:
        return different(t) and all(graph.has_edge(t[0], u) for u in t[1:])

    def connected(t: tuple[int, ...]) -> bool:
        return different(t) and nx.is_connected(graph.subgraph(t))

    def rising(t: tuple[int, ...]) -> bool:
        return list(t) == sorted(t)

    return {
        "all": lambda t: True,
        "distinct": different,
        "subset": lambda t: different(t) and rising(t),
        "star": star,
        "star_set": lambda t: star(t) and rising(t[1:]),
        "path": lambda t: (
            different(t) and all(graph.has_edge(a, b) for a, b in itertools.pairwise(t))
        ),
        "connected": connected,
        "connected_set": lambda t: connected(t) and rising(t),
        "dist<=2": near(graph, 2),
        "dist_set<=2": lambda t: near(graph, 2)(t) and rising(t),
        "dist<=0": near(graph, 0),
    }


@given(
    size=st.integers(1, 6),
    length=st.integers(1, 3),
    seed=st.integers(0, 999),
    dense=st.floats(0, 1),
)
def test_equals_the_definition(size: int, length: int, seed: int, dense: float) -> None:
    source = nx.gnp_random_graph(size, dense, seed=seed)
    edges = torch.tensor(list(source.edges), dtype=torch.long).view(-1, 2).t()
    ground = lay_ground(edges, torch.zeros(size, dtype=torch.long))
    for word, is_member in rules(source).items():
        want = [
            list(t)
            for t in itertools.product(range(size), repeat=length)
            if is_member(t)
        ]
        assert grow(ground, length, Domain.parse(word)).tolist() == want, word


@pytest.mark.parametrize(
    ("text", "distance", "message"),
    [
        ("stars", None, "did you mean 'star'"),
        ("dist", None, "expected a distance"),
        ("star", 2, "no other domain"),
        ("distinct", 2, "take domain='dist<=2'"),
        ("dist<=2", 3, "expected one distance"),
        ("dist", -1, "max_distance >= 0"),
        (None, None, "domain=None, expected one of"),
    ],
)
def test_wrong_words_are_refused(text: Any, distance: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Domain.parse(text, distance)


def test_word_and_distance_are_the_same_as_one_word() -> None:
    assert Domain.parse("dist", 2) == Domain.parse("dist<=2")
    assert str(Domain.parse("dist_set<=2")) == "dist_set<=2"
    assert Domain.parse("star_set").is_set
    assert not Domain.parse("star").is_set


def test_rows_are_sorted_by_the_first_column_first() -> None:
    rows = torch.tensor([[1, 0], [0, 2], [1, 0], [0, 1]])
    assert sort_rows(rows, unique=True).tolist() == [[0, 1], [0, 2], [1, 0]]
