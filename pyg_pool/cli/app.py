"""The subcommands: read the options, call the library, print, set the exit code.

Exit codes: 0 all went well; 2 something is wrong with the command, its options, the
data or the installation, said in one message.
"""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pyg_pool.cli import coarsen, console, info, mesh, mesh_train, wl
from pyg_pool.cli.console import clean_errors

if TYPE_CHECKING:
    from pyg_pool.train import JobSummary

__all__ = ["app"]

app = typer.Typer(
    name="pyg-pool",
    help="Pooling, readout and coarsening of graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
train = typer.Typer(help="Train a model.", no_args_is_help=True)
app.add_typer(train, name="train")
mesh.app.command()(mesh_train.train)
mesh.app.command()(mesh_train.predict)
app.add_typer(mesh.app, name="mesh")
app.command("coarsen")(coarsen.coarsen)
app.command("wl")(wl.wl)
app.command("info")(info.info)


class Kind(str, Enum):
    """What ``pyg-pool list`` can be asked for."""

    operators = "operators"
    readouts = "readouts"
    models = "models"
    datasets = "datasets"


DATA, MODEL, TRAINING, RUNNING = "Data", "Model", "Training", "Running"


def _option(default: str, text: str, panel: str, *names: str) -> Any:
    """Return an option whose default the library sets, shown in the help."""
    return typer.Option(*names, help=text, show_default=default, rich_help_panel=panel)


@train.command("graph")
def train_graph(
    out: Annotated[Path, typer.Option(help="Run folder, new or with --resume.")],
    dataset: Annotated[
        str | None,
        _option("solubility", "Data set, see 'pyg-pool list datasets'.", DATA),
    ] = None,
    root: Annotated[
        str | None, _option("data", "Folder of data laid out beforehand.", DATA)
    ] = None,
    folds: Annotated[
        int | None, _option("0", "Folds of a cross-validation; 0: own split.", DATA)
    ] = None,
    split_file: Annotated[
        str | None, _option("none", "JSON file of fixed splits.", DATA)
    ] = None,
    model: Annotated[
        str | None,
        _option("hierarchical", "hierarchical, unet, gpn, gcn, gin or kl_gnn.", MODEL),
    ] = None,
    pool: Annotated[
        str | None,
        _option("gpool", "Pooling operator, see 'pyg-pool list operators'.", MODEL),
    ] = None,
    readout: Annotated[
        str | None, _option("mean,max", "Readouts, separated by commas.", MODEL)
    ] = None,
    conv: Annotated[
        str | None,
        _option("auto", "Convolution: gcn, sage, gat, gine, …; auto: own.", MODEL),
    ] = None,
    hidden: Annotated[
        int | None, _option("64", "Width of the node features.", MODEL)
    ] = None,
    levels: Annotated[
        int | None, _option("3", "Pooling levels; layers of gpn, gcn, gin.", MODEL)
    ] = None,
    ratio: Annotated[
        float | None, _option("0.8", "Share of nodes each level keeps.", MODEL)
    ] = None,
    k: Annotated[
        int | None, _option("1", "kl_gnn: power of the base, 1 or 2.", MODEL, "--k")
    ] = None,
    l: Annotated[  # noqa: E741
        int | None, _option("1", "kl_gnn: number of labels.", MODEL, "--l")
    ] = None,
    domain: Annotated[
        str | None, _option("distinct", "kl_gnn: distinct, star, dist<=2, …", MODEL)
    ] = None,
    encoding: Annotated[
        str | None, _option("mark", "kl_gnn: mark, spd, resistance or none.", MODEL)
    ] = None,
    ego: Annotated[
        int | None, _option("3", "kl_gnn: radius of the copies; 0: whole.", MODEL)
    ] = None,
    dropout: Annotated[
        float | None, _option("0.2", "Dropout probability.", MODEL)
    ] = None,
    epochs: Annotated[
        int | None, _option("100", "Most epochs of one run.", TRAINING)
    ] = None,
    batch_size: Annotated[
        int | None, _option("32", "Graphs in a batch.", TRAINING)
    ] = None,
    lr: Annotated[
        float | None, _option("0.001", "Learning rate of AdamW.", TRAINING)
    ] = None,
    weight_decay: Annotated[
        float | None, _option("0.0", "Weight decay of AdamW.", TRAINING)
    ] = None,
    patience: Annotated[
        int | None,
        _option(
            "0", "Epochs without a better validation score; 0: never stop.", TRAINING
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        _option("1", "How many seeds, or which: '5', '0,7', '7,'.", TRAINING),
    ] = None,
    device: Annotated[
        str | None, _option("auto", "auto, cpu, cuda, cuda:N or mps.", RUNNING)
    ] = None,
    precision: Annotated[
        str | None, _option("32", "32, 64, bf16 or 16 (mixed).", RUNNING)
    ] = None,
    deterministic: Annotated[
        bool | None,
        _option(
            "no-deterministic",
            "Repeatable results on a GPU too.",
            RUNNING,
            "--deterministic/--no-deterministic",
        ),
    ] = None,
    workers: Annotated[
        int | None, _option("0", "Processes that load data.", RUNNING)
    ] = None,
    threads: Annotated[
        int | None, _option("0", "CPU threads; 0: torch decides.", RUNNING)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML file of options; those on the command line win.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Carry on the run in the folder.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Progress bars; by default in a terminal only.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train a graph classifier or regressor, over seeds and folds."""
    given = {
        name: value
        for name, value in locals().items()
        if name not in ("out", "config", "resume", "progress") and value is not None
    }
    bars = sys.stderr.isatty() if progress is None else progress
    with clean_errors():
        from pyg_pool.train import GraphJob, show_messages
        from pyg_pool.train.config import read_config

        options = {**(read_config(config) if config else {}), **given}
        job = GraphJob.prepare(options, out, resume=resume)
    with show_messages(bars=bars):
        summary = job.run(progress=bars)
    _print_summary(summary)


@app.command("list")
def list_names(
    kind: Annotated[
        Kind | None, typer.Argument(help="Only these; all where left out.")
    ] = None,
) -> None:
    """Name every operator, readout, model and data set, with one line on each.

    Operators that 'pyg-pool train graph' takes are marked; the others are for meshes
    or undo a pooling.
    """
    from pyg_pool import train as room

    datasets = {each.name: each.description for each in room.list_datasets()}
    tables = {
        Kind.operators: room.list_operators(),
        Kind.readouts: room.list_readouts(),
        Kind.models: room.list_models(),
        Kind.datasets: datasets,
    }
    for each, rows in tables.items():
        if kind in (None, each):
            title = "data sets" if each is Kind.datasets else each.value
            marks = dict.fromkeys(room.list_pools(), "train graph --pool")
            console.print_rows(
                title.capitalize(), rows, marks if each is Kind.operators else None
            )


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path(
        "runs/demo"
    ),
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress",
            help="Progress bars; by default in a terminal only.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Train a pooling classifier and a plain one on real molecules; about a minute."""
    bars = sys.stderr.isatty() if progress is None else progress
    with clean_errors():
        from pyg_pool.train import Demo, show_messages

        prepared = Demo.prepare(out)
    with show_messages(bars=bars):
        result = prepared.run(progress=bars)
    table = Table("model", title="Solubility of molecules, 3 classes")
    for name in ("validation", "test accuracy", "weights", "seconds"):
        table.add_column(name, justify="right")
    for row in result.rows:
        scores = (f"{row.val_score:.1%}", f"[bold]{row.test_score:.1%}[/bold]")
        sizes = (f"{row.num_parameters:,}", f"{row.seconds:.0f}")
        table.add_row(row.name, *scores, *sizes)
    table.add_row("majority class", "", f"{result.majority:.1%}", "", "")
    console.out_console.print(table)
    console.out_console.print("Pictures:")
    for picture in result.pictures:
        console.out_console.print(f"  {escape(str(picture))}", soft_wrap=True)


def _print_summary(summary: JobSummary) -> None:
    """Print the scores of a job and where its files are."""
    table = Table("run", title=f"{escape(summary.dataset)}: {summary.metric}")
    for name in ("best epoch", "validation", "test", "s/epoch"):
        table.add_column(name, justify="right")
    for run in summary.runs:
        scores = [
            "undefined" if score is None else f"{score:.4f}"
            for score in (run.val_score, run.test_score)
        ]
        epoch = f"{run.best_epoch} of {run.epochs}"
        table.add_row(run.name, epoch, *scores, f"{run.epoch_seconds:.2f}")
    table.add_section()
    mean = f"[bold]{summary.test_mean:.4f} ± {summary.test_deviation:.4f}[/bold]"
    table.add_row("mean", "", "", mean, "")
    table.add_row("constant answer", "", "", f"{summary.majority:.4f}", "")
    console.out_console.print(table)
    peak = max(run.peak_memory_mb for run in summary.runs)
    console.out_console.print(
        f"{summary.num_parameters:,} weights, peak memory {peak:.0f} MB"
    )
    console.out_console.print(f"Results: {escape(str(summary.out))}", soft_wrap=True)
