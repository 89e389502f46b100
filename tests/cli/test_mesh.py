"""``pyg-pool mesh show``: what it draws, and what it says about mistakes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pyg_pool.mesh import Mesh, generate_shape, write_labels, write_mesh

pytest.importorskip("typer")
pytest.importorskip("matplotlib")


def call(*words: object) -> SimpleNamespace:
    from typer.testing import CliRunner

    from pyg_pool.cli.app import app

    result = CliRunner().invoke(app, ["mesh", "show", *map(str, words)])
    return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)


@pytest.fixture
def vessel(tmp_path: Path) -> Mesh:
    mesh = generate_shape("vase")
    write_mesh(tmp_path / "vase.off", mesh)
    write_labels(tmp_path / "vase.seg", mesh.labels)
    write_labels(tmp_path / "guess.npy", 0 * mesh.labels)
    write_labels(tmp_path / "level.seg", np.arange(mesh.num_faces) // 5)
    return mesh


@pytest.mark.parametrize("name", ["sheet.png", "new/page.html"])
def test_pictures_are_written(tmp_path: Path, vessel: Mesh, name: str) -> None:
    pytest.importorskip("plotly")
    out = tmp_path / name
    done = call(
        tmp_path / "vase.off", "--labels", tmp_path / "vase.seg",
        "--prediction", tmp_path / "guess.npy", "--clusters", tmp_path / "level.seg",
        "--names", "belly,foot", "--up", "z", "--out", out,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert "Written:" in done.out
    if out.suffix == ".png":
        assert out.read_bytes().startswith(b"\x89PNG")
    else:
        assert '"belly"' in out.read_text(encoding="utf-8")


def test_without_a_file_a_pot_is_shown(tmp_path: Path) -> None:
    assert call("--out", tmp_path / "pot.svg").code == 0
    assert "handle" in (tmp_path / "pot.svg").read_text()


def test_mistakes_are_named(tmp_path: Path, vessel: Mesh) -> None:
    done = call(tmp_path / "none.off")
    assert (done.code, "expected an existing mesh file" in flat(done.err)) == (2, True)
    write_labels(tmp_path / "short.seg", [1, 2])
    done = call(tmp_path / "vase.off", "--labels", tmp_path / "short.seg")
    assert (done.code, "got 2 labels" in flat(done.err)) == (2, True)
    (tmp_path / "quad.obj").write_text(
        "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n"
    )
    done = call(tmp_path / "quad.obj", "--out", tmp_path / "a.png")
    assert (done.code, "1 of its 1 faces have more" in flat(done.err)) == (2, True)
    out = tmp_path / "a.png"
    assert call(tmp_path / "quad.obj", "--polygons", "--out", out).code == 0


def test_unknown_ending_writes_nothing(tmp_path: Path, vessel: Mesh) -> None:
    before = sorted(tmp_path.iterdir())
    done = call(tmp_path / "vase.off", "--out", tmp_path / "new" / "a.xyz")
    assert (done.code, "change its ending" in flat(done.err)) == (2, True)
    assert sorted(tmp_path.iterdir()) == before


def flat(text: str) -> str:
    return " ".join(text.split())
