"""Colours as whole numbers: exact ones by sorting, or 64-bit hashes.

Two rows get the same colour exactly when they are equal (exact mode), or the same
hash, which for different rows happens by chance about once in 2**64 comparisons.
Both are deterministic and independent of the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

__all__ = ["Colors", "ExactColors", "HashColors", "rename"]


def rename(color: Tensor) -> Tensor:
    """The colours as 0, 1, ... in ascending order."""
    return torch.unique(color, return_inverse=True)[1]


class Colors(ABC):
    """How colours of rows and of multisets are made."""

    @abstractmethod
    def combine(self, *columns: Tensor) -> Tensor:
        """The colour of each row of some columns."""

    @abstractmethod
    def multiset(self, color: Tensor, index: Tensor, size: int) -> Tensor:
        """The colour of the multiset of the colours of each group."""

    def count(self, color: Tensor) -> int:
        """Number of different colours."""
        return int(torch.unique(color).numel())


class ExactColors(Colors):
    """Colours that are equal only for equal rows; comparable within one table."""

    def combine(self, *columns: Tensor) -> Tensor:
        """The colour of each row of some columns."""
        out = rename(columns[0])
        for column in columns[1:]:
            other = rename(column)
            radix = int(other.max()) + 1 if other.numel() else 1
            out = rename(out * radix + other)
        return out

    def multiset(self, color: Tensor, index: Tensor, size: int) -> Tensor:
        """The colour of the multiset of the colours of each group.

        The sorted colours of all groups are merged in pairs of neighbours until one
        is left, as in a tree whose shape depends on the number of them only.
        """
        color = rename(color)
        radix = int(color.max()) + 1 if color.numel() else 1
        key = torch.sort(index * radix + color).values
        group, value = key // radix, key % radix
        length = index.new_zeros(size).scatter_add_(0, index, torch.ones_like(index))
        count = length
        while count.numel() and int(count.max()) > 1:
            start = count.cumsum(0) - count
            place = torch.arange(group.numel(), device=index.device)
            place = place - start.index_select(0, group)
            is_left = place % 2 == 0
            left = is_left.nonzero().view(-1)
            has_right = place.index_select(0, left) + 1 < count.index_select(
                0, group.index_select(0, left)
            )
            right = (left + 1).clamp(max=max(value.numel() - 1, 0))
            other = (value.index_select(0, right) + 1).masked_fill(~has_right, 0)
            value = self.combine(value.index_select(0, left), other)
            group = group.index_select(0, left)
            count = (count + 1) // 2
        root = index.new_zeros(size).index_copy(0, group, value)
        return self.combine(length, root)


class HashColors(Colors):
    """Colours as 64-bit hashes, comparable between any two calls."""

    def combine(self, *columns: Tensor) -> Tensor:
        """The colour of each row of some columns."""
        out = mix(columns[0] + _SEED)
        for column in columns[1:]:
            out = mix(out * _ODD + column)
        return out

    def multiset(self, color: Tensor, index: Tensor, size: int) -> Tensor:
        """The colour of the multiset of the colours of each group."""
        total = color.new_zeros(size).scatter_add_(0, index, mix(color ^ _SALT))
        return mix(total + _SEED)


def _signed(value: int) -> int:
    """A 64-bit pattern as torch's signed number."""
    return value - 2**64 if value >= 2**63 else value


# Odd constants of the finaliser of SplitMix64, and arbitrary bit patterns.
_FIRST, _SECOND = _signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB)
_SEED, _ODD = _signed(0x9E3779B97F4A7C15), _signed(0xD1342543DE82EF95)
_SALT = _signed(0x2545F4914F6CDD1D)


def mix(value: Tensor) -> Tensor:
    """Scrambles the bits of whole numbers, one to one."""
    value = (value ^ _shifted(value, 30)) * _FIRST
    value = (value ^ _shifted(value, 27)) * _SECOND
    return value ^ _shifted(value, 31)


def _shifted(value: Tensor, by: int) -> Tensor:
    """Shift to the right that fills in zeros."""
    return (value >> by) & ((1 << (64 - by)) - 1)
