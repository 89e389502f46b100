"""The picture of the report."""

from __future__ import annotations

import pytest

from pyg_pool.coarsen import coarsen
from pyg_pool.view import draw_quality
from tests.coarsen.made_graphs import blocks


def test_three_panels_with_the_figures() -> None:
    found = coarsen(blocks(200), ratio=0.3, levels=2)
    quality = found.quality(4)
    figure = draw_quality(quality.to_dict(), title="blocks")
    sizes, spectrum, table = figure.axes
    heights = [patch.get_height() for patch in sizes.patches]
    first = next(i for i, count in enumerate(quality.histogram) if count)
    assert heights == quality.histogram[first:]
    lines = [list(line.get_ydata()) for line in spectrum.lines]
    assert lines == [quality.eigenvalues, quality.coarse_eigenvalues]
    assert f"200 → {found.num_clusters}" in [text.get_text() for text in table.texts]
    levels = [found.until(1).quality().to_dict(), quality.to_dict()]
    assert len(draw_quality(levels).axes[1].lines) == 2


def test_sizes_that_no_cluster_has_are_left_out_below() -> None:
    quality = coarsen(blocks(200), num_clusters=4).quality()
    assert quality.histogram[0] == 0
    sizes = draw_quality(quality.to_dict()).axes[0]
    assert sizes.patches[0].get_height() > 0
    assert sum(patch.get_height() for patch in sizes.patches) == 4


def test_no_figures() -> None:
    with pytest.raises(ValueError, match="no figures"):
        draw_quality([])
