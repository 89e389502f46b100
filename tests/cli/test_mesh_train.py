"""``pyg-pool mesh train`` and ``predict``: from a folder to labels of a file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from pyg_pool.mesh import read_labels, read_mesh, write_labels, write_mesh
from tests.train.mesh_runs import vessel, write_parts

pytest.importorskip("typer")
pytest.importorskip("lightning")

SMALL = (
    "--channels", "8,8", "--norm-groups", 2, "--epochs", 1, "--batch-size", 2,
    "--device", "cpu", "--threads", 1,
)  # fmt: skip


def call(*words: object) -> SimpleNamespace:
    from typer.testing import CliRunner

    from pyg_pool.cli.app import app

    result = CliRunner().invoke(app, ["mesh", *map(str, words)])
    return SimpleNamespace(code=result.exit_code, out=result.stdout, err=result.stderr)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run on two categories."""
    root = tmp_path_factory.mktemp("data")
    for name in ("jars", "urns"):
        write_parts(root, name)
    out = root / "run"
    done = call(
        "train", "--data", root, "--categories", "jars,urns", "--task",
        "segmentation", "--out", out, *SMALL,
    )  # fmt: skip
    assert done.code == 0, done.err
    for word in ("urns", "by area", "mean of 2", "majority"):
        assert word in done.out
    return out


def test_labels_of_a_file(run: Path, tmp_path: Path) -> None:
    mesh = tmp_path / "a.off"
    write_mesh(mesh, vessel("vase", 5))
    done = call("predict", mesh, "--model", run / "urns-seed0")
    assert done.code == 0, done.err
    given = read_mesh(mesh, clean=False)
    assert read_labels(tmp_path / "a.seg", given).shape == (given.num_faces,)
    again = call("predict", mesh, "--model", run / "urns-seed0" / "last.ckpt")
    assert again.code == 2
    assert "expected a new" in " ".join(again.err.split())
    picture = tmp_path / "a.png"
    done = call(
        "predict", mesh, "--model", run / "urns-seed0", "--out", tmp_path / "b.npy",
        "--num-faces", 150, "--picture", picture, "--labels", tmp_path / "a.seg",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.out.count("simplified from") == 1
    assert "of the faces are right" in done.out
    assert picture.stat().st_size > 1000
    assert (tmp_path / "b.npy").exists()


@pytest.mark.filterwarnings("always::pyg_pool.errors.PygPoolWarning")
def test_run_with_augmentation_from_another_layout(tmp_path: Path) -> None:
    write_parts(tmp_path / "data", "coseg_vases", beside=False)
    # A face twice: said in one line, and the training goes on.
    mesh = vessel("vase", 0)
    twice = [*mesh.faces.tolist(), mesh.faces[0].tolist()]
    write_mesh(
        tmp_path / "data/coseg_vases/train/0.off", type(mesh)(mesh.vertices, twice)
    )
    write_labels(tmp_path / "data/coseg_vases/seg/0.seg", [*mesh.labels, 0])
    done = call(
        "train", "--data", tmp_path / "data", "--task", "segmentation", "--layout",
        "coseg", "--slide", 0.2, "--flip", 0.2, "--versions", 2, "--cache",
        tmp_path / "cache", "--out", tmp_path / "run", *SMALL,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "2 x 2 train" in done.err
    assert "Warning: Repair changed 2 meshes" in done.err
    assert "preprocessing.py" not in done.err
    assert len(list((tmp_path / "cache").iterdir())) == 5
    text = (tmp_path / "run" / "results.txt").read_text()
    assert text in done.out


def test_class_of_a_file(tmp_path: Path) -> None:
    for kind in ("vase", "box"):
        for part in ("train", "test"):
            folder = tmp_path / "data" / kind / part
            folder.mkdir(parents=True)
            for seed in (1, 2):
                write_mesh(folder / f"{seed}.obj", vessel(kind, seed))
    out = tmp_path / "run"
    done = call("train", "--data", tmp_path / "data", "--out", out, *SMALL)
    assert done.code == 0, done.err
    file = tmp_path / "data" / "box" / "test" / "1.obj"
    done = call("predict", file, "--model", out)
    assert done.code == 0, done.err
    assert "vase" in done.out
    assert "%" in done.out
    resumed = call("train", "--out", out, "--resume", "--epochs", 2)
    assert resumed.code == 0, resumed.err


def test_mistakes(run: Path, tmp_path: Path) -> None:
    done = call("train", "--out", tmp_path / "run")
    assert done.code == 2
    assert "no option 'data'" in done.err
    done = call("predict", tmp_path / "no.off", "--model", run)
    assert done.code == 2
    assert "2 files last.ckpt" in " ".join(done.err.split())
    done = call("train", "--data", run.parent, "--layout", "coseg", "--out", tmp_path)
    assert done.code == 2
    assert "expected auto, shrec, cubes" in " ".join(done.err.split())
    done = call("predict", tmp_path / "no.off", "--model", run / "urns-seed0")
    assert done.code == 2
    assert "no.off" in done.err
