from __future__ import annotations

import pytest
import torch

from pyg_pool import Selection
from pyg_pool.core.parsing import Parsing


@pytest.mark.parametrize(
    ("how", "wanted"), [("sum", [2.0, 1.0]), ("mean", [0.5, 1.0]), ("none", None)]
)
def test_factor(how, wanted) -> None:
    pairs = Selection.from_clusters(torch.tensor([0, 0, 1]))
    found = Parsing(pairs, torch.tensor([0.5, 1.0]), torch.tensor([4.0, 1.0]))
    factor = found.factor(how)
    assert (None if factor is None else factor.tolist()) == wanted
