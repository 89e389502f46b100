from __future__ import annotations

import io
import itertools
from typing import Any

import pytest
import torch

from pyg_pool import Hierarchy, Selection
from pyg_pool.core import Level
from pyg_pool.view import draw_hierarchy
from tests.view.test_panels import chosen, clustered

pytest.importorskip("matplotlib")


def deep(levels: int = 5, size: int = 40) -> Hierarchy:
    """A path that loses its last eighth at each level."""
    graphs, selections = [], []
    while len(graphs) < levels:
        forward = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
        score = torch.linspace(0, 1, size) if graphs else None
        graphs.append(
            Level(size, torch.cat([forward, forward.flip(0)], 1), score=score)
        )
        kept = max(1, size - max(1, size // 8))
        selections.append(Selection.from_nodes(torch.arange(kept), size))
        size = kept
    return Hierarchy(graphs, selections[:-1])


def texts(figure: Any) -> list[Any]:
    """Everything that is written on a figure, once it is drawn."""
    figure.savefig(io.BytesIO())
    found = [figure._suptitle] if figure.get_suptitle() else []
    found += [text for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        found += [ax.title, *ax.texts]
        if ax.axison:
            found += [ax.yaxis.label, *ax.get_yticklabels()]
    return [text for text in found if text.get_text() and text.get_visible()]


def test_titles_count_nodes_and_edges() -> None:
    figure = draw_hierarchy(chosen())
    assert [ax.get_title() for ax in figure.axes[:2]] == [
        "Level 0\n4 nodes, 3 edges",
        "Level 1\n3 nodes, 2 edges",
    ]
    lonely = draw_hierarchy(chosen(), 1)
    assert lonely.axes[0].get_title() == "Level 0\n1 node, 0 edges"


def test_scores_get_a_colour_bar_and_clusters_none() -> None:
    scored = draw_hierarchy(chosen(), score_name="gate")
    assert [ax.get_ylabel() for ax in scored.axes] == ["", "", "gate"]
    assert len(draw_hierarchy(clustered()).axes) == 2


def test_dropped_nodes_are_hollow_and_kept_ones_filled() -> None:
    figure = draw_hierarchy(chosen())
    dropped, kept = figure.axes[0].collections[-2:]
    assert len(dropped.get_offsets()) == 1
    assert dropped.get_facecolor()[0].tolist() == [1.0, 1.0, 1.0, 1.0]
    colours = kept.get_facecolor()
    assert len(colours) == 3
    assert len({tuple(c) for c in colours}) == 3


def test_members_of_a_cluster_share_its_colour() -> None:
    figure = draw_hierarchy(clustered())
    fine = figure.axes[0].collections[-1].get_facecolor()
    coarse = figure.axes[1].collections[-1].get_facecolor()
    assert fine[0].tolist() == fine[1].tolist() == coarse[0].tolist()
    assert fine[2].tolist() == fine[3].tolist() == coarse[1].tolist()
    assert fine[0].tolist() != fine[2].tolist()


@pytest.mark.parametrize("title", [None, "A graph with a title above all levels"])
@pytest.mark.parametrize("make", [chosen, clustered, deep])
def test_no_text_lies_on_another_or_outside(make: Any, title: str | None) -> None:
    figure = draw_hierarchy(make(), title=title)
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts(figure)]
    inside = figure.bbox
    for text, box in boxes:
        assert inside.x0 <= box.x0, text
        assert box.x1 <= inside.x1, text
        assert inside.y0 <= box.y0, text
        assert box.y1 <= inside.y1, text
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        assert not a.overlaps(b), (one, other)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_tiny_graphs_are_drawn(size: int) -> None:
    empty = torch.empty(2, 0, dtype=torch.long)
    selection = Selection.from_nodes(torch.arange(size), size)
    hierarchy = Hierarchy([Level(size, empty), Level(size, empty)], [selection])
    figure = draw_hierarchy(hierarchy, labels=["C"] * size)
    target = io.BytesIO()
    figure.savefig(target)
    assert target.getvalue()[:4] == b"\x89PNG"
