"""Options of labelled copies that do not go together, and copies of other graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCN

from pyg_pool.models import IDMPNN
from pyg_pool.relational import FWLNet, RelationalPooling
from pyg_pool.relational.pairs import find_pairs_and_joins
from pyg_pool.relational.settings import check_unused, defaults_of
from pyg_pool.relational.tuples import lay_ground
from pyg_pool.transforms import KLTuples

PATH = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
TOGETHER: list[tuple[dict[str, Any], str]] = [
    ({"l": 0, "readout": "root"}, "without labelled nodes"),
    ({"l": 0, "readout": "labelled"}, "without labelled nodes"),
    ({"l": 0, "level": "node"}, "readout='node'"),
    ({"l": 0, "policy": "delete_node"}, "take l=1"),
    ({"l": 0, "ego": 2}, "one whole copy"),
    ({"l": 0, "num_samples": 2}, "one whole copy"),
    ({"policy": "delete_node", "readout": "root"}, "still there"),
    ({"policy": "delete_node", "readout": "labelled"}, "still there"),
    ({"policy": "delete_node", "encoding": "spd"}, "no labels"),
    ({"policy": "delete_edge", "perms": True}, "no labels"),
    ({"policy": "delete_edge", "ego": 2}, "for every edge"),
    ({"policy": "delete_edge", "num_samples": 2}, "for every edge"),
    ({"policy": "delete_edge", "readout": "root"}, "ends of an edge"),
    ({"policy": "delete_edge", "level": "node"}, "ends of an edge"),
    ({"policy": "delete_edge", "nested": ("sum", "max")}, "ends of an edge"),
    ({"policy": "delete_edges"}, "did you mean"),
    ({"ego_mode": "union"}, "give ego"),
    ({"ego": 2, "ego_mode": "roots"}, "did you mean"),
    ({"perms": True, "ordered": False}, "ordered=True"),
    ({"sample_in_eval": True}, "give num_samples"),
    ({"l": -1}, "l >= 0"),
    ({"ego": -1}, "ego >= 0"),
    ({"dmax": -1, "encoding": "spd"}, "dmax >= 0"),
    ({"num_samples": 0}, "num_samples >= 1"),
    ({"chunk_size": 0}, "chunk_size >= 1"),
    ({"chunk_size": -1}, "chunk_size >= 1"),
]


@pytest.mark.parametrize(("options", "message"), TOGETHER, ids=str)
def test_options_that_do_not_go_together(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RelationalPooling(GCN(3, 4, 1, 4), **options)


@pytest.mark.parametrize("name", ["l", "ego", "dmax", "num_samples", "chunk_size"])
def test_numbers_must_be_whole(name: str) -> None:
    options: dict[str, Any] = {name: 1.5}
    with pytest.raises(TypeError, match=rf"{name}=1\.5 of type float"):
        RelationalPooling(GCN(3, 4, 1, 4), **options)


def test_no_labels_at_node_level_are_the_base_itself() -> None:
    base = GCN(3, 4, 2, 4).eval()
    model = RelationalPooling(base, 0, readout="node", level="node")
    x = torch.randn(3, 3)
    torch.testing.assert_close(model(x, PATH.edge_index), base(x, PATH.edge_index))


def test_attributes_must_fit_the_edges() -> None:
    model = RelationalPooling(GCN(3, 4, 2, 4))
    with pytest.raises(ValueError, match="one row per edge"):
        model(torch.ones(3, 3), PATH.edge_index, torch.ones(3))


def prepared(**options: Any) -> tuple[Any, Any]:
    """Two paths in a batch, and their copies."""
    transform = KLTuples(**options)
    batch = Batch.from_data_list([transform(PATH), transform(PATH)])
    return batch, transform.copies(batch)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l": 2}, "whole copies of 2 labels, expected whole ones of 1"),
        ({"l": 1, "ego": 1}, "cut copies of 1 labels, expected whole"),
    ],
)
def test_copies_of_other_options(options: Any, message: str) -> None:
    batch, copies = prepared(**options)
    x = torch.ones(6, 2)
    models: tuple[Any, ...] = (
        RelationalPooling(GCN(3, 4, 1, 4)),
        IDMPNN(2, 4, 1, l=1),
    )
    for model in models:
        with pytest.raises(ValueError, match=message):
            model(x, batch.edge_index, batch=batch.batch, copies=copies)


def test_copies_of_another_batch() -> None:
    model = RelationalPooling(GCN(3, 4, 1, 4))
    batch, copies = prepared(l=1)
    x, edges = torch.ones(6, 2), batch.edge_index
    assert model(x, edges, batch=batch.batch, copies=copies).shape == (2, 4)
    with pytest.raises(ValueError, match=r"\(6, 8, 2\) nodes, edges and graphs"):
        model(x, edges, batch=batch.batch, batch_size=3, copies=copies)
    with pytest.raises(ValueError, match=r"expected \(3, 4, 1\)"):
        model(x[:3], PATH.edge_index, copies=copies)
    with pytest.raises(TypeError, match="the copies of KLTuples"):
        model(x, edges, batch=batch.batch, copies=batch)


def test_pairs_of_another_batch() -> None:
    pairs = find_pairs_and_joins(lay_ground(PATH.edge_index, None), 2)
    model = FWLNet(2, 4, 1)
    x = torch.ones(3, 2)
    assert model(x, PATH.edge_index, pairs=pairs).shape == (1, 1)
    with pytest.raises(ValueError, match="3 nodes in 1 graphs, expected 4 in 1"):
        model(torch.ones(4, 2), PATH.edge_index, pairs=pairs)
    with pytest.raises(ValueError, match="in 2 graphs"):
        model(x, PATH.edge_index, pairs=replace(pairs, size=2))


def test_unused_options_count_from_the_defaults() -> None:
    options = defaults_of(RelationalPooling)
    check_unused(RelationalPooling, options, ("ego", "level"), "k=2", "take k=1")
    options["level"] = "node"
    with pytest.raises(ValueError, match=r"level='node' with k=2.*; take k=1"):
        check_unused(RelationalPooling, options, ("ego", "level"), "k=2", "take k=1")
