"""``pyg-pool info``: versions, devices, backends, and on demand where twins pay."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from pyg_pool.cli import console

__all__ = ["info"]


def info(
    bench: Annotated[
        bool,
        typer.Option(
            "--bench", help="Measure from which size compiled kernels pay here."
        ),
    ] = False,
) -> None:
    """Print versions and the backends of the kernels."""
    import torch

    from pyg_pool.kernels import available_backends, current_backend
    from pyg_pool.train import versions

    console.print_rows("Versions", versions())
    cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    devices = {"cpu": f"{torch.get_num_threads()} thread(s)"}
    devices.update({f"cuda:{i}": name for i, name in enumerate(cuda)})
    console.print_rows("Devices", devices)
    console.print_rows(
        "Backends", {**available_backends(), "in force": current_backend()}
    )
    if bench:
        _print_crossovers()


def _print_crossovers() -> None:
    """Print where each compiled twin starts to be faster on this machine."""
    from pyg_pool.kernels.crossover import measure_crossovers

    table = Table("primitive", title="Compiled CPU kernels, elements or edges")
    for name in ("faster from", "used from", "gain at 262,144"):
        table.add_column(name, justify="right")
    for each in measure_crossovers():
        start = "never" if each.measured is None else f"{each.measured:,}"
        table.add_row(each.primitive, start, f"{each.used:,}", f"{each.gain:.1f}x")
    console.out_console.print(table)
