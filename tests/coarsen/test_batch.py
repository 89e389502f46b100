"""Many graphs in one call."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.coarsen import coarsen, coarsen_batch
from tests.coarsen.made_graphs import blocks, ring


def joined(*graphs: object) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    parts, sizes, first = [], [], 0
    for rows in graphs:
        coo = rows.tocoo()  # type: ignore[attr-defined]
        parts.append(torch.tensor([coo.row.tolist(), coo.col.tolist()]) + first)
        sizes.append(coo.shape[0])
        first += coo.shape[0]
    counts = torch.tensor([part.size(1) for part in parts])
    return torch.cat(parts, 1), torch.tensor(sizes), counts


@pytest.mark.parametrize("kernel", ["rw", "normalized", "signless"])
def test_equals_the_dense_method(kernel: str) -> None:
    graphs = [ring(9), blocks(50), ring(30), ring(2)]
    label = coarsen_batch(*joined(*graphs), ratio=0.4, kernel=kernel)  # type: ignore[arg-type]
    first = 0
    for rows in graphs:
        size = rows.shape[0]
        found = coarsen(rows, ratio=0.4, kernel=kernel, method="ward")
        part = label[first : first + size]
        assert part.max() + 1 == found.num_clusters
        ours, theirs = (
            coarsen_quality(rows, each, kernel) for each in (part, found.cluster)
        )
        assert ours <= theirs * 1.001 + 1e-9
        first += size


def coarsen_quality(rows: object, label: torch.Tensor, kernel: str) -> float:
    from pyg_pool.coarsen import from_labels

    return from_labels(rows, label, kernel=kernel).quality().objective


def test_large_graphs_go_by_levels() -> None:
    label = coarsen_batch(*joined(ring(10), blocks(300)), ratio=0.1)
    assert label[:10].max() == 0
    assert torch.equal(label[10:], coarsen(blocks(300), ratio=0.1).cluster)


def test_numbers_per_graph() -> None:
    edges, nodes, counts = joined(ring(10), ring(12))
    label = coarsen_batch(edges, nodes, counts, num_clusters=torch.tensor([2, 5]))
    assert (label[:10].max(), label[10:].max()) == (1, 4)


def test_targets_and_counts_that_do_not_fit() -> None:
    edges, nodes, counts = joined(ring(10))
    with pytest.raises(ValueError, match="exactly one"):
        coarsen_batch(edges, nodes, counts)
    with pytest.raises(ValueError, match="num_clusters=0"):
        coarsen_batch(edges, nodes, counts, num_clusters=0)
    with pytest.raises(ValueError, match=r"ratio=-1\.0"):
        coarsen_batch(edges, nodes, counts, ratio=-1.0)
    with pytest.raises(ValueError, match="add up"):
        coarsen_batch(edges, nodes, counts - 1, ratio=0.5)
