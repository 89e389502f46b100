"""Tuples against stored lists, samples, cover and order."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pyg_pool.relational import domains, enumerate_tuples, find_tuples
from pyg_pool.relational.domains import DOMAINS, Ground
from tests.golden_files import FOLDER

CASES = json.loads((FOLDER / "klwl" / "tuples.json").read_text())["cases"]
NONE = torch.empty((2, 0), dtype=torch.long)
HOUSE = torch.tensor([[0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 4, 4]])


def directed(pairs: list[list[int]]) -> Tensor:
    edges = torch.tensor(pairs, dtype=torch.long).view(-1, 2).t()
    return torch.cat([edges, edges.flip(0)], dim=1)


@pytest.mark.parametrize(
    "case", CASES, ids=lambda c: f"{c['graph']}-{c['domain']}{c['l']}"
)
def test_golden(case: dict[str, Any], backend: str) -> None:
    batch = torch.zeros(case["num_nodes"], dtype=torch.long)
    index, graphs = enumerate_tuples(
        directed(case["undirected_edges"]),
        batch,
        case["l"],
        case["domain"],
        cover=case["cover"],
    )
    assert index.tolist() == case["tuples"]
    assert graphs.tolist() == [0] * len(case["tuples"])


def test_batch_equals_graph_by_graph() -> None:
    edges = torch.cat([HOUSE, HOUSE + 6], dim=1)  # node 5 lies alone in its graph
    batch = torch.tensor([0] * 6 + [1] * 5)
    for domain in ("distinct", "star", "connected_set", "dist<=2"):
        index, graphs = enumerate_tuples(edges, batch, 2, domain)
        first, _ = enumerate_tuples(HOUSE, batch[:6], 2, domain)
        second, _ = enumerate_tuples(HOUSE, batch[:5], 2, domain)
        assert index[graphs == 0].tolist() == first.tolist()
        shifted = second + 6 * (second >= 0)
        assert index[graphs == 1].tolist() == shifted.tolist()
        assert (graphs.diff() >= 0).all()


def test_no_labels_give_one_empty_tuple_per_graph() -> None:
    batch = torch.tensor([0, 2])
    index, graphs = enumerate_tuples(HOUSE[:, :0], batch, 0, "star", batch_size=4)
    assert list(index.shape) == [4, 0]
    assert graphs.tolist() == [0, 1, 2, 3]


def test_no_nodes_and_no_graphs() -> None:
    none = torch.empty(0, dtype=torch.long)
    for size in (0, 2):
        index, _ = enumerate_tuples(HOUSE[:, :0], none, 2, "all", batch_size=size)
        assert list(index.shape) == [0, 2]


@pytest.mark.parametrize("domain", ["star", "distinct", "subset", "all"])
def test_samples(domain: str) -> None:
    batch = torch.zeros(5, dtype=torch.long)
    every = enumerate_tuples(HOUSE, batch, 2, domain)[0].tolist()

    def draw(seed: int) -> list[list[int]]:
        generator = torch.Generator().manual_seed(seed)
        found = find_tuples(HOUSE, batch, 2, domain, num_samples=4, generator=generator)
        assert found.total.tolist() == [len(every)]
        assert found.drawn.tolist() == [4]
        rows: list[list[int]] = found.index.tolist()
        return rows

    assert draw(3) == draw(3)
    assert draw(3) == sorted(draw(3))
    assert all(row in every for row in draw(3))
    assert len({str(draw(seed)) for seed in range(8)}) > 4
    all_of_them = find_tuples(HOUSE, batch, 2, domain, num_samples=999)
    assert all_of_them.index.tolist() == every


def test_every_tuple_is_drawn_equally_often() -> None:
    generator = torch.Generator().manual_seed(1)
    batch = torch.zeros(5, dtype=torch.long)
    every = enumerate_tuples(HOUSE, batch, 2, "subset")[0]
    hits = torch.zeros(every.size(0))
    for _ in range(600):
        rows = enumerate_tuples(
            HOUSE, batch, 2, "subset", num_samples=3, generator=generator
        )[0]
        hits += (every.unsqueeze(1) == rows).all(2).any(1)
    assert (hits / 600 - 0.3).abs().max() < 0.08


def test_wrong_numbers_and_orders_are_refused() -> None:
    batch = torch.zeros(5, dtype=torch.long)
    with pytest.raises(ValueError, match="l >= 0"):
        enumerate_tuples(HOUSE, batch, -1, "star")
    with pytest.raises(ValueError, match="num_samples >= 1"):
        enumerate_tuples(HOUSE, batch, 1, "star", num_samples=0)
    with pytest.raises(ValueError, match="not ascending"):
        enumerate_tuples(HOUSE, torch.tensor([0, 1, 0, 0, 1]), 1, "star")
    with pytest.raises(ValueError, match="different graphs"):
        enumerate_tuples(HOUSE, torch.tensor([0, 0, 0, 0, 1]), 1, "star")
    with pytest.raises(ValueError, match=r"expected \[6\]"):
        enumerate_tuples(HOUSE, batch, 1, "star", num_nodes=6)
    with pytest.raises(ValueError, match="num_nodes >= 0"):
        enumerate_tuples(HOUSE, None, 1, "star", num_nodes=-1)
    with pytest.raises(ValueError, match="batch_size >= 0"):
        enumerate_tuples(HOUSE, None, 1, "star", batch_size=-1)


@pytest.mark.parametrize("name", ["l", "num_samples", "max_distance"])
def test_numbers_must_be_whole(name: str) -> None:
    options: dict[str, Any] = {"l": 2, "domain": "dist", "max_distance": 1}
    options[name] = 1.5
    with pytest.raises(TypeError, match=f"{name}=1.5 of type float"):
        enumerate_tuples(HOUSE, None, **options)


def test_nodes_without_batch() -> None:
    assert enumerate_tuples(HOUSE, None, 1, "star", num_nodes=7)[0].numel() == 7
    assert enumerate_tuples(HOUSE, None, 1, "star")[0].numel() == 5


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"batch": [0, 0]}, TypeError, "got batch of type list, expected an int64"),
        ({"batch_size": 0}, ValueError, "got batch_size=0 without batch, expected"),
        ({"batch_size": 2}, ValueError, "got batch_size=2 without batch, expected"),
        ({"l": None}, TypeError, "got l=None of type NoneType"),
        ({"l": 2.0}, TypeError, "got l=2.0 of type float"),
        ({"generator": 3}, TypeError, "generator of type int, expected a torch.Gen"),
        ({"l": 6, "num_samples": 10**11}, ValueError, "make a list of 100,000,000,000"),
        ({"l": 60, "num_samples": 10**11}, ValueError, "about 1.67e.05 GiB"),
        ({"l": 60}, ValueError, r"make a list of 1e\+120 tuples"),
    ],
)
def test_odd_options_are_refused_in_a_sentence(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    given = {"batch": None, "l": 1, "num_nodes": 100, "domain": "all", **options}
    if given["batch"] is not None:
        del given["num_nodes"]
    with pytest.raises(kind, match=f"{message}.*; "):
        enumerate_tuples(NONE, **given)


def test_numbers_of_other_kinds_and_very_large_ones() -> None:
    path = torch.tensor([[0, 1], [1, 2]])
    two = enumerate_tuples(path, None, 2, "distinct")[0]
    for number in (torch.tensor(2), np.int64(2)):
        assert torch.equal(enumerate_tuples(path, None, number, "distinct")[0], two)
    for word in ("dist<=2", "dist<=99999999999999999999"):
        assert torch.equal(enumerate_tuples(path, None, 2, word)[0], two)
    # Far more labels than nodes: every node has a padded tuple.
    for word in DOMAINS[1:]:
        far = "<=2" if word.startswith("dist") and word != "distinct" else ""
        rows = enumerate_tuples(path, None, 50_000, word + far)[0]
        assert rows.shape == (3, 50_000)
        assert rows[:, 0].tolist() == [0, 1, 2]


def test_nothing_is_grown_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def step(ground: Ground, table: torch.Tensor) -> torch.Tensor:
        calls.append(table.size(1))
        return domains._distinct(ground, table)

    monkeypatch.setitem(domains._STEPS, "distinct", step)
    assert enumerate_tuples(NONE, None, 99, "distinct", num_nodes=3)[0].size(0) == 3
    assert calls == [1, 2, 3]


def test_without_a_generator_the_cpu_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    draw, devices = torch.rand, []

    def rand(*sizes: Any, **options: Any) -> torch.Tensor:
        devices.append(options.get("device"))
        return draw(*sizes, **options)

    monkeypatch.setattr(torch, "rand", rand)
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    torch.manual_seed(7)
    one = enumerate_tuples(edges, None, 2, "star", num_samples=2)[0]
    generator = torch.Generator().manual_seed(7)
    two = enumerate_tuples(edges, None, 2, "star", num_samples=2, generator=generator)
    assert torch.equal(one, two[0])
    assert devices == [torch.device("cpu")] * 2


@pytest.mark.parametrize("word", DOMAINS)
@pytest.mark.parametrize("number", [None, 3])
@pytest.mark.parametrize("length", [0, 1, 3, 14])
def test_every_list_is_made_where_the_edges_are(
    word: str, number: int | None, length: int
) -> None:
    # A list on the default device would not go together with the others.
    far = "<=2" if word in ("dist", "dist_set") else ""
    number = 3 if length == 14 and word in ("all", "distinct", "subset") else number
    sizes = torch.tensor([40, 2, 0, 1])
    batch = torch.arange(4).repeat_interleave(sizes)
    edges, device = torch.cat([HOUSE, HOUSE + 5], 1), torch.device("cpu")
    generator = torch.Generator().manual_seed(3)
    with torch.device("meta"):
        found = find_tuples(
            edges, batch, length, word + far, num_samples=number, generator=generator
        )
    for each in (found.index, found.batch, found.total, found.drawn):
        assert each.device == device
    with pytest.raises(ValueError, match="on cpu and batch on meta, expected one dev"):
        find_tuples(edges, batch.to("meta"), 1, "all", batch_size=4)
