"""The forms of the graph U-Net: what each preset means, and how options override it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyg_pool.errors import check_choice
from pyg_pool.models.conv_factory import Conv
from pyg_pool.models.layers import Words
from pyg_pool.models.pool_stack import Pool
from pyg_pool.pool import GPool
from pyg_pool.typing import Activation

__all__ = ["FORMS", "UNetForm", "unet_form"]

OWNER = "GraphUNet"


@dataclass(frozen=True)
class UNetForm:
    """The parts of a graph U-Net, all of them decided."""

    conv: Conv = "gcn"
    conv_options: Mapping[str, Any] = field(default_factory=dict)
    act: Activation = "relu"
    pool: Pool = "gpool"
    pool_options: Mapping[str, Any] = field(default_factory=dict)
    augment: str = "weighted"
    skip: str = "pre"
    merge: str = "sum"
    stem: bool = False
    long_skip: bool = False
    out_conv: bool = False
    self_loops: bool = False
    readout: Words = ("mean", "max")
    readout_levels: str = "last"
    head_act: Activation = "relu"


FORMS: dict[str | None, UNetForm] = {
    None: UNetForm(conv_options={"improved": True}, out_conv=True),
    "pyg": UNetForm(
        conv_options={"improved": True},
        pool_options={"preset": "pyg"},
    ),
    "paper": UNetForm(
        conv="symmetric",
        conv_options={"bias": False},
        act="identity",
        pool_options={"preset": "paper"},
        augment="square",
        out_conv=True,
    ),
    "authors": UNetForm(
        conv="column",
        act="elu",
        pool_options={"preset": "authors"},
        augment="binary",
        skip="post",
        stem=True,
        long_skip=True,
        out_conv=True,
        self_loops=True,
        readout=("max", "sum", "mean"),
        readout_levels="all",
        head_act="elu",
    ),
}


def unet_form(given: Mapping[str, Any]) -> UNetForm:
    """Fills the options that the caller left open from the preset.

    Args:
        given: The arguments of the constructor by name, ``None`` where left open.

    Returns:
        The form with every part decided.

    Raises:
        ValueError: If a word is unknown or options contradict each other.
    """
    check_choice(OWNER, "preset", given["preset"] or "pyg", [w for w in FORMS if w])
    for option, words in {
        "task": ("node", "graph"),
        "skip": ("pre", "post"),
        "merge": ("sum", "cat"),
        "readout_levels": ("all", "last"),
    }.items():
        if given[option] is not None:
            check_choice(OWNER, option, given[option], words)
    form = FORMS[given["preset"]]
    names = [name for name in UNetForm.__dataclass_fields__ if "options" not in name]
    chosen = {name: given[name] for name in names if given[name] is not None}
    if "conv" in chosen and chosen["conv"] != form.conv:
        # The options of the preset belong to its own convolution.
        form = replace(form, conv_options={})
    conv_options = {**form.conv_options, **(given["conv_options"] or {})}
    form = replace(form, **chosen, conv_options=conv_options)
    form = _with_pool(form, given)
    return _for_task(form, given)


def _with_pool(form: UNetForm, given: Mapping[str, Any]) -> UNetForm:
    """Gives gPool the options of the preset, and other pools their own only."""
    own = dict(given["pool_options"] or {})
    if form.pool is GPool:
        form = replace(form, pool="gpool")
    if form.pool == "gpool":
        options = {**form.pool_options, "augment": form.augment, **own}
        if given["preset"] == "authors":
            options.setdefault("dropout", given["dropout"])
        return replace(form, pool_options=options, augment=options["augment"])
    if given["augment"] is not None:
        raise ValueError(
            f"{OWNER} got augment={given['augment']!r} with pool={given['pool']!r}, "
            f"expected it with pool='gpool' only; leave it out, the pool connects the "
            f"coarse graph."
        )
    return replace(form, pool_options=own, augment="none")


def _for_task(form: UNetForm, given: Mapping[str, Any]) -> UNetForm:
    """Checks the options of one task only; a graph task has no last convolution."""
    if given["task"] == "graph":
        if given["out_conv"]:
            raise ValueError(
                f"{OWNER} got out_conv=True with task='graph', expected it for "
                f"task='node' only; a graph task ends in a readout and a classifier."
            )
        return replace(form, out_conv=False)
    for option in ("readout", "readout_levels", "head_channels", "head_act"):
        if given[option] is not None:
            raise ValueError(
                f"{OWNER} got {option}={given[option]!r} with task='node', expected it "
                f"for task='graph' only; leave it out, or set task='graph'."
            )
    return form


def authors_names(depth: int) -> list[tuple[str, str]]:
    """Renames the weights of the authors' program to ours."""
    lowest = rf"down_convs.{depth}.lin."
    return [
        (r"g_unet\.", ""),
        (r"down_gcns\.(\d+)\.proj\.", r"down_convs.\1.lin."),
        (r"bottom_gcn\.proj\.", lowest),
        (r"up_gcns\.(\d+)\.proj\.", r"up_convs.\1.lin."),
        (r"s_gcn\.proj\.", "stem.lin."),
        (r"out_l_1\.", "head.lins.0."),
        (r"out_l_2\.", "head.lins.1."),
    ]


def loses_loops(form: UNetForm) -> bool:
    """Whether pooling may drop the self loops that the network wants."""
    return form.self_loops and (form.pool != "gpool" or form.augment == "weighted")


@dataclass(frozen=True)
class UNetWidths:
    """Input and output width of each convolution, and width of each emitted level."""

    entry: int
    down: list[tuple[int, int]]
    up: list[tuple[int, int]]
    emitted: list[int]


def unet_widths(form: UNetForm, given: Mapping[str, Any]) -> UNetWidths:
    """Follows the widths through the network.

    Raises:
        ValueError: If a sum would add rows of different widths.
    """
    hidden, out_channels = given["hidden_channels"], given["out_channels"]
    depth, entry = given["depth"], hidden if form.stem else given["in_channels"]
    up, emitted, width = [], [], hidden
    for step in range(depth):
        is_result = step == depth - 1 and ends_in_up_conv(form, given["task"])
        target = out_channels if is_result else hidden
        joined = hidden if form.merge == "cat" else 0
        if form.skip == "pre":
            up.append((width + joined, target))
            width = target
        else:
            up.append((width, target))
            _same("a skip after the up convolution", target, hidden, joined > 0)
            width = target + joined
        emitted.append(width)
    if form.long_skip:
        _same("the long skip", width, entry, False)
        emitted.append(width)
    if ends_in_up_conv(form, given["task"]):
        _same("the output", width, out_channels, False)
    down = [(entry, hidden), *[(hidden, hidden)] * depth]
    return UNetWidths(entry, down, up, emitted)


def ends_in_up_conv(form: UNetForm, task: str) -> bool:
    """Whether the last up convolution gives the output itself."""
    return task == "node" and not form.out_conv


def _same(what: str, width: int, wanted: int, may_differ: bool) -> None:
    if width != wanted and not may_differ:
        raise ValueError(
            f"{OWNER} got {width} channels at {what}, expected {wanted}; set "
            f"out_conv=True or stem=True, or choose equal widths."
        )
