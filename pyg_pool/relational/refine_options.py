"""The options of the k,l-WL test, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyg_pool.errors import check_choice
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import EGO_MODES

__all__ = ["Mode", "Setup", "check_setup"]

POOLINGS = ("tuple", "node", "root", "labelled", "nested")
POLICIES = ("mark", "none", "delete_node", "delete_edge")
UPDATES = ("SWL", "PSWL", "GSWL", "DSS", "SSWL", "LFWL", "SLFWL")
Mode = Literal["exact", "hash"]
MODES = ("exact", "hash")


@dataclass(frozen=True)
class Setup:
    """The options of a test, as :func:`kl_wl` explains them."""

    k: int
    l: int  # noqa: E741
    folklore: bool
    domain: str
    ordered: bool
    pooling: str
    ego: int | None
    ego_mode: str
    update: str | None
    policy: str
    cover: bool


def check_setup(setup: Setup, mode: str, rounds: int | None) -> None:
    """Checks options one by one and against each other.

    Raises:
        TypeError: If a number is not whole.
        ValueError: If an option is unknown or does not fit the others.
    """
    check_whole("kl_wl", 1, k=setup.k)
    check_whole("kl_wl", l=setup.l, ego=setup.ego, rounds=rounds)
    check_choice("kl_wl", "mode", mode, MODES)
    check_choice("kl_wl", "pooling", setup.pooling, POOLINGS)
    check_choice("kl_wl", "policy", setup.policy, POLICIES)
    check_choice("kl_wl", "ego_mode", setup.ego_mode, EGO_MODES)
    if setup.update is not None:
        check_choice("kl_wl", "update", setup.update, UPDATES)
    for fault, is_there, expected in _faults(setup):
        if is_there:
            raise ValueError(f"kl_wl got {fault}, expected {expected}.")


def _faults(s: Setup) -> list[tuple[str, bool, str]]:
    """What does not go together, whether it is there, and what is expected."""
    is_cut = s.policy.startswith("delete")
    has_update, has_ego = s.update is not None, s.ego is not None
    return [
        (
            f"pooling={s.pooling!r} with l=0",
            s.l == 0 and s.pooling in ("root", "labelled", "nested"),
            "at least one label to pool by; take l=1, or pooling='tuple' or 'node'",
        ),
        (
            f"ego={s.ego} with l=0",
            has_ego and s.l == 0,
            "at least one label as centre of a ball; take l=1, or leave ego out",
        ),
        (
            f"ego_mode={s.ego_mode!r} with ego=None",
            s.ego_mode != "root" and not has_ego,
            "a radius with it; give ego, or leave ego_mode out",
        ),
        (
            f"update={s.update!r} with k={s.k} and l={s.l}",
            has_update and not s.k == s.l == 1,
            "k=1 and l=1, a root for each copy; change them, or leave update out",
        ),
        (
            f"update={s.update!r} with domain={s.domain!r}, ego={s.ego} and "
            f"policy={s.policy!r}",
            has_update
            and (has_ego or s.policy != "mark" or s.domain not in ("distinct", "all")),
            "a whole marked copy for every node; leave these out, or update",
        ),
        (
            f"policy={s.policy!r} with l={s.l}",
            s.policy != "mark" and s.l != 1,
            "l=1, a node or an edge for each copy; take it, or policy='mark'",
        ),
        (
            f"policy={s.policy!r} with pooling={s.pooling!r}",
            is_cut and s.pooling not in ("tuple", "node"),
            "a pooling without the root, which is gone; take 'tuple' or 'node'",
        ),
        (
            f"policy='delete_edge' with domain={s.domain!r} and ego={s.ego}",
            s.policy == "delete_edge" and (has_ego or s.domain != "distinct"),
            "a whole copy for every edge; leave these out, or take another policy",
        ),
    ]
