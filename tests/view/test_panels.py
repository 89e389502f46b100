from __future__ import annotations

import numpy as np
import pytest
import torch

from pyg_pool import Hierarchy, Selection
from pyg_pool.core import Level
from pyg_pool.view.panels import make_panels

BOTH_WAYS = torch.tensor([[0, 1, 1, 2, 2, 3, 4, 4], [1, 0, 2, 1, 3, 2, 4, 4]])


def chosen() -> Hierarchy:
    """A path of four and a node with loops; three and one of them are kept."""
    batch = torch.tensor([0, 0, 0, 0, 1])
    kept = torch.tensor([2, 0, 1, 4])
    scores = torch.tensor([0.9, 0.5, 0.25, 0.75])
    fine = Level(5, BOTH_WAYS, batch=batch, batch_size=2)
    edges = torch.tensor([[0, 1, 2, 2], [2, 2, 0, 1]])
    coarse = Level(4, edges, batch=batch[kept], batch_size=2, score=scores)
    return Hierarchy([fine, coarse], [Selection.from_nodes(kept, 5)])


def clustered() -> Hierarchy:
    """The same path in two clusters of two."""
    edges = BOTH_WAYS[:, :6]
    selection = Selection.from_clusters(torch.tensor([0, 0, 1, 1]))
    coarse = Level(2, torch.tensor([[0, 1], [1, 0]]))
    return Hierarchy([Level(4, edges), coarse], [selection])


def test_kept_nodes_and_their_scores() -> None:
    fine, coarse = make_panels(chosen(), 0, None, None)
    assert fine.kept.tolist() == [True, True, True, False]
    assert fine.score is not None
    np.testing.assert_allclose(fine.score, [0.5, 0.25, 0.9, np.nan])
    assert coarse.kept.all()
    assert coarse.score is None


def test_edges_count_once_and_loops_not() -> None:
    fine, coarse = make_panels(chosen(), 0, None, None)
    assert fine.edges.T.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert coarse.edges.T.tolist() == [[0, 2], [1, 2]]
    lonely, _ = make_panels(chosen(), 1, None, None)
    assert lonely.edges.shape == (2, 0)


def test_places_and_names_follow_the_nodes() -> None:
    places = [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]
    _, coarse = make_panels(chosen(), 0, places, ["a", "b", "c", "d"])
    assert coarse.points.tolist() == [places[2], places[0], places[1]]
    assert coarse.names == ["c", "a", "b"]


def test_clusters_lie_in_the_middle_and_have_no_name() -> None:
    places = [[0.0, 0.0], [1.0, 0.0], [2.0, 2.0], [3.0, 2.0]]
    fine, coarse = make_panels(clustered(), 0, places, ["a", "b", "c", "d"])
    assert fine.cluster.tolist() == [0, 0, 1, 1]
    assert fine.score is None
    assert coarse.points.tolist() == [[0.5, 0.0], [2.5, 2.0]]
    assert coarse.names == ["", ""]


def test_wrong_positions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"positions of shape \[3, 2\], expected \[4"):
        make_panels(chosen(), 0, np.zeros((3, 2)), None)


def test_wrong_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="got 1 labels, expected 4"):
        make_panels(chosen(), 0, None, ["a"])


@pytest.mark.parametrize("graph", [-1, 2])
def test_missing_graph_is_refused(graph: int) -> None:
    with pytest.raises(ValueError, match=f"graph={graph}, expected 0 to 1"):
        make_panels(chosen(), graph, None, None)
