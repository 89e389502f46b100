"""Mistakes of the user become one message and exit code 2; others go through."""

from __future__ import annotations

import pytest

typer = pytest.importorskip("typer")


@pytest.mark.parametrize("kind", [ValueError, FileNotFoundError, ImportError])
def test_mistakes_end_with_code_two(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    from pyg_pool.cli import console

    console.err_console.file = None
    with pytest.raises(typer.Exit) as stopped, console.clean_errors():
        raise kind("[3] was given")
    assert stopped.value.exit_code == 2
    assert "Error: [3] was given" in capsys.readouterr().err


def test_faults_of_the_library_are_not_hidden() -> None:
    from pyg_pool.cli.console import clean_errors

    with pytest.raises(ZeroDivisionError), clean_errors():
        raise ZeroDivisionError
