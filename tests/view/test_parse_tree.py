from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
import torch

from pyg_pool import Hierarchy, Selection
from pyg_pool.core import Level
from pyg_pool.view import draw_parse_tree
from pyg_pool.view.parse_tree import _leaf_order
from tests.view.test_panels import chosen, clustered

pytest.importorskip("matplotlib")


def three_levels() -> Hierarchy:
    """A path of five nodes that becomes three and one."""
    forward = torch.stack([torch.arange(4), torch.arange(1, 5)])
    edges = torch.cat([forward, forward.flip(0)], dim=1)
    first = Selection.from_clusters(torch.tensor([1, 1, 0, 2, 0]))
    second = Selection.from_clusters(torch.tensor([0, 1, 1]))
    none = torch.empty(2, 0, dtype=torch.long)
    middle = torch.tensor([[0, 1], [1, 0]])
    levels = [Level(5, edges), Level(3, middle), Level(2, none)]
    return Hierarchy(levels, [first, second])


def names_on(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_both_panels_name_every_node() -> None:
    figure = draw_parse_tree(three_levels(), labels=list("abcde"), title="Path")
    figure.savefig(io.BytesIO())
    graph, tree = figure.axes
    assert names_on(graph) == names_on(tree) == list("abcde")
    assert figure.get_suptitle() == "Path"
    ticks = [label.get_text() for label in tree.get_yticklabels()]
    assert ticks == ["level 0: 5", "level 1: 3", "level 2: 2"]
    assert names_on(draw_parse_tree(clustered()).axes[1]) == ["0", "1", "2", "3"]


def test_branches_do_not_cross() -> None:
    parents = [np.array([1, 1, 0, 2, 0]), np.array([0, 1, 1])]
    order = _leaf_order(parents, 2)
    assert parents[0][order].tolist() == [0, 0, 1, 1, 2]
    figure = draw_parse_tree(three_levels())
    places = [text.get_position()[0] for text in figure.axes[1].texts]
    assert np.argsort(places).tolist() == order.tolist()


def test_a_merge_stands_above_the_middle_of_its_members() -> None:
    figure = draw_parse_tree(clustered())
    first = figure.axes[1].collections[1].get_offsets()
    np.testing.assert_allclose(first, [[0.5, 1.0], [2.5, 1.0]])


def test_graph_of_one_level() -> None:
    level = Level(1, torch.empty(2, 0, dtype=torch.long))
    figure = draw_parse_tree(Hierarchy([level], []))
    figure.savefig(io.BytesIO())
    assert names_on(figure.axes[1]) == ["0"]


def test_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(ValueError, match="level 0 drops 1 of 4 nodes"):
        draw_parse_tree(chosen())
    with pytest.raises(ValueError, match="graph=7"):
        draw_parse_tree(clustered(), 7)
