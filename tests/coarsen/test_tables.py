"""Binary readers: what each refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pytest
import torch
from pyarrow import feather, parquet
from scipy.sparse import csr_matrix, save_npz

from pyg_pool.coarsen import read_graph
from pyg_pool.coarsen.tables import (
    read_numpy,
    read_ogb,
    read_scipy,
    read_table,
    read_torch,
)


def test_arrays_by_name(tmp_path: Path) -> None:
    path, row = tmp_path / "a.npz", np.array([0, 1])
    np.savez(path, row=row, col=row[::-1], num_nodes=3)
    found = read_scipy(path)
    assert (found.num_nodes, found.row.tolist()) == (3, [0, 1])
    np.savez(path, edge_index=np.array([[0, 1], [1, 0], [1, 2]]))
    assert read_scipy(path).col.tolist() == [1, 0, 2]
    np.savez(path, other=row)
    with pytest.raises(ValueError, match="'other'"):
        read_scipy(path)


def test_what_is_no_graph(tmp_path: Path) -> None:
    save_npz(tmp_path / "a.npz", csr_matrix((2, 3)))
    with pytest.raises(ValueError, match="square"):
        read_scipy(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", np.zeros((2, 4)))
    with pytest.raises(ValueError, match="integers"):
        read_numpy(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read"):
        read_numpy(tmp_path / "b.npy")
    torch.save([1, 2], tmp_path / "a.pt")
    with pytest.raises(ValueError, match="edge_index"):
        read_torch(tmp_path / "a.pt")
    with pytest.raises(FileNotFoundError, match=r"edge\.csv\.gz"):
        read_ogb(tmp_path)


def test_tensors_and_weights(tmp_path: Path) -> None:
    edges, weight = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 2.0])
    torch.save((edges, weight), tmp_path / "a.pt")
    assert read_torch(tmp_path / "a.pt").weight.tolist() == [2, 2]
    torch.save({"edge_index": edges, "x": torch.ones(5, 1)}, tmp_path / "b.pt")
    assert read_torch(tmp_path / "b.pt").num_nodes == 5


def test_ids_that_are_missing(tmp_path: Path) -> None:
    for ends in (["amy", None], [7, None]):
        table = pyarrow.table({"src": ["bob", "eve"], "dst": ends})
        parquet.write_table(table, tmp_path / "a.parquet")
        with pytest.raises(ValueError, match=r"column 'dst' holds (None|float64)"):
            read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("suffix", ["feather", "csv"])
def test_names_of_columns_that_are_no_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        path.write_bytes(b"src,dst,x\n1,2,3\n")
    else:
        feather.write_feather(pyarrow.table({"src": [1], "dst": [2]}), path)
    path.write_bytes(path.read_bytes().replace(b"dst", b"d\x9bt"))
    with pytest.raises(ValueError, match="expected"):
        read_graph(path, columns=("src", "dst"))
