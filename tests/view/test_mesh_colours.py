"""Layers of labels, and labels as the clusters of a level show them."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.mesh import Mesh
from pyg_pool.view.mesh_colours import (
    PALETTE,
    cluster_layer,
    label_colours,
    make_layers,
    smoothed_by_cluster,
)

STRIP = Mesh(
    [[i / 2, i % 2, 0] for i in range(6)],
    [[0, 1, 2], [2, 1, 3], [2, 3, 4], [4, 3, 5]],
    labels=[0, 0, 2, 2],
)


def test_layers_are_those_that_are_known() -> None:
    layers = make_layers(STRIP, None, [0, 1, 2, 2], ["a", "b"])
    assert [layer.name for layer in layers] == [
        "input",
        "truth",
        "prediction",
        "errors",
    ]
    assert layers[1].texts == layers[2].texts == ("a", "b", "part 2")
    assert layers[3].values.tolist() == [0, 1, 0, 0]
    assert "25.0%" in layers[3].texts[1]
    other = make_layers(STRIP, [1, 1, 1, 1], None, None)
    assert other[1].values.tolist() == [1, 1, 1, 1]


def test_commonest_value_of_each_cluster_and_the_lowest_of_a_tie() -> None:
    cluster = np.array([0, 1, 0, 1, 0, 2, 2, 3])
    values = np.array([5, 4, 2, 1, 5, 3, 3, 0])
    got = smoothed_by_cluster(values, cluster)
    assert got.tolist() == [5, 1, 5, 1, 5, 3, 3, 0]
    assert smoothed_by_cluster(values[:0], cluster[:0]).tolist() == []


def test_colours_do_not_run_out() -> None:
    colours, texts = label_colours(30)
    assert len(colours) == len(texts) == 30
    assert colours[0] == colours[len(PALETTE)]
    layer = cluster_layer("clusters", np.arange(50))
    assert len(set(layer.colours)) == 50
    assert all(len(colour) == 7 for colour in layer.colours)


@pytest.mark.parametrize("bad", [[0, 1], [0, 1, 2, -1], [0.5, 0, 0, 0]])
def test_values_must_fit_the_faces(bad: list) -> None:
    with pytest.raises(ValueError, match="for 4 faces, expected"):
        make_layers(STRIP, bad, None, None)
