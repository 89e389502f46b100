"""What all subcommands share: where they print, and how they report mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["clean_errors", "err_console", "out_console", "print_rows"]

out_console = Console(highlight=False)
err_console = Console(stderr=True, highlight=False)


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn errors about what the user gave into a message and exit code 2."""
    try:
        yield
    except (ValueError, FileNotFoundError, ImportError) as error:
        err_console.print(f"[bold red]Error:[/bold red] {escape(str(error))}")
        raise typer.Exit(2) from error


def print_rows(title: str, rows: dict[str, str]) -> None:
    """Print names and descriptions in two columns."""
    out_console.print(f"[bold]{title}[/bold]")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, text in rows.items():
        grid.add_row(f"  {escape(name)}", escape(text))
    out_console.print(grid)
