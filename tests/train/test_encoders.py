from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from pyg_pool.train.data import GraphDataset
from pyg_pool.train.encoders import (
    ATOM_SIZES,
    BOND_SIZES,
    EdgeEncoder,
    NodeEncoder,
    encoders,
)
from pyg_pool.train.molecules import ogb_module
from pyg_pool.train.splits import share_split
from pyg_pool.train.store import GraphStore


def random_features(rows: int, sizes: tuple[int, ...]) -> torch.Tensor:
    return torch.stack([torch.randint(size, (rows,)) for size in sizes], dim=1)


# `pytest.importorskip` would import ogb, which then asks the network in a thread.
needs_ogb = pytest.mark.skipif(
    find_spec("ogb") is None, reason="the extra ogb is not installed"
)


@needs_ogb
def test_sizes_are_those_of_ogb() -> None:
    features = ogb_module("ogb.utils.features")
    assert list(ATOM_SIZES) == features.get_atom_feature_dims()
    assert list(BOND_SIZES) == features.get_bond_feature_dims()


@needs_ogb
@pytest.mark.parametrize("which", ["atom", "bond"])
def test_embedding_equals_ogb(which: str) -> None:
    module = ogb_module("ogb.graphproppred.mol_encoder")
    if which == "atom":
        reference, ours = module.AtomEncoder(8), NodeEncoder("ogb", 9, 8)
        tables, sizes = reference.atom_embedding_list, ATOM_SIZES
    else:
        reference, ours = module.BondEncoder(8), EdgeEncoder("ogb", 3, 8)
        tables, sizes = reference.bond_embedding_list, BOND_SIZES
    with torch.no_grad():
        ours.lin.weight.copy_(torch.cat([table.weight for table in tables]))
    x = random_features(40, sizes)
    torch.testing.assert_close(ours(x), reference(x))
    ours(x).square().sum().backward()
    reference(x).square().sum().backward()
    grads = torch.cat([table.weight.grad for table in tables])
    torch.testing.assert_close(ours.lin.weight.grad, grads)


def test_each_table_is_drawn_by_glorots_rule() -> None:
    encoder = NodeEncoder("ogb", 9, 64)
    tables = torch.split(encoder.lin.weight, list(ATOM_SIZES))
    for size, table in zip(ATOM_SIZES, tables, strict=True):
        bound = (6 / (size + 64)) ** 0.5
        assert 0.7 * bound < table.abs().max() <= bound
    before = encoder.lin.weight.detach().clone()
    encoder.reset_parameters()
    assert not torch.equal(before, encoder.lin.weight)


def test_empty_and_float_inputs() -> None:
    assert NodeEncoder("ogb", 9, 8)(torch.empty(0, 9).long()).shape == (0, 8)
    assert EdgeEncoder("ogb", 3, 8)(torch.empty(0, 3).long()).shape == (0, 8)
    encoder = EdgeEncoder("float", 4, 8)
    x = torch.randn(5, 4)
    expected = x @ encoder.lin.weight.T + encoder.lin.bias
    torch.testing.assert_close(encoder(x), expected)


def test_state_dict_names_are_promises() -> None:
    assert list(NodeEncoder("ogb", 9, 8).state_dict()) == ["lin.weight"]
    keys = ["lin.weight", "lin.bias"]
    assert list(NodeEncoder("float", 9, 8).state_dict()) == keys


def test_errors() -> None:
    with pytest.raises(ValueError, match="NodeEncoder got kind='int', expected one of"):
        NodeEncoder("int", 9, 8)
    with pytest.raises(ValueError, match=r"EdgeEncoder got in_channels=9 .*expected 3"):
        EdgeEncoder("ogb", 9, 8)
    encoder = NodeEncoder("ogb", 9, 8)
    with pytest.raises(TypeError, match=r"got features of torch.float32, expected int"):
        encoder(torch.ones(2, 9))
    with pytest.raises(ValueError, match=r"shape \[2, 8\], expected \[num_rows, 9\]"):
        encoder(torch.ones(2, 8).long())


@pytest.mark.parametrize("edges", [0, 3])
def test_encoders_fit_the_set(edges: int) -> None:
    y = torch.arange(10) % 2
    store = GraphStore(
        torch.zeros(10, 9, dtype=torch.long),
        torch.zeros(2, 10, dtype=torch.long),
        y=y,
        node_ptr=torch.arange(11),
        edge_ptr=torch.arange(11),
        edge_attr=torch.zeros(10, edges, dtype=torch.long) if edges else None,
    )
    dataset = GraphDataset(
        "toy",
        store,
        task="multiclass",
        num_outputs=2,
        metric="accuracy",
        splits=(share_split(y),),
        feature_kind="ogb",
    )
    nodes, bonds = encoders(dataset, 16, edge_channels=4)
    assert nodes(store.x).shape == (10, 16)
    if edges == 0:
        assert bonds is None
        return
    assert bonds is not None
    assert bonds(store.edge_attr).shape == (10, 4)
    default = encoders(dataset, 16)[1]
    assert default is not None
    assert default(store.edge_attr).shape == (10, 16)
