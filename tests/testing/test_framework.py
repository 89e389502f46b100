"""Each shared check finds an operator that breaks its promise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pyg_pool import GPool, Pooling, Selection
from pyg_pool.kernels import current_backend, topk
from pyg_pool.testing import PoolingSpec, check_pooling
from pyg_pool.testing import framework as checks


class Half(Pooling):
    """Keeps the half with the largest projections."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.weight = torch.nn.Parameter(torch.empty(in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        torch.nn.init.uniform_(self.weight, -1, 1)

    def score(self, x: Tensor, batch: Tensor) -> Tensor:
        return x @ self.weight

    def select(self, x, edge_index, edge_attr, batch, batch_size) -> Selection:
        score = self.score(x, batch)
        kept = topk(score.detach(), 0.5, batch=batch, batch_size=batch_size)
        return Selection.from_nodes(kept, x.size(0), torch.sigmoid(score[kept]))

    def extra_repr(self) -> str:
        return f"{self.in_channels}"


class HiddenState(Half):
    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.hidden = torch.randn(in_channels, dtype=torch.float64)

    def score(self, x, batch):
        return x @ self.hidden


class HoldsLambda(Half):
    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.act = lambda x: x


class BreaksGraph(Half):
    def score(self, x, batch):
        score = x @ self.weight
        return score if x.detach().abs().max() > 0 else 2 * score


class CompilesAgain(Half):
    def score(self, x, batch):
        factor = 2.0 if x.size(0) > 20 else 1.0
        return (x @ self.weight) * factor


class NoGradientWhenTraced(Half):
    def score(self, x, batch):
        out = x @ self.weight
        return out.detach() if torch.compiler.is_compiling() else out


class Unspelled(Half):
    def __init__(self, in_channels: int, factor: float = 1.0) -> None:
        super().__init__(in_channels)
        self.factor = factor

    def score(self, x, batch):
        return (x @ self.weight) * self.factor


class HasChildren(Half):
    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.act = torch.nn.Identity()


class ResetsNothing(Half):
    def reset_parameters(self) -> None:
        if not hasattr(self, "done"):
            super().reset_parameters()
        self.done = True


class ResetsOtherwise(Half):
    """A constant that a reset draws at random."""

    def reset_parameters(self) -> None:
        if hasattr(self, "bias"):
            torch.nn.init.uniform_(self.bias)
        else:
            self.bias = torch.nn.Parameter(torch.zeros(1))
        super().reset_parameters()

    def score(self, x, batch):
        return x @ self.weight + self.bias


class Unused(Half):
    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.extra = torch.nn.Parameter(torch.ones(1))


class UsedByZero(Unused):
    def score(self, x, batch):
        return x @ self.weight + 0 * self.extra


class SwallowsOptions(Half):
    def __init__(self, in_channels: int = 4, **_: object) -> None:
        super().__init__(in_channels)


class SwallowsInCall(Half):
    def forward(self, x, edge_index, edge_attr=None, **options):
        options.pop("not_an_option", None)
        return super().forward(x, edge_index, edge_attr, **options)


class Unchecked(Half):
    def check(self, x, edge_index, edge_attr, batch, batch_size, *, in_channels=None):
        return x.double(), edge_index, batch, batch_size or 1


class ChangesInput(Half):
    def score(self, x, batch):
        x.data.mul_(2.0)
        return x @ self.weight


class Random(Half):
    def score(self, x, batch):
        return x @ self.weight + torch.rand(x.size(0)).to(x)


class OtherWithoutGradients(Half):
    def score(self, x, batch):
        return (x @ self.weight) * (1.0 if torch.is_grad_enabled() else 2.0)


class OtherBackend(Half):
    def score(self, x, batch):
        factor = 1.0 if current_backend() == "native" else 2.0
        return (x @ self.weight) * factor


class Waits(Half):
    def score(self, x, batch):
        return x @ self.weight / int(batch.max() + 1)


class AllPairs(Half):
    def score(self, x, batch):
        return x @ self.weight + 0 * (x @ x.t()).sum(dim=1)


