from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyg_pool.train.splits import (
    Split,
    holdout,
    kfold_splits,
    read_splits,
    share_split,
)

LABELS = torch.tensor([0] * 30 + [1] * 50 + [2] * 20)[torch.arange(100) * 37 % 100]


def all_of(split: Split) -> list[int]:
    return sorted(torch.cat([split.train, split.val, split.test]).tolist())


def counts(index: torch.Tensor) -> list[int]:
    return torch.bincount(LABELS[index], minlength=3).tolist()


def test_holdout_is_stratified_and_seeded() -> None:
    rest, part = holdout(torch.arange(100), LABELS, share=0.1, seed=7)
    assert counts(part) == [3, 5, 2]
    assert sorted(rest.tolist() + part.tolist()) == list(range(100))
    again = holdout(torch.arange(100), LABELS, share=0.1, seed=7)[1]
    other = holdout(torch.arange(100), LABELS, share=0.1, seed=8)[1]
    assert torch.equal(part, again)
    assert not torch.equal(part, other)


def test_holdout_takes_only_from_the_index_whatever_its_order() -> None:
    index = torch.arange(99, 49, -1)
    rest, part = holdout(index, LABELS, share=0.2, seed=7)
    assert len(part) == 10
    assert min(part.tolist() + rest.tolist()) == 50
    flipped = holdout(index.flip(0), LABELS, share=0.2, seed=7)[1]
    assert torch.equal(part, flipped)


def test_holdout_gives_remainders_to_the_largest() -> None:
    # Exact shares 1.5, 0.9, 0.6 of 3 graphs: floors 1, 0, 0, so 0.9 and 0.6 round up.
    labels = torch.tensor([0] * 5 + [1] * 3 + [2] * 2)
    part = holdout(torch.arange(10), labels, share=0.3, seed=7)[1]
    assert torch.bincount(labels[part]).tolist() == [1, 1, 1]


def test_holdout_of_extreme_shares() -> None:
    rest, part = holdout(torch.arange(5), LABELS, share=0.0, seed=7)
    assert (len(rest), len(part)) == (5, 0)
    assert len(holdout(torch.arange(5), LABELS, share=0.01, seed=7)[1]) == 1
    assert len(holdout(torch.arange(5), LABELS, share=0.99, seed=7)[0]) == 1
    with pytest.raises(ValueError, match=r"got share=1.0, expected 0 <= share < 1"):
        holdout(torch.arange(5), LABELS, share=1.0, seed=7)


def test_random_numbers_have_not_changed() -> None:
    """Published scores depend on these indices: a change needs a new major version."""
    split = share_split(LABELS[:20], seed=0)
    assert (split.val.tolist(), split.test.tolist()) == GOLDEN_SHARE
    tests = [s.test.tolist() for s in kfold_splits(LABELS[:9], folds=3, seed=4)]
    assert tests == GOLDEN_FOLDS


GOLDEN_SHARE = ([4, 17], [6, 7])
GOLDEN_FOLDS = [[0, 2, 4], [3, 7, 8], [1, 5, 6]]


def test_share_split_is_80_10_10() -> None:
    split = share_split(LABELS, seed=7)
    assert [counts(split[p]) for p in ("train", "val", "test")] == [
        [24, 40, 16],
        [3, 5, 2],
        [3, 5, 2],
    ]
    assert all_of(split) == list(range(100))
    with pytest.raises(ValueError, match="got part 'valid', expected 'train', 'val'"):
        split["valid"]


@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=40),
    folds=st.integers(2, 6),
    seed=st.integers(0, 9),
)
def test_folds_cover_every_graph_once(labels: list[int], folds: int, seed: int) -> None:
    folds = min(folds, len(labels))
    y = torch.tensor(labels)
    made = kfold_splits(y, folds=folds, seed=seed)
    tests = torch.cat([s.test for s in made]).tolist()
    assert sorted(tests) == list(range(len(labels)))
    sizes = [len(s.test) for s in made]
    assert max(sizes) - min(sizes) <= 1
    for label in set(labels):
        per_fold = [int((y[s.test] == label).sum()) for s in made]
        assert max(per_fold) - min(per_fold) <= 1
    for split in made:
        assert all_of(split) == list(range(len(labels)))


def test_folds_of_float_targets_and_bad_numbers() -> None:
    made = kfold_splits(torch.randn(10, 2), folds=5, val_share=0.25, seed=7)
    assert [repr(s) for s in made[:1]] == ["Split('fold1of5', train/val/test = 6/2/2)"]
    for folds in (1, 11):
        with pytest.raises(ValueError, match=f"got folds={folds}, expected 2 to 10"):
            kfold_splits(torch.randn(10, 2), folds=folds)


FOLD = {"train": [5, 0, 1], "val": [2], "test": [4, 3]}


def write(path: Path, content: Any) -> Path:
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize("name", ["folds.json", "folds.json.gz"])
@pytest.mark.parametrize("wrap", [False, True])
def test_reads_files(tmp_path: Path, name: str, wrap: bool) -> None:
    content = {"folds": [FOLD, FOLD], "note": "x"} if wrap else [FOLD, FOLD]
    made = read_splits(write(tmp_path / name, content), LABELS[:6])
    assert len(made) == 2
    parts = [made[1].train, made[1].val, made[1].test]
    assert [p.tolist() for p in parts] == [[0, 1, 5], [2], [3, 4]]


def test_missing_val_is_a_share_of_train(tmp_path: Path) -> None:
    content = [{"train": list(range(80)), "test": list(range(80, 100))}]
    path = write(tmp_path / "folds.json", content)
    split = read_splits(path, LABELS, seed=7)[0]
    assert (len(split.train), len(split.val), len(split.test)) == (72, 8, 20)
    assert max(split.val.tolist()) < 80
    assert torch.equal(split.val, read_splits(path, LABELS, seed=7)[0].val)
    assert not torch.equal(split.val, read_splits(path, LABELS, seed=8)[0].val)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "holds list, expected a list of folds"),
        ({"splits": [FOLD]}, "holds NoneType, expected a list of folds"),
        ([{"train": [0]}], r"fold 0 has \['train'\], expected the keys"),
        ([FOLD, [1]], "fold 1 has list, expected the keys"),
        ([{**FOLD, "test": [4, 6]}], "indices from 4 to 6, expected 0 to 5 for 6"),
        ([{**FOLD, "val": [-1]}], "indices from -1 to -1, expected 0 to 5"),
        ([{**FOLD, "val": [0]}], "graph 0 in train and val, expected disjoint"),
        ([{**FOLD, "test": [4, 4]}], "names 1 graphs twice, expected each once"),
        ([{**FOLD, "test": [4.5]}], r"test is \[4.5\], expected a list of whole"),
        ([{**FOLD, "test": [True]}], r"test is \[True\], expected a list of whole"),
        ([{**FOLD, "test": []}], r"test is \[\], expected a list of whole"),
    ],
)
def test_refuses_files_that_do_not_fit(
    tmp_path: Path, content: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_splits(write(tmp_path / "folds.json", content), LABELS[:6])


def test_refuses_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"gone.json is not there, expected"):
        read_splits(tmp_path / "gone.json", LABELS)
    (tmp_path / "a.json").write_text("[{")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b"[]")[:-9])
    for name in ("a.json", "b.json.gz"):
        with pytest.raises(ValueError, match=r"cannot be read .* expected JSON text"):
            read_splits(tmp_path / name, LABELS)
