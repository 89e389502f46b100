"""Options and arguments that a form of KLGNN would not read are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyg_pool.models import IDMPNN, KLGNN, LocalKLGNN
from pyg_pool.relational import PRESETS, CopyGIN, FWLNet

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
UNREAD: list[dict[str, Any]] = [
    {"k": 2, "node_pool": "mean"},
    {"k": 2, "norm": "layer"},
    {"k": 2, "num_samples": 3},
    {"k": 2, "readout": "root"},
    {"streams": "two", "encoding": "spd"},
    {"streams": "two", "ego": 2},
    {"streams": "two", "label_channels": 4},
    {"max_distance": 2},
]


@pytest.mark.parametrize("options", UNREAD, ids=str)
def test_unread_options_are_named(options: dict[str, Any]) -> None:
    name = list(options)[-1]
    with pytest.raises(ValueError, match=rf"KLGNN got {name}=.* does not read it"):
        KLGNN(3, 8, 2, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 3}, "more labels"),
        ({"streams": "two", "k": 2}, "take streams='joint'"),
        ({"context": ("root",), "l": 0}, "copies with a root"),
        ({"context": ("root",), "policy": "delete_node"}, "copies with a root"),
        ({"context": ("across",), "l": 2}, "one label for 'across'"),
        ({"num_layers": 0}, "num_layers >= 1"),
        ({"hidden_channels": 0}, "hidden_channels >= 1"),
        ({"k": 2, "tuple_pool": "median"}, "expected one of"),
        ({"k": 2, "tuple_pool": torch.nn.Identity()}, "expected one of"),
    ],
)
def test_options_of_no_form(options: dict[str, Any], message: str) -> None:
    sizes: dict[str, Any] = {"in_channels": 3, "hidden_channels": 8, "out_channels": 2}
    with pytest.raises(ValueError, match=message):
        KLGNN(**{**sizes, **options})


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_reads_its_options(preset: str) -> None:
    model = KLGNN.from_preset(preset, 1, 8, 2, 2)
    assert model(torch.ones(3, 1), EDGES).shape == (1, 2)


def test_arguments_that_a_form_does_not_read() -> None:
    x, generator = torch.ones(3, 2), torch.Generator()
    with pytest.raises(ValueError, match="got generator with k=2"):
        KLGNN(2, 8, 1, k=2)(x, EDGES, generator=generator)
    with pytest.raises(ValueError, match="got label with k=1 and streams='two'"):
        KLGNN(2, 8, 1, streams="two")(x, EDGES, label=torch.ones(3, 1))


FORMS: dict[str, Any] = {
    "KLGNN": lambda d: KLGNN(2, 8, 1, 2, edge_channels=d),
    "context": lambda d: KLGNN(2, 8, 1, 2, context=("node",), edge_channels=d),
    "two": lambda d: KLGNN(2, 8, 1, 2, streams="two", edge_channels=d),
    "2-FWL": lambda d: KLGNN(2, 8, 1, 2, k=2, edge_channels=d),
    "IDMPNN": lambda d: IDMPNN(2, 8, 1, edge_channels=d),
    "FWLNet": lambda d: FWLNet(2, 8, 1, edge_channels=d),
    "CopyGIN": lambda d: CopyGIN(2, 8, 2, edge_channels=d),
}


@pytest.mark.parametrize("form", FORMS)
def test_attributes_of_edges(form: str) -> None:
    model, plain, x = FORMS[form](3), FORMS[form](0), torch.ones(3, 2)
    model.eval(), plain.eval()
    with pytest.raises(ValueError, match="edge_attr=None, expected"):
        model(x, EDGES)
    with pytest.raises(ValueError, match="edge_channels=2"):
        model(x, EDGES, torch.ones(4, 2))
    with pytest.raises(ValueError, match="one row per edge"):
        model(x, EDGES, torch.ones(5, 3))
    with pytest.raises(TypeError, match="embed categories"):
        model(x, EDGES, torch.ones(4, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="build it with edge_channels=3"):
        plain(x, EDGES, torch.ones(4, 3))
    assert model(x, EDGES, torch.ones(4, 3)).isfinite().all()
    assert FORMS[form](1)(x, EDGES, torch.ones(4)).isfinite().all()


def test_sizes_of_the_other_networks() -> None:
    for build in (lambda: IDMPNN(2, 8, 1, l=0), lambda: LocalKLGNN(8, 1, l=0)):
        with pytest.raises(ValueError, match="l >= 1"):
            build()
    with pytest.raises(TypeError, match=r"l=1\.5 of type float"):
        IDMPNN(2, 8, 1, l=1.5)  # type: ignore[arg-type]


def test_local_network_takes_sizes_from_what_is_given() -> None:
    model = LocalKLGNN(8, 1)
    batch = torch.tensor([0, 0, 0, 2])
    assert model(EDGES, batch=batch).shape == (3, 1)
    assert torch.equal(model(EDGES), model(EDGES, num_nodes=3))
