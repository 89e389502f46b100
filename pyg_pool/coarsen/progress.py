"""What is told of a run while it goes on, and kept of it if it is interrupted."""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

if TYPE_CHECKING:
    from pyg_pool.coarsen.multilevel import Levels

__all__ = ["Progress"]

Array = NDArray[Any]
LOG = logging.getLogger(__name__)
# Share of the bar that merging takes; the rest is moves.
MERGING = 0.5


class Progress:
    """A bar with level, sweep, objective, rate and time left, or silence.

    Args:
        bar: Whether to show a bar; everything is logged as well.
    """

    def __init__(self, bar: bool = False) -> None:
        self.has_bar = bar
        self.label: Array | None = None
        self.history: list[dict[str, Any]] = []
        self._levels: Levels | None = None
        self._bar: Any = None
        self._done = 0.0
        self._begin = time.perf_counter()

    def start(self, fine: int, target: int, edges: int) -> None:
        """Called before the first level."""
        self._fine, self._target, self._done = fine, max(target, 1), 0.0
        self._edges, self._seen = edges, 0
        self._begin = time.perf_counter()
        if self.has_bar:
            form = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining} {postfix}"
            self._bar = tqdm(total=1.0, desc="merging", bar_format=form, leave=False)

    def merged(self, size: int, levels: Levels) -> None:
        """Called after a level was merged to ``size`` nodes."""
        self._levels = levels
        span = math.log(max(self._fine, 2) / self._target) or 1.0
        done = math.log(self._fine / max(size, 1)) / span
        level = len(levels.labels)
        self._tell(MERGING * min(done, 1.0), f"level {level}", nodes=f"{size:,}")

    def swept(self, turn: int, moved: int, edges: int, objective: float) -> None:
        """Called after a sweep over a level."""
        self._seen += edges
        rate = edges and self._seen / max(time.perf_counter() - self._begin, 1e-9)
        done = min(self._seen / (3 * max(self._edges, 1)), 1.0)
        self._tell(
            MERGING + (1 - MERGING) * done,
            f"sweep {turn + 1}",
            moved=f"{moved:,}",
            J=f"{objective:.6f}",
            edges_per_second=f"{rate:.3g}",
        )
        self.history.append({"sweep": turn, "moved": moved, "objective": objective})

    def refined(self, levels: Levels, label: Array | None) -> None:
        """Called when a level's moves are done, ``label`` being theirs if any."""
        self._levels, self.label = levels, label

    def level_done(self) -> None:
        """Called when a level of the result is there: what was kept is part of it."""
        self._levels = self.label = None
        self.finish()

    def finish(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def last_labels(self) -> Array | None:
        """Labels of the nodes after the last finished level, if there is one."""
        if self._levels is None or not self._levels.labels:
            return None
        if self.label is not None:
            return self._levels.project(self.label)
        size = int(self._levels.labels[-1].max()) + 1
        return self._levels.project(np.arange(size))

    def _tell(self, done: float, what: str, **facts: str) -> None:
        LOG.info("%s: %s", what, facts)
        if self._bar is not None:
            self._bar.set_description(what, refresh=False)
            self._bar.set_postfix(facts, refresh=False)
            self._bar.update(max(done - self._done, 0.0))
        self._done = max(done, self._done)
