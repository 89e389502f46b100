"""Every row of the table of edge cases, constraints, levels and threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, eye
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from pyg_pool.coarsen import Coarsening, coarsen, from_labels
from pyg_pool.coarsen.contract import contract
from pyg_pool.coarsen.multilevel import narrow
from pyg_pool.coarsen.threads import Threads
from pyg_pool.errors import PygPoolWarning
from tests.coarsen.made_graphs import blocks, ring

NONE = torch.empty(2, 0, dtype=torch.long)
PAIR = torch.tensor([[0, 1], [1, 0]])


@pytest.mark.parametrize("method", ["multilevel", "ward", "kmeans"])
def test_empty_graph(method: Any) -> None:
    found = coarsen(NONE, ratio=0.5, method=method, size=0)
    assert found.num_clusters == found.num_nodes == 0
    assert found.graph().num_nodes == 0
    assert found.quality().num_clusters == 0


@pytest.mark.parametrize(
    "target", [{"ratio": 1.0}, {"ratio": 3.0}, {"num_clusters": 9}]
)
def test_identity(target: dict[str, Any]) -> None:
    assert coarsen(PAIR, **target).cluster.tolist() == [0, 1]
    assert coarsen(NONE, size=1, ratio=0.1).cluster.tolist() == [0]


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"ratio": 0.5, "num_clusters": 2},
        {"num_clusters": 0},
        {"ratio": 0.0},
        {"ratio": -1.0},
        {"ratio": float("nan")},
        {"num_clusters": [3, 5]},
        {"ratio": 0.5, "levels": 0},
    ],
)
def test_targets_that_cannot_be(target: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        coarsen(PAIR, **target)


def test_no_edges() -> None:
    found = coarsen(NONE, size=10, num_clusters=4, kernel="normalized")
    sizes = found.size.tolist()
    assert max(sizes) - min(sizes) <= 1
    assert sorted(found.cluster.tolist()) == found.cluster.tolist()
    assert found.quality().objective * 10 == pytest.approx(10 - 4)


def test_isolated_nodes_keep_their_mass() -> None:
    found = coarsen(ring(20), num_clusters=5)
    padded = csr_matrix((np.ones(40), ring(20).indices, ring(20).indptr), (20, 20))
    padded.resize(30, 30)
    more = coarsen(padded, num_clusters=8)
    assert more.num_nodes == 30
    assert more.num_clusters == 8
    assert float(more.mass.sum()) == float(found.mass.sum()) + 10


def test_fewer_clusters_than_components() -> None:
    two = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 0, 3, 2, 5, 4]])
    assert coarsen(two, num_clusters=1).cluster.tolist() == [0] * 6
    with pytest.warns(PygPoolWarning, match="connected=True"):
        found = coarsen(two, num_clusters=1, connected=True)
    assert found.num_clusters == 3


def test_self_loops_and_duplicates() -> None:
    edges = torch.tensor([[0, 1, 0, 1, 0], [1, 0, 1, 0, 0]])
    found = coarsen(edges, num_clusters=1)
    assert found.source.weight.tolist() == [2, 2]
    assert found.source.loop.tolist() == [1, 0]
    assert found.mass.tolist() == [5.0]
    assert coarsen(edges, num_clusters=1, duplicates="max").mass.tolist() == [3.0]
    assert coarsen(edges, num_clusters=1, duplicates="first").mass.tolist() == [3.0]
    with pytest.raises(ValueError, match="duplicate edges"):
        coarsen(edges, num_clusters=1, duplicates="error")


@pytest.mark.parametrize(("how", "weight"), [("sum", 5.0), ("max", 3.0), ("mean", 2.5)])
def test_directed_input(how: Any, weight: float) -> None:
    edges, weights = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 3.0])
    with pytest.raises(ValueError, match="symmetrize="):
        coarsen(edges, num_clusters=1, edge_weight=weights)
    found = coarsen(edges, num_clusters=1, edge_weight=weights, symmetrize=how)
    assert found.source.weight.tolist() == [weight] * 2
    with pytest.raises(ValueError, match="directed edges"):
        coarsen(edges[:, :1], num_clusters=1)
    assert coarsen(edges[:, :1], num_clusters=1, symmetrize=how).num_nodes == 2


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_none(bad: float) -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weights = torch.tensor([1.0, 1.0, bad, bad])
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        coarsen(edges, ratio=0.5, edge_weight=weights)
    rows = csr_matrix((weights.numpy(), (edges[0], edges[1])), (3, 3))
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        coarsen(rows, ratio=0.5)


def test_zero_weight_is_no_edge() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weights = torch.tensor([1.0, 1.0, 0.0, 0.0])
    found = coarsen(edges, num_clusters=2, edge_weight=weights)
    assert found.source.num_edges == 1
    assert found.cluster.tolist() == [0, 0, 1]


def test_ties_are_broken_the_same_way() -> None:
    first, again = (coarsen(ring(500), ratio=0.3, seed=4) for _ in range(2))
    assert torch.equal(first.cluster, again.cluster)
    other = coarsen(ring(500), ratio=0.3, seed=5)
    assert not torch.equal(first.cluster, other.cluster)


@pytest.mark.parametrize("size", [600, 20_000])
def test_threads_do_not_change_the_result(size: int) -> None:
    rows = blocks(size)
    once = coarsen(rows, ratio=0.1, num_threads=1)
    for threads in (2, 4):
        again = coarsen(rows, ratio=0.1, num_threads=threads)
        assert torch.equal(once.cluster, again.cluster)


def test_numbering_hardly_changes_the_objective() -> None:
    rows = blocks(5000)
    order = np.random.default_rng(1).permutation(5000)
    first = coarsen(rows, ratio=0.2).quality().objective
    other = coarsen(rows[order][:, order], ratio=0.2).quality().objective
    assert other == pytest.approx(first, rel=0.01)


@pytest.mark.parametrize("target", [1, 2, 3, 17, 299, 300])
@pytest.mark.parametrize("preset", ["fast", "balanced", "best"])
def test_target_is_met_exactly(target: int, preset: Any) -> None:
    found = coarsen(blocks(300), num_clusters=target, preset=preset)
    assert found.num_clusters == target
    assert (found.size > 0).all()
    assert int(found.size.sum()) == 300


def test_rounding_of_the_ratio_is_guarded() -> None:
    assert coarsen(eye(10, format="csr"), ratio=0.1).num_clusters == 1
    assert coarsen(ring(30), ratio=0.1).num_clusters == 3
    assert coarsen(ring(31), ratio=0.1).num_clusters == 4


def test_star_collapses() -> None:
    leaves = torch.arange(1, 400)
    hub = torch.zeros_like(leaves)
    edges = torch.stack([torch.cat([hub, leaves]), torch.cat([leaves, hub])])
    assert coarsen(edges, num_clusters=40).num_clusters == 40


def test_levels_compose() -> None:
    found = coarsen(blocks(2000), ratio=0.4, levels=3)
    assert found.sizes == [800, 320, 128]
    state, label = narrow(found.state), found.cluster.numpy()
    with Threads(1) as threads:
        once = contract(state, label.astype(np.int32), 128, threads)
        for step, size in zip(found.steps, found.sizes, strict=True):
            state = contract(state, step.numpy().astype(np.int32), size, threads)
    np.testing.assert_allclose(once.mass, state.mass)
    np.testing.assert_allclose(once.own, state.own)
    assert (once.to_scipy() != state.to_scipy()).nnz == 0
    assert found.until(1).num_clusters == 800


def test_sizes_of_levels() -> None:
    assert coarsen(ring(64), num_clusters=[32, 8]).sizes == [32, 8]
    assert coarsen(ring(64), num_clusters=4, levels=2).sizes == [16, 4]


def test_must_link() -> None:
    groups = [[0, 40, 80], [80, 120], [7, 9]]
    found = coarsen(blocks(300), num_clusters=30, must_link=groups)
    cluster = found.cluster
    assert len(set(cluster[[0, 40, 80, 120]].tolist())) == 1
    assert cluster[7] == cluster[9]
    assert found.num_clusters == 30


def test_never_merge() -> None:
    group = [0, 1, 2, 3, 4, 5, 6]
    rows = blocks(300)
    assert len(set(coarsen(rows, num_clusters=8).cluster[group].tolist())) < 7
    found = coarsen(rows, num_clusters=8, never_merge=[group])
    assert len(set(found.cluster[group].tolist())) == 7


def test_kept_nodes_stay_alone() -> None:
    keep = torch.tensor([5, 77, 210])
    found = coarsen(blocks(300), num_clusters=20, keep=keep)
    assert (found.size[found.cluster[keep]] == 1).all()
    assert found.num_clusters == 20


def test_contradictions() -> None:
    rows = blocks(100)
    with pytest.raises(ValueError, match="contradiction"):
        coarsen(rows, ratio=0.5, must_link=[[1, 2]], never_merge=[[2, 1]])
    with pytest.raises(ValueError, match="stay alone"):
        coarsen(rows, ratio=0.5, must_link=[[1, 2]], keep=[2])
    with pytest.raises(ValueError, match="node ids"):
        coarsen(rows, ratio=0.5, keep=[100])
    with pytest.raises(ValueError, match="method='multilevel'"):
        coarsen(rows, ratio=0.5, keep=[1], method="ward")
    with pytest.raises(ValueError, match="max_cluster_mass=2"):
        coarsen(rows, ratio=0.5, max_cluster_mass=2)


def test_connected_clusters() -> None:
    rows = blocks(1000)
    count, _ = connected_components(rows)
    found = coarsen(rows, num_clusters=count + 100, connected=True)
    assert found.num_clusters == count + 100
    for k in range(found.num_clusters):
        nodes = np.flatnonzero(found.cluster.numpy() == k)
        assert connected_components(rows[nodes][:, nodes])[0] == 1


def star(size: int) -> Any:
    ends = (np.zeros(size - 1, dtype=int), range(1, size))
    rows = csr_matrix((np.ones(size - 1), ends), (size, size))
    return (rows + rows.T).tocsr()


def test_mass_of_clusters_is_limited() -> None:
    free = coarsen(star(900), num_clusters=90)
    capped = coarsen(star(900), num_clusters=90, max_cluster_mass=0.6)
    total = float(free.mass.sum())
    assert float(free.mass.max()) > 0.6 * total >= float(capped.mass.max())
    assert capped.num_clusters == 90


def test_limit_that_cannot_be_kept() -> None:
    with pytest.warns(PygPoolWarning, match="stopped at"):
        found = coarsen(ring(20), num_clusters=2, max_cluster_mass=0.1)
    assert found.num_clusters >= 10


def test_heavy_cluster_is_told_of() -> None:
    with pytest.warns(PygPoolWarning, match="of the mass"):
        coarsen(star(3000), num_clusters=300)


def test_spectral_weight_lowers_the_spectral_error() -> None:
    rows = blocks(400, seed=8)
    plain = coarsen(rows, ratio=0.3).quality(20).spectral_error
    careful = coarsen(rows, ratio=0.3, spectral_weight=1.0).quality(20).spectral_error
    assert careful is not None
    assert plain is not None
    assert careful < plain


def test_kinds_of_input() -> None:
    rows = ring(12)
    coo = rows.tocoo()
    edges = torch.tensor(np.stack([coo.row, coo.col])).long()
    expected = coarsen(rows, num_clusters=4).cluster
    for graph in (edges, Data(edge_index=edges, num_nodes=12), rows.tocoo()):
        assert torch.equal(coarsen(graph, num_clusters=4).cluster, expected)
    with pytest.raises(TypeError, match="list"):
        coarsen([[0, 1]], ratio=0.5)
    with pytest.raises(ValueError, match="square"):
        coarsen(csr_matrix((3, 4)), ratio=0.5)
    with pytest.raises(ValueError, match="node ids"):
        coarsen(edges, ratio=0.5, size=5)


def test_wide_ids() -> None:
    from pyg_pool.coarsen import Graph

    rows = ring(50)
    wide = Graph(rows.indptr.astype(np.int64), rows.indices.astype(np.int64))
    narrow_one = coarsen(rows, ratio=0.2)
    assert torch.equal(coarsen(wide, ratio=0.2).cluster, narrow_one.cluster)


def test_matrix_as_kernel() -> None:
    rows = ring(12).astype(float)
    similarity = (rows + 2 * eye(12)).tocsr()
    signless = coarsen(rows, num_clusters=4, kernel="signless")
    found = coarsen(rows, num_clusters=4, kernel=similarity)
    assert torch.equal(found.cluster, signless.cluster)
    with pytest.raises(ValueError, match="symmetric"):
        coarsen(rows, num_clusters=4, kernel=csr_matrix(np.triu(similarity.toarray())))


def test_labels_of_others() -> None:
    with pytest.warns(PygPoolWarning, match="renumbered"):
        found = from_labels(ring(6), [0, 0, 5, 5, 9, 9])
    assert found.cluster.tolist() == [0, 0, 1, 1, 2, 2]
    with pytest.raises(ValueError, match="expected"):
        from_labels(ring(6), [0, 1])
    with pytest.raises(ValueError, match=">= 0"):
        from_labels(ring(6), [0, 0, 0, 0, 0, -1])
    with pytest.raises(ValueError, match="k=-1"):
        found.quality(-1)
    one_way = torch.tensor([[0, 0, 1], [1, 1, 2]])
    both = from_labels(one_way, [0, 0, 1], symmetrize="max", duplicates="max")
    assert both.mass.tolist() == [3, 1]


def test_interrupt_keeps_the_last_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyg_pool.coarsen import multilevel

    calls = []
    plain = multilevel.group

    def stops(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(*args)

    monkeypatch.setattr(multilevel, "group", stops)
    with pytest.raises(KeyboardInterrupt):
        coarsen(blocks(2000), num_clusters=20, out=tmp_path / "rest.npz")
    rest = Coarsening.load(tmp_path / "rest.npz")
    assert rest.options["interrupted"]
    assert 20 < rest.num_clusters < 2000


def test_result_is_saved(tmp_path: Path) -> None:
    found = coarsen(ring(30), ratio=0.2, out=tmp_path / "a.npz")
    assert torch.equal(Coarsening.load(tmp_path / "a.npz").cluster, found.cluster)


@pytest.mark.parametrize(
    "option",
    [
        {"method": "multi_level"},
        {"kernel": "rv"},
        {"mass": "even"},
        {"preset": "slow"},
        {"symmetrize": "min"},
        {"duplicates": "mean"},
        {"ratio": 0.0},
        {"levels": 0},
    ],
)
def test_options_are_checked_before_a_file_is_read(
    tmp_path: Path, option: dict[str, Any]
) -> None:
    (tmp_path / "a.txt").write_text("no graph at all")
    with pytest.raises(ValueError, match=next(iter(option))):
        coarsen(tmp_path / "a.txt", **{"ratio": 0.5, **option})


def test_options_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="n_init=0"):
        coarsen(PAIR, ratio=0.5, n_init=0)
    with pytest.raises(ValueError, match="spectral_weight"):
        coarsen(PAIR, ratio=0.5, method="ward", spectral_weight=1.0)
    with pytest.raises(ValueError, match="did you mean"):
        coarsen(PAIR, ratio=0.5, method="multi_level")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_threads=0"):
        coarsen(PAIR, ratio=0.5, num_threads=0)
