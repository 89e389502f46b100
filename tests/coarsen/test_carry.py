"""Edges and features of the coarse graph against stored values and by gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from pyg_pool.coarsen import coarsen, from_labels
from tests.coarsen.golden_graphs import graph_of, read, stored
from tests.coarsen.made_graphs import ring


def dense(data: object, size: int) -> np.ndarray:
    out = np.zeros((size, size))
    row, col = data.edge_index.numpy()  # type: ignore[attr-defined]
    np.add.at(out, (row, col), data.edge_weight.numpy())  # type: ignore[attr-defined]
    return out


@pytest.mark.parametrize("name", stored("algebra_*"))
def test_golden_coarse_graph(name: str) -> None:
    golden = read(name)
    inputs, outputs = golden["inputs"], golden["outputs"]
    found = from_labels(graph_of(inputs), inputs["labels"], kernel="normalized")
    graph = found.source
    weight = torch.from_numpy(np.asarray(graph.to_scipy()[tuple(graph.edge_index())]))
    weight = weight.view(-1).double()
    n, close = found.num_clusters, {"atol": golden["tolerance"]["abs"], "rtol": 0}
    total = dense(found.graph(self_loops=True, edge_weight=weight), n)
    np.testing.assert_allclose(total, outputs["coarse_adjacency_sum"], **close)
    lap = np.diag(total.sum(1)) - total
    np.testing.assert_allclose(lap, outputs["coarse_laplacian_sum"], **close)
    gcn = dense(found.graph("gcn", edge_weight=weight), n)
    np.testing.assert_allclose(gcn, outputs["gcn_operator"], **close)
    similarity = dense(found.graph("similarity"), n)
    expected = outputs["per_kernel_and_mass"]["normalized/uniform"]
    np.testing.assert_allclose(similarity, expected["coarse_similarity"], **close)
    x = torch.tensor(inputs["features"], dtype=torch.float64)
    for how in ("mean", "sum", "projected"):
        ours = found.restrict(x, how)  # type: ignore[arg-type]
        np.testing.assert_allclose(ours, outputs[f"features_{how}"], **close)
    assert found.size.tolist() == outputs["cluster_sizes"]
    weights = outputs["readout_weight"]
    np.testing.assert_allclose(found.readout_weight, weights, atol=1e-6)


def test_projected_and_mean_edges() -> None:
    found = from_labels(ring(6), [0, 0, 0, 1, 1, 1])
    assert dense(found.graph("mean"), 2)[0, 1] == pytest.approx(2 / 9)
    assert dense(found.graph("projected"), 2)[0, 1] == pytest.approx(2 / 3)


@pytest.mark.parametrize("edge", ["sum", "mean", "projected", "gcn"])
def test_gradients_reach_the_edge_weights(edge: str) -> None:
    found = coarsen(ring(6), num_clusters=2)
    weight = torch.rand(12, dtype=torch.float64) + 0.5

    def run(values: torch.Tensor) -> torch.Tensor:
        return found.graph(edge, edge_weight=values).edge_weight  # type: ignore[arg-type]

    assert gradcheck(run, weight.requires_grad_())


def test_gradients_reach_the_features() -> None:
    found = coarsen(ring(6), num_clusters=2)
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: found.lift(found.restrict(x)), x)


def test_half_precision_is_added_up_in_single() -> None:
    found = from_labels(ring(4000), np.zeros(4000, dtype=int))
    x = torch.full((4000, 1), 1.0, dtype=torch.float16)
    out = found.restrict(x, "sum")
    assert out.dtype == torch.float16
    assert out.item() == 4000


def test_other_reductions() -> None:
    found = from_labels(ring(6), [0, 0, 0, 1, 1, 1])
    x = torch.tensor([3.0, 1.0, 2.0, 9.0, 8.0, 7.0])
    assert found.restrict(x, "first").tolist() == [3, 9]
    assert found.restrict(x, "max").tolist() == [3, 9]
    assert found.restrict(x, "min").tolist() == [1, 7]
    votes = torch.tensor([2, 5, 5, 4, 3, 1])
    assert found.restrict(votes, "majority").tolist() == [5, 1]
    pairs = torch.stack([votes, votes * 2], 1)
    assert found.restrict(pairs, "majority").tolist() == [[5, 10], [1, 2]]
    with pytest.raises(TypeError, match="majority"):
        found.restrict(votes)


def test_weights_that_do_not_fit() -> None:
    found = coarsen(ring(6), num_clusters=2)
    with pytest.raises(ValueError, match=r"expected \[12\]"):
        found.graph(edge_weight=torch.ones(3))
    with pytest.raises(ValueError, match="similarity"):
        found.graph("similarity", edge_weight=torch.ones(12))


def test_features_of_the_coarse_graph() -> None:
    data = coarsen(ring(6), num_clusters=2).graph(x=torch.arange(6.0).view(6, 1))
    assert data.x.shape == (2, 1)
    assert data.num_nodes == 2
