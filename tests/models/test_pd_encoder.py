"""The way down: channels, pools and the clusters of the faces."""

from __future__ import annotations

import pytest
import torch

from pyg_pool import PrimalDualPooling
from pyg_pool.mesh import generate_shape, primal_dual_graph
from pyg_pool.models import MeshClassifier, MeshUNet


def test_clusters_lead_to_the_faces() -> None:
    data = primal_dual_graph(generate_shape("vase"))
    out = MeshClassifier(1, 7, 3, channels=(16, 16), heads=1).run(data)
    first, second = out.face_clusters
    assert first.shape == second.shape == (data.x.size(0),)
    assert int(second.max()) + 1 == out.pools[1].x.size(0)
    for cluster in first.unique():  # a coarse cluster holds whole fine ones
        assert second[first == cluster].unique().numel() == 1


def test_own_pools_are_used_and_copied() -> None:
    pools = [PrimalDualPooling(num_edges_to_keep=300, consecutive=False)]
    model = MeshClassifier(1, 7, 3, channels=(16,), heads=1, pools=pools)
    assert model.pools[0] is not pools[0]
    data = primal_dual_graph(generate_shape("vase"))
    sizes = model.run(data).pools[0].selection.cluster.bincount()
    assert int(sizes.max()) == 2


def test_sums_reach_every_block() -> None:
    for block in ("res", "down"):
        model = MeshUNet(1, 7, 3, channels=(16, 16), block=block, reduce="sum")
        assert [pool.reduce for pool in model.encoder.pools] == ["sum"]
        assert [pool.reduce_dual for pool in model.encoder.pools] == ["sum"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"channels_dual": (16,)}, "as many of both"),
        ({"fraction_to_keep": (0.5,)}, "expected 2 numbers"),
        ({"pools": [PrimalDualPooling(threshold=0.5)]}, "got 1 pools, expected 2"),
        ({"block": "up"}, "block='up'"),
        ({"norm": "layer"}, "norm='layer'"),
        ({"norm_scope": "all"}, "norm_scope='all'"),
        ({"norm_groups": 7}, "norm_groups=7"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MeshClassifier(1, 7, 3, channels=(16, 16), **options)


def test_wrong_features() -> None:
    data = primal_dual_graph(generate_shape("vase"), "B")
    with pytest.raises(ValueError, match="MeshClassifier got x of shape"):
        MeshClassifier(1, 7, 3)(data)
    assert torch.is_tensor(data.x)
