"""What all subcommands share: where they print, and how they report mistakes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pyg_pool.errors import PygPoolWarning, require

__all__ = [
    "check_picture",
    "clean_errors",
    "err_console",
    "out_console",
    "print_rows",
]

PAGES = (".html", ".htm")
PICTURES = (".png", ".pdf", ".svg", ".jpg", *PAGES)

out_console = Console(highlight=False)
err_console = Console(stderr=True, highlight=False)


@contextmanager
def clean_errors() -> Iterator[None]:
    """Turn errors about what the user gave into a message and exit code 2.

    Warnings of this library become a line without a place in the source.
    """
    try:
        with warnings.catch_warnings():
            others: Any = warnings.showwarning

            def show(message: Any, category: Any, *place: Any, **more: Any) -> None:
                if not issubclass(category, PygPoolWarning):
                    others(message, category, *place, **more)
                    return
                text = escape(str(message))
                err_console.print(f"[yellow]Warning:[/yellow] {text}", soft_wrap=True)

            warnings.showwarning = show
            yield
    except (ValueError, OSError, ImportError) as error:
        err_console.print(f"[bold red]Error:[/bold red] {escape(_message(error))}")
        raise typer.Exit(2) from error


def _message(error: Exception) -> str:
    """What an error says; for one of the system with what to do about it."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    return (
        f"{str(error.filename)!r} cannot be opened or written ({error.strerror}), "
        f"expected a path that can; correct it, or the rights and free space there."
    )


def check_picture(option: str, path: Path) -> bool:
    """Return whether a page is wanted, before any work is done for it.

    Raises:
        ValueError: If the name has another ending than a picture or a page.
        ImportError: If the package that draws it is not installed.
    """
    ending = path.suffix.lower()
    if ending not in PICTURES:
        raise ValueError(
            f"{option} got {str(path)!r}, expected a name that ends in one of "
            f"{', '.join(PICTURES)}; change its ending."
        )
    is_page = ending in PAGES
    require("plotly" if is_page else "matplotlib", "view")
    return is_page


def print_rows(
    title: str, rows: dict[str, str], marks: dict[str, str] | None = None
) -> None:
    """Print names and descriptions in two columns, with marks of some in a third."""
    out_console.print(f"[bold]{title}[/bold]")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column()
    if marks is not None:
        grid.add_column(no_wrap=True)
    for name, text in rows.items():
        mark = [] if marks is None else [escape(marks.get(name, ""))]
        grid.add_row(f"  {escape(name)}", escape(text), *mark)
    out_console.print(grid)
