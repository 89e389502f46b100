"""The attention of the kernels is what the models get."""

from __future__ import annotations

from pyg_pool.core import attention
from pyg_pool.kernels import attention as kernels


def test_same_functions() -> None:
    assert attention.attend is kernels.attend
    assert attention.edge_softmax is kernels.edge_softmax