class Pads(Half):
    def score(self, x, batch):
        size = int(torch.bincount(batch).max())
        padded = x.new_zeros(int(batch.max()) + 1, size, x.size(1))
        return x @ self.weight + 0 * padded.sum()


class LoopsOverGraphs(Half):
    def score(self, x, batch):
        out = x @ self.weight
        for graph in range(int(batch.max()) + 1):
            out = out + 0 * (batch == graph)
        return out


class LoopsOverEdges(Half):
    """Loops over plain numbers, without a torch call."""

    def connect(self, selection, edge_index, edge_attr, batch):
        seen = 0
        for a, b in edge_index.t().tolist():
            seen = max(seen, a, b)
        return super().connect(selection, edge_index, edge_attr, batch)


BROKEN = [
    (HiddenState, checks.check_state_dict, "state"),
    (HoldsLambda, checks.check_copies, "lambda|local object"),
    (BreaksGraph, checks.check_compile, "UserError|Unsupported"),
    (CompilesAgain, checks.check_compile, "ecompil"),
    (BreaksGraph, checks.check_compile_gradients, "UserError|Unsupported"),
    (NoGradientWhenTraced, checks.check_compile_gradients, "gradient"),
    (HasChildren, checks.check_repr, "cannot be read back"),
    (ResetsNothing, checks.check_reset, "leaves weight as it was"),
    (ResetsOtherwise, checks.check_reset, "bias after reset_parameters"),
    (Unused, checks.check_parameters, "extra gets no gradient"),
    (UsedByZero, checks.check_parameters, "gradient of extra is zero"),
    (SwallowsOptions, checks.check_options, "constructor swallows"),
    (SwallowsInCall, checks.check_options, "call swallows"),
    (Unchecked, checks.check_errors, "taken without an error|IndexError|unclear"),
    (ChangesInput, checks.check_inputs_kept, "x was changed"),
    (Random, checks.check_determinism, "second run"),
    (OtherWithoutGradients, checks.check_inference, "under no_grad"),
    (OtherBackend, checks.check_backends, "backend"),
    (Waits, checks.check_host_waits, "host waits"),
    (AllPairs, checks.check_memory, "bytes"),
    (Pads, checks.check_memory, "bytes"),
    (LoopsOverEdges, checks.check_vectorised, "lines of Python"),
    (LoopsOverGraphs, checks.check_vectorised, "loop in Python"),
]


@pytest.mark.parametrize(
    ("cls", "check", "message"),
    [
        pytest.param(*case, id=f"{case[0].__name__}-{case[1].__name__}")
        for case in BROKEN
    ],
)
def test_broken_operator_is_found(
    cls: type[Pooling], check: Callable[[PoolingSpec], None], message: str
) -> None:
    with pytest.raises(AssertionError, match=f"(?s){cls.__name__} fails.*({message})"):
        check(PoolingSpec(cls))


def test_inert_parameter_must_be_inert() -> None:
    checks.check_parameters(PoolingSpec(UsedByZero, inert=("extra",)))
    with pytest.raises(AssertionError, match=r"weight is listed as inert, but has"):
        checks.check_parameters(PoolingSpec(Half, inert=("weight",)))


def test_option_that_repr_forgets_is_found() -> None:
    spec = PoolingSpec(lambda channels: Unspelled(channels, factor=-1.0))
    with pytest.raises(AssertionError, match="read back from"):
        checks.check_repr(spec)
    checks.check_repr(PoolingSpec(Unspelled))


def test_sound_operator_passes() -> None:
    only = [
        "state_dict",
        "copies",
        "compile",
        "repr",
        "reset",
        "parameters",
        "options",
        "errors",
        "inference",
        "inputs_kept",
        "determinism",
        "backends",
        "host_waits",
        "memory",
        "vectorised",
    ]
    if torch.__version__ < (2, 10):  # the whole graph is traced from there on
        only.remove("compile")
    for cls in (Half, GPool):
        assert set(check_pooling(cls, only=only).values()) == {"passed"}
