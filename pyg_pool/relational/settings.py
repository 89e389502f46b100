"""Checks of what labelled copies are built from: options, prepared copies, edges.

Options that would be passed over without a word are refused: whoever gives one
expects it to matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch import Tensor

from pyg_pool.errors import check_choice, check_edges
from pyg_pool.kernels.dispatch import is_traced
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.copies import EGO_MODES, Copies
from pyg_pool.relational.domains import Ground
from pyg_pool.relational.pairs import PairSet
from pyg_pool.typing import OptTensor

__all__ = [
    "check_attributes",
    "check_copies",
    "check_options",
    "check_pairs",
    "check_unused",
    "defaults_of",
]

POLICIES = ("mark", "delete_node", "delete_edge")
ROOTED = ("root", "root_node")


class _Rule(NamedTuple):
    """Options that do not go together, and what is expected of them."""

    names: tuple[str, ...]
    is_broken: bool
    expected: str


def check_options(owner: str, options: dict[str, Any]) -> None:
    """Checks the options of a network on labelled copies against each other.

    Args:
        owner: Who asks, for the message.
        options: Those of :class:`pyg_pool.relational.RelationalPooling` by name.

    Raises:
        TypeError: If a number is not whole.
        ValueError: If a number is too small, or options do not go together.

    Example:
        >>> from pyg_pool.relational.conv import RelationalPooling
        >>> from pyg_pool.relational.settings import check_options, defaults_of
        >>> check_options("KLGNN", {**defaults_of(RelationalPooling), "ego": 2})
    """
    numbers = ("l", "dmax", "label_channels", "ego", "memory_limit")
    check_whole(owner, **{name: options[name] for name in numbers})
    check_whole(owner, 1, **{n: options[n] for n in ("num_samples", "chunk_size")})
    check_choice(owner, "policy", options["policy"], POLICIES)
    check_choice(owner, "ego_mode", options["ego_mode"], EGO_MODES)
    for rules in (_without_labels, _with_deletions, _alone):
        for rule in rules(options):
            if rule.is_broken:
                given = ", ".join(f"{name}={options[name]!r}" for name in rule.names)
                raise ValueError(f"{owner} got {given}, expected {rule.expected}.")


def _without_labels(o: dict[str, Any]) -> Iterator[_Rule]:
    """What needs a labelled node, of which ``l=0`` has none."""
    none = o["l"] == 0 and o["policy"] != "delete_edge"
    reads = (*ROOTED, "labelled", "nested")
    yield _Rule(
        ("l", "readout", "nested"),
        none and (o["readout"] in reads or o["nested"] is not None),
        "a readout without labelled nodes; take readout='tuple' or 'node', or l=1",
    )
    yield _Rule(
        ("l", "level", "readout"),
        none and o["level"] == "node" and o["readout"] != "node",
        "rows of nodes to be read by readout='node'; take it, or l=1",
    )
    yield _Rule(
        ("l", "policy"),
        none and o["policy"] == "delete_node",
        "a node to delete in each copy; take l=1, or policy='mark'",
    )
    drawn = ("l", "ego", "num_samples", "perms")
    yield _Rule(
        drawn,
        none and any(o[name] not in (None, False) for name in drawn[1:]),
        "one whole copy of each graph for l=0; leave the others out, or take l=1",
    )


def _with_deletions(o: dict[str, Any]) -> Iterator[_Rule]:
    """What copies with a node or an edge taken out cannot have."""
    node, edge = o["policy"] == "delete_node", o["policy"] == "delete_edge"
    labels = ("policy", "encoding", "label_channels", "perms")
    has_labels = o["encoding"] not in ("mark", "none") or o["label_channels"] > 0
    yield _Rule(
        labels,
        (node or edge) and (has_labels or o["perms"]),
        "no labels, as such copies have none; leave them out, or take policy='mark'",
    )
    gone = o["readout"] in ROOTED or (o["readout"] == "labelled" and o["l"] == 1)
    yield _Rule(
        ("policy", "readout"),
        node and gone,
        "a readout of nodes that are still there; take readout='tuple' or 'node'",
    )
    is_ordered = o["readout"] in (*ROOTED, "nested") or o["nested"] is not None
    is_rooted = o["level"] == "node" and o["readout"] != "node"
    yield _Rule(
        ("policy", "readout", "level", "nested"),
        edge and (is_ordered or is_rooted),
        "a readout that does not tell the ends of an edge apart; take readout='node', "
        "or 'tuple' or 'labelled' at the graph's level",
    )
    yield _Rule(
        ("policy", "l", "ego", "num_samples"),
        edge and (o["l"] > 1 or o["ego"] is not None or o["num_samples"] is not None),
        "a whole copy for every edge; leave the others out, or take another policy",
    )


def _alone(o: dict[str, Any]) -> Iterator[_Rule]:
    """Options that mean nothing without another one."""
    yield _Rule(
        ("ego", "ego_mode"),
        o["ego"] is None and o["ego_mode"] != "root",
        "a radius with it; give ego, or leave ego_mode out",
    )
    yield _Rule(
        ("perms", "ordered"),
        o["perms"] and not o["ordered"],
        "labels whose order can be told; leave perms out, or take ordered=True",
    )
    yield _Rule(
        ("sample_in_eval", "num_samples", "drop_perm"),
        o["sample_in_eval"] and o["num_samples"] is None and not o["drop_perm"],
        "something to draw; give num_samples, or leave sample_in_eval out",
    )


def defaults_of(cls: Callable[..., Any]) -> dict[str, Any]:
    """The options of a class and their defaults, those without one left out."""
    parameters = inspect.signature(cls).parameters
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not parameter.empty
    }


def check_unused(
    cls: type, options: dict[str, Any], unused: tuple[str, ...], form: str, mend: str
) -> None:
    """Refuses options that a form of a network does not read.

    Args:
        cls: The network.
        options: Its options by name.
        unused: Those that the form leaves unread.
        form: The form, in the words of its options.
        mend: What to do instead.

    Raises:
        ValueError: If one of them is not at its default.
    """
    defaults = defaults_of(cls)
    wrong = [name for name in unused if options[name] != defaults[name]]
    if wrong:
        given = ", ".join(f"{name}={options[name]!r}" for name in wrong)
        raise ValueError(
            f"{cls.__name__} got {given} with {form}, which does not read "
            f"{'it' if len(wrong) == 1 else 'them'}, expected none of "
            f"{sorted(unused)}; {mend}."
        )


def check_attributes(
    owner: str, edge_index: Tensor, edge_attr: OptTensor, channels: int | None
) -> OptTensor:
    """Checks the attributes of edges; a vector becomes one column.

    Args:
        owner: Who asks, for the message.
        edge_index: ``[2, E]`` edges.
        edge_attr: ``[E]`` or ``[E, D]`` attributes, or ``None``.
        channels: Expected ``D``, 0 for none; ``None`` where any will do.

    Raises:
        TypeError: If they are no floating point tensor.
        ValueError: If they are missing, not asked for, or of another size.

    Example:
        >>> import torch
        >>> from pyg_pool.relational.settings import check_attributes
        >>> edges = torch.tensor([[0, 1], [1, 2]])
        >>> check_attributes("KLGNN", edges, torch.ones(2), 1).shape
        torch.Size([2, 1])
    """
    if edge_attr is None:
        if channels:
            raise ValueError(
                f"{owner} got edge_attr=None, expected [{edge_index.size(-1)}, "
                f"{channels}]; pass the attributes, or build it with edge_channels=0."
            )
        return None
    if channels is not None:
        if not isinstance(edge_attr, Tensor) or not edge_attr.is_floating_point():
            kind = getattr(edge_attr, "dtype", type(edge_attr).__name__)
            raise TypeError(
                f"{owner} got edge_attr of dtype {kind}, expected a floating point "
                f"tensor; convert it with edge_attr.float() or embed categories first."
            )
        if edge_attr.dim() == 1:
            edge_attr = edge_attr.unsqueeze(-1)
    check_edges(owner, edge_index, edge_attr, None)
    if channels is not None and list(edge_attr.shape[1:]) != [channels]:
        width = edge_attr.size(1) if edge_attr.dim() == 2 else "D"
        raise ValueError(
            f"{owner} got edge_attr of shape {list(edge_attr.shape)}, expected "
            f"[{edge_index.size(1)}, {channels}]; build it with edge_channels={width}, "
            f"or pass attributes of that width."
        )
    return edge_attr


def check_copies(
    owner: str,
    copies: Any,
    ground: Ground,
    length: int,
    *,
    ego: int | None = None,
    policy: str = "mark",
) -> None:
    """Checks that prepared copies are those of this network and this batch.

    Args:
        owner: Who asks, for the message.
        copies: What was given as copies.
        ground: The graphs of the batch.
        length: Number of labels of the network.
        ego: Radius of its copies.
        policy: What its copies leave out.

    Raises:
        TypeError: If they are no copies.
        ValueError: If they have other labels, are cut where the network's are not, or
            belong to other graphs.
    """
    if not isinstance(copies, Copies):
        raise TypeError(
            f"{owner} got copies of type {type(copies).__name__}, expected the copies "
            f"of KLTuples; pass KLTuples.copies(batch)."
        )
    length = 2 if policy == "delete_edge" else length
    is_full = ego is None and policy == "mark"
    labels, cut = copies.tuples.index.size(1), not copies.is_full
    if labels != length or cut is is_full:
        raise ValueError(
            f"{owner} got {'cut' if cut else 'whole'} copies of {labels} labels, "
            f"expected {'whole' if is_full else 'cut'} ones of {length}; build "
            f"KLTuples with the network's l and ego."
        )
    if is_traced():
        return
    has, wanted = _sizes(copies.ground), _sizes(ground)
    if has != wanted:
        raise ValueError(
            f"{owner} got copies of graphs with {has} nodes, edges and graphs, "
            f"expected {wanted}; take the copies of the batch that x and edge_index "
            f"come from."
        )


def check_pairs(owner: str, pairs: PairSet, ground: Ground) -> None:
    """Checks that prepared pairs belong to a batch.

    Raises:
        ValueError: If they are those of other numbers of nodes or graphs.
    """
    loops, size = int(pairs.is_loop.sum()), ground.start.numel() - 1
    if (loops, pairs.size) != (ground.num_nodes, size):
        raise ValueError(
            f"{owner} got pairs of {loops} nodes in {pairs.size} graphs, expected "
            f"{ground.num_nodes} in {size}; take the pairs of the batch that x and "
            f"edge_index come from."
        )


def _sizes(ground: Ground) -> tuple[int, int, int]:
    """Numbers of nodes, edges and graphs."""
    return ground.num_nodes, ground.edge_index.size(1), ground.start.numel() - 1
