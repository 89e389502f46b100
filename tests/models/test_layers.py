from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close
from torch_geometric.nn import MultiAggregation, Set2Set, SoftmaxAggregation, aggr

from pyg_pool import GNPAggregation
from pyg_pool.models.layers import Head, NodeNorm, Readout, make_act

X = torch.tensor([[1.0, 8.0], [3.0, 2.0], [5.0, 5.0]])
BATCH = torch.tensor([2, 0, 2])


def test_readouts_by_hand() -> None:
    read = Readout("Net", ["mean", "max", "add", "min"], 2)
    mean, top, total, low = read(X, BATCH, 4)
    assert mean.tolist() == [[3.0, 2.0], [0.0, 0.0], [3.0, 6.5], [0.0, 0.0]]
    assert top.tolist() == [[3.0, 2.0], [0.0, 0.0], [5.0, 8.0], [0.0, 0.0]]
    assert total.tolist() == [[3.0, 2.0], [0.0, 0.0], [6.0, 13.0], [0.0, 0.0]]
    assert low.tolist() == [[3.0, 2.0], [0.0, 0.0], [1.0, 5.0], [0.0, 0.0]]
    assert read.out_channels == [2, 2, 2, 2]
    assert "mean, max, sum, min" in repr(read)


def test_without_batch_there_is_one_graph() -> None:
    assert Readout("Net", "max", 2)(X, None, 1)[0].tolist() == [[5.0, 8.0]]


def test_aggregations_by_name_instance_and_function() -> None:
    softmax = SoftmaxAggregation(learn=True, channels=2)
    words = ["std", softmax, lambda width: Set2Set(width, 2), "power_mean"]
    read = Readout("Net", words, 2)
    assert read.out_channels == [2, 2, 4, 2]
    assert read.aggrs[1] is not softmax
    parts = read(X, BATCH, 4)
    assert [part.shape for part in parts] == [(4, 2), (4, 2), (4, 4), (4, 2)]
    wide = Readout("Net", MultiAggregation(["mean", "max"]), 2)
    assert wide.out_channels == [4]


def test_aggregations_that_want_ascending_groups_get_them() -> None:
    read = Readout("Net", "median", 2)
    lstm = Readout("Net", lambda width: torch_lstm(width), 2)
    order = torch.tensor([1, 0, 2])
    for each in (read, lstm):
        sorted_out = each(X[order], BATCH[order], 3)[0]
        assert_close(each(X, BATCH, 3)[0], sorted_out)


def torch_lstm(width: int) -> torch.nn.Module:
    from torch_geometric.nn import LSTMAggregation

    return LSTMAggregation(width, 3)


def test_wrong_readouts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Net got readout='men'.*'mean'"):
        Readout("Net", ["men"], 2)
    with pytest.raises(ValueError, match="pass the aggregation itself"):
        Readout("Net", ["set2set"], 2)


def test_own_readouts_are_known_by_name() -> None:
    assert not hasattr(aggr, "GNPAggregation"), "no name in PyG is needed"
    read = Readout("Net", ["gnp", "max"], 2)
    assert isinstance(read.aggrs[0], GNPAggregation)
    assert read.out_channels == [2, 2]
    assert_close(read(X, BATCH, 3)[0], read.aggrs[0](X, BATCH, dim_size=3))


def test_finding_the_width_leaves_no_trace() -> None:
    torch.manual_seed(3)
    module = torch.nn.Dropout(0.5)
    module.forward = lambda x, index, dim_size: torch.rand(dim_size, 7)
    read = Readout("Net", lambda width: module, 2)
    assert read.out_channels == [7]
    assert module.training
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert_close(drawn, torch.rand(1))


def test_norms() -> None:
    plain = NodeNorm(None, 2)
    assert plain(X, BATCH, 3) is X
    assert not list(plain.parameters())
    by_graph = NodeNorm("graph", 2)
    assert by_graph.takes_batch
    single = torch.tensor([0, 2])
    out = by_graph(X, BATCH, 3)
    assert_close(out[single], by_graph(X[single], None, 1))
    own = NodeNorm(lambda width: torch.nn.LayerNorm(width), 2)
    assert_close(own(X, BATCH, 3), torch.nn.functional.layer_norm(X, [2]))
    one = NodeNorm("batch_norm", 2).train()
    assert one(X[:1], None, 1).isfinite().all()
    one.norm.module.weight.data.fill_(9)
    one.reset_parameters()
    assert (one.norm.module.weight == 1).all()


def test_acts() -> None:
    assert make_act("identity")(X) is X
    assert make_act(None)(X) is X
    assert make_act(torch.tanh) is torch.tanh
    assert_close(make_act("ELU")(-X), torch.nn.functional.elu(-X))


def test_head() -> None:
    head = Head([2, 3, 1], "relu", [0.0, 0.0])
    expected = head.lins[1](head.lins[0](X).relu())
    assert_close(head(X), expected)
    before = head.lins[0].weight.clone()
    head.reset_parameters()
    assert not torch.equal(head.lins[0].weight, before)
    assert "dropout=[0.0, 0.0]" in repr(head)
    wet = Head([2, 1], None, [0.9])
    assert not torch.allclose(wet(torch.ones(64, 2)), wet.eval()(torch.ones(64, 2)))
