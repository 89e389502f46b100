"""One layer on blocks: its rows, and its rows once more."""

from __future__ import annotations

import pytest
import torch
from torch.nn import BatchNorm1d, Linear, ReLU, Sequential

from pyg_pool.kernels.gin_layer import Block, first_run


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_a_layer(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    mlp = Sequential(Linear(3, 4), BatchNorm1d(4), ReLU(), Linear(4, 4)).to(dtype)
    edges = torch.tensor([[0, 1, 1], [1, 0, 1]])
    blocks = [Block(0, 2, *edges), Block(2, 5, *edges)]
    x = torch.randn(5, 3, dtype=dtype)
    weights = [p.detach() for part in mlp for p in part.parameters()]
    inner, layer = first_run(x, blocks, weights, mlp[1].eps)
    both = torch.cat([edges, edges + 2], dim=1)
    want = mlp(x.index_add(0, both[1], x[both[0]])).relu()
    torch.testing.assert_close(layer.again(x, blocks), want)
    for block in blocks:
        out = torch.empty_like(want[block.rows])
        layer.outer(inner[block.rows], out)
        torch.testing.assert_close(out, want[block.rows])
