"""Tuples and copies in data sets: a batch of them is the copies of the batch."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from pyg_pool.models import KLGNN
from pyg_pool.relational import FWLNet, expand_copies, find_tuples, lay_ground
from pyg_pool.relational.pairs import find_pairs_and_joins
from pyg_pool.transforms import KLTuples


def graphs() -> list[Data]:
    none = torch.empty((2, 0), dtype=torch.long)
    rings = torch.tensor([[0, 1, 2, 3, 0, 2, 2], [1, 2, 3, 0, 2, 0, 2]])
    out = [
        Data(x=torch.randn(5, 3), edge_index=rings),
        Data(x=torch.randn(0, 3), edge_index=none),
        Data(x=torch.randn(1, 3), edge_index=none),
        Data(x=torch.randn(4, 3), edge_index=torch.tensor([[0, 1], [1, 0]])),
    ]
    for number, each in enumerate(out):
        each.edge_attr = torch.randn(each.num_edges, 2)
        each.y = torch.tensor([number])
    return out


@pytest.mark.parametrize(
    ("l", "domain", "ego", "mode"),
    [
        (1, "distinct", None, "root"),
        (2, "star", 1, "union"),
        (3, "connected", 2, "root"),
    ],
)
def test_batches_hold_the_copies_of_the_batch(
    l: int,  # noqa: E741
    domain: str,
    ego: int | None,
    mode: str,
) -> None:
    change = KLTuples(l, domain=domain, ego=ego, ego_mode=mode, max_distance=2)
    batch = Batch.from_data_list([change(each) for each in graphs()])
    got = change.copies(batch)
    tuples = find_tuples(batch.edge_index, batch.batch, l, domain, batch_size=4)
    ground = lay_ground(batch.edge_index, batch.batch, 4)
    want = expand_copies(ground, tuples, ego=ego, ego_mode=mode)
    for name in ("pair_tuple", "pair_node", "pair_ptr", "edge_index", "edge_id"):
        assert torch.equal(getattr(got, name), getattr(want, name)), name
    assert (got.is_full, got.num_nodes) == (want.is_full, want.num_nodes)
    for item in fields(tuples):
        one, two = getattr(got.tuples, item.name), getattr(tuples, item.name)
        assert torch.equal(torch.as_tensor(one), torch.as_tensor(two)), item.name
    pairs, expected = change.pairs(batch), find_pairs_and_joins(ground, 2)
    assert expected.joins is not None
    assert pairs.joins is not None
    assert torch.equal(pairs.pair, expected.pair)
    assert torch.equal(pairs.joins, expected.joins)
    assert torch.equal(pairs.batch, expected.batch)


def test_models_take_prepared_copies() -> None:
    change = KLTuples(2, domain="star", ego=2, max_distance=2)
    data = [change(each) for each in graphs()]
    model = KLGNN(3, 8, 2, 2, l=2, domain="star", ego=2, edge_channels=2).eval()
    net = FWLNet(3, 8, 2, max_distance=2)
    for batch in DataLoader(data, batch_size=4):
        given = {"batch": batch.batch, "batch_size": 4}
        inputs = batch.x, batch.edge_index, batch.edge_attr
        torch.testing.assert_close(
            model(*inputs, **given, copies=change.copies(batch)),
            model(*inputs, **given),
        )
        torch.testing.assert_close(
            net(*inputs[:2], **given, pairs=change.pairs(batch)),
            net(*inputs[:2], **given),
        )


def test_graphs_keep_their_attributes_and_can_be_copied() -> None:
    one = graphs()[0]
    changed = KLTuples(1)(one)
    assert torch.equal(changed.x, one.x)
    assert torch.equal(changed.y, one.y)
    assert "kl_tuple" not in one
    for again in (pickle.loads(pickle.dumps(changed)), copy.copy(changed)):
        assert torch.equal(again.kl_tuple, changed.kl_tuple)
    assert KLTuples(1).copies(changed).num_pairs == 25


def test_repr_and_wrong_length() -> None:
    change = KLTuples(2, domain="star", ego=3)
    assert repr(eval(repr(change))) == repr(change)
    with pytest.raises(ValueError, match="at least one label"):
        KLTuples(0)
