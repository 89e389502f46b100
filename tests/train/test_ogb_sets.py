from __future__ import annotations

import builtins
import gzip
import io
import math
import urllib.request
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pyg_pool.train.molecules import mol_from_text, mol_to_graph, ogb_module
from pyg_pool.train.ogb_sets import OGB_SETS, evaluate, load_ogb

# `pytest.importorskip` would import ogb, which then asks the network in a thread.
for package, extra in [("ogb", "ogb"), ("rdkit", "mol")]:
    if find_spec(package) is None:
        pytest.skip(f"the extra {extra} is not installed", allow_module_level=True)

SMILES = ["CCO", "c1ccccc1", "CC#N", "C=CC", "CCl"]
TARGETS = ["-0.5", "1.25", "2.0", "-3.0", "0.0"]
NAN = float("nan")


@pytest.fixture(autouse=True)
def _no_questions_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise OSError("no network in tests")

    def never(*args: Any) -> str:
        pytest.fail("a question was asked on standard input")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(builtins, "input", never)


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))


def rows(values: torch.Tensor) -> list[str]:
    return [",".join(str(v) for v in row) for row in values.tolist()]


def lay_out(
    root: Path, name: str = "ogbg-molesol", targets: list[str] = TARGETS
) -> Path:
    """Write five molecules in the form in which OGB ships its sets."""
    folder = root / name.replace("-", "_")
    graphs = [mol_to_graph(mol_from_text(text)) for text in SMILES]
    one_way = slice(None, None, 2)
    raw = {
        "edge": [r for g in graphs for r in rows(g.edge_index.T[one_way])],
        "edge-feat": [r for g in graphs for r in rows(g.edge_attr[one_way])],
        "node-feat": [r for g in graphs for r in rows(g.x)],
        "graph-label": targets,
        "num-node-list": [str(g.num_nodes) for g in graphs],
        "num-edge-list": [str(g.num_edges // 2) for g in graphs],
    }
    for part, lines in raw.items():
        write(folder / "raw" / f"{part}.csv.gz", lines)
    for part, lines in [("train", ["4", "0", "2"]), ("valid", ["1"]), ("test", ["3"])]:
        write(folder / "split" / "scaffold" / f"{part}.csv.gz", lines)
    table = [f"{t},{s},id" for t, s in zip(targets, SMILES, strict=True)]
    head = ",".join(f"task{i}" for i in range(targets[0].count(",") + 1))
    write(folder / "mapping" / "mol.csv.gz", [f"{head},smiles,mol_id", *table])
    (folder / "RELEASE_v1.txt").write_text("")
    return folder


def test_reads_a_set_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second time from the cache, which ogb alone cannot read."""
    folder = lay_out(tmp_path)
    for _ in range(2):
        found = load_ogb("ogbg-molesol", tmp_path, download=False)
        assert (found.task, found.metric) == ("regression", "rmse")
        assert found.graphs.y.tolist() == [[-0.5], [1.25], [2.0], [-3.0], [0.0]]
        for graph, text in zip(found.graphs, SMILES, strict=True):
            expected = mol_to_graph(mol_from_text(text))
            for key in ("x", "edge_index", "edge_attr"):
                assert torch.equal(graph[key], expected[key])
        split = found.split
        assert split.name == "scaffold"
        assert split.train.tolist() == [0, 2, 4]
        assert (split.val.tolist(), split.test.tolist()) == ([1], [3])
        assert found.molecules == tuple(SMILES)
        assert found.task_names == ("task0",)
    cache = [path.name for path in (folder / "processed").iterdir()]
    assert cache == ["geometric_data_processed.pt"]
    assert capsys.readouterr().out == ""


def test_allows_classes_only_while_it_reads(tmp_path: Path) -> None:
    lay_out(tmp_path)
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with torch.serialization.safe_globals([Path]):
            for _ in range(2):
                load_ogb("ogbg-molesol", tmp_path, download=False)
            assert torch.serialization.get_safe_globals() == [Path]
    finally:
        torch.serialization.add_safe_globals(before)


def test_several_tasks_with_missing_labels(tmp_path: Path) -> None:
    targets = ["1.0" + ",0.0" * 11, "," * 11, *["0.0" + "," * 11] * 3]
    lay_out(tmp_path, "ogbg-moltox21", targets)
    found = load_ogb("ogbg-moltox21", tmp_path, download=False)
    assert (found.task, found.metric) == ("binary", "rocauc")
    y = found.graphs.y
    assert y.shape == (5, 12)
    assert y[0].tolist() == [1.0] + [0.0] * 11
    assert y[1].isnan().all()
    assert y.isnan().sum() == 12 + 3 * 11


def test_integer_labels_become_floats(tmp_path: Path) -> None:
    lay_out(tmp_path, "ogbg-molhiv", ["1", "0", "0", "1", "0"])
    found = load_ogb("ogbg-molhiv", tmp_path, download=False)
    assert found.graphs.y.dtype == torch.float32
    assert found.graphs.y.flatten().tolist() == [1, 0, 0, 1, 0]


@pytest.mark.parametrize("module", ["numpy.core", "numpy._core"])
def test_a_split_stored_as_arrays(tmp_path: Path, module: str) -> None:
    """As written by NumPy before and since version 2."""
    folder = lay_out(tmp_path)
    stored = {"train": np.array([0, 4]), "valid": np.array([1]), "test": np.array([2])}
    path = folder / "split" / "scaffold" / "split_dict.pt"
    torch.save(stored, path, _use_new_zipfile_serialization=False)
    other = {"numpy.core", "numpy._core"} - {module}
    path.write_bytes(path.read_bytes().replace(other.pop().encode(), module.encode()))
    split = load_ogb("ogbg-molesol", tmp_path, download=False).split
    assert (split.train.tolist(), split.test.tolist()) == ([0, 4], [2])


@pytest.mark.parametrize(
    "missing",
    ["RELEASE_v1.txt", "raw/graph-label.csv.gz", "split/scaffold/valid.csv.gz"],
)
def test_incomplete_folders_are_an_error(tmp_path: Path, missing: str) -> None:
    """Neither a question, nor a download that would delete the folder first."""
    folder = lay_out(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no .*{missing}, expected"):
        load_ogb("ogbg-molesol", tmp_path, download=True)
    assert (folder / "raw" / "edge.csv.gz").exists()


def test_absent_sets_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*ogbg_molesol/raw/edge.csv"):
        load_ogb("ogbg-molesol", tmp_path, download=False)
    with pytest.raises(FileNotFoundError, match=r"download failed \(no network in"):
        load_ogb("ogbg-molesol", tmp_path, download=True)
    assert list(tmp_path.iterdir()) == []


def test_downloads_into_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lay_out(tmp_path / "made")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for path in made.rglob("*.*"):
            file.write(path, Path("esol") / path.relative_to(made))

    class Answer(io.BytesIO):
        def info(self) -> dict[str, str]:
            return {"Content-Length": str(len(stream.getvalue()))}

    monkeypatch.setattr(
        urllib.request, "urlopen", lambda url: Answer(stream.getvalue())
    )
    root = tmp_path / "data"
    assert len(load_ogb("ogbg-molesol", root, download=True).graphs) == 5
    assert [path.name for path in root.iterdir()] == ["ogbg_molesol"]


class Payload:
    """Leaves a file behind if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("content", ["hostile", "cut", "empty"])
def test_bad_caches_are_refused(tmp_path: Path, content: str) -> None:
    folder = lay_out(tmp_path)
    load_ogb("ogbg-molesol", tmp_path, download=False)
    cache = folder / "processed" / "geometric_data_processed.pt"
    trap = tmp_path / "trap"
    if content == "hostile":
        torch.save((Payload(trap), {}), cache)
    else:
        cache.write_bytes(cache.read_bytes()[:100] if content == "cut" else b"")
    with pytest.raises(
        ValueError, match=r"processed or .*cannot be read .* delete the"
    ):
        load_ogb("ogbg-molesol", tmp_path, download=False)
    assert not trap.exists()


def test_files_beside_the_cache_are_not_unpickled(tmp_path: Path) -> None:
    folder = lay_out(tmp_path)
    (folder / "processed").mkdir()
    trap = tmp_path / "trap"
    for name in ("pre_transform.pt", "pre_filter.pt"):
        torch.save(Payload(trap), folder / "processed" / name)
    load_ogb("ogbg-molesol", tmp_path, download=False)
    assert not trap.exists()


def test_a_stopped_first_reading_leaves_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = lay_out(tmp_path)

    def cut(content: Any, path: Any, *args: Any) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", cut)
        with pytest.raises(KeyboardInterrupt):
            load_ogb("ogbg-molesol", tmp_path, download=False)
    assert list((folder / "processed").iterdir()) == []
    assert len(load_ogb("ogbg-molesol", tmp_path, download=False).graphs) == 5


def test_molecules_that_do_not_match_are_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = lay_out(tmp_path)
    write(folder / "mapping" / "mol.csv.gz", ["task0,smiles,mol_id", "1,CCO,a"])
    assert load_ogb("ogbg-molesol", tmp_path, download=False).molecules is None
    assert "has 1 rows for 5 graphs" in caplog.text
    (folder / "mapping" / "mol.csv.gz").unlink()
    assert load_ogb("ogbg-molesol", tmp_path, download=False).molecules is None


def test_evaluator_ignores_missing_labels() -> None:
    y_true = torch.tensor([[1.0], [0.0], [1.0], [NAN]]).repeat(1, 12)
    y_pred = torch.tensor([[3.0], [2.0], [1.0], [9.0]]).repeat(1, 12)
    assert evaluate("ogbg-moltox21", y_true, y_pred.bfloat16()) == 0.5
    one_class = torch.ones(4, 12)
    assert math.isnan(evaluate("ogbg-moltox21", one_class, y_pred))
    given = evaluate("ogbg-molesol", torch.zeros(4, 1), torch.full((4, 1), 2.0))
    assert given == pytest.approx(2.0)


def test_the_list_is_ogbs() -> None:
    table = Path(ogb_module("ogb.graphproppred").__file__).with_name("master.csv")
    head = table.read_text().split("\n")[0].split(",")
    assert sorted(OGB_SETS) == sorted(n for n in head if n.startswith("ogbg-mol"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "sizes", "tasks", "nodes"),
    [
        ("ogbg-molesol", (902, 113, 113), 1, 13.29),
        ("ogbg-moltox21", (6264, 783, 784), 12, 18.57),
        ("ogbg-molhiv", (32901, 4113, 4113), 1, 25.51),
    ],
)
def test_real_sets_have_their_published_sizes(
    data_root: Path, name: str, sizes: tuple[int, int, int], tasks: int, nodes: float
) -> None:
    if not (data_root / name.replace("-", "_")).exists():
        pytest.skip(f"{name} is not laid out in {data_root}")
    found = load_ogb(name, data_root, download=False)
    split = found.split
    assert (len(split.train), len(split.val), len(split.test)) == sizes
    assert found.graphs.y.shape == (sum(sizes), tasks)
    mean = float(found.graphs.num_nodes.double().mean())
    assert mean == pytest.approx(nodes, abs=0.005)
    if name == "ogbg-moltox21":
        share = float(found.graphs.y.isnan().double().mean())
        assert share == pytest.approx(0.171, abs=0.0005)
    if name == "ogbg-molhiv":
        assert int(found.graphs.y.sum()) == 1443
