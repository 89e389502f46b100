"""What follows from a coarsening."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_pool import Selection
from pyg_pool.coarsen import Coarsening, coarsen
from tests.coarsen.made_graphs import blocks, ring


def test_hierarchy_of_selections() -> None:
    found = coarsen(blocks(500), ratio=0.3, levels=2)
    levels = found.hierarchy
    assert [level.num_nodes for level in levels.levels] == [500, 150, 45]
    whole = levels.selection(0, 2)
    assert torch.equal(whole.cluster, found.cluster)
    assert isinstance(found.selection, Selection)


def test_restrict_after_lift_changes_nothing() -> None:
    found = coarsen(blocks(300), ratio=0.2)
    x = torch.randn(60, 3)
    torch.testing.assert_close(found.restrict(found.lift(x)), x)


@pytest.mark.parametrize("ids", [None, np.arange(30) * 7, np.arange(30).astype(str)])
def test_saved_and_loaded(tmp_path: Path, ids: object) -> None:
    found = coarsen(ring(30), ratio=0.5, levels=2)
    found.source.ids = ids
    found.save(tmp_path / "a.npz")
    again = Coarsening.load(tmp_path / "a.npz")
    assert torch.equal(again.cluster, found.cluster)
    assert again.sizes == found.sizes
    assert again.quality() == found.quality()
    assert (ids is None) == (again.ids is None)
    if ids is not None:
        assert list(again.ids) == list(ids)  # type: ignore[call-overload]
    assert repr(again) == "Coarsening(30 -> 15 -> 8 nodes, method='multilevel')"


def test_matrix_kernels_are_not_saved(tmp_path: Path) -> None:
    found = coarsen(ring(6), num_clusters=2, kernel=ring(6))
    with pytest.raises(ValueError, match="one with a name"):
        found.save(tmp_path / "a.npz")


def test_levels_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="level 2"):
        coarsen(ring(6), num_clusters=2).until(2)


def test_readout_weight_gives_the_fine_mean() -> None:
    found = coarsen(blocks(300), ratio=0.2)
    x = torch.randn(300, 2, dtype=torch.float64)
    coarse = found.restrict(x) * found.readout_weight[:, None]
    torch.testing.assert_close(coarse.mean(0), x.mean(0))
