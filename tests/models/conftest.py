"""Golden values of the two networks, and small graphs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

FOLDER = Path(__file__).parent.parent / "golden"


class Golden:
    """One golden file in one dtype, with its own tolerance."""

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
        data = json.loads(text)
        self.dtype = dtype
        self.inputs: dict[str, Any] = data["inputs"]
        self.weights: dict[str, Any] = data["weights"]
        self.outputs: dict[str, Any] = data["outputs"]
        self.gradients: dict[str, Any] = data["gradients"]
        self.tolerance: dict[str, Any] = data["tolerance"]

    def tensor(self, value: Any) -> Tensor:
        return torch.tensor(value, dtype=self.dtype)

    def leaf(self, name: str) -> Tensor:
        return self.tensor(self.inputs[name]).requires_grad_()

    def close(self, actual: Tensor, expected: Any) -> None:
        atol, rtol = self.tolerance["atol"], self.tolerance["rtol"]
        if self.dtype == torch.float32:
            atol = rtol = self.tolerance["float32_atol"]
        assert_close(actual, self.tensor(expected), atol=atol, rtol=rtol)

    def load(
        self,
        model: torch.nn.Module,
        names: Mapping[str, str] | None = None,
        turned: bool = False,
    ) -> Any:
        """Loads the weights; ``turned`` ones are stored in x out."""
        state = {
            (names or {}).get(name, name): turn(name, self.tensor(weight), turned)
            for name, weight in self.weights.items()
        }
        model.to(self.dtype).load_state_dict(state)
        return model.eval()

    def check_gradients(
        self,
        model: torch.nn.Module,
        inputs: Mapping[str, Tensor],
        ours: Callable[[str], str],
        turned: bool = False,
    ) -> None:
        """Compares every gradient of the file."""
        parameters = dict(model.named_parameters())
        for name, expected in self.gradients.items():
            if name in inputs:
                self.close(inputs[name].grad, expected)
                continue
            wanted = turn(name, self.tensor(expected), turned).tolist()
            self.close(parameters.pop(ours(name)).grad, wanted)
        assert not parameters, "the file has no gradient for these"


def turn(name: str, weight: Tensor, turned: bool) -> Tensor:
    """A matrix transposed, a projection vector as a row; the rest as it is."""
    if turned and name.startswith("p"):
        return weight.unsqueeze(0)
    return weight.t().contiguous() if turned and weight.dim() == 2 else weight


@pytest.fixture(params=[torch.float64, torch.float32], ids=["float64", "float32"])
def golden(request: pytest.FixtureRequest) -> Callable[[str], Golden]:
    """Reads a golden file, once in double and once in single precision."""
    return lambda name: Golden(name, request.param)


class Graphs:
    """Three graphs one by one and as a batch: a ring, one node, no edges."""

    def __init__(self, channels: int = 3, dtype: torch.dtype = torch.float64) -> None:
        ring = torch.arange(7)
        chords = torch.tensor([[0, 2], [3, 6]])
        ring = torch.cat([torch.stack([ring, (ring + 1) % 7]), chords], dim=1)
        none = torch.empty(2, 0, dtype=torch.long)
        self.xs = [torch.randn(n, channels, dtype=dtype) for n in (7, 1, 4)]
        self.edges = [torch.cat([ring, ring.flip(0)], dim=1), none, none]
        self.sizes = [7, 1, 4]
        self.batch_size = 3
        self.x = torch.cat(self.xs)
        starts = [0, 7, 8]
        self.edge_index = torch.cat(
            [e + s for e, s in zip(self.edges, starts, strict=True)], dim=1
        )
        self.batch = torch.repeat_interleave(torch.arange(3), torch.tensor(self.sizes))

    def shuffled(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The batch with its nodes in any order, and that order."""
        order = torch.randperm(self.x.size(0))
        place = order.argsort()
        edges = place[self.edge_index]
        return self.x[order], edges, self.batch[order], order


@pytest.fixture
def graphs() -> Graphs:
    return Graphs()
