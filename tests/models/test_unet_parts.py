from __future__ import annotations

import torch
from torch.testing import assert_close

from pyg_pool.models import GraphUNet
from pyg_pool.models.pool_stack import Graph
from pyg_pool.models.unet_parts import UNetParts

EDGES = torch.tensor([[0, 1], [1, 0]])


def test_parts_stand_where_their_names_say() -> None:
    model = GraphUNet(3, 4, 2, depth=2, preset="authors", task="graph")
    assert isinstance(model, UNetParts)
    rooms = [name for name, part in model.named_children() if list(part.parameters())]
    assert rooms == ["pools", "stem", "down_convs", "up_convs", "head"]
    assert (len(model.pools), len(model.down_convs), len(model.up_convs)) == (2, 3, 2)
    assert model.output_levels == [1, 0, 0]
    assert GraphUNet(3, 4, 2, preset="paper").out_conv.out_channels == 2


def test_a_result_is_neither_normalised_nor_activated() -> None:
    model = GraphUNet(3, 4, 2, depth=1, norm="layer_norm", act="relu")
    kinds = [type(norm.norm).__name__ for norm in model.up_norms]
    assert kinds == ["Identity"]
    x, graphs = torch.randn(2, 3), [Graph(EDGES, None, None, 1)]
    conv = model.down_convs[0]
    plain = model.convolve(conv, None, x, graphs, 0)
    assert (plain < 0).any()
    full = model.convolve(conv, model.down_norms[0], x, graphs, 0)
    assert_close(full, model.down_norms[0](plain, None, 1).relu())


def test_join() -> None:
    a, b = torch.ones(2, 4), torch.full((2, 4), 2.0)
    assert_close(GraphUNet(3, 4, 2).join(a, b), a + b)
    assert_close(GraphUNet(3, 4, 2, merge="cat").join(a, b), torch.cat([a, b], 1))


def test_readouts_of_all_levels_stand_kind_by_kind() -> None:
    options = {"task": "graph", "readout": ["max", "sum"], "readout_levels": "all"}
    model = GraphUNet(3, 4, 2, depth=2, **options)
    graph = Graph(EDGES, None, None, 1)
    low, fine = torch.randn(1, 4), torch.randn(2, 4)
    _, read = model.finish([low, fine], [graph, graph, graph])
    kinds = [low.amax(0), fine.amax(0), low.sum(0), fine.sum(0)]
    assert_close(read, torch.cat(kinds).unsqueeze(0))
    last = GraphUNet(3, 4, 2, depth=2, **options | {"readout_levels": "last"})
    _, read = last.finish([low, fine], [graph, graph, graph])
    assert_close(read, torch.cat([fine.amax(0), fine.sum(0)]).unsqueeze(0))
