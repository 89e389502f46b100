"""The U-Net: its widths, several heads, and meshes without edges."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from pyg_pool.mesh import Mesh, generate_shape, primal_dual_graph
from pyg_pool.models import MeshUNet


def test_heads_are_averaged_on_the_way_up() -> None:
    model = MeshUNet(1, 7, 5, channels=(16, 32, 16), heads=2)
    data = primal_dual_graph(generate_shape("cup"))
    assert model(data).shape == (data.x.size(0), 5)
    assert model.upconv1.conv1.in_channels == 16
    assert model.upconv1.conv2.in_channels == 64


def test_published_size() -> None:
    model = MeshUNet(1, 7, 4)
    assert sum(weight.numel() for weight in model.parameters()) == 77_256


def test_one_triangle_beside_a_mesh() -> None:
    single = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    box = generate_shape("box").with_labels(None)
    parts = [primal_dual_graph(m) for m in (box, single)]
    model = MeshUNet(1, 7, 4, channels=(16, 16)).eval()
    out = model(Batch.from_data_list(parts))
    torch.testing.assert_close(out[:-1], model(parts[0]), atol=1e-5, rtol=1e-4)
    assert out[-1].isfinite().all()
    assert model.train()(parts[1]).isfinite().all()


def test_too_few_widths() -> None:
    with pytest.raises(ValueError, match="at least two widths"):
        MeshUNet(1, 7, 4, channels=(16,))
    model = MeshUNet(1, 7, 4, channels=(16, 32))
    assert repr(model) == "MeshUNet(1, 7, 4, channels=(16, 32))"
