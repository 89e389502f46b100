"""The subcommand that coarsens one graph, or hands values back to its nodes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pyg_pool.cli import console
from pyg_pool.cli.console import clean_errors

if TYPE_CHECKING:
    from pyg_pool.coarsen import Coarsening, Quality

__all__ = ["coarsen"]


class Kernel(str, Enum):
    """Similarities that a graph may be seen with."""

    rw = "rw"
    normalized = "normalized"
    signless = "signless"


class Preset(str, Enum):
    """How much effort to spend."""

    fast = "fast"
    balanced = "balanced"
    best = "best"


Panel = "Quality and limits"


def coarsen(
    graph: Annotated[
        Path, typer.Argument(help="Graph file, or with --lift a folder made before.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder (or file) to make.")],
    ratio: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of the nodes each level keeps."),
    ] = None,
    num_clusters: Annotated[
        int | None, typer.Option(help="Exact number of clusters instead.")
    ] = None,
    levels: Annotated[int, typer.Option(help="Number of levels.")] = 1,
    method: Annotated[
        str, typer.Option(help="multilevel, ward, kmeans, or a rival's name.")
    ] = "multilevel",
    kernel: Annotated[Kernel, typer.Option(help="Similarity.")] = Kernel.rw,
    mass: Annotated[
        str | None, typer.Option(help="degree or uniform; by default the kernel's.")
    ] = None,
    preset: Annotated[Preset, typer.Option(help="Effort.")] = Preset.best,
    spectral_weight: Annotated[
        float, typer.Option(help="Extra care for the spectrum.", rich_help_panel=Panel)
    ] = 0.0,
    connected: Annotated[
        bool, typer.Option("--connected", help="Connected clusters only.")
    ] = False,
    max_cluster_mass: Annotated[
        float | None, typer.Option(help="Largest share of the mass of a cluster.")
    ] = None,
    must_link: Annotated[
        Path | None,
        typer.Option(help="File of groups that share a cluster, one group a line."),
    ] = None,
    never_merge: Annotated[
        Path | None,
        typer.Option(help="File of groups of which no two nodes share a cluster."),
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="File of nodes that stay alone.")
    ] = None,
    eigenvalues: Annotated[
        int, typer.Option(min=0, help="Eigenvalues to compare in the report; 0: none.")
    ] = 0,
    format: Annotated[
        str, typer.Option(help="Format of the input; auto: by name.")
    ] = "auto",
    columns: Annotated[
        str | None, typer.Option(help="Column names: source,target[,weight].")
    ] = None,
    weighted: Annotated[
        bool | None,
        typer.Option(
            "--weighted/--unweighted", help="By default as the file is written."
        ),
    ] = None,
    duplicates: Annotated[
        str, typer.Option(help="Equal edges: sum, max, first or error.")
    ] = "sum",
    write: Annotated[
        str, typer.Option(help="Coarse graph as npz, pt, metis, parquet, mtx (commas).")
    ] = "npz",
    seed: Annotated[int, typer.Option(help="Seed of ties.")] = 0,
    num_threads: Annotated[
        int | None, typer.Option(help="Threads; by default all cores.")
    ] = None,
    lift: Annotated[
        Path | None,
        typer.Option(help="Values of the clusters (.npy or text) to hand back."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the run would need.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a folder made before.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="A bar; by default in a terminal only."
        ),
    ] = None,
) -> None:
    """Coarsen a graph of any size and write clusters, coarse graph and report."""
    with clean_errors():
        if lift is not None:
            _lift(graph, lift, out)
            return
        from pyg_pool.coarsen import coarsen as run
        from pyg_pool.coarsen import read_graph
        from pyg_pool.coarsen.constraints import read_groups
        from pyg_pool.coarsen.estimate import estimate
        from pyg_pool.coarsen.inputs import target_sizes
        from pyg_pool.coarsen.methods import check_options
        from pyg_pool.coarsen.write import check_formats, check_free

        formats = tuple(word.strip() for word in write.split(",") if word.strip())
        check_options(method, kernel.value, mass, preset.value, duplicates=duplicates)
        target_sizes(1, ratio, num_clusters, levels)
        check_formats("write", formats)
        check_free(out, overwrite)
        reading: dict[str, Any] = {"format": format, "duplicates": duplicates}
        needs = estimate(graph, reading["format"])
        console.err_console.print(f"{escape(str(graph))}: {needs}")
        if dry_run:
            return
        names = None if columns is None else tuple(columns.split(","))
        source = read_graph(graph, columns=names, weighted=weighted, **reading)
        options: dict[str, Any] = {"method": method, "kernel": kernel.value}
        for name, file in (("must_link", must_link), ("never_merge", never_merge)):
            options[name] = None if file is None else read_groups(file, source)
        if keep is not None:
            options["keep"] = list(chain(*read_groups(keep, source)))
        out.parent.mkdir(parents=True, exist_ok=True)
        rest = out.with_name(f"{out.name}.interrupted.npz")
        with _stops_kindly(rest):
            found = run(
                source,
                ratio=ratio,
                num_clusters=num_clusters,
                levels=levels,
                mass=mass,
                preset=preset.value,
                spectral_weight=spectral_weight,
                connected=connected,
                max_cluster_mass=max_cluster_mass,
                seed=seed,
                num_threads=num_threads,
                progress=sys.stderr.isatty() if progress is None else progress,
                out=rest,
                **options,
            )
        _finish(found, out, graph, formats, eigenvalues, overwrite)
        rest.unlink(missing_ok=True)  # last: where writing fails, the result stays


def _finish(
    found: Coarsening,
    out: Path,
    graph: Path,
    formats: tuple[str, ...],
    eigenvalues: int,
    overwrite: bool,
) -> None:
    """Write the folder and print the report."""
    from pyg_pool.coarsen.write import write_folder

    quality = None if found.kept is not None else found.quality(eigenvalues)
    write_folder(
        found,
        out,
        source=graph,
        formats=formats,
        figures=None if quality is None else quality.to_dict(),
        extra=None
        if quality is None
        else lambda folder: _draw(found, quality, folder, graph.name),
        overwrite=overwrite,
    )
    table = Table("measure", title=escape(graph.name))
    table.add_column("value", justify="right")
    for row in [] if quality is None else quality.rows():
        table.add_row(*row)
    if found.levels > 1:
        sizes = " → ".join(f"{n:,}" for n in (found.num_nodes, *found.sizes))
        table.add_row("levels", sizes)
    console.out_console.print(table)
    console.out_console.print(f"Written to {escape(str(out))}", soft_wrap=True)


def _draw(found: Coarsening, quality: Quality, folder: Path, title: str) -> None:
    """Add the picture of the report where matplotlib is there."""
    try:
        from pyg_pool.view import draw_quality

        parts = quality.to_dict()
        levels = [
            found.until(level).quality().to_dict() for level in range(1, found.levels)
        ]
        figure = draw_quality([*levels, parts] if levels else parts, title=title)
    except ImportError as error:
        console.err_console.print(f"No picture: {escape(str(error))}")
        return
    figure.savefig(folder / "quality.png", dpi=130)


def _lift(folder: Path, values: Path, out: Path) -> None:
    """Write the value of each original node's cluster."""
    from pyg_pool.coarsen.write import lift_values

    count = lift_values(folder, values, out)
    console.out_console.print(
        f"{count:,} nodes written to {escape(str(out))}", soft_wrap=True
    )


@contextmanager
def _stops_kindly(rest: Path) -> Iterator[None]:
    """Turn an interrupt into a message about what was kept, and exit code 130."""
    previous = signal.signal(
        signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT)
    )
    try:
        yield
    except KeyboardInterrupt as error:
        kept = f"; the last finished level is in {rest}" if rest.exists() else ""
        console.err_console.print(f"Interrupted{escape(kept)}", soft_wrap=True)
        raise typer.Exit(130) from error
    finally:
        signal.signal(signal.SIGTERM, previous)
