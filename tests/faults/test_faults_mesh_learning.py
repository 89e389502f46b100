"""Faults of the authors' mesh networks, each shown to be absent here."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch_geometric.data import Batch

from pyg_pool import PrimalDualPooling
from pyg_pool.kernels.dual_graph import both_ways, dual_edges
from pyg_pool.mesh import Mesh, generate_shape, primal_dual_graph
from pyg_pool.models import MeshClassifier, MeshSegmenter, MeshUNet, PrimalDualConv


def graphs_of(data) -> dict:
    names = ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual")
    return {name: data[name] for name in names}


def test_hub_cluster_is_pooled() -> None:
    # A snake of 40 faces, each with one more neighbour: merged, it has 40 of them and
    # six times as many dual edges as before, which overflowed a list there.
    size = 40
    path = [(i, i + 1) for i in range(size - 1)]
    pairs = sorted([*path, *((i, size + i) for i in range(size))])
    edges, place = both_ways(torch.tensor(pairs).t().contiguous(), 2 * size)
    to_dual = torch.empty_like(edges[0]).index_copy(
        0, place.view(-1), torch.arange(len(pairs)).repeat(2)
    )
    opposite = torch.empty_like(to_dual).index_copy(
        0, place.view(-1), place.flip(0).view(-1)
    )
    links = dual_edges(edges, to_dual, opposite, 2 * size, len(pairs))
    attention = (edges < size).all(0).float()
    out = PrimalDualPooling(threshold=0.5)(
        torch.ones(2 * size, 1), torch.ones(len(pairs), 1), edges, links, to_dual,
        attention,
    )  # fmt: skip
    assert out.x.size(0) == size + 1
    assert out.edge_index_dual.size(1) == size * (size - 1) > 6 * links.size(1)


def test_mesh_that_loses_all_edges_has_a_ratio() -> None:
    parts = [primal_dual_graph(generate_shape(kind)) for kind in ("vase", "box")]
    batch = Batch.from_data_list(parts)
    keep = torch.tensor([0.0, 1.0])
    out = PrimalDualPooling(fraction_to_keep=keep)(
        **graphs_of(batch), attention=torch.rand(batch.edge_index.size(1)),
        batch=batch.batch, batch_dual=batch.batch_dual, batch_size=2,
    )  # fmt: skip
    assert out.ratio_edges.tolist() == [0.0, 1.0]
    assert float(out.ratio_nodes[0]) == pytest.approx(1 / parts[0].x.size(0))


@pytest.mark.parametrize("kind", [MeshClassifier, MeshSegmenter, MeshUNet])
def test_mesh_without_inner_edges(kind: type) -> None:
    soup = Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 0, 0], [6, 0, 0], [5, 1, 0]],
        [[0, 1, 2], [3, 4, 5]],
    )
    for mode in (True, False):
        model = kind(1, 7, 3, channels=(16, 16)).train(mode)
        out = model(primal_dual_graph(soup))
        assert out.isfinite().all()


def test_faces_without_neighbours_have_features() -> None:
    single = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    data = primal_dual_graph(single, primal_features="dual")
    assert data.x.tolist() == [[0.0] * 4]


def test_nan_attention_is_not_pooled() -> None:
    data = primal_dual_graph(generate_shape("vase"))
    attention = torch.rand(data.edge_index.size(1))
    attention[3] = torch.nan
    pool = PrimalDualPooling(num_edges_to_keep=0)
    with pytest.warns(UserWarning, match="scores of NaN"):
        out = pool(**graphs_of(data), attention=attention)
    ends = set(data.edge_index[:, 3].tolist())
    assert ends not in [set(pair) for pair in out.selected_edges.t().tolist()]


def test_matching_takes_what_is_possible() -> None:
    # Two faces and no edge to keep: the last edge of the list completes the number.
    flap = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
    pool = PrimalDualPooling(num_edges_to_keep=0, consecutive=False)
    data = primal_dual_graph(flap)
    out = pool(**graphs_of(data), attention=torch.ones(2))
    assert out.x.size(0) == 1
    vase = primal_dual_graph(generate_shape("vase"))
    out = pool(**graphs_of(vase), attention=torch.rand(vase.edge_index.size(1)))
    assert int(out.selection.cluster.bincount().max()) == 2


@pytest.mark.parametrize("block", ["res", "down"])
def test_reduction_is_heeded_in_every_block(block: str) -> None:
    data, outs = primal_dual_graph(generate_shape("vase")), []
    for word in ("mean", "sum"):
        torch.manual_seed(0)
        model = MeshClassifier(1, 7, 3, channels=(16, 16), block=block, reduce=word)
        outs.append(model.eval()(data))
    assert not torch.allclose(outs[0], outs[1])


def test_prediction_does_not_depend_on_batch_mates() -> None:
    parts = [primal_dual_graph(generate_shape(kind)) for kind in ("vase", "pot")]
    model = MeshSegmenter(1, 7, 3, channels=(16,)).eval()
    together = model(Batch.from_data_list(parts))[: parts[0].x.size(0)]
    torch.testing.assert_close(together, model(parts[0]), atol=1e-4, rtol=1e-3)


def test_pooling_ranks_attention_without_dropout() -> None:
    data = primal_dual_graph(generate_shape("vase"))
    conv = PrimalDualConv(1, 7, 8, dropout=0.9).train()
    conv.dual.dropout = 0.0
    first, second = (conv(**graphs_of(data)).attention for _ in range(2))
    assert torch.equal(first, second)
    assert float(first.detach().min()) > 0.0


@pytest.mark.parametrize("kind", [MeshClassifier, MeshSegmenter, MeshUNet])
def test_backward_meets_no_sum_in_place(kind: type) -> None:
    data = primal_dual_graph(generate_shape("vase"))
    model = kind(1, 7, 3, channels=(16, 16), num_skips=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(data).sum().backward()
    assert all(w.grad is None or w.grad.isfinite().all() for w in model.parameters())
