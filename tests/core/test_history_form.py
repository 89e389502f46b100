"""Widths of histories, position code, joining of layers."""

from __future__ import annotations

import math

import pytest
import torch

from pyg_pool import HistographAggregation
from pyg_pool.core.history_form import HistoryForm, sinusoids


def form(*arguments: object, **options: object) -> HistoryForm:
    return HistographAggregation(*arguments, **options).form  # type: ignore[arg-type]


def test_widths() -> None:
    assert form([3, 4, 4], 8).starts == (0, 3, 7, 11)
    assert form(4, 8, 3).widths == (4, 4, 4)
    assert form((3, 4), 8).given_channels == [3, 4]
    assert not form(4, 8, 2, node_attention=False).has_norm
    assert not form(4, 8, 2, layer_attention="mean").looks_at_layers


def test_shapes_of_weights() -> None:
    shapes = form(4, 8, 2, node_attention="induced", num_points=5).parameter_shapes()
    assert shapes["points"] == [5, 8]
    assert shapes["positions"] is None
    plain = form(4, 8, 2, node_attention=False, layer_attention="last")
    assert set(plain.parameter_shapes().values()) == {None}


def test_position_code() -> None:
    code = sinusoids(3, 5, torch.zeros((), dtype=torch.float64))
    assert code.shape == (3, 5)
    for layer in range(3):
        for k in range(3):
            angle = layer / 10000 ** (2 * k / 5)
            assert code[layer, 2 * k].item() == pytest.approx(math.sin(angle))
            if 2 * k + 1 < 5:
                assert code[layer, 2 * k + 1].item() == pytest.approx(math.cos(angle))


def test_join() -> None:
    layers = [torch.randn(2, 3), torch.randn(2, 4)]
    joined = form([3, 4], 8).join("Owner", layers)
    assert torch.equal(joined[:, 3:], layers[1])
    with pytest.raises(ValueError, match=r"Owner got a history.*expected 2 layers"):
        form([3, 4], 8).join("Owner", layers[:1])


def test_check_takes_no_whole_numbers() -> None:
    with pytest.raises(ValueError, match=r"torch.int64.*expected floats"):
        form([1, 1], 8).check("Owner", torch.zeros(3, 2).long(), -2)
