"""Readers on good files and on thousands of damaged ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, save_npz
from torch_geometric.data import Data

from pyg_pool.coarsen import Graph, read_graph
from pyg_pool.coarsen.read import content_hash, format_of
from tests.coarsen.made_graphs import blocks

ROWS = blocks(100)
COO = ROWS.tocoo()
UPPER = [(int(i), int(j)) for i, j in zip(COO.row, COO.col, strict=True) if i < j]


def edge_list(separator: str = ",", header: str = "source,target\n") -> bytes:
    lines = "".join(f"{i}{separator}{j}\n" for i, j in UPPER)
    return (header + lines).encode()


def metis() -> bytes:
    lines = [f"% a comment\n{100} {len(UPPER)}\n"]
    for i in range(100):
        ids = ROWS.indices[ROWS.indptr[i] : ROWS.indptr[i + 1]]
        lines.append(" ".join(str(j + 1) for j in ids) + "\n")
    return "".join(lines).encode()


def pace() -> bytes:
    lines = "".join(f"{i + 1} {j + 1}\n" for i, j in UPPER)
    return f"c a comment\np tw 100 {len(UPPER)}\n{lines}".encode()


def dimacs() -> bytes:
    lines = "".join(f"a {i + 1} {j + 1} 1\na {j + 1} {i + 1} 1\n" for i, j in UPPER)
    return f"c a comment\np sp 100 {2 * len(UPPER)}\n{lines}".encode()


def market() -> bytes:
    head = "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n"
    lines = "".join(f"{j + 1} {i + 1}\n" for i, j in UPPER)
    return f"{head}100 100 {len(UPPER)}\n{lines}".encode()


TEXTS: dict[str, Callable[[], bytes]] = {
    "a.csv": edge_list,
    "a.tsv": lambda: edge_list("\t", ""),
    "a.txt": lambda: edge_list(" ", "# a comment\n"),
    "a.graph": metis,
    "pace.gr": pace,
    "dimacs.gr": dimacs,
    "a.mtx": market,
}


def write_binary(path: Path) -> None:
    index = torch.tensor(np.stack([COO.row, COO.col])).long()
    if path.suffix == ".npz":
        save_npz(path, ROWS)
    elif path.suffix == ".npy":
        np.save(path, index.numpy())
    elif path.suffix == ".pt":
        torch.save(Data(edge_index=index, num_nodes=100), path)
    else:
        import pyarrow
        from pyarrow import feather, parquet

        table = pyarrow.table({"src": COO.row, "dst": COO.col})
        if path.suffix == ".parquet":
            parquet.write_table(table, path)
        else:
            feather.write_feather(table, path)


BINARIES = ("a.npz", "a.npy", "a.pt", "a.parquet", "a.feather")


def same(graph: Graph) -> bool:
    return bool((graph.to_scipy() != ROWS).nnz == 0)


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packing", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_text(name: str, packing: str, tmp_path: Path) -> None:
    data = TEXTS[name]()
    if packing == ".zst":
        import pyarrow

        data = pyarrow.compress(data, "zstd", asbytes=True)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    path = tmp_path / f"{name}{packing}"
    path.write_bytes(pack.get(packing, bytes)(data))
    assert same(read_graph(path))


@pytest.mark.parametrize("name", BINARIES)
def test_binary(name: str, tmp_path: Path) -> None:
    write_binary(tmp_path / name)
    assert same(read_graph(tmp_path / name))


def test_tables_in_folders_and_patterns(tmp_path: Path) -> None:
    write_binary(tmp_path / "a.parquet")
    assert same(read_graph(tmp_path))
    assert same(read_graph(tmp_path / "*.parquet"))
    assert same(read_graph(tmp_path / "a.parquet", columns=("dst", "src")))
    with pytest.raises(ValueError, match="'weight'"):
        read_graph(tmp_path / "a.parquet", columns=("src", "dst", "weight"))


def test_ogb_folder(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "edge.csv.gz").write_bytes(gzip.compress(edge_list(",", "")))
    (raw / "num-node-list.csv.gz").write_bytes(gzip.compress(b"100\n"))
    assert same(read_graph(tmp_path))


def test_names_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("src,dst\nbob,amy\namy,eve\n9000000000000000000000,bob\n")
    assert read_graph(path).ids.tolist() == [
        "9000000000000000000000",
        "amy",
        "bob",
        "eve",
    ]
    path.write_text(f"{2**62} 7\n7 {2**40}\n")
    assert read_graph(path).ids.tolist() == [7, 2**40, 2**62]


def test_weights_and_facts(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 1 2.5\n1 2 1e-1\n1 2 0.1\n2 2 4\n")
    graph = read_graph(path)
    facts = {"rows": 4, "self_loops": 1, "duplicates": 1, "isolated": 0}
    assert graph.facts == facts
    np.testing.assert_allclose(graph.edge_weight(), [2.5, 2.5, 0.2, 0.2, 4])
    assert read_graph(path, weighted=False).edge_weight().tolist()[-1] == 1
    (tmp_path / "b.graph").write_text("3 2 11\n5 2 7\n1 1 7 3 4\n2 2 4\n")
    weighted = read_graph(tmp_path / "b.graph")
    assert weighted.weight.tolist() == [7, 7, 4, 4]


@pytest.mark.parametrize("name", ["a.graph", "pace.gr", "dimacs.gr", "a.mtx"])
def test_formats_that_count_from_one_keep_their_numbers(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(TEXTS[name]())
    assert read_graph(tmp_path / name).ids.tolist() == list(range(1, 101))


@pytest.mark.parametrize("name", ["a.npz", "a.npy", "a.pt"])
def test_formats_that_count_from_zero_keep_their_numbers(
    name: str, tmp_path: Path
) -> None:
    write_binary(tmp_path / name)
    assert read_graph(tmp_path / name).ids is None


@pytest.mark.parametrize("name", ["a.graph", "dimacs.gr", "a.mtx", "a.npz", "a.txt"])
def test_weights_of_any_format_can_be_left_out(name: str, tmp_path: Path) -> None:
    texts = {
        "a.graph": "2 1 1\n2 5\n1 5\n",
        "dimacs.gr": "p sp 2 1\na 1 2 5\n",
        "a.mtx": "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n2 1 5\n",
        "a.txt": "0 1 5\n",
    }
    path = tmp_path / name
    if name in texts:
        path.write_text(texts[name])
    else:
        save_npz(path, csr_matrix([[0.0, 5.0], [5.0, 0.0]]))
    assert read_graph(path).weight.tolist() == [5, 5]
    assert read_graph(path, weighted=True).weight.tolist() == [5, 5]
    assert read_graph(path, weighted=False).weight.size == 0


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n")
    with pytest.raises(ValueError, match="weighted=True"):
        read_graph(tmp_path / "a.txt", weighted=True)


def test_no_such_file_and_no_such_kind(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_graph(tmp_path / "a.csv")
    (tmp_path / "a.xyz").write_text("0 1\n")
    with pytest.raises(ValueError, match="format="):
        read_graph(tmp_path / "a.xyz")
    assert read_graph(tmp_path / "a.xyz", format="edges").num_edges == 1
    assert format_of(Path("b.CSV.gz")) == "edges"


def test_hash_follows_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    first = content_hash(tmp_path / "a")
    (tmp_path / "a").write_text("y")
    assert content_hash(tmp_path / "a") != first
    assert content_hash(tmp_path) == content_hash(tmp_path / "a")


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Cut, changed, doubled or shuffled bytes."""
    kind, at = random.integers(5), int(random.integers(max(len(data), 1)))
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + data[at + int(random.integers(1, 9)) :]
    if kind == 2:
        return data[:at] + data[at : at + 40] + data[at:]
    out = bytearray(data)
    for _ in range(1 if kind == 3 else 8):
        out[int(random.integers(len(out)))] = int(random.integers(256))
    return bytes(out)


