"""The quality report of a coarsening, as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyg_pool.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_quality"]

_INK, _FINE, _COARSE, _FILL = "#1f2933", "#4c78a8", "#e45756", "#9ecae9"


def draw_quality(
    figures: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    title: str | None = None,
) -> Figure:
    r"""Draw how good a coarsening is: cluster sizes, spectrum, and key figures.

    Args:
        figures: ``Quality.to_dict()`` of a coarsening, or of each of its levels.
        title: Text above the figure.

    Returns:
        A matplotlib figure; ``figure.savefig("quality.png", dpi=150)`` writes it.

    Raises:
        ImportError: If matplotlib is not installed.
        ValueError: If there are no figures.

    Example:
        >>> import torch
        >>> from pyg_pool.coarsen import coarsen
        >>> from pyg_pool.view import draw_quality
        >>> path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> quality = coarsen(path, num_clusters=2).quality(k=2)
        >>> len(draw_quality(quality.to_dict()).axes)
        3
    """
    require("matplotlib", "view")
    from matplotlib.figure import Figure

    levels = [figures] if isinstance(figures, Mapping) else list(figures)
    if not levels:
        raise ValueError(
            "draw_quality got no figures, expected those of at least one level; pass "
            "quality().to_dict()."
        )
    figure = Figure(figsize=(12, 3.9), layout="constrained")
    sizes, spectrum, table = figure.subplots(1, 3, width_ratios=[1, 1, 1.25])
    _draw_sizes(sizes, levels[-1])
    if len(levels) > 1:
        _draw_levels(spectrum, levels)
    else:
        _draw_spectrum(spectrum, levels[0])
    _write_figures(table, levels[-1])
    if title is not None:
        figure.suptitle(title, fontsize=12, color=_INK)
    return figure


def _draw_sizes(ax: Axes, level: Mapping[str, Any]) -> None:
    """Bars of clusters by their number of nodes, in powers of two."""
    counts = level["histogram"] or [0]
    # Bins below the smallest cluster are left out.
    first = next((place for place, count in enumerate(counts) if count), 0)
    places = range(first, len(counts))
    names = [f"{2**i}" if i == 0 else f"{2**i}–{2 ** (i + 1) - 1}" for i in places]
    ax.bar(places, counts[first:], color=_FILL, edgecolor=_FINE)
    ax.set_xticks(places, names, rotation=45, ha="right", fontsize=8)
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(0, 2 * max(*counts, 1))
    ax.set_xlabel("nodes in a cluster")
    ax.set_ylabel("clusters")
    ax.set_title("Cluster sizes", fontsize=10)
    _plain(ax)


def _draw_spectrum(ax: Axes, level: Mapping[str, Any]) -> None:
    """Largest eigenvalues before and after."""
    fine, coarse = level["eigenvalues"], level["coarse_eigenvalues"]
    ax.set_title("Largest eigenvalues of the similarity", fontsize=10)
    _plain(ax)
    if not fine:
        ax.text(0.5, 0.5, "not computed", ha="center", transform=ax.transAxes)
        return
    places = range(1, len(fine) + 1)
    ax.plot(places, fine, "o-", color=_FINE, label="fine graph", ms=5)
    ax.plot(places, coarse, "x--", color=_COARSE, label="coarse graph", ms=6)
    ax.set_xlabel("rank")
    ax.legend(frameon=False, fontsize=9)
    ax.ticklabel_format(axis="y", useOffset=False)


def _draw_levels(ax: Axes, levels: Sequence[Mapping[str, Any]]) -> None:
    """Objective and distance bound from level to level."""
    places = [level["num_clusters"] for level in levels]
    objective = [level["objective"] for level in levels]
    bound = [level["gw_upper_bound"] for level in levels]
    top, most = max(max(objective), 1e-300), max(max(bound), 1e-300)
    ax.plot(places, [v / top for v in objective], "o-", color=_FINE, label="J")
    ax.plot(places, [v / most for v in bound], "x--", color=_COARSE, label="GW bound")
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(places, [f"{n:,}" for n in places], fontsize=9)
    ax.invert_xaxis()
    ax.set_ylim(bottom=0)
    ax.set_xlabel("clusters")
    ax.set_ylabel("share of the coarsest level's")
    ax.set_title("Loss by level", fontsize=10)
    ax.legend(frameon=False, fontsize=9)
    _plain(ax)


def _write_figures(ax: Axes, level: Mapping[str, Any]) -> None:
    """The key figures as two columns of text."""
    ax.axis("off")
    nodes = max(level["num_nodes"], 1)
    rows = [
        ("nodes", f"{level['num_nodes']:,} → {level['num_clusters']:,}"),
        ("edges", f"{level['num_edges']:,} → {level['num_coarse_edges']:,}"),
        ("objective J", f"{level['objective']:.4g}"),
        ("association A / N", f"{level['association'] / nodes:.4f}"),
        ("GW distance at most", f"{level['gw_upper_bound']:.4g}"),
        ("weight between clusters", f"{level['cut']:.1%}"),
        ("modularity", f"{level['modularity']:.3f}"),
        ("heaviest cluster", f"{level['heaviest']:.2%} of the mass"),
    ]
    if level["spectral_error"] is not None:
        rows.append(("eigenvalue error", f"{level['spectral_error']:.2%}"))
    for place, (name, value) in enumerate(rows):
        y = 0.95 - 0.105 * place
        ax.text(0.02, y, name, transform=ax.transAxes, color=_INK, va="top")
        ax.text(
            0.98, y, value, transform=ax.transAxes, color=_INK, va="top", ha="right"
        )


def _plain(ax: Axes) -> None:
    """No frame where nothing is to be read."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
