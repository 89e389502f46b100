"""The command ``pyg-pool``: the same names as in the Python interface."""

from __future__ import annotations

import importlib
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command, or say what to install where its packages are missing."""
    errors = importlib.import_module("pyg_pool.errors")
    try:
        for package in ("typer", "rich"):
            errors.require(package, "cli")
    except ImportError as error:
        print(f"pyg-pool: {error}", file=sys.stderr)
        sys.exit(2)
    importlib.import_module("pyg_pool.cli.app").app(prog_name="pyg-pool")
