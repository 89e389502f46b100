"""The folder of a coarsening."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pyarrow import parquet

from pyg_pool.coarsen import coarsen, read_graph
from pyg_pool.coarsen.write import NAMES, OUTPUTS, lift_values, write_folder
from tests.coarsen.made_graphs import blocks, ring


def test_everything_is_there(tmp_path: Path) -> None:
    found = coarsen(blocks(200), ratio=0.2)
    found.source.ids = np.arange(200) * 3
    write_folder(found, tmp_path / "out", formats=OUTPUTS, figures={"a": 1})
    folder = tmp_path / "out"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["nodes"] == [200, 40]
    assert set(manifest["files"]) == {p.name for p in folder.iterdir()} - {
        "manifest.json"
    }
    table = parquet.read_table(folder / "clusters.parquet")
    assert table["node"].to_pylist() == (np.arange(200) * 3).tolist()
    assert table["cluster"].to_pylist() == found.cluster.tolist()
    expected = found.graph()
    for form in OUTPUTS:
        graph = read_graph(folder / NAMES[form])
        assert graph.num_edges == expected.num_edges // 2
        weight = torch.tensor(graph.edge_weight())
        torch.testing.assert_close(weight.float(), expected.edge_weight)


def test_nothing_is_left_of_a_failure(tmp_path: Path) -> None:
    found = coarsen(ring(20), ratio=0.2)

    def fails(folder: Path) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_folder(found, tmp_path / "out", extra=fails)
    assert list(tmp_path.iterdir()) == []


def test_folders_are_replaced_only_if_allowed(tmp_path: Path) -> None:
    found = coarsen(ring(20), ratio=0.2)
    write_folder(found, tmp_path / "out")
    with pytest.raises(ValueError, match="exists"):
        write_folder(found, tmp_path / "out")
    write_folder(found, tmp_path / "out", overwrite=True)
    (tmp_path / "other").mkdir()
    with pytest.raises(ValueError, match="no coarsening"):
        write_folder(found, tmp_path / "other", overwrite=True)


def test_lift_names_every_node_once(tmp_path: Path) -> None:
    found = coarsen(blocks(200), ratio=0.1)
    found.source.ids = np.array([f"n{i:03d}" for i in range(200)])
    write_folder(found, tmp_path / "out")
    part = np.arange(20) % 4
    np.save(tmp_path / "part.npy", part)
    out = tmp_path / "labels.parquet"
    assert lift_values(tmp_path / "out", tmp_path / "part.npy", out) == 200
    table = parquet.read_table(out)
    assert table["node"].to_pylist() == found.ids.tolist()
    assert table["value"].to_pylist() == part[found.cluster].tolist()
    np.savetxt(tmp_path / "part.txt", part[:3], fmt="%d")
    with pytest.raises(ValueError, match=r"expected \[20\]"):
        lift_values(tmp_path / "out", tmp_path / "part.txt", out)


def test_suffix_of_lifted_values_is_kept(tmp_path: Path) -> None:
    found = coarsen(ring(40), ratio=0.1)
    write_folder(found, tmp_path / "out")
    np.save(tmp_path / "part.npy", np.arange(4))
    out = tmp_path / "labels.csv.gz"
    assert lift_values(tmp_path / "out", tmp_path / "part.npy", out) == 40
    assert gzip.decompress(out.read_bytes()).startswith(b"node,value\n")
    with pytest.raises(ValueError, match=r"ends in \.parquet or \.csv\.gz"):
        lift_values(tmp_path / "out", tmp_path / "part.npy", tmp_path / "labels")
    with pytest.raises(FileNotFoundError, match="one value per cluster"):
        lift_values(tmp_path / "out", tmp_path / "none.npy", out)
    assert {p.name for p in tmp_path.iterdir()} == {"out", "part.npy", "labels.csv.gz"}
