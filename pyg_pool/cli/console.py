"""What all subcommands share: where they print, and how they report mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.markup import escape

__all__ = ["clean_errors", "err_console", "out_console"]

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
