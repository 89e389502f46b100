"""Reads the stored reference values under ``tests/golden``."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FOLDER = Path(__file__).parent / "golden"


def names(system: str, pattern: str = "*") -> list[str]:
    """Names of the goldens of a system; an empty list would hide missing files."""
    found = sorted(p.stem for p in (FOLDER / system).glob("*.json"))
    found = [name for name in found if fnmatch.fnmatch(name, pattern)]
    if not found:
        raise FileNotFoundError(f"no golden {pattern}.json in {FOLDER / system}")
    return found


def load(system: str, name: str, dtype: torch.dtype = torch.float64) -> dict[str, Any]:
    """One golden, its lists of numbers as tensors (floats in ``dtype``)."""
    golden = json.loads((FOLDER / system / f"{name}.json").read_text())
    golden["dtype"] = dtype
    for part in ("inputs", "weights", "buffers", "outputs", "gradients"):
        golden[part] = _tensors(golden.get(part, {}), dtype)
    return golden


def close(golden: dict[str, Any], got: Tensor | None, expected: Any) -> None:
    """Compares at the tolerance that the golden states for its dtype."""
    assert got is not None
    tolerance = golden["tolerance"]
    if "float64_rel" in tolerance:  # relative to the largest entry
        word = "float64_rel" if golden["dtype"] == torch.float64 else "float32_rel"
        size = float(expected.abs().max()) if expected.numel() else 0.0
        limits = {"atol": tolerance[word] * size + 1e-12, "rtol": 0.0}
    elif "float64_abs" in tolerance:
        word = "float64_abs" if golden["dtype"] == torch.float64 else "float32_abs"
        limits = {"atol": tolerance[word], "rtol": 0.0}
    elif golden["dtype"] == torch.float64:
        limits = {"atol": tolerance["atol"], "rtol": tolerance["rtol"]}
    else:
        limits = {"atol": tolerance["float32_atol"], "rtol": 0.0}
    torch.testing.assert_close(got.detach(), expected.to(got.dtype), **limits)


def _tensors(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, dict):
        return {key: _tensors(item, dtype) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    try:
        tensor = torch.tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):  # ragged, or not of numbers
        return [_tensors(item, dtype) for item in value]
    return tensor.to(dtype) if _holds_floats(value) else tensor.long()


def _holds_floats(value: Any) -> bool:
    if isinstance(value, list):
        return any(_holds_floats(item) for item in value)
    return isinstance(value, float)
