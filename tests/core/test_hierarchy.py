"""Levels, and features carried between them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.nn.aggr import SumAggregation

from pyg_pool import GPool, GUnpool, Hierarchy, PoolOutput, Selection
from pyg_pool.core import Level, connect, lift, reduce


def path(n: int) -> Tensor:
    one = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    return torch.cat([one, one.flip(0)], dim=1)


def clustered(n: int = 8, batch: Tensor | None = None) -> Hierarchy:
    """Pairs of neighbours, twice; weights and scores on the second level."""
    levels, selections = [Level(n, path(n), batch=batch)], []
    attr: Tensor | None = torch.ones(2 * n - 2)
    for _ in range(2):
        size = levels[-1].num_nodes
        weight = torch.rand(size)
        selection = Selection.from_clusters(torch.arange(size) // 2, weight=weight)
        out = connect(selection, levels[-1].edge_index, attr, batch=levels[-1].batch)
        attr = out.edge_attr
        count = selection.num_clusters
        levels.append(
            Level(
                count, out.edge_index, attr, out.batch, 1, torch.rand(count, 3),
                torch.rand(count),
            )
        )  # fmt: skip
        selections.append(selection)
    return Hierarchy(levels, selections)


def same(one: Hierarchy, two: Hierarchy) -> None:
    assert one.num_levels == two.num_levels
    assert one.selections == two.selections
    for a, b in zip(one.levels, two.levels, strict=True):
        assert vars(a).keys() == vars(b).keys()
        for name, value in vars(a).items():
            other = getattr(b, name)
            if isinstance(value, Tensor):
                assert value.dtype == other.dtype
                assert value.equal(other), name
            else:
                assert value == other, name


def test_composition_of_levels() -> None:
    h = clustered()
    assert h.num_levels == len(h) == 3
    both = h.selection(0, 2)
    assert both == h.selections[0].compose(h.selections[1])
    assert h.selection(1, 2) is h.selections[1]
    assert both.cluster.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("how", ["transpose", "mean", "pinv"])
def test_lift_goes_level_by_level(how: str) -> None:
    h = clustered()
    x = torch.randn(2, 3)
    wanted = lift(lift(x, h.selections[1], how), h.selections[0], how)  # type: ignore[arg-type]
    torch.testing.assert_close(h.lift(x, 2, how=how), wanted)  # type: ignore[arg-type]
    one = lift(x, h.selections[1], how)  # type: ignore[arg-type]
    torch.testing.assert_close(h.lift(x, 2, 1, how=how), one)  # type: ignore[arg-type]
    assert h.lift(x, 2, 2) is x
    if how == "transpose":
        torch.testing.assert_close(lift(x, h.selection(0, 2)), wanted)


@pytest.mark.parametrize("how", ["sum", "mean", "max", "weighted", SumAggregation()])
def test_reduce_goes_level_by_level(how: str) -> None:
    h = clustered()
    x = torch.randn(8, 3)
    wanted = reduce(reduce(x, h.selections[0], how), h.selections[1], how)  # type: ignore[arg-type]
    torch.testing.assert_close(h.reduce(x, 0, 2, how=how), wanted)  # type: ignore[arg-type]
    assert h.reduce(x, 1, 1) is x
    if how == "weighted":
        torch.testing.assert_close(reduce(x, h.selection(0, 2), "weighted"), wanted)


def test_fault_p17_two_levels_back_to_the_input_size() -> None:
    x, edges = torch.arange(1.0, 7.0).view(6, 1), path(6)
    pools = [GPool(1, ratio=0.5), GPool(1, ratio=0.5)]
    for pool in pools:
        pool.load_state_dict({"weight": torch.ones(1, 1)})
    outputs: list[PoolOutput] = []
    now, graph, batch = x, edges, torch.zeros(6).long()
    for pool in pools:
        out = pool(now, graph, batch=batch, batch_size=1)
        outputs.append(out)
        now, graph, batch = out.x, out.edge_index, out.batch
    h = Hierarchy.from_outputs(x, edges, None, None, 1, outputs)
    top = torch.tensor([[10.0], [20.0]])
    fine = h.lift(top, 2)
    # The nodes with features 6 and 5 survive twice; the others get zeros.
    assert fine.view(-1).tolist() == [0.0, 0.0, 0.0, 0.0, 20.0, 10.0]
    by_hand = GUnpool()(GUnpool()(top, outputs[1].selection), outputs[0].selection)
    assert fine.equal(by_hand)
    with pytest.raises(ValueError, match="selection of 3 kept nodes"):
        GUnpool()(top, outputs[0].selection)  # the record of the wrong level
    with pytest.raises(ValueError, match="pass the features of the level"):
        h.lift(top, 1)
    clusters = clustered(6)
    assert clusters.lift(top, 2).view(-1).tolist() == [10.0] * 4 + [20.0] * 2


def test_collected_outputs() -> None:
    x, edges, batch = torch.randn(6, 2), path(6), torch.tensor([0, 0, 0, 1, 1, 1])
    out = GPool(2, ratio=2)(x, edges[:, :0], batch=batch, batch_size=3)
    h = Hierarchy.from_outputs(x, edges, torch.ones(10), batch, 3, [out])
    assert [level.num_nodes for level in h.levels] == [6, 4]
    assert h.levels[0].x is x
    assert h.levels[0].score is None
    assert h.levels[1].score is out.score
    assert [level.batch_size for level in h.levels] == [3, 3]
    for start in ((x, None), (None, batch), (None, None)):
        again = Hierarchy.from_outputs(start[0], edges, None, start[1], 3, [out])
        assert again.levels[0].num_nodes == 6
    assert Hierarchy.from_outputs(x, edges, None, None, 1, []).num_levels == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: Hierarchy(h.levels, h.selections[:1]), "3 levels and 1 selections"),
        (
            lambda h: Hierarchy(h.levels[::-1], h.selections),
            "selection 0 from 8 nodes to 4 clusters, expected 2 to 4",
        ),
        (lambda h: Hierarchy([], []), "0 levels and 0 selections"),
        (
            lambda h: h.selection(1, 1),
            r"levels 1 to 1, expected 0 <= fine < coarse <= 2",
        ),
        (lambda h: h.selection(0, 3), "levels 0 to 3"),
        (lambda h: h.lift(torch.ones(2), 2, -1), "levels -1 to 2"),
        (lambda h: h.lift(torch.ones(4), 1, 2), "levels 2 to 1"),
        (lambda h: h.reduce(torch.ones(2), 2, 0), "levels 2 to 0"),
        (lambda h: h.lift(torch.ones(8), 9, 9), "levels 9 to 9"),
    ],
)
def test_wrong_input_is_explained(
    call: Callable[[Hierarchy], object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(clustered())


def test_table() -> None:
    h = clustered(batch=torch.zeros(8).long())
    assert str(h).splitlines() == [
        "Hierarchy of 3 levels, 1 graph",
        "level  nodes  edges  nodes kept",
        "    0      8     14",
        "    1      4      6       50.0%",
        "    2      2      2       50.0%",
    ]
    none = torch.empty(2, 0, dtype=torch.long)
    empty = Hierarchy(
        [Level(0, none, batch_size=2), Level(0, none, batch_size=2)],
        [Selection.from_nodes(none[0], 0)],
    )
    assert str(empty).startswith("Hierarchy of 2 levels, 2 graphs\n")
    single = Hierarchy([Level(3, none)], [])
    assert str(single).startswith("Hierarchy of 1 level, 1 graph\n")


@pytest.mark.parametrize("dtype", [torch.float, torch.double, torch.bfloat16])
def test_save_and_load(dtype: torch.dtype, tmp_path: Path) -> None:
    h = clustered(batch=torch.zeros(8).long())
    h.levels[1].x = torch.rand(4, 2, dtype=dtype)
    h.save(tmp_path / "h.npz")
    same(Hierarchy.load(tmp_path / "h.npz"), h)
    known = [s._kind for s in Hierarchy.load(tmp_path / "h.npz").selections]
    assert known == ["hard", "hard"]


def test_many_levels_are_not_mixed_up(tmp_path: Path) -> None:
    none = torch.empty(2, 0, dtype=torch.long)
    levels = [
        Level(12 - i, none, x=torch.full((12 - i, 1), float(i))) for i in range(12)
    ]
    selections = [Selection.from_nodes(torch.arange(11 - i), 12 - i) for i in range(11)]
    h = Hierarchy(levels, selections)
    h.save(tmp_path / "h.npz")
    same(Hierarchy.load(tmp_path / "h.npz"), h)


def test_foreign_and_damaged_files_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "h.npz"
    Selection.from_nodes(torch.tensor([0]), 1).save(file)
    with pytest.raises(ValueError, match="holds 'Selection' in version 1"):
        Hierarchy.load(file)
    clustered().save(file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match="expected a Hierarchy written by its save"):
        Hierarchy.load(file)


def test_copies_and_devices() -> None:
    h = clustered(batch=torch.zeros(8).long())
    same(pickle.loads(pickle.dumps(h)), h)
    same(copy.deepcopy(h), h)
    same(h.to("cpu"), h)
    there = h.to("meta")
    for level in there.levels:
        tensors = [v for v in vars(level).values() if isinstance(v, Tensor)]
        assert {t.device.type for t in tensors} == {"meta"}
    assert there.selections[0].node_index.device.type == "meta"


def test_detach() -> None:
    h = clustered()
    assert h.levels[1].x is not None
    h.levels[1].x.requires_grad_()
    h.selections[0].weight.requires_grad_()
    out = h.detach()
    same(out, h)
    assert not out.levels[1].x.requires_grad  # type: ignore[union-attr]
    assert not out.selections[0].weight.requires_grad


@pytest.mark.gpu
def test_pinned_memory() -> None:
    pinned = clustered().pin_memory()
    assert pinned.levels[1].edge_index.is_pinned()
