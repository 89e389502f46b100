from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.datasets import TUDataset

from pyg_pool.train import tu_sets
from pyg_pool.train.tu_sets import TU_SETS, is_laid_out, load_tu

# Three graphs: a path 0-1-2, an edge 3-4 with a loop at 4, and the lone node 5.
FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n5, 5\n",
    "graph_indicator": "1\n1\n1\n2\n2\n3\n",
    "graph_labels": "5\n-1\n5\n",
    "node_labels": "7\n8\n7\n9\n8\n7\n",
    "edge_labels": "1\n1\n0\n0\n1\n1\n0\n",
    "node_attributes": "0.1\n0.2\n0.3\n0.4\n0.5\n0.6\n",
    "edge_attributes": "1.5\n1.5\n2.5\n2.5\n3.5\n3.5\n9\n",
}
PLAIN = ("A", "graph_indicator", "graph_labels")


def lay_out(root: Path, *parts: str, name: str = "toy", **changed: str) -> Path:
    folder = root / name / "raw"
    folder.mkdir(parents=True)
    for part in parts:
        text = changed.get(part, FILES.get(part, ""))
        (folder / f"{name}_{part}.txt").write_text(text)
    return root


def test_reads_labels_and_structure(tmp_path: Path) -> None:
    found = load_tu("toy", lay_out(tmp_path, *FILES), download=False)
    graphs = found.graphs
    assert found.class_names == ("-1", "5")
    assert graphs.y.tolist() == [1, 0, 1]
    assert graphs.num_nodes.tolist() == [3, 2, 1]
    assert graphs[0].edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert graphs[1].edge_index.tolist() == [[0, 1], [1, 0]]  # the loop is dropped
    assert graphs[2].num_edges == 0
    assert graphs[1].x.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert graphs[0].edge_attr.tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]
    assert graphs.x.dtype == graphs.edge_attr.dtype == torch.float32


def test_attributes_come_first_when_asked_for(tmp_path: Path) -> None:
    graphs = load_tu(
        "toy", lay_out(tmp_path, *FILES), use_node_attr=True, use_edge_attr=True
    ).graphs
    torch.testing.assert_close(graphs[2].x, torch.tensor([[0.6, 1.0, 0.0, 0.0]]))
    torch.testing.assert_close(
        graphs[1].edge_attr, torch.tensor([[3.5, 0.0, 1.0], [3.5, 0.0, 1.0]])
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[0, 1, 0], [0, 0, 1], [0, 1, 0]]),
        ({"max_degree": 1}, [[0, 1], [0, 1], [0, 1]]),
        ({"node_features": "degree"}, [[0, 1, 0], [0, 0, 1], [0, 1, 0]]),
        ({"node_features": "constant"}, [[1], [1], [1]]),
    ],
)
def test_features_of_sets_without_any(
    tmp_path: Path, options: dict[str, Any], expected: list[list[int]]
) -> None:
    graphs = load_tu("toy", lay_out(tmp_path, *PLAIN), **options).graphs
    assert graphs[0].x.tolist() == expected
    assert graphs[2].x[0, 0] == 1
    assert graphs.edge_attr is None
    assert graphs.num_nodes.tolist() == [3, 2, 1]


def test_degrees_can_replace_the_labels(tmp_path: Path) -> None:
    graphs = load_tu(
        "toy", lay_out(tmp_path, *FILES), use_node_attr=True, node_features="degree"
    ).graphs
    assert graphs[0].x.tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 0]]


