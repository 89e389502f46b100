"""The subcommand, from file to folder and back."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy.io import mmread
from typer.testing import CliRunner

from pyg_pool.cli.app import app
from pyg_pool.coarsen import Coarsening
from tests.coarsen.made_graphs import blocks

RUN = CliRunner()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    coo = blocks(300).tocoo()
    lines = "".join(f"{i + 5},{j + 5}\n" for i, j in zip(coo.row, coo.col, strict=True))
    (tmp_path / "graph.csv").write_text("source,target\n" + lines)
    return tmp_path / "graph.csv"


def call(*words: object) -> tuple[int, str]:
    done = RUN.invoke(app, ["coarsen", *map(str, words)])
    return done.exit_code, done.output


def test_from_file_to_folder_and_back(path: Path) -> None:
    out = path.parent / "out"
    code, text = call(path, "-o", out, "--ratio", 0.2, "--levels", 2)
    assert code == 0, text
    assert "GW distance at most" in text
    names = {file.name for file in out.iterdir()}
    assert {"manifest.json", "quality.json", "quality.png", "clusters.parquet"} <= names
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["nodes"] == [300, 60, 12]
    assert [p.name for p in path.parent.iterdir() if "interrupted" in p.name] == []
    np.save(path.parent / "part.npy", np.arange(12))
    labels = path.parent / "labels.parquet"
    code, text = call(out, "-o", labels, "--lift", path.parent / "part.npy")
    assert code == 0, text
    nodes = parquet.read_table(labels)["node"].to_pylist()
    assert sorted(nodes) == list(range(5, 305))


def test_dry_run_writes_nothing(path: Path) -> None:
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2, "--dry-run")
    assert code == 0
    assert "GB of memory" in text
    assert not (path.parent / "out").exists()


def test_dry_run_takes_patterns_and_formats(path: Path) -> None:
    plain = path.rename(path.with_suffix(".unknown"))
    out = ("-o", path.parent / "out", "--ratio", 0.2, "--dry-run")
    assert call(plain, *out)[0] == 2
    assert call(plain, *out, "--format", "edges")[0] == 0
    table = {"src": np.arange(50), "dst": np.arange(50) + 1}
    parquet.write_table(pyarrow.table(table), path.parent / "a.parquet")
    code, text = call(path.parent / "*.parquet", *out)
    assert (code, "about 50 edges" in " ".join(text.split())) == (0, True)


def test_wishes_by_the_names_of_the_file(path: Path) -> None:
    groups = {
        "keep": "7\n9 11\n",
        "must-link": "5,304\n6,300\n",
        "never-merge": "8 10\n",
    }
    words: list[object] = []
    for name, text in groups.items():
        (path.parent / name).write_text(text)
        words += [f"--{name}", path.parent / name]
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2, *words)
    assert code == 0, text
    table = parquet.read_table(path.parent / "out" / "clusters.parquet").to_pydict()
    cluster = dict(zip(table["node"], table["cluster"], strict=True))
    assert cluster[5] == cluster[304]
    assert cluster[6] == cluster[300]
    assert cluster[8] != cluster[10]
    sizes = np.bincount(table["cluster"])
    assert [sizes[cluster[node]] for node in (7, 9, 11)] == [1, 1, 1]
    (path.parent / "keep").write_text("4\n")
    code, text = call(path, "-o", path.parent / "b", "--ratio", 0.2, *words)
    assert (code, "names the node '4'" in " ".join(text.split())) == (2, True)


@pytest.mark.parametrize("name", ["a.gr", "a.mtx", "a.graph"])
def test_original_numbers_come_back_once(name: str, tmp_path: Path) -> None:
    ring = [(i, i % 12 + 1) for i in range(1, 13)]
    ends = "".join(f"{i} {j}\n" for i, j in ring)
    near = "".join(f"{(i - 2) % 12 + 1} {i % 12 + 1}\n" for i in range(1, 13))
    head = "%%MatrixMarket matrix coordinate pattern symmetric\n14 14 12\n"
    texts = {
        "a.gr": f"p tw 14 12\n{ends}",
        "a.mtx": head + ends,
        "a.graph": f"14 12\n{near}\n\n",
    }
    (tmp_path / name).write_text(texts[name])
    out, labels = tmp_path / "out", tmp_path / "labels.parquet"
    assert call(tmp_path / name, "-o", out, "--num-clusters", 5)[0] == 0
    nodes = parquet.read_table(out / "clusters.parquet")["node"].to_pylist()
    assert nodes == list(range(1, 15))
    assert json.loads((out / "manifest.json").read_text())["input"]["isolated"] == 2
    np.save(tmp_path / "part.npy", np.arange(5) % 2)
    assert call(out, "-o", labels, "--lift", tmp_path / "part.npy")[0] == 0
    assert parquet.read_table(labels)["node"].to_pylist() == list(range(1, 15))


def test_weights_and_duplicates(path: Path) -> None:
    path.write_text("1 2 5\n1 2 5\n2 3 5\n")
    for words, weights in (
        ((), [10, 5]),
        (("--duplicates", "max"), [5, 5]),
        (("--unweighted", "--duplicates", "first"), [1, 1]),
    ):
        out = path.parent / "out"
        given = ("-o", out, "--ratio", 1, "--overwrite", "--write", "mtx", *words)
        code, text = call(path, *given)
        assert code == 0, text
        rows = mmread(out / "coarse.mtx").toarray()
        assert [rows[0, 1], rows[1, 2]] == weights


def test_interrupt_keeps_the_last_level(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyg_pool.coarsen import multilevel

    plain, calls = multilevel.group, []

    def stops(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGTERM)
        return plain(*args)

    monkeypatch.setattr(multilevel, "group", stops)
    code, text = call(path, "-o", path.parent / "out", "--num-clusters", 5)
    assert code == 130
    assert "last finished level" in " ".join(text.split())
    kept = Coarsening.load(path.parent / "out.interrupted.npz")
    assert 5 < kept.num_clusters < 300
    assert kept.ids.tolist() == list(range(5, 305))
    assert not (path.parent / "out").exists()


def test_mistakes_end_with_a_message(path: Path) -> None:
    code, text = call(path, "-o", path.parent / "out")
    assert code == 2
    assert "exactly one" in " ".join(text.split())
    code, text = call(path.parent / "none.csv", "-o", path.parent / "out", "--ratio", 1)
    assert code == 2
    (path.parent / "out").mkdir()
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2)
    assert code == 2
    assert "exists" in text


def test_mistakes_are_named_before_the_work(path: Path) -> None:
    def refused(*words: object) -> str:
        code, text = call(*words, "-o", path.parent / "out")
        assert code == 2
        return " ".join(text.split())

    text = refused(path.parent / "none.csv", "--ratio", 0.2)
    assert "expected an existing file or folder; check the path." in text
    assert "--ratio" in refused(path, "--ratio", 1.5)
    for words in (("--method", "wild"), ("--mass", "wild"), ("--duplicates", "wild")):
        text = refused(path, "--ratio", 0.2, "--dry-run", *words)
        assert f"{words[0][2:]}='wild'" in text
    assert "exactly one" in refused(path, "--dry-run")
    assert "write='wild'" in refused(path, "--ratio", 0.2, "--write", "npz,wild")
    assert "eigenvalues" in refused(path, "--ratio", 0.2, "--eigenvalues", -1)
    (path.parent / "a.txt.gz").write_text("0 1")
    (path.parent / "b.txt.xz").write_text("0 1")
    for name in ("a.txt.gz", "b.txt.xz"):
        assert "unpacked" in refused(path.parent / name, "--ratio", 0.2)
    np.save(path.parent / "part.npy", np.arange(3))
    lift = ("--lift", path.parent / "part.npy")
    assert "ends in .parquet" in refused(path.parent, *lift)
    code, text = call(path.parent, "-o", path.parent / "a.parquet", *lift)
    assert (code, "folder of a coarsening" in " ".join(text.split())) == (2, True)
    assert {p.name for p in path.parent.iterdir()} == {
        "graph.csv", "a.txt.gz", "b.txt.xz", "part.npy",
    }  # fmt: skip


def test_folders_above_the_result_are_made(path: Path) -> None:
    out = path.parent / "new" / "out"
    assert call(path, "-o", out, "--ratio", 0.2)[0] == 0
    assert (out / "manifest.json").is_file()


def test_result_survives_a_folder_that_cannot_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("pyg_pool.coarsen.write.write_folder", full)
    code, text = call(path, "-o", path.parent / "out", "--ratio", 0.2)
    assert code != 0, text
    kept = Coarsening.load(path.parent / "out.interrupted.npz")
    assert kept.num_clusters == 60
