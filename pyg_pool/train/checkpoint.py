"""Files of a run that must survive a kill at any moment.

Every file is written under a temporary name and renamed, so a reader meets the old
or the new content, never half of one. ``metrics.jsonl`` is appended to instead and
trimmed on a resume.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

__all__ = [
    "append_metrics",
    "finished_epochs",
    "is_done",
    "load_checkpoint",
    "read_json",
    "read_metrics",
    "save_checkpoint",
    "trim_metrics",
    "write_atomic",
    "write_json",
]

#: What torch raises for files that are no checkpoints, depending on their bytes.
_UNREADABLE = (
    pickle.UnpicklingError, RuntimeError, EOFError, LookupError, TypeError, ValueError,
    AttributeError,
)  # fmt: skip

#: Version of the JSON files and of the lines of ``metrics.jsonl``.
FORMAT = 1


def write_atomic(path: str | Path, content: bytes) -> None:
    """Write `content` to a temporary file beside `path` and rename it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_atomic(Path(folder, "a"), b"text")
        ...     [file.name for file in Path(folder).iterdir()]
        ['a']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def save_checkpoint(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a checkpoint of tensors and plain values, atomically."""
    buffer = io.BytesIO()
    torch.save(dict(content), buffer)
    write_atomic(path, buffer.getvalue())


def load_checkpoint(path: str | Path, map_location: Any = "cpu") -> dict[str, Any]:
    """Read a checkpoint without running any code that it might hold.

    Raises:
        ValueError: If the file is damaged or holds more than tensors and plain values.
    """
    try:
        content = torch.load(path, map_location=map_location, weights_only=True)
    except _UNREADABLE as error:
        raise ValueError(
            f"checkpoint {str(path)!r} cannot be read ({error}), expected a file that "
            "this package wrote; remove it to start that run anew."
        ) from error
    if not isinstance(content, dict):
        raise ValueError(
            f"checkpoint {str(path)!r} holds {type(content).__name__}, expected a "
            "dictionary; remove it to start that run anew."
        )
    return content


def finished_epochs(checkpoint: Mapping[str, Any]) -> int:
    """Return how many epochs had ended when a checkpoint was written."""
    return int(checkpoint["epoch"]) + 1


def is_done(checkpoint: Mapping[str, Any], *, epochs: int, patience: int) -> bool:
    """Tell whether a run needs no further epoch: all done, or stopped early.

    Lightning keeps the counter of early stopping but not the decision, and would
    train one epoch too many.
    """
    if finished_epochs(checkpoint) >= epochs:
        return True
    waits = [
        state["wait_count"]
        for key, state in checkpoint.get("callbacks", {}).items()
        if key.startswith("EarlyStopping")
    ]
    return patience > 0 and any(wait >= patience for wait in waits)


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with a format number, atomically."""
    text = json.dumps(_plain({"format": FORMAT, **content}), indent=2) + "\n"
    write_atomic(path, text.encode())


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON file that :func:`write_json` wrote.

    Raises:
        ValueError: If it is no JSON or has another format number.
    """
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    if content.get("format") != FORMAT:
        raise ValueError(
            f"file {str(path)!r} has format {content.get('format')!r}, expected "
            f"{FORMAT}; read it with the version of pyg_pool that wrote it."
        )
    return content


def append_metrics(path: str | Path, line: Mapping[str, Any]) -> None:
    """Append one epoch to ``metrics.jsonl``."""
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(_plain(dict(line))) + "\n")


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """Return the epochs of ``metrics.jsonl``, leaving out a torn last line."""
    path = Path(path)
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        # A kill can leave half a line, which only happens at the very end.
        with contextlib.suppress(json.JSONDecodeError):
            lines.append(json.loads(text))
    return lines


def trim_metrics(path: str | Path, num_epochs: int) -> int:
    """Drop the epochs from `num_epochs` on; return how many lines went."""
    if not Path(path).exists():
        return 0
    lines = read_metrics(path)
    kept = [line for line in lines if line["epoch"] < num_epochs]
    text = "".join(json.dumps(line) + "\n" for line in kept)
    write_atomic(path, text.encode())
    return len(lines) - len(kept)


def _plain(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not know, by None."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
