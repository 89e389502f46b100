"""Messages of a training on the screen and in a file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm.auto import tqdm

__all__ = ["keep_messages", "show_messages"]

ROOM = __name__.rpartition(".")[0]


class LineHandler(logging.Handler):
    """Writes messages to standard error, above the progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        tqdm.write(self.format(record), file=sys.stderr)


@contextmanager
def show_messages(*, bars: bool) -> Iterator[None]:
    """Show what the training says on standard error.

    Args:
        bars: Whether progress bars are shown too. Then only messages on whole runs
            appear, above the bars, and else those on every epoch as well.
    """
    with _handled_by(LineHandler(), logging.INFO if bars else logging.DEBUG):
        yield


@contextmanager
def keep_messages(path: str | Path) -> Iterator[None]:
    """Append what the training says to a file, with the time."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    with _handled_by(handler, logging.DEBUG):
        yield


@contextmanager
def _handled_by(handler: logging.Handler, level: int) -> Iterator[None]:
    """Send the messages of this room to a handler as well."""
    room = logging.getLogger(ROOM)
    before = room.level
    handler.setLevel(level)
    room.addHandler(handler)
    room.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        room.setLevel(before)
        room.removeHandler(handler)
        handler.close()
