from __future__ import annotations

from typing import Any

import pytest
import torch

from pyg_pool import GPool
from pyg_pool.train import (
    GraphDataset,
    GraphFeatures,
    OptionError,
    PlainGNN,
    TrainConfig,
    build_model,
    list_models,
    list_operators,
    list_pools,
    list_readouts,
)
from pyg_pool.train.architectures import _word, summary

MOLECULES = GraphFeatures("ogb", 9, 3, 2)
FLOATS = GraphFeatures("float", 3, 0, 2)


def molecules() -> Any:
    """Two graphs with integer atom and bond features."""
    from torch_geometric.data import Batch, Data

    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    graphs = [
        Data(
            x=torch.ones(3, 9, dtype=torch.long),
            edge_index=edges,
            edge_attr=torch.full((4, 3), k),
            y=torch.tensor([k]),
        )
        for k in (0, 1)
    ]
    return Batch.from_data_list(graphs)


MODELS = ["hierarchical", "unet", "gpn", "gcn", "gin", "kl_gnn"]


@pytest.mark.parametrize("model", MODELS)
def test_models_run_on_floats(model: str, rings: GraphDataset) -> None:
    config = TrainConfig(model=model, hidden=8, levels=2)
    network = build_model(config, GraphFeatures.of(rings))
    batch = rings.graphs.batch([0, 1, 2])
    output, loss = network(batch)
    assert output.shape == (3, 2)
    assert loss.shape == ()
    (output.sum() + loss).backward()
    missing = [n for n, p in network.named_parameters() if p.grad is None]
    assert missing == []
    assert network.is_pooled == (model in ("hierarchical", "unet", "gpn"))


@pytest.mark.parametrize(
    ("model", "conv", "sees"),
    [
        ("hierarchical", "auto", False),
        ("hierarchical", "gine", True),
        ("unet", "gine", True),
        ("gpn", "auto", False),
        ("gpn", "gine", True),
        ("gcn", "auto", False),
        ("gin", "auto", True),
    ],
)
def test_edge_features_are_used_where_the_convolution_takes_them(
    model: str, conv: str, sees: bool
) -> None:
    config = TrainConfig(model=model, conv=conv, hidden=8, levels=2, ratio=1.0)
    network = build_model(config, MOLECULES).eval()
    batch = molecules()
    output, _ = network(batch)
    # The two graphs differ in their bonds only.
    assert torch.allclose(output[0], output[1]) != sees
    assert (network.edge_encoder is not None) == sees


@pytest.mark.parametrize("model", ["hierarchical", "unet"])
@pytest.mark.parametrize("conv", ["auto", "gine"])
def test_graph_parsing_pools_with_and_without_edge_features(
    model: str, conv: str
) -> None:
    config = TrainConfig(model=model, conv=conv, pool="graph_parsing", hidden=8)
    network = build_model(config, MOLECULES).eval()
    assert network(molecules())[0].shape == (2, MOLECULES.num_outputs)
    merges = {pool.edge_reduce for pool in network.network.pools}
    assert merges == {"mean" if conv == "gine" else "binary"}


def test_hierarchy_of_a_pooled_model(rings: GraphDataset) -> None:
    config = TrainConfig(hidden=8, levels=2, ratio=0.5)
    network = build_model(config, GraphFeatures.of(rings)).eval()
    hierarchy = network.hierarchy(rings.graphs.batch([0, 1]))
    # Rings and paths of 4 and 5 nodes.
    assert [level.num_nodes for level in hierarchy.levels] == [9, 5, 3]


def test_plain_model_has_no_hierarchy(rings: GraphDataset) -> None:
    network = build_model(TrainConfig(model="gcn", hidden=8), FLOATS)
    with pytest.raises(TypeError, match="got a PlainGNN"):
        network.hierarchy(rings.graphs.batch([0]))


def test_one_graph_without_batch(rings: GraphDataset) -> None:
    network = build_model(TrainConfig(hidden=8), FLOATS).eval()
    alone, _ = network(rings.graphs[1])
    batched, _ = network(rings.graphs.batch([0, 1]))
    torch.testing.assert_close(alone[0], batched[1])


def test_readouts_reach_the_model() -> None:
    narrow = build_model(TrainConfig(model="gcn", readout=("mean",)), FLOATS)
    wide = build_model(TrainConfig(model="gcn", readout=("mean", "sum", "max")), FLOATS)
    assert narrow.network.head.lins[0].in_channels == 64
    assert wide.network.head.lins[0].in_channels == 192


@pytest.mark.parametrize(
    ("option", "name", "near"),
    [("pool", "gpol", "gpool"), ("readout", "meen", "mean"), ("conv", "gqn", "gcn")],
)
def test_unknown_names_are_refused(option: str, name: str, near: str) -> None:
    config = TrainConfig.from_dict({option: name})
    with pytest.raises(OptionError, match=f"'{option}' got '{name}'.*'{near}'"):
        build_model(config, FLOATS)


def test_plain_gnn_is_a_function_of_each_graph() -> None:
    model = PlainGNN(3, 8, 2, conv="gin", readout=("sum", "max")).eval()
    x, edges = torch.randn(4, 3), torch.tensor([[0, 1], [1, 0]])
    alone = model(x[:3], edges)
    batch = torch.tensor([0, 0, 0, 2])
    both = model(x, edges, batch=batch)
    assert both.shape == (3, 2)
    torch.testing.assert_close(both[:1], alone)
    moved = model(x[[2, 0, 1]], torch.tensor([[1, 2], [2, 1]]))
    torch.testing.assert_close(moved, alone)


def test_histograph_sees_all_layers() -> None:
    config = TrainConfig(model="gin", hidden=8, levels=3, readout=("histograph",))
    network = build_model(config, FLOATS).network
    assert network.history.form.widths == (8, 8, 8, 8)
    x, edges = torch.randn(4, 8), torch.tensor([[0, 1], [1, 0]])
    batch = torch.tensor([0, 0, 1, 1])
    network(x, edges, batch=batch, batch_size=2).sum().backward()
    assert network.history.hist[0].weight.grad is not None
    both = TrainConfig(model="gcn", hidden=8, readout=("mean", "histograph"))
    assert build_model(both, FLOATS).network.head.lins[0].in_channels == 16
    pooled = TrainConfig(model="hierarchical", readout=("histograph",))
    with pytest.raises(OptionError, match="'histograph' with model 'hierarchical'"):
        build_model(pooled, FLOATS)


def test_lists() -> None:
    assert list_pools()["gpool"] is GPool
    assert {"gpool", "gunpool"} <= set(list_operators())
    assert {"mean", "max", "sum", "min"} <= set(list_readouts())
    assert set(list_models()) == {"hierarchical", "unet", "gpn", "gcn", "gin", "kl_gnn"}
    lists = (list_operators(), list_readouts(), list_models())
    for text in (text for names in lists for text in names.values()):
        assert text
        assert "\n" not in text
        assert not text.endswith(".")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("GPool", "gpool"),
        ("GraphParsingPooling", "graph_parsing"),
        ("GUnpool", "gunpool"),
    ],
)
def test_words_of_classes(name: str, word: str) -> None:
    assert _word(name, "Pooling") == word


def test_summary_takes_the_whole_first_sentence() -> None:
    def thing() -> None:
        """Does ``this``
        and that.

        More.
        """

    assert summary(thing) == "Does this and that"
    assert summary(object()) != ""
