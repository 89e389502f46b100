"""Subcommands that train mesh networks and label meshes with them."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from pyg_pool.cli import console
from pyg_pool.cli.console import clean_errors
from pyg_pool.cli.mesh import write_picture

if TYPE_CHECKING:
    from pyg_pool.train import MeshPrediction, MeshSummary

__all__ = ["predict", "train"]

DATA, MODEL, AUGMENT = "Data", "Model", "Augmentation"
TRAINING, RUNNING = "Training", "Running"


class Task(str, Enum):
    """What is learned."""

    classification = "classification"
    segmentation = "segmentation"


def _option(default: str, text: str, panel: str) -> Any:
    """Return an option whose default the library sets, shown in the help."""
    return typer.Option(help=text, show_default=default, rich_help_panel=panel)


def train(
    out: Annotated[Path, typer.Option(help="Run folder, new or with --resume.")],
    data: Annotated[
        str | None, _option("none", "Folder NAME/train|test/MESH.", DATA)
    ] = None,
    task: Annotated[
        Task | None, _option("classification", "Of meshes, or of faces.", DATA)
    ] = None,
    categories: Annotated[
        str | None, _option("all", "Folders to segment, with commas.", DATA)
    ] = None,
    layout: Annotated[
        str | None,
        _option("auto", "shrec, cubes; princeton, coseg or human.", DATA),
    ] = None,
    download: Annotated[
        bool | None,
        typer.Option("--download", help="Fetch a missing set.", rich_help_panel=DATA),
    ] = None,
    polygons: Annotated[
        str | None, _option("error", "fan cuts them into triangles.", DATA)
    ] = None,
    cache: Annotated[
        str | None,
        _option("auto: beside the data", "Folder of made graphs, or none.", DATA),
    ] = None,
    graphs: Annotated[
        str | None, _option("A", "Kind of dual graph: A, B or C.", DATA)
    ] = None,
    primal_features: Annotated[
        str | None, _option("area", "Features of a face: area, dual or shape.", DATA)
    ] = None,
    model: Annotated[
        str | None, _option("auto", "classifier; unet or segmenter.", MODEL)
    ] = None,
    channels: Annotated[
        str | None, _option("64,128 or 32,64,128", "Widths of the blocks.", MODEL)
    ] = None,
    heads: Annotated[int | None, _option("3 or 1", "Attention heads.", MODEL)] = None,
    num_skips: Annotated[
        int | None, _option("1", "Further convolutions of a block.", MODEL)
    ] = None,
    norm: Annotated[
        str | None, _option("group", "group, batch or none.", MODEL)
    ] = None,
    norm_groups: Annotated[
        int | None, _option("16", "Groups of the group norm.", MODEL)
    ] = None,
    keep: Annotated[
        float | None, _option("0.8 or 0.7", "Share of edges a level keeps.", MODEL)
    ] = None,
    reduce: Annotated[
        str | None, _option("mean", "mean or sum of merged faces.", MODEL)
    ] = None,
    dropout: Annotated[
        float | None, _option("0.0", "Rate of dropped attention.", MODEL)
    ] = None,
    head_channels: Annotated[
        int | None, _option("100", "Hidden layer of the classifier.", MODEL)
    ] = None,
    slide: Annotated[
        float | None, _option("0.0", "Share of vertices that slide.", AUGMENT)
    ] = None,
    flip: Annotated[
        float | None, _option("0.0", "Share of edges that flip.", AUGMENT)
    ] = None,
    scale: Annotated[
        float | None, _option("0.0", "Deviation of the vertices' factors.", AUGMENT)
    ] = None,
    versions: Annotated[
        int | None,
        _option("20, or 1 without changes", "Of each mesh, one an epoch.", AUGMENT),
    ] = None,
    epochs: Annotated[
        int | None, _option("200", "Epochs; more on a resume.", TRAINING)
    ] = None,
    batch_size: Annotated[
        int | None, _option("16", "Meshes in a batch.", TRAINING)
    ] = None,
    lr: Annotated[
        float | None, _option("0.0002 or 0.001", "Learning rate of Adam.", TRAINING)
    ] = None,
    weight_decay: Annotated[
        float | None, _option("0.0", "Weight decay.", TRAINING)
    ] = None,
    constant_epochs: Annotated[
        int | None, _option("0", "Then the rate falls to 0; 0: never.", TRAINING)
    ] = None,
    loss_per: Annotated[
        str | None, _option("face", "What weighs the same: face or mesh.", TRAINING)
    ] = None,
    val_share: Annotated[
        float | None, _option("0.0", "Training meshes held out.", TRAINING)
    ] = None,
    evaluate: Annotated[
        str | None, _option("last", "Tested checkpoint: last or best.", TRAINING)
    ] = None,
    seeds: Annotated[
        str | None, _option("1", "How many seeds, or which: '5', '0,7'.", TRAINING)
    ] = None,
    matmul: Annotated[
        str | None, _option("highest", "highest, high or medium.", RUNNING)
    ] = None,
    device: Annotated[
        str | None, _option("auto", "auto, cpu, cuda, cuda:N or mps.", RUNNING)
    ] = None,
    threads: Annotated[
        int | None, _option("0", "CPU threads; 0: torch decides.", RUNNING)
    ] = None,
    workers: Annotated[
        int | None, _option("0", "Processes that make the graphs.", RUNNING)
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
    """Train a network that classifies meshes or labels their faces."""
    given = {
        name: value.value if isinstance(value, Enum) else value
        for name, value in locals().items()
        if name not in ("out", "resume", "progress") and value is not None
    }
    bars = sys.stderr.isatty() if progress is None else progress
    with clean_errors():
        from pyg_pool.train import MeshJob, show_messages

        with show_messages(bars=bars):
            job = MeshJob.prepare(given, out, resume=resume, progress=bars)
    with show_messages(bars=bars):
        summary = job.run(progress=bars)
    _print_summary(summary)


def predict(
    mesh: Annotated[Path, typer.Argument(help="Mesh file.")],
    model: Annotated[
        Path, typer.Option(help="Checkpoint of a run: .../last.ckpt, or its folder.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Labels of the file's faces (.seg, .npy, .txt)."),
    ] = None,
    num_faces: Annotated[
        int | None,
        typer.Option(
            help="Faces to simplify dense meshes to; 0 never does.",
            show_default="as many as in the training",
        ),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(help="Picture (.png) or page (.html) of labels and clusters."),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(help="True labels, for the picture and the share of right faces."),
    ] = None,
    polygons: Annotated[
        bool, typer.Option("--polygons", help="Cut polygons into triangles.")
    ] = False,
) -> None:
    """Classify a mesh, or write a label for each face of its file."""
    with clean_errors():
        is_page = picture is not None and console.check_picture("--picture", picture)
        from pyg_pool.mesh import read_labels, read_mesh, write_labels
        from pyg_pool.train import load_mesh_model, predict_mesh

        trained = load_mesh_model(_checkpoint(model))
        cut: Any = "fan" if polygons else "error"
        given = read_mesh(mesh, clean=False, polygons=cut)
        is_whole = trained.config.task == "classification"
        if labels is not None:
            given = type(given)(
                given.vertices,
                given.faces,
                read_labels(labels, given),
                given.face_index,
            )
        found = predict_mesh(trained, given, num_faces=num_faces)
        if not is_whole:
            target = mesh.with_suffix(".seg") if out is None else out
            if out is None and target.exists():
                raise ValueError(
                    f"predict got no --out and {str(target)!r} exists, expected a new "
                    f"file; name one with --out."
                )
        if picture is not None:
            options = _picture(found, is_whole)
            write_picture(picture, given, options, is_page=is_page)
        if not is_whole:
            write_labels(target, found.file_labels)
    if found.note:
        console.out_console.print(f"Note: {escape(found.note)}", soft_wrap=True)
    if is_whole:
        _print_classes(found)
        return
    _print_parts(found)
    if given.labels is not None:
        right = float((found.labels == given.labels).mean())
        console.out_console.print(f"{right:.1%} of the faces are right")
    console.out_console.print(f"Written: {escape(str(target))}", soft_wrap=True)


def _checkpoint(path: Path) -> Path:
    """The checkpoint that a file, a run or a folder with one run stands for."""
    if not path.is_dir():
        return path
    found = sorted([*path.glob("last.ckpt"), *path.glob("*/last.ckpt")])
    if len(found) != 1:
        raise ValueError(
            f"option 'model' got {str(path)!r} with {len(found)} files last.ckpt, "
            f"expected one; name the checkpoint."
        )
    return found[0]


def _picture(found: MeshPrediction, is_whole: bool) -> dict[str, Any]:
    """The labels and the clusters, as a picture shows them."""
    return {
        "prediction": None if is_whole else found.labels,
        "clusters": found.clusters,
        "names": None if is_whole else found.class_names,
    }


def _print_classes(found: MeshPrediction) -> None:
    """Print the most probable labels of a mesh."""
    order = found.scores[0].argsort()[::-1][:5]
    table = Table("class", "probability")
    for label in order:
        table.add_row(escape(found.class_names[label]), f"{found.scores[0][label]:.1%}")
    console.out_console.print(table)


def _print_parts(found: MeshPrediction) -> None:
    """Print how many faces got each label."""
    table = Table("label", "name", "faces")
    for label, (name, number) in enumerate(found.counts.items()):
        if number:
            table.add_row(str(label), escape(name), f"{number:,}")
    console.out_console.print(table)


def _print_summary(summary: MeshSummary) -> None:
    """Print the scores of a job, a row a category, and where its files are."""
    console.out_console.print(escape(summary.to_text()), end="", soft_wrap=True)
    console.out_console.print(f"Results: {escape(str(summary.out))}", soft_wrap=True)