def test_attributes_only_hint_at_the_option(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = lay_out(tmp_path, *PLAIN, "node_attributes")
    assert load_tu("toy", root).graphs.num_node_features == 3
    assert "toy has node attributes only; see use_node_attr" in caplog.text
    assert load_tu("toy", root, use_node_attr=True).graphs.num_node_features == 1


def test_graph_attributes_are_regression(tmp_path: Path) -> None:
    root = lay_out(
        tmp_path, *PLAIN, "graph_attributes", graph_attributes="1.5, 2\n3, 4\n5, 6\n"
    )
    found = load_tu("toy", root)
    assert found.class_names == ()
    assert found.graphs.y.tolist() == [[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_cache_is_used_and_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = lay_out(tmp_path, *FILES)
    first = load_tu("toy", root, use_node_attr=True).graphs
    cache = root / "toy" / "processed" / tu_sets.CACHE
    assert [p.name for p in cache.parent.iterdir()] == [tu_sets.CACHE]
    with monkeypatch.context() as patch:
        patch.setattr(tu_sets, "read_tu_data", None)  # would fail if it were called
        second = load_tu("toy", root, use_node_attr=True).graphs
    for key in ("x", "edge_index", "edge_attr", "y", "node_ptr", "edge_ptr"):
        assert torch.equal(getattr(first, key), getattr(second, key))
    (root / "toy" / "raw" / "toy_graph_labels.txt").write_text("5\n5\n6\n")
    assert load_tu("toy", root).graphs.y.tolist() == [0, 0, 1]


class Payload:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def test_broken_and_hostile_caches_are_made_anew(tmp_path: Path) -> None:
    root = lay_out(tmp_path, *FILES)
    folder = root / "toy" / "processed"
    folder.mkdir()
    trap = tmp_path / "trap"
    for name in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        torch.save(Payload(trap), folder / name)
    hostile = np.array([Payload(trap)], dtype=object)
    cache = folder / tu_sets.CACHE
    for content in (b"PK", b"", pickle.dumps(Payload(trap)), None):
        if content is None:
            np.savez(cache, stamp=hostile, x=hostile)
        else:
            cache.write_bytes(content)
        assert len(load_tu("toy", root).graphs) == 3
        with np.load(cache, allow_pickle=False) as file:
            assert file["y"].tolist() == [1, 0, 1]
    assert not trap.exists()


def test_a_folder_that_cannot_be_written_is_enough(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = lay_out(tmp_path, *FILES)
    (root / "toy" / "processed").write_text("a file where the folder should be")
    with caplog.at_level("INFO", logger="pyg_pool"):
        assert len(load_tu("toy", root).graphs) == 3
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize("missing", PLAIN)
def test_says_which_file_is_missing(tmp_path: Path, missing: str) -> None:
    root = lay_out(tmp_path, *[part for part in PLAIN if part != missing])
    with pytest.raises(FileNotFoundError, match=f"toy_{missing}.txt"):
        load_tu("toy", root, download=False)
    assert is_laid_out("toy", root) == (missing != "A")


def test_refuses_labels_that_do_not_fit(tmp_path: Path) -> None:
    root = lay_out(tmp_path, *PLAIN, graph_labels="1\n2\n")
    with pytest.raises(ValueError, match="has 2 graph labels for 3 graphs, expected"):
        load_tu("toy", root)


def archive(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for part in PLAIN:
            file.writestr(f"{name}/{name}_{part}.txt", FILES[part])
    return stream.getvalue()


@pytest.mark.parametrize("leftover", [False, True])
def test_downloads_into_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leftover: bool
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "toy.zip").write_bytes(archive("toy"))
    monkeypatch.setattr(TUDataset, "url", site.as_uri())
    root = tmp_path / "data"
    if leftover:
        (root / "toy" / "raw").mkdir(parents=True)
    assert len(load_tu("toy", root).graphs) == 3
    assert sorted(p.name for p in (root / "toy").iterdir()) == ["processed", "raw"]


@pytest.mark.parametrize("broken", [False, True])
def test_a_failed_download_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    if broken:
        (site / "toy.zip").write_bytes(archive("toy")[:40])
    monkeypatch.setattr(TUDataset, "url", site.as_uri())
    root = tmp_path / "data"
    with pytest.raises(FileNotFoundError, match=r"toy_A.txt, and the download failed"):
        load_tu("toy", root)
    assert list((root / "toy").iterdir()) == []


def test_names_are_described() -> None:
    assert len(TU_SETS) > 100
    assert all(text and "\n" not in text for text in TU_SETS.values())


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "columns", "edges", "nodes", "classes"),
    [
        ("MUTAG", 7, 4, 17.93, [63, 125]),
        ("PROTEINS", 3, 0, 39.06, [663, 450]),
        ("ENZYMES", 3, 0, 32.63, [100] * 6),
        ("IMDB-BINARY", 65, 0, 19.77, [500, 500]),
    ],
)
def test_real_sets_have_their_published_sizes(
    data_root: Path,
    name: str,
    columns: int,
    edges: int,
    nodes: float,
    classes: list[int],
) -> None:
    if not is_laid_out(name, data_root):
        pytest.skip(f"{name} is not laid out in {data_root}")
    graphs = load_tu(name, data_root, download=False).graphs
    assert (graphs.num_node_features, graphs.num_edge_features) == (columns, edges)
    assert torch.bincount(graphs.y).tolist() == classes
    assert float(graphs.num_nodes.double().mean()) == pytest.approx(nodes, abs=0.005)


@pytest.mark.data
@pytest.mark.parametrize("use", [False, True])
def test_equals_pygs_own_object(data_root: Path, tmp_path: Path, use: bool) -> None:
    name = "ENZYMES"
    if not is_laid_out(name, data_root):
        pytest.skip(f"{name} is not laid out in {data_root}")
    (tmp_path / name).mkdir()
    (tmp_path / name / "raw").symlink_to((data_root / name / "raw").resolve())
    reference = TUDataset(str(tmp_path), name, use_node_attr=use)
    graphs = load_tu(name, tmp_path, use_node_attr=use, download=False).graphs
    assert len(graphs) == len(reference) == 600
    for given, expected in zip(graphs, reference, strict=True):
        assert torch.equal(given.x, expected.x)
        assert torch.equal(given.edge_index, expected.edge_index)
        assert torch.equal(given.y, expected.y)
