"""Subcommands on triangle meshes."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from pyg_pool.cli import console
from pyg_pool.cli.console import clean_errors

__all__ = ["app", "write_picture"]

app = typer.Typer(help="Train on, label and show meshes.", no_args_is_help=True)


class Axis(str, Enum):
    """The axis that points up."""

    x = "x"
    y = "y"
    z = "z"


@app.command()
def show(
    path: Annotated[
        Path | None,
        typer.Argument(help="Mesh file; a generated pot where left out."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Picture (.png, .pdf, .svg) or page (.html).")
    ] = Path("mesh.html"),
    labels: Annotated[
        Path | None,
        typer.Option(help="True labels: .seg, .eseg, .labels or .npy."),
    ] = None,
    prediction: Annotated[
        Path | None, typer.Option(help="Predicted labels, in the same forms.")
    ] = None,
    clusters: Annotated[
        list[Path] | None,
        typer.Option(help="Cluster of each face, one file per level; repeat."),
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the parts, separated by commas.")
    ] = None,
    up: Annotated[Axis, typer.Option(help="Axis that points up.")] = Axis.z,
    title: Annotated[str | None, typer.Option(help="Heading.")] = None,
    polygons: Annotated[
        bool, typer.Option("--polygons", help="Cut polygons into triangles.")
    ] = False,
) -> None:
    """Draw a mesh with its labels and clusters: a sheet, or a page to turn it."""
    with clean_errors():
        is_page = console.check_picture("--out", out)
        from pyg_pool.mesh import PART_NAMES, generate_shape, read_labels, read_mesh

        if path is None:
            mesh, known = generate_shape("pot"), list(PART_NAMES)
        else:
            cut: Any = "fan" if polygons else "error"
            mesh, known = read_mesh(path, clean=False, polygons=cut), None
        if labels is not None:
            mesh = type(mesh)(mesh.vertices, mesh.faces, read_labels(labels, mesh))
        guess = None if prediction is None else read_labels(prediction, mesh)
        levels = [read_labels(each, mesh) for each in clusters or []]
        options: dict[str, Any] = {
            "prediction": guess,
            "clusters": levels,
            "names": known if names is None else names.split(","),
            "title": title or (path.name if path else "A generated pot"),
            "up": up.value,
        }
        write_picture(out, mesh, options, is_page=is_page)
    console.out_console.print(f"Written: {escape(str(out))}", soft_wrap=True)


def write_picture(
    out: Path, mesh: Any, options: dict[str, Any], *, is_page: bool
) -> None:
    """Write a page or a sheet."""
    from pyg_pool.view import draw_mesh, write_mesh_page

    out.parent.mkdir(parents=True, exist_ok=True)
    if is_page:
        write_mesh_page(out, mesh, **options)
    else:
        draw_mesh(mesh, **options).savefig(out, dpi=150)
