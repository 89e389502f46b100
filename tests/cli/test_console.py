"""Mistakes of the user become one message and exit code 2; others go through."""

from __future__ import annotations

from pathlib import Path

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


def test_errors_of_the_system_say_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyg_pool.cli.console import clean_errors

    (tmp_path / "file").write_text("")
    with pytest.raises(typer.Exit) as stopped, clean_errors():
        (tmp_path / "file" / "below").mkdir()
    assert stopped.value.exit_code == 2
    text = " ".join(capsys.readouterr().err.split())
    assert "cannot be opened or written" in text
    assert "expected a path that can; correct it" in text


def test_pictures_are_told_from_pages_by_their_ending() -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    from pyg_pool.cli.console import check_picture

    assert check_picture("--out", Path("a.HTML"))
    assert not check_picture("--out", Path("a.svg"))
    with pytest.raises(ValueError, match=r"--out got 'a\.xyz', expected a name"):
        check_picture("--out", Path("a.xyz"))


def test_faults_of_the_library_are_not_hidden() -> None:
    from pyg_pool.cli.console import clean_errors

    with pytest.raises(ZeroDivisionError), clean_errors():
        raise ZeroDivisionError
