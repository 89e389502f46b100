"""Gives the rows of copies their labels: fixed, learned, or given ones."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Generator, Tensor
from torch.nn import Embedding, Module

from pyg_pool.errors import check_choice
from pyg_pool.relational.copies import Copies
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.labels import ENCODINGS, label_features, label_width
from pyg_pool.relational.orders import reordered
from pyg_pool.typing import OptTensor

__all__ = ["JOINS", "Join", "Labeller"]

Join = Literal["cat", "add", "multiply"]
JOINS = ("cat", "add", "multiply")


class Labeller(Module):
    r"""Puts labels on the rows of copies.

    Args:
        l: Number of labels.
        encoding: A word of :func:`label_features`; ``"learned"`` for a learned row per
            position (one for all if unordered), ``"given"`` for a tensor that is
            passed in each call.
        ordered: Whether labels are told apart.
        dmax: Largest distance of ``"spd"``.
        channels: Width of ``"learned"`` and ``"given"`` labels.
        join: How they meet the features: ``"cat"`` beside them, ``"add"`` or
            ``"multiply"``; the last two want labels as wide as the features.
        perms: Give the rows under every order of the labels.
        drop_perm: Share of the orders that is left out by chance in training.

    Raises:
        ValueError: If options do not go together.

    Note:
        Labels that are learned start near one where they multiply, near zero where
        they are added. Nodes without a label keep their features, or get zeros beside
        them.

    Example:
        >>> from pyg_pool.relational.labeller import Labeller
        >>> Labeller(2, "learned", channels=4).width, Labeller(2, "spd", dmax=3).width
        (4, 10)
    """

    def __init__(
        self,
        l: int,  # noqa: E741
        encoding: str = "mark",
        *,
        ordered: bool = True,
        dmax: int = 5,
        channels: int = 0,
        join: str = "cat",
        perms: bool = False,
        drop_perm: float = 0.0,
    ) -> None:
        super().__init__()
        words = (*ENCODINGS, "learned", "given")
        check_choice("RelationalPooling", "encoding", encoding, words)
        check_choice("RelationalPooling", "label_join", join, JOINS)
        self.l, self.encoding, self.ordered, self.dmax = l, encoding, ordered, dmax
        self.channels, self.join = channels, join
        self.perms, self.drop_perm = perms, drop_perm
        self._check()
        self.table: Embedding | None = None
        if encoding == "learned" and l > 0:
            self.table = Embedding(l if ordered else 1, channels)
        self.reset_parameters()

    def _check(self) -> None:
        """Raises ``ValueError`` for options that do not go together."""
        is_wide = self.encoding in ("learned", "given")
        if is_wide != (self.channels > 0) or (self.join != "cat" and not is_wide):
            raise ValueError(
                f"RelationalPooling got encoding={self.encoding!r}, label_channels="
                f"{self.channels} and label_join={self.join!r}, expected a width "
                f"with 'learned' and 'given', and none and 'cat' otherwise; give "
                f"label_channels, or take another encoding."
            )
        is_share = 0.0 <= self.drop_perm < 1.0
        if not is_share or (self.drop_perm > 0 and not self.perms):
            raise ValueError(
                f"RelationalPooling got drop_perm={self.drop_perm} and perms="
                f"{self.perms}, expected a share from 0 to below 1, and perms=True "
                f"with one above 0; correct it, or leave it out."
            )
        if self.perms and self.encoding == "given":
            raise ValueError(
                "RelationalPooling got perms=True with encoding='given', expected "
                "labels that it can reorder; leave perms out, or take 'mark'."
            )

    @property
    def width(self) -> int:
        """Columns that stand beside the features."""
        if self.encoding in ("learned", "given"):
            return self.channels if self.join == "cat" and self.l > 0 else 0
        ordered, dmax = self.ordered, self.dmax
        return label_width(self.l, self.encoding, ordered=ordered, dmax=dmax)

    def reset_parameters(self) -> None:
        """Draws the learned rows anew."""
        if self.table is not None:
            center = 1.0 if self.join == "multiply" else 0.0
            torch.nn.init.normal_(self.table.weight, center, 0.5)

    def features(
        self, ground: Ground, copies: Copies, given: OptTensor, x: Tensor
    ) -> Tensor:
        """The labels of each pair, ``[P, W]``; of learned ones whose they are.

        Raises:
            ValueError: If labels are given and not asked for, or the other way round.
        """
        size = (copies.num_pairs, self.channels)
        wants = self.encoding == "given"
        if wants != (given is not None) or (given is not None and given.shape != size):
            shape = None if given is None else list(given.shape)
            raise ValueError(
                f"RelationalPooling got label of shape {shape} with encoding="
                f"{self.encoding!r}, expected {list(size) if wants else None}; pass a "
                f"row for each pair of the copies with encoding='given' and "
                f"label_channels, and no label otherwise."
            )
        if given is not None:
            return given.to(x.dtype)
        word = "mark" if self.encoding == "learned" else self.encoding
        found = label_features(
            ground, copies, word, ordered=self.ordered, dmax=self.dmax
        )
        return found.to(x.dtype)

    def orders(
        self, label: Tensor, copies: Copies, *, drops: bool, generator: Generator | None
    ) -> list[Tensor]:
        """The labels under each order that is run, at least one."""
        if not (self.perms and self.ordered):
            return [label]
        every = reordered(label, copies)
        return self.kept(every, generator) if drops else every

    def kept(self, every: list[Tensor], generator: Generator | None) -> list[Tensor]:
        """The orders that chance leaves, at least one."""
        if self.drop_perm == 0:
            return every
        number = max(round((1 - self.drop_perm) * len(every)), 1)
        device = "cpu" if generator is None else generator.device
        luck = torch.randperm(len(every), generator=generator, device=device)
        return [every[place] for place in sorted(luck[:number].tolist())]

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        """Features and labels together, a row per pair."""
        if self.encoding not in ("learned", "given"):
            return torch.cat([x, label], dim=-1)
        if self.l == 0:
            return x
        if self.join != "cat" and self.channels != x.size(1):
            raise ValueError(
                f"RelationalPooling got label_channels={self.channels} and features of "
                f"width {x.size(1)} with label_join={self.join!r}, expected the same "
                f"width; set label_channels={x.size(1)}, or take label_join='cat'."
            )
        if self.table is not None:
            weight = self.table.weight.to(x.dtype)
            if self.join == "multiply":
                # A node with several labels takes the product of their rows.
                for place, row in enumerate(weight):
                    x = torch.where(label[:, place : place + 1] > 0, x * row, x)
                return x
            label = label @ weight
        if self.join == "cat":
            return torch.cat([x, label], dim=-1)
        return x + label if self.join == "add" else x * label

    def extra_repr(self) -> str:
        """The main options."""
        return f"{self.l}, {self.encoding!r}, ordered={self.ordered}"
