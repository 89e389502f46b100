"""Tuples and copies in data sets: a batch of them is the copies of the batch."""

from __future__ import annotations

import copy
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import AddSelfLoops, ToUndirected

from pyg_pool.models import KLGNN
from pyg_pool.relational import FWLNet, expand_copies, find_tuples, lay_ground
from pyg_pool.relational.pairs import find_pairs_and_joins
from pyg_pool.transforms import KLData, KLTuples

PATH = torch.tensor([[0, 1], [1, 2]])


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


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"l": 1.5}, TypeError, "KLTuples got l=1.5 of type float, expected a whole"),
        ({"l": None}, TypeError, "KLTuples got l=None of type NoneType"),
        ({"l": -1}, ValueError, "KLTuples got l=-1, expected"),
        ({"domain": "stars"}, ValueError, "did you mean 'star'"),
        ({"domain": "dist"}, ValueError, "expected a distance with 'dist'"),
        ({"domain": "dist", "max_distance": 2}, ValueError, "write for instance"),
        ({"domain": None}, ValueError, "got domain=None, expected one of"),
        ({"ego": -1}, ValueError, "KLTuples got ego=-1, expected ego >= 0"),
        ({"ego": 2.0}, TypeError, "KLTuples got ego=2.0 of type float"),
        ({"ego": 1, "ego_mode": "unoin"}, ValueError, "did you mean 'union'"),
        ({"ego_mode": "union"}, ValueError, "ego=None, ego_mode='union', expected a"),
        ({"max_distance": -1}, ValueError, "got max_distance=-1, expected"),
        ({"max_distance": "2"}, TypeError, "got max_distance='2' of type str"),
    ],
)
def test_options_are_checked_when_it_is_built(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        KLTuples(**options)


class Shifted(Data):
    """A graph with an increment of its own."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return 7 if key == "mate" else super().__inc__(key, value, *args, **kwargs)


def test_what_is_no_single_graph_is_refused() -> None:
    change = KLTuples(1)
    batch = Batch.from_data_list(graphs())
    with pytest.raises(TypeError, match="got a batch of 4 graphs, expected one graph"):
        change(batch)
    loose = Data(x=torch.ones(2, 1), batch=torch.tensor([0, 1]))
    with pytest.raises(TypeError, match=r"got a batch of .* expected one graph"):
        change(loose)
    with pytest.raises(TypeError, match="type HeteroData, expected PyG Data"):
        change(HeteroData())
    with pytest.raises(TypeError, match="Shifted with __inc__ of its own"):
        change(Shifted(x=torch.ones(2, 1)))
    sparse = Data(x=torch.ones(2, 1), adj_t=torch.eye(2).to_sparse())
    with pytest.raises(ValueError, match="adj_t and no edge_index"):
        change(sparse)
    small = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]).int())
    with pytest.raises(ValueError, match=r"torch.int32, expected torch.int64"):
        change(small)


def test_a_batch_of_one_graph_of_a_loader_is_a_batch_still() -> None:
    with pytest.raises(TypeError, match="got a batch of 1 graphs"):
        KLTuples(1)(Batch.from_data_list(graphs()[:1]))


@pytest.mark.parametrize(
    ("made", "read"),
    [
        (KLTuples(1), KLTuples(2)),
        (KLTuples(2, domain="star"), KLTuples(2, domain="path")),
        (KLTuples(1, ego=1), KLTuples(1, ego=2)),
        (KLTuples(1, ego=1), KLTuples(1)),
        (KLTuples(1), KLTuples(1, ego=1)),
        (KLTuples(2, ego=1), KLTuples(2, ego=1, ego_mode="union")),
        (KLTuples(2, domain="star"), KLTuples(2, domain="star", cover=False)),
    ],
)
def test_copies_are_read_by_what_made_them(made: KLTuples, read: KLTuples) -> None:
    one = made(graphs()[0])
    for data in (one, Batch.from_data_list([made(each) for each in graphs()])):
        assert made.copies(data).origin == made.origin
        with pytest.raises(ValueError, match="apply this very transform, or read"):
            read.copies(data)
    if made.l != read.l or (made.ego is None) is not (read.ego is None):
        # Stored before options were.
        del one.kl_origin
        with pytest.raises(ValueError, match="apply this very transform, or read"):
            read.copies(one)


def test_copies_that_are_missing_or_out_of_date() -> None:
    change = KLTuples(1, ego=1)
    with pytest.raises(ValueError, match="without kl_tuple, expected a graph"):
        change.copies(graphs()[0])
    with pytest.raises(ValueError, match=r"without fwl_pair, .* a max_distance"):
        change.pairs(change(graphs()[0]))
    for later in (AddSelfLoops(attr=None), ToUndirected()):
        changed = later(change(Data(x=torch.ones(3, 1), edge_index=PATH)))
        with pytest.raises(ValueError, match="apply it after all transforms"):
            change.copies(changed)
        whole = Batch.from_data_list([changed, changed])
        with pytest.raises(ValueError, match=r"of 6 nodes and .* made of 6 and 4"):
            change.copies(whole)


def test_made_anew_nothing_of_the_old_copies_is_left() -> None:
    twice = KLTuples(2)(KLTuples(1, ego=1)(graphs()[0]))
    assert "kl_edges" not in twice
    assert KLTuples(2).copies(twice).is_full


def test_graphs_without_edges_or_nodes() -> None:
    change = KLTuples(2, domain="star", ego=1)
    bare = [Data(num_nodes=2), Data(num_nodes=0), Data(x=torch.ones(1, 1))]
    made = [change(each) for each in bare]
    assert [len(change.copies(each).tuples) for each in made] == [2, 0, 1]
    assert made[0].kl_length.tolist() == [1, 1]
    whole = Batch.from_data_list(made[:2])
    assert change.copies(whole).tuples.index.tolist() == [[0, -1], [1, -1]]
    assert change.copies(whole).tuples.drawn.tolist() == [2, 0]
    again = whole.to_data_list()[0]
    assert change.copies(again).tuples.index.tolist() == [[0, -1], [1, -1]]


def test_data_sets_keep_copies_on_disk(tmp_path: Path) -> None:
    class Stored(InMemoryDataset):
        def __init__(self) -> None:
            super().__init__(str(tmp_path), pre_transform=KLTuples(2, domain="star"))
            self.load(self.processed_paths[0], data_cls=KLData)

        processed_file_names = "graphs.pt"

        def process(self) -> None:
            made = [self.pre_transform(each) for each in graphs()]
            self.save(made, self.processed_paths[0])

    change, stored = KLTuples(2, domain="star"), Stored()
    batch = Batch.from_data_list(list(stored))
    direct = Batch.from_data_list([change(each) for each in graphs()])
    assert torch.equal(change.copies(batch).pair_node, change.copies(direct).pair_node)
    with pytest.raises(
        ValueError, match=r"domain='star', .*expected l=2, domain='path'"
    ):
        KLTuples(2, domain="path").copies(batch)


def test_every_list_is_made_where_the_graph_is() -> None:
    given = [*graphs(), Data(x=torch.ones(2, 1))]
    change = KLTuples(2, domain="star", ego=1, max_distance=2)
    # A list on the default device would not go together with the others.
    with torch.device("meta"):
        for each in given:
            made = change(each)
            for key, value in made.to_dict().items():
                if isinstance(value, torch.Tensor):
                    assert value.device == torch.device("cpu"), key
            assert change.copies(made).tuples.index.device == torch.device("cpu")
            assert change.pairs(made).pair.device == torch.device("cpu")
