"""The subcommand that asks which graphs a class of networks can tell apart."""

from __future__ import annotations

import importlib
import json
from enum import Enum
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pyg_pool.cli import console
from pyg_pool.cli.console import clean_errors
from pyg_pool.cli.graph_texts import read_graphs, short

__all__ = ["wl"]

MAX_SHOWN = 12

#: Options that presets set, and what they are without one.
DEFAULTS: dict[str, Any] = {
    "k": 1,
    "l": 1,
    "folklore": False,
    "domain": "distinct",
    "ordered": True,
    "pooling": "tuple",
    "ego": None,
    "ego_mode": "root",
    "update": None,
    "policy": "mark",
}


class Format(str, Enum):
    """What the arguments are."""

    auto = "auto"
    graph6 = "graph6"
    smiles = "smiles"
    file = "file"


class Pooling(str, Enum):
    """Order of pooling."""

    tuple = "tuple"
    node = "node"
    root = "root"
    labelled = "labelled"
    nested = "nested"


def wl(
    ctx: typer.Context,
    graphs: Annotated[
        list[str],
        typer.Argument(help="Graphs: graph6, SMILES, or files with one per line."),
    ],
    k: Annotated[int, typer.Option("--k", help="Power of the base test.")] = 1,
    l: Annotated[int, typer.Option("--l", help="Number of labels.")] = 1,  # noqa: E741
    folklore: Annotated[
        bool, typer.Option("--folklore", help="k-FWL instead of oblivious k-WL.")
    ] = False,
    domain: Annotated[
        str,
        typer.Option(help="Labelled tuples: distinct, subset, star, dist<=2, …"),
    ] = "distinct",
    ordered: Annotated[
        bool, typer.Option("--ordered/--unordered", help="Tell labels apart.")
    ] = True,
    pooling: Annotated[Pooling, typer.Option(help="Order of pooling.")] = Pooling.tuple,
    ego: Annotated[
        int | None, typer.Option(help="Radius of the balls copies are cut to.")
    ] = None,
    ego_mode: Annotated[
        str, typer.Option(help="Balls: root, union, intersection.")
    ] = "root",
    update: Annotated[
        str | None, typer.Option(help="SWL, PSWL, GSWL, DSS, SSWL, LFWL or SLFWL.")
    ] = None,
    policy: Annotated[
        str, typer.Option(help="mark, none, delete_node or delete_edge.")
    ] = "mark",
    cover: Annotated[
        bool, typer.Option("--cover/--no-cover", help="Tuples for left-out nodes.")
    ] = True,
    mode: Annotated[
        str, typer.Option(help="exact, or hash for many or large graphs.")
    ] = "exact",
    preset: Annotated[
        str | None,
        typer.Option(
            help="A model of the literature: ngnn, i2_gnn, sun, … It sets all options "
            "but --cover and --mode; others beside it are refused where they differ."
        ),
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format", help="What arguments and lines are; file: all name files."
        ),
    ] = Format.auto,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON.")
    ] = False,
) -> None:
    """Tell whether networks of a given power can separate graphs, and when."""
    options: dict[str, Any] = {
        "k": k,
        "l": l,
        "folklore": folklore,
        "domain": domain,
        "ordered": ordered,
        "pooling": pooling.value,
        "ego": ego,
        "ego_mode": ego_mode,
        "update": update,
        "policy": policy,
        "cover": cover,
        "mode": mode,
    }
    with clean_errors():
        if preset is not None:
            options = with_preset(preset, options, given_options(ctx, options))
        names, found, kind = read_graphs(graphs, form.value)
        if kind == "smiles":
            options.update(node_colors="x", edge_colors="edge_attr")
        relational = importlib.import_module("pyg_pool.relational")
        result = relational.kl_wl_details(found, **options)
    title = preset or _title(options)
    if as_json:
        print(json.dumps(_answer(title, kind, names, result)))
    elif len(found) == 2:
        _print_pair(title, kind, names, result)
    else:
        _print_classes(title, kind, names, result)


