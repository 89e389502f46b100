"""Lines of graph6 against networkx."""

from __future__ import annotations

import networkx as nx
import pytest

from pyg_pool.relational import from_graph6


@pytest.mark.parametrize("size", [0, 1, 2, 7, 62, 63, 70])
def test_equals_networkx(size: int) -> None:
    source = nx.gnp_random_graph(size, 0.3, seed=size)
    text = nx.to_graph6_bytes(source).decode()
    for line in (text, text.removeprefix(">>graph6<<")):
        got = from_graph6(line)
        assert got.num_nodes == size
        edges = {frozenset(e) for e in got.edge_index.t().tolist()}
        assert edges == {frozenset(e) for e in source.edges}
        assert got.num_edges == 2 * source.number_of_edges()


@pytest.mark.parametrize(
    "text",
    ["", "Bww", "B", "C1CC", "B w", "~", "~~", "~??", "~~?????", ":Fa@x^", "&B?"],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a line of graph6"):
        from_graph6(text)


def test_messages_are_short_and_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"got '~a{56}…', expected"):
        from_graph6("~" + "a" * 9999)
    with pytest.raises(TypeError, match=r"decode bytes with text.decode\(\)"):
        from_graph6(nx.to_graph6_bytes(nx.path_graph(3)))  # type: ignore[arg-type]
