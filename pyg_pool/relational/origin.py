"""Where prepared copies come from, so that no other network takes them unseen."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pyg_pool.relational.domains import Domain

__all__ = ["Origin"]


@dataclass(frozen=True)
class Origin:
    """The options that prepared copies were made with.

    Args:
        l: Number of labels.
        domain: The tuples.
        ego: Radius of the balls, or ``None``.
        ego_mode: Whose balls.
        cover: Whether nodes in no tuple have one.
    """

    l: int  # noqa: E741
    domain: str
    ego: int | None
    ego_mode: str
    cover: bool

    @classmethod
    def of(
        cls,
        l: int,  # noqa: E741
        domain: str,
        ego: int | None,
        ego_mode: str,
        cover: bool,
    ) -> Origin:
        """The options without those that make no difference.

        Example:
            >>> from pyg_pool.relational.origin import Origin
            >>> Origin.of(1, "star", 3, "union", True)
            Origin(l=1, domain='distinct', ego=3, ego_mode='root', cover=True)
        """
        word = str(Domain.parse(domain))
        if l == 1:
            word, ego_mode, cover = "distinct", "root", True
        return cls(l, word, ego, "root" if ego is None else ego_mode, cover)

    def __str__(self) -> str:
        """The options as they are given in calls."""
        return ", ".join(f"{name}={value!r}" for name, value in asdict(self).items())

    def check(self, owner: str, wanted: Origin) -> None:
        """Refuses copies that a network with other options is given.

        Raises:
            ValueError: If an option differs.
        """
        mine, other = asdict(self), asdict(wanted)
        names = [name for name in mine if mine[name] != other[name]]
        if names:
            given, expected = (
                ", ".join(f"{name}={options[name]!r}" for name in names)
                for options in (mine, other)
            )
            raise ValueError(
                f"{owner} got copies made with {given}, expected {expected}; build "
                f"KLTuples with the options of the network that reads its copies."
            )