def given_options(ctx: typer.Context, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were written down, not those left at their defaults."""
    given = {}
    for name, value in options.items():
        source = ctx.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            given[name] = value
    return given


def with_preset(
    preset: str, options: dict[str, Any], given: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of a preset, beside those that no preset sets.

    Raises:
        ValueError: If there is no such preset, or an option is given that differs from
            the preset's.
    """
    relational = importlib.import_module("pyg_pool.relational")
    model: dict[str, Any] = {name: DEFAULTS[name] for name in ("ordered", "ego_mode")}
    model.update(relational.wl_options(preset))
    wrong = [name for name in given if name in model and given[name] != model[name]]
    if wrong:
        raise ValueError(
            f"pyg-pool wl got --preset {preset} with "
            f"{_written({name: given[name] for name in wrong})}, expected the options "
            f"of that model; leave these out, or write the test out and change it: "
            f"{_written({n: v for n, v in model.items() if v != DEFAULTS[n]})}."
        )
    return {**options, **model}


def _written(options: dict[str, Any]) -> str:
    """Options as they are written on the command line."""
    words = []
    for name, value in options.items():
        if name == "ordered":
            words.append("--ordered" if value else "--unordered")
        elif value is True:
            words.append(f"--{name}")
        else:
            words.append(f"--{name.replace('_', '-')} {value}")
    return " ".join(words) or "no options at all"


def _title(options: dict[str, Any]) -> str:
    """The test by its options."""
    kind = "FWL" if options["folklore"] else "WL"
    parts = [f"{options['k']},{options['l']}-{kind}"]
    if options["l"]:
        parts.append(f"domain {options['domain']}")
    for name in ("pooling", "ego", "update", "policy"):
        default = {"pooling": "tuple", "policy": "mark"}.get(name)
        if options[name] not in (default, None):
            parts.append(f"{name} {options[name]}")
    return ", ".join(parts)


def _answer(title: str, kind: str, names: list[str], result: Any) -> dict[str, Any]:
    """The answer as plain values."""
    out = {
        "test": title,
        "format": kind,
        "graphs": names,
        "colors": result.colors.tolist(),
        "num_classes": result.num_classes,
        "stable_round": result.stable_round,
    }
    if len(names) == 2:
        out["separated"] = result.num_classes == 2
        out["separating_round"] = result.separating_round()
    return out


def _print_pair(title: str, kind: str, names: list[str], result: Any) -> None:
    """Say whether two graphs are told apart."""
    number = result.separating_round()
    a, b = (escape(short(name)) for name in names)
    if number is None:
        console.out_console.print(
            f"[bold]Not separated.[/bold] Networks of the power of {escape(title)} give"
            f" {a} and {b} the same output, whatever their weights: nothing changes "
            f"after {result.stable_round} round(s)."
        )
    else:
        after = f"after {number} round(s) of message passing" if number else "at once"
        console.out_console.print(
            f"[bold]Separated[/bold] by {escape(title)}: {a} and {b} differ {after}."
        )
    console.out_console.print(f"Read as {kind}.", style="dim")


def _print_classes(title: str, kind: str, names: list[str], result: Any) -> None:
    """Say into how many classes many graphs fall, and which stay together."""
    groups: dict[int, list[str]] = {}
    for name, color in zip(names, result.colors.tolist(), strict=True):
        groups.setdefault(color, []).append(short(name))
    console.out_console.print(
        f"{escape(title)}: {len(names)} graph(s) read as {kind}, "
        f"[bold]{result.num_classes} class(es)[/bold], stable after "
        f"{result.stable_round} round(s)."
    )
    if len(names) == 1:
        console.out_console.print("Give two graphs or more to tell them apart.")
        return
    together = [group for group in groups.values() if len(group) > 1]
    if not together:
        console.out_console.print("All graphs are told apart.")
        return
    table = Table("size", "not told apart", title="Graphs with equal colours")
    for group in sorted(together, key=len, reverse=True)[:MAX_SHOWN]:
        shown = ", ".join(group[:4]) + (", …" if len(group) > 4 else "")
        table.add_row(str(len(group)), escape(shown))
    console.out_console.print(table)
    if len(together) > MAX_SHOWN:
        console.out_console.print(f"and {len(together) - MAX_SHOWN} more groups.")
