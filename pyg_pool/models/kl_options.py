"""Which options the forms of KLGNN take: joint streams, two streams, or 2-FWL."""

from __future__ import annotations

from typing import Any

from pyg_pool.errors import check_choice
from pyg_pool.relational.checks import check_whole
from pyg_pool.relational.settings import check_options, check_unused

__all__ = ["check_kl_options", "taken_of"]

STREAMS = ("joint", "two")
#: Arguments of a call that only some forms take; the last one needs joint streams.
CALLS = ("copies", "generator", "label")
#: Options that a 2-FWL network, or two streams, leave unread.
CUTS = ("ego", "ego_mode", "readout", "level", "nested", "context", "policy", "perms")
PARTS = ("node_pool", "norm", "label_channels", "label_join", "chunk_size")
FWL_UNREAD = (*CUTS, *PARTS, "drop_perm", "num_samples", "sample_in_eval")
TWO_UNREAD = (*CUTS, *PARTS, "ordered", "encoding", "dmax", "max_distance")


def check_kl_options(cls: type, options: dict[str, Any]) -> None:
    """Checks the options of :class:`pyg_pool.models.KLGNN` against its forms.

    Args:
        cls: The class, whose defaults count as not given.
        options: Its options by name.

    Raises:
        TypeError: If a number is not whole.
        ValueError: If a number is too small, options do not go together, or the chosen
            form does not read one.
    """
    k, l, streams = (options[name] for name in ("k", "l", "streams"))  # noqa: E741
    check_choice("KLGNN", "streams", streams, STREAMS)
    sizes = ("hidden_channels", "out_channels", "num_layers", "in_channels")
    check_whole("KLGNN", 1, k=k, **{name: options[name] for name in sizes})
    check_whole("KLGNN", l=l, edge_channels=options["edge_channels"])
    if k > 2:
        raise ValueError(
            f"KLGNN got k={k}, expected k=1 or k=2; take k=2 and more labels (l) for "
            f"more power."
        )
    if streams == "two" and (k == 2 or l == 0):
        raise ValueError(
            f"KLGNN got streams='two' with k={k} and l={l}, expected k=1 and l >= 1; "
            f"take streams='joint'."
        )
    check_options("KLGNN", options)
    if k == 2:
        mend = "take k=1 for these"
        check_unused(cls, options, FWL_UNREAD, "k=2", mend)
    elif streams == "two":
        mend = "take streams='joint' for these"
        check_unused(cls, options, TWO_UNREAD, "streams='two'", mend)
    else:
        mend = "write domain='dist<=2' for tuples of near nodes, or take k=2"
        check_unused(cls, options, ("max_distance",), "k=1", mend)
    context, policy = options["context"], options["policy"]
    has_root = l > 0 and policy == "mark"
    if ("root" in context and not has_root) or ("across" in context and l != 1):
        raise ValueError(
            f"KLGNN got context={context!r} with l={l} and policy={policy!r}, expected "
            f"copies with a root for 'root', and one label for 'across'; take l=1 and "
            f"policy='mark', or another context."
        )


def taken_of(arguments: dict[str, Any], k: int, streams: str) -> dict[str, Any]:
    """Those arguments of a call that a form reads.

    Raises:
        ValueError: If another one was given.

    Example:
        >>> from pyg_pool.models.kl_options import taken_of
        >>> taken_of({"copies": None, "generator": None, "label": None}, 1, "two")
        {'copies': None, 'generator': None}
    """
    number = 0 if k == 2 else 3 if streams == "joint" else 2
    taken = CALLS[:number]
    for name, value in arguments.items():
        if name not in taken and value is not None:
            raise ValueError(
                f"KLGNN got {name} with k={k} and streams={streams!r}, expected none, "
                f"as this form does not read it; leave it out."
            )
    return {name: value for name, value in arguments.items() if name in taken}
