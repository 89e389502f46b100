"""Checks of numbers and sizes that the pieces of relational pooling share.

A list is measured before it is made: its length is known from the counts.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import torch

__all__ = ["check_room", "check_whole", "free_memory"]

#: Share of the free memory that a setting may take.
SHARE = 0.8
#: Bytes of a list from which on the free memory is looked at.
LARGE = 2**28


def check_whole(owner: str, least: int = 0, **numbers: Any) -> None:
    """Checks numbers by name; ``None`` was not given, which all but k and l may be.

    Raises:
        TypeError: If one is no whole number.
        ValueError: If one is below ``least``.

    Example:
        >>> from pyg_pool.relational.checks import check_whole
        >>> check_whole("KLTuples", l=2, ego=None)
    """
    for name, value in numbers.items():
        if value is None and name not in ("k", "l"):
            continue
        try:
            number = operator.index(value)
        except TypeError:
            raise TypeError(
                f"{owner} got {name}={value!r} of type {type(value).__name__}, "
                f"expected a whole number from {least} on; give an int."
            ) from None
        if number < least:
            raise ValueError(
                f"{owner} got {name}={value}, expected {name} >= {least}; correct it, "
                f"or leave it out."
            )


def free_memory(device: torch.device) -> int:
    """Bytes that can be taken on a device now."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    known = Path("/proc/meminfo")
    if known.exists():
        for line in known.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 2**63 - 1


def check_room(entries: float, device: torch.device, *, width: int = 3) -> None:
    """Refuses a list that would not fit, before it is made.

    Args:
        entries: Number of its entries.
        device: Where it is going to be.
        width: Numbers of 64 bits that are held for each entry.

    Raises:
        ValueError: If it takes more than 80 % of the free memory.
    """
    need = 8.0 * width * entries
    if need < LARGE:
        return
    allowed = SHARE * free_memory(device)
    if need > allowed:
        number = f"{entries:,.0f}" if entries < 1e15 else f"{entries:.3g}"
        raise ValueError(
            f"Relational pooling got graphs and options that make a list of "
            f"{number} tuples or pairs, about {need / 2**30:.3g} GiB, expected "
            f"at most {allowed / 2**30:.3g} GiB; take fewer labels, a smaller domain "
            f"('star', 'dist<=2'), an ego radius (ego=3), fewer tuples (num_samples) "
            f"or, for the layers, parts of them at a time (chunk_size)."
        )
