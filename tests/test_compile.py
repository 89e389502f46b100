"""Every primitive, operator and layer is one graph for ``torch.compile``.

One trace serves two backends: what is traced runs as it is (``eager``) and with its
gradient traced too (``aot_eager``). The full sweep, with Inductor, is ``make
test-compile``, which takes some minutes.
"""

from __future__ import annotations

import dataclasses
import inspect
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.utils import counters
from torch.nn import Module
from torch.testing import assert_close

from pyg_pool import kernels, mesh, models, pool, readout, relational
from pyg_pool.testing import poolings, readouts
from tests.compile_cases import (
    BROKEN,
    LAYERS,
    NETWORKS,
    PRIMITIVES,
    Case,
    registered,
)

pytestmark = pytest.mark.skipif(
    torch.__version__ < (2, 10), reason="sizes that depend on data need torch 2.10"
)

SLOW = pytest.mark.slow
OPERATORS = {spec.label: registered(spec) for spec in (*poolings(), *readouts())}
EVERY = {**PRIMITIVES, **LAYERS, **NETWORKS, **OPERATORS}
# Tracing takes seconds: further forms and large networks belong to the full sweep.
QUICK = {
    *PRIMITIVES, *LAYERS, "KLGNN(full)", "KLGNN(balls)", "GPool(preset='paper')",
    "GPool(min_score=0.2)",
}  # fmt: skip
IN_CPP = ("segment_softmax", "PoolAndUnpool()")
# What no tensor goes through.
SETTINGS = {"available_backends", "current_backend", "use_backend", "warm_up"}


def is_quick(label: str) -> bool:
    return label in QUICK or (label in OPERATORS and label.endswith("()"))


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def tensors_of(result: Any) -> list[Tensor]:
    """All tensors and sizes of a result, whatever holds them."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, (int, float)):
        return [torch.tensor(float(result))]
    if dataclasses.is_dataclass(result):
        fields = dataclasses.fields(result)
        result = [getattr(result, field.name) for field in fields]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [each for part in result for each in tensors_of(part)]
    return []


def outcome(call: Callable[..., Any], given: tuple[Any, ...]) -> list[Tensor]:
    """Results and gradients of one call."""
    args = [
        arg.clone().requires_grad_()
        if isinstance(arg, Tensor) and arg.is_floating_point()
        else arg
        for arg in given
    ]
    out = tensors_of(call(*args))
    leaves = [arg for arg in args if isinstance(arg, Tensor) and arg.requires_grad]
    if isinstance(call, Module):
        leaves += list(call.parameters())
    terms = [
        (part * torch.linspace(0.5, 1.5, part.numel()).view_as(part)).sum()
        for part in out
        if part.requires_grad
    ]
    grads = torch.autograd.grad(sum(terms), leaves, allow_unused=True) if terms else ()
    return [part.detach() for part in out] + [g for g in grads if g is not None]


def both(graph: Any, inputs: Any) -> Callable[..., Any]:
    """Runs the traced graph as it is, and with its gradient traced too."""
    traced: Any = torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    def run(*args: Any) -> Any:
        with torch.no_grad():
            plain = tensors_of(graph(*args))
        out = traced(*args)
        for found, wanted in zip(tensors_of(out), plain, strict=True):
            assert_close(found.detach(), wanted, equal_nan=True)
        return out

    return run


def check(case: Case, backend: Any) -> None:
    """One graph for all sizes that gives eager's numbers."""
    call = case.build()
    compiled: Any = torch.compile(call, fullgraph=True, dynamic=True, backend=backend)
    for turn in range(3):
        given = case.inputs(turn)
        wanted = outcome(call, given)
        with torch._dynamo.config.patch(error_on_recompile=turn > 0):
            found = outcome(compiled, given)
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert not counters["graph_break"]
    assert counters["stats"]["calls_captured"] > 0


@pytest.mark.parametrize(
    "label",
    [pytest.param(name, marks=() if is_quick(name) else SLOW) for name in EVERY],
)
def test_one_graph_equals_eager(label: str) -> None:
    check(EVERY[label], both)


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(
    "label",
    [pytest.param(name, marks=() if name in IN_CPP else SLOW) for name in EVERY],
)
def test_inductor_equals_eager(label: str) -> None:
    check(EVERY[label], "inductor")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")  # dynamo tells of what it skips
@pytest.mark.parametrize("label", BROKEN)
def test_breaks_are_counted(label: str) -> None:
    """Equal numbers from the pieces of a graph that cannot be whole."""
    case = BROKEN[label]
    given = case.inputs(0)
    wanted = outcome(case.build(), given)
    compiled: Any = case.build()
    compiled.network.compile(dynamic=True, backend="eager")
    # Sizes that depend on the data break no graph, as under fullgraph=True.
    with torch._dynamo.config.patch(
        capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True
    ):
        found = outcome(compiled, given)
    for a, b in zip(found, wanted, strict=True):
        assert_close(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert sum(counters["graph_break"].values()) == case.breaks, counters["graph_break"]
    if case.breaks == 0:  # looks at a size are no breaks for dynamo, but part graphs
        assert counters["stats"]["unique_graphs"] > 1


def public_modules() -> list[str]:
    """Names of all modules that the rooms make public."""
    found = {
        name
        for room in (pool, readout, models, mesh, relational)
        for name in room.__all__
        if inspect.isclass(thing := getattr(room, name)) and issubclass(thing, Module)
    }
    return sorted(found)


@pytest.mark.parametrize("name", public_modules())
def test_every_public_module_has_a_case(name: str) -> None:
    cases = [*EVERY.values(), *BROKEN.values()]
    names = {case.label.partition("(")[0] for case in cases}
    assert name in names.union(*(case.holds for case in cases))


def test_breaks_have_a_reason() -> None:
    assert all(case.reason for case in BROKEN.values())


def test_every_public_primitive_has_a_case() -> None:
    names = set(kernels.__all__) - SETTINGS
    assert not [name for name in names if not any(c.startswith(name) for c in EVERY)]


def test_a_break_is_found() -> None:
    def breaks(x: Tensor) -> Tensor:
        torch._dynamo.graph_break()
        return x + 1

    case = Case("breaks", lambda: breaks, lambda turn: (torch.ones(turn + 2),))
    with pytest.raises(torch._dynamo.exc.Unsupported):
        check(case, "eager")


def test_a_wrong_number_is_found() -> None:
    def differs(x: Tensor) -> Tensor:
        return x + (1 if torch.compiler.is_compiling() else 2)

    case = Case("differs", lambda: differs, lambda turn: (torch.ones(turn + 2),))
    with pytest.raises(AssertionError):
        check(case, both)