def write_graph(path: Path) -> None:
    """A good file of the kind that a name stands for."""
    path.parent.mkdir(exist_ok=True)
    if path.name == "edge.csv.gz":
        path.write_bytes(gzip.compress(edge_list(",", "")))
        sizes = gzip.compress(b"100\n")
        path.with_name("num-node-list.csv.gz").write_bytes(sizes)
    elif path.name in BINARIES:
        write_binary(path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(TEXTS[path.stem]()))
    else:
        path.write_bytes(TEXTS[path.name]())


def read_or_error(path: Path, options: dict[str, Any]) -> tuple[Graph | None, str]:
    """The graph, or what the reader says of the file."""
    try:
        return read_graph(path, **options), ""
    except ValueError as error:
        return None, str(error)


def check_damage(name: str, count: int, folder: Path) -> None:
    """A clear error or a graph; never a hang or another error."""
    name, _, columns = name.partition(":")
    path = folder / name
    write_graph(path)
    what = path.parent if "raw" in path.parts else path
    options: dict[str, Any] = {"columns": tuple(columns.split(","))} if columns else {}
    assert same(read_graph(what, **options))
    data, random = path.read_bytes(), np.random.default_rng(len(name))
    for _ in range(count):
        path.write_bytes(damaged(data, random))
        begin = time.perf_counter()
        graph, message = read_or_error(what, options)
        assert graph is not None or ("expected" in message and ";" in message)
        if graph is not None:
            assert graph.num_nodes < 10**7
            assert (graph.to_scipy() != graph.to_scipy().T).nnz == 0
        assert time.perf_counter() - begin < 10


READERS = [
    *TEXTS,
    *BINARIES,
    "a.csv:target,source",
    "a.mtx.gz",
    "raw/edge.csv.gz",
]


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(name: str, tmp_path: Path) -> None:
    check_damage(name, 40, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_many_damaged_files(name: str, tmp_path: Path) -> None:
    check_damage(name, 10_000, tmp_path)
