"""Blocks of mesh networks."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch

from pyg_pool.mesh import generate_shape, primal_dual_graph
from pyg_pool.models.pd_blocks import BlockOptions, DownBlock, Level, ResDownBlock
from pyg_pool.models.pd_encoder import finest_level


def meshes() -> list:
    return [primal_dual_graph(generate_shape(kind)) for kind in ("vase", "box")]


@pytest.mark.parametrize("scope", ["mesh", "batch"])
def test_instance_norm_sees_one_mesh_at_a_time(scope: str) -> None:
    options = BlockOptions(1, 1, norm_scope=scope)  # type: ignore[arg-type]
    block = DownBlock((1, 7), (4, 4), options)
    one, other = meshes()
    batch = Batch.from_data_list([one, other])
    alone = block(one.x, one.x_dual, finest_level(one))[0]
    together = block(batch.x, batch.x_dual, finest_level(batch))[0]
    same = torch.allclose(together[: one.x.size(0)], alone, atol=1e-5)
    assert same == (scope == "mesh")


@pytest.mark.parametrize("block", [ResDownBlock, DownBlock])
def test_gradients_flow_through_the_skips(block: type) -> None:
    # Sums in place would make this raise.
    (one, _), options = meshes(), BlockOptions(2, 2, norm_groups=4)
    model = block((1, 7), (4, 4), options)
    x, x_dual, attention = model(one.x, one.x_dual, finest_level(one))
    assert x.shape[1] == x_dual.shape[1] == 8
    assert attention.shape == (one.edge_index.size(1), 2)
    (x.sum() + x_dual.sum()).backward()
    missing = [n for n, w in model.named_parameters() if w.grad is None]
    assert missing == []


def test_more_convolutions() -> None:
    model = ResDownBlock((1, 7), (4, 4), BlockOptions(1, 0, norm="none"))
    one = meshes()[0]
    first = model.conv.conv0(one.x, one.x_dual, *finest_level(one).graphs)
    x, _, _ = model(one.x, one.x_dual, finest_level(one))
    torch.testing.assert_close(x, 2 * first.x)


def test_level_of_a_batch() -> None:
    level = finest_level(Batch.from_data_list(meshes()))
    assert isinstance(level, Level)
    assert level.batch_size == 2
    assert level.batch_dual is not None
    assert finest_level(meshes()[0]).batch is None
