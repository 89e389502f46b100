from __future__ import annotations

import copy

import pytest
import torch
from torch_geometric.nn import GATConv

from pyg_pool.core.naming import rename_on_load, spell_call


class Net(torch.nn.Module):
    def __init__(self, width: int, rates=0.5, *, conv=None, pair=(1, 2)) -> None:
        super().__init__()
        self.lins = torch.nn.ModuleList([torch.nn.Linear(width, 1, bias=False)])
        rename_on_load(self, [(r"old\.", ""), (r"lin(\d)\.", r"lins.\1.")])


@pytest.mark.parametrize("name", ["lins.0.weight", "lin0.weight", "old.lin0.weight"])
def test_old_names_load(name: str) -> None:
    weight = torch.randn(1, 3)
    net = Net(3)
    for each in (net, copy.deepcopy(net)):
        each.load_state_dict({name: weight})
        assert torch.equal(each.lins[0].weight, weight)


def test_names_load_inside_another_module() -> None:
    outer = torch.nn.Sequential(Net(2), Net(2))
    weight = torch.randn(1, 2)
    state = {"0.lin0.weight": weight, "1.lins.0.weight": weight + 1}
    outer.load_state_dict(state)
    assert torch.equal(outer[1].lins[0].weight, weight + 1)
    assert list(state) == ["0.lin0.weight", "1.lins.0.weight"]


def test_unknown_names_stay_unknown() -> None:
    with pytest.raises(RuntimeError, match="my_lin0"):
        Net(2).load_state_dict({"my_lin0.weight": torch.randn(1, 2)})


def test_calls_are_spelled_with_what_differs() -> None:
    given = {"width": 3, "rates": 0.5, "conv": None, "pair": (1, 2)}
    assert spell_call(Net, given) == "Net(3)"
    given |= {"rates": [0.1, 2], "conv": GATConv, "pair": ("a",)}
    expected = "Net(3, rates=[0.1, 2], conv=GATConv, pair=('a',))"
    assert spell_call(Net, given) == expected
