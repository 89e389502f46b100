"""The subcommand that asks which graphs a class of networks can tell apart."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pyg_pool.cli import console
from pyg_pool.cli.console import clean_errors

__all__ = ["wl"]

MAX_SHOWN = 12


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
    graphs: Annotated[
        list[str],
        typer.Argument(help="Graphs: graph6, SMILES, or files with one per line."),
    ],
    k: Annotated[
        int | None, typer.Option("--k", help="Power of the base test; default 1.")
    ] = None,
    l: Annotated[  # noqa: E741
        int | None, typer.Option("--l", help="Number of labels; default 1.")
    ] = None,
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
        typer.Option(help="A model of the literature instead: ngnn, i2_gnn, sun, …"),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", help="What the arguments are.")
    ] = Format.auto,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON.")
    ] = False,
) -> None:
    """Tell whether networks of a given power can separate graphs, and when."""
    options: dict[str, Any] = {
        "k": 1 if k is None else k,
        "l": 1 if l is None else l,
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
        from pyg_pool import relational

        if preset is not None:
            fixed = relational.wl_options(preset)
            check_preset(preset, fixed, {"k": k, "l": l})
            options.update(fixed)
        names, found, kind = read_graphs(graphs, form.value)
        if kind == "smiles":
            options.update(node_colors="x", edge_colors="edge_attr")
        result = relational.kl_wl_details(found, **options)
    title = preset or _title(options)
    if as_json:
        print(json.dumps(_answer(title, kind, names, result)))
    elif len(found) == 2:
        _print_pair(title, kind, names, result)
    else:
        _print_classes(title, kind, names, result)


def check_preset(
    preset: str, fixed: dict[str, Any], given: dict[str, int | None]
) -> None:
    """Refuse numbers beside a preset that has others.

    Raises:
        ValueError: If a number is given that the preset does not have.
    """
    for name, value in given.items():
        if value is not None and value != fixed[name]:
            raise ValueError(
                f"pyg-pool wl got --preset {preset} and --{name} {value}, expected "
                f"{fixed[name]}, which is what that model has; leave out --{name}, or "
                f"--preset."
            )


def read_graphs(words: Sequence[str], form: str) -> tuple[list[str], list[Any], str]:
    """Return names, graphs and the kind of text they were read from.

    Raises:
        ValueError: If a text is neither graph6 nor SMILES, or there is no graph.
    """
    texts: list[str] = []
    for word in words:
        path = Path(word)
        is_file = form == "file" or (form == "auto" and _is_file(path))
        if is_file:
            texts += _lines(path)
        else:
            texts.append(word)
    if not texts:
        raise ValueError(
            f"pyg-pool wl got {list(words)} without any graph, expected graph6, SMILES "
            f"or files of them; give at least one."
        )
    relational = importlib.import_module("pyg_pool.relational")
    if form in ("auto", "file", "graph6"):
        try:
            return texts, [relational.from_graph6(text) for text in texts], "graph6"
        except ValueError:
            if form == "graph6":
                raise
    return texts, [_molecule(text) for text in texts], "smiles"


def _lines(path: Path) -> list[str]:
    """The first word of each line of a file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"pyg-pool wl got the file {str(path)!r} ({error}), expected text with one "
            f"graph a line; write it again."
        ) from error
    return [line.split()[0] for line in lines if line.strip()]


def _is_file(path: Path) -> bool:
    """Whether a word names a file; long graph6 lines are no legal names."""
    try:
        return path.is_file()
    except OSError:
        return False


def _molecule(text: str) -> Any:
    """The graph of a SMILES."""
    molecules = importlib.import_module("pyg_pool.train.molecules")
    mol = molecules.mol_from_text(text)
    if mol is None:
        raise ValueError(
            f"pyg-pool wl got {text!r}, expected graph6, SMILES or an existing file; "
            f"correct it, or say with --format what it is."
        )
    return molecules.mol_to_graph(mol)


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
    a, b = (escape(_short(name)) for name in names)
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
        groups.setdefault(color, []).append(_short(name))
    console.out_console.print(
        f"{escape(title)}: {len(names)} graph(s) read as {kind}, "
        f"[bold]{result.num_classes} class(es)[/bold], stable after "
        f"{result.stable_round} round(s)."
    )
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


def _short(name: str) -> str:
    return name if len(name) <= 40 else f"{name[:37]}…"
