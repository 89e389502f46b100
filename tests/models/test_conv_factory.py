from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import GCNConv, GraphConv, SAGEConv

from pyg_pool.models.conv_factory import (
    CONVS,
    add_missing_loops,
    apply_conv,
    check_edge_attr,
    edge_input,
    make_conv,
)

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@pytest.mark.parametrize("name", CONVS)
def test_every_word_builds_a_layer_that_runs(name: str) -> None:
    conv = make_conv("Net", name, 3, 5, edge_channels=2)
    takes = edge_input(conv)
    width = 2 if takes == "attr" else 1
    out = apply_conv(conv, takes, torch.randn(3, 3), EDGES, torch.rand(4, width))
    assert out.shape == (3, 5)


def test_classes_functions_and_options() -> None:
    assert make_conv("Net", SAGEConv, 3, 5, options={"aggr": "max"}).out_channels == 5
    assert make_conv("Net", GraphConv, 3, 5).in_channels == 3
    built = make_conv("Net", lambda a, b: GCNConv(a, b, bias=False), 3, 5)
    assert built.bias is None
    assert make_conv("Net", "gat", 3, 5, edge_channels=4).edge_dim == 4


@pytest.mark.parametrize("name", ["gat", "gatv2", "transformer"])
def test_heads_do_not_widen_the_layer(name: str) -> None:
    conv = make_conv("Net", name, 3, 5, options={"heads": 2})
    assert conv(torch.randn(3, 3), EDGES).shape == (3, 5)
    wide = make_conv("Net", name, 3, 5, options={"heads": 2, "concat": True})
    assert wide(torch.randn(3, 3), EDGES).shape == (3, 10)


def test_wrong_words_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Net got conv='gcm'.*did you mean 'gcn'"):
        make_conv("Net", "gcm", 3, 5)
    with pytest.raises(ValueError, match="bind them in the function"):
        make_conv("Net", lambda a, b: GCNConv(a, b), 3, 5, options={"bias": False})
    with pytest.raises(TypeError, match="built a str"):
        make_conv("Net", lambda a, b: "layer", 3, 5)
    with pytest.raises(TypeError):
        make_conv("Net", "gcn", 3, 5, options={"biass": False})


@pytest.mark.parametrize(
    ("name", "channels", "takes"),
    [
        ("gcn", None, "weight"),
        ("graph", 3, "weight"),
        ("mean_skip", None, "weight"),
        ("gat", 3, "attr"),
        ("gat", None, "none"),
        ("gine", 3, "attr"),
        ("gin", 3, "none"),
        ("sage", None, "none"),
    ],
)
def test_edge_input(name: str, channels: int | None, takes: str) -> None:
    assert edge_input(make_conv("Net", name, 3, 5, edge_channels=channels)) == takes


def test_improved_gcn_has_loops_of_two_also_without_weights() -> None:
    conv = GCNConv(3, 3, improved=True)
    x = torch.randn(3, 3)
    expected = conv(x, EDGES, torch.ones(4))
    assert_close(apply_conv(conv, "weight", x, EDGES, None), expected)
    assert_close(apply_conv(conv, "none", x, EDGES, torch.rand(4)), expected)


class WatchedGCN(GCNConv):
    """Remembers the type that degrees are counted in."""

    def forward(self, x, edge_index, edge_weight=None):
        self.counted_in = edge_weight.dtype
        return super().forward(x, edge_index, edge_weight)


def test_gcn_counts_degrees_of_half_precision_in_float32() -> None:
    edges = torch.stack([torch.arange(1, 1500), torch.zeros(1499, dtype=torch.long)])
    x, conv = torch.rand(1500, 2), WatchedGCN(2, 2)
    expected = apply_conv(conv, "weight", x, edges, None)
    half = apply_conv(conv.bfloat16(), "weight", x.bfloat16(), edges, None)
    assert conv.counted_in == torch.float32
    assert half.dtype == torch.bfloat16
    assert_close(half.float(), expected, atol=0.01, rtol=0.05)


def test_scalar_weights_serve_as_attributes() -> None:
    conv = make_conv("Net", "gine", 3, 5, edge_channels=1)
    x, weight = torch.randn(3, 3), torch.rand(4)
    expected = conv(x, EDGES, weight.unsqueeze(-1))
    assert_close(apply_conv(conv, "attr", x, EDGES, weight), expected)


def test_edge_attr_is_checked() -> None:
    check_edge_attr("Net", "none", None, None)
    check_edge_attr("Net", "weight", None, torch.ones(4, 1))
    check_edge_attr("Net", "attr", 3, torch.ones(4, 3))
    check_edge_attr("Net", "attr", None, torch.ones(4, 3))
    for takes, channels, given, message in [
        ("none", None, torch.ones(4), "use_edge_attr=False"),
        ("weight", None, torch.ones(4, 2), r"\[E\] or \[E, 1\]"),
        ("attr", 3, torch.ones(4), "edge_channels=1"),
        ("attr", 3, None, "pass edge_attr"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_edge_attr("Net", takes, channels, given)


def test_only_missing_loops_are_added() -> None:
    edges = torch.tensor([[1, 1, 0], [1, 0, 1]])
    index, attr = add_missing_loops(edges, None, 3)
    assert index.tolist() == [[1, 1, 0, 0, 2], [1, 0, 1, 0, 2]]
    assert attr is None
    _, attr = add_missing_loops(edges, torch.tensor([[5.0], [6.0], [7.0]]), 3)
    assert attr.tolist() == [[5.0], [6.0], [7.0], [1.0], [1.0]]
    index, _ = add_missing_loops(edges[:, :0], None, 0)
    assert index.shape == (2, 0)
