"""What a check is: a function of a description of an operator that raises.

`PoolingSpec` and `ReadoutSpec` describe how an operator is built and what it
promises; the tables hold all checks by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool.core import PoolOutput
from pyg_pool.testing.gallery import SEED, GraphSample, random_batch

__all__ = [
    "POOLING_CHECKS",
    "READOUT_CHECKS",
    "OperatorSpec",
    "PoolingSpec",
    "ReadoutSpec",
]


@dataclass(frozen=True, eq=False)
class OperatorSpec:
    """How an operator is built and called.

    Args:
        factory: Function ``in_channels -> operator``.
        name: Name in messages; that of the operator's class where left empty.
        in_channels: Width of the features it is tried with.
        device: Device to run on.
        exceptions: Checks that it is documented not to pass, and why.
        inert: Parameters that the result does not depend on, as a number added in
            front of a softmax: their gradient is zero but for rounding.
    """

    factory: Callable[[int], Module]
    name: str = ""
    in_channels: int = 4
    device: str = "cpu"
    exceptions: Mapping[str, str] = field(default_factory=dict)
    inert: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Name in messages."""
        if self.name:
            return self.name
        if isinstance(self.factory, type):
            return self.factory.__name__
        return type(self.build()).__name__

    def build(self, dtype: torch.dtype = torch.float64, seed: int = SEED) -> Module:
        """Returns a new operator in evaluation mode, the same one for every call."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            operator = self.factory(self.in_channels)
        return operator.to(self.device, dtype).eval()

    def random(self, *sizes: int, dtype: torch.dtype = torch.float64) -> GraphSample:
        """Returns random weighted graphs of the given sizes."""
        drawn = random_batch(sizes or (7, 5, 6), self.in_channels)
        return drawn.to(self.device, dtype)

    def arguments(self, sample: GraphSample) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of a call."""
        raise NotImplementedError

    def tensors(self, operator: Module, sample: GraphSample) -> dict[str, Tensor]:
        """Calls the operator; returns all tensors of its result by name."""
        args, kwargs = self.arguments(sample)
        return self.unpack(operator(*args, **kwargs))

    def unpack(self, result: Any) -> dict[str, Tensor]:
        """All tensors of a result by name."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class PoolingSpec(OperatorSpec):
    """A pooling operator and what it promises beyond the common contract.

    Args:
        factory: Function ``in_channels -> operator``.
        name: Name in messages.
        in_channels: Width of the features it is tried with.
        device: Device to run on.
        exceptions: Checks that it is documented not to pass, and why.
        inert: Parameters that the result does not depend on, as a number added in
            front of a softmax: their gradient is zero but for rounding.
        adjacency: Maps the dense adjacency ``A`` ``[N, N]`` to the documented matrix
            whose S'AS gives the pooled edges; ``None`` where that is A itself.
        takes_attributes: Whether edges may carry several numbers, ``[E, D]``.
        sums_edges: Whether weights of merged edges add up.

    Example:
        >>> from pyg_pool import GPool
        >>> from pyg_pool.testing import PoolingSpec, check_pooling
        >>> spec = PoolingSpec(lambda channels: GPool(channels, ratio=0.6))
        >>> check_pooling(spec, only=["single_graph"])
        {'single_graph': 'passed'}
    """

    adjacency: Callable[[Tensor], Tensor] | None = None
    takes_attributes: bool = True
    sums_edges: bool = True

    def call(self, operator: Module, sample: GraphSample) -> PoolOutput:
        """Pools a sample."""
        args, kwargs = self.arguments(sample)
        return operator(*args, **kwargs)

    def arguments(self, sample: GraphSample) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of a call."""
        args = (sample.x, sample.edge_index, sample.edge_attr)
        return args, {"batch": sample.batch, "batch_size": sample.batch_size}

    def unpack(self, result: Any) -> dict[str, Tensor]:
        """All tensors of a result by name."""
        selection = result.selection
        named = {
            "x": result.x,
            "edge_index": result.edge_index,
            "edge_attr": result.edge_attr,
            "batch": result.batch,
            "score": result.score,
            "loss": result.loss,
            "node_index": selection.node_index,
            "cluster_index": selection.cluster_index,
            "weight": selection.weight,
        }
        return {name: each for name, each in named.items() if each is not None}


@dataclass(frozen=True, eq=False)
class ReadoutSpec(OperatorSpec):
    """A readout and what it promises beyond the common contract.

    Args:
        factory: Function ``in_channels -> aggregation``.
        name: Name in messages.
        in_channels: Width of the features it is tried with.
        device: Device to run on.
        exceptions: Checks that it is documented not to pass, and why.
        inert: Parameters that the result does not depend on, as a number added in
            front of a softmax: their gradient is zero but for rounding.
        has_second_derivative: Whether its formula has one.
        neutral: Value of every entry of an empty group's row.
    """

    has_second_derivative: bool = True
    neutral: float = 0.0

    def arguments(self, sample: GraphSample) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of a call."""
        return (sample.x, sample.batch), {"dim_size": sample.batch_size}

    def unpack(self, result: Any) -> dict[str, Tensor]:
        """All tensors of a result by name."""
        return {"out": result}


S = TypeVar("S", bound=OperatorSpec)
Check = Callable[[S], None]

POOLING_CHECKS: dict[str, Callable[[PoolingSpec], None]] = {}
"""Every check of a pooling operator by name."""
READOUT_CHECKS: dict[str, Callable[[ReadoutSpec], None]] = {}
"""Every check of a readout by name."""


def listed(
    name: str, *tables: dict[str, Callable[[Any], None]]
) -> Callable[[Check[S]], Check[S]]:
    """Puts a check into tables; what it raises names the check and the operator."""

    def add(run: Check[S]) -> Check[S]:
        @functools.wraps(run)
        def named(spec: S) -> None:
            try:
                run(spec)
            except Exception as error:
                raise AssertionError(
                    f"{spec.label} fails the check {name!r}: "
                    f"{type(error).__name__}: {error}"
                ) from error

        for table in tables:
            table[name] = named
        return named

    return add


def run_checks(
    table: Mapping[str, Callable[[S], None]],
    spec: S,
    only: list[str] | None,
    skip: Mapping[str, str] | None,
) -> dict[str, str]:
    """Runs the checks of a table; returns what became of each."""
    skip = {**spec.exceptions, **(skip or {})}
    unknown = sorted({*skip, *(only or [])} - set(table))
    if unknown:
        raise ValueError(
            f"the contract got check names {unknown}, expected some of "
            f"{sorted(table)}; choose among these."
        )
    unexplained = sorted(name for name, reason in skip.items() if not reason.strip())
    if unexplained:
        raise ValueError(
            f"the contract got skip without a reason for {unexplained}, expected "
            f"a sentence that says why; document the exception."
        )
    report = {}
    for name, check in table.items():
        if only is not None and name not in only:
            continue
        if name in skip:
            report[name] = f"skipped: {skip[name]}"
            continue
        check(spec)
        report[name] = "passed"
    return report


def expect(condition: bool, message: str) -> None:
    """Raises ``AssertionError`` unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def same(
    actual: Tensor,
    expected: Tensor,
    what: str,
    *,
    rtol: float = 1e-8,
    atol: float = 1e-10,
) -> None:
    """Raises ``AssertionError`` unless two tensors agree; NaN equals NaN."""
    torch.testing.assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        msg=lambda text: f"{what}: {text}",
    )


def all_same(
    actual: Mapping[str, Tensor],
    expected: Mapping[str, Tensor],
    what: str,
    *,
    rtol: float = 1e-8,
    atol: float = 1e-10,
) -> None:
    """Raises ``AssertionError`` unless two results have the same tensors."""
    expect(
        set(actual) == set(expected),
        f"{what}: got {sorted(actual)}, expected {sorted(expected)}",
    )
    for name, value in actual.items():
        same(value, expected[name], f"{what}, {name}", rtol=rtol, atol=atol)


def total(result: Mapping[str, Tensor], seed: int = SEED) -> Tensor:
    """A scalar that depends on every floating entry, each with a weight of its own."""
    chance = torch.Generator().manual_seed(seed)
    out = torch.zeros(())
    for value in result.values():
        if value.is_floating_point() and value.requires_grad:
            wide = value if value.dtype == torch.float64 else value.float()
            weight = torch.rand(value.shape, generator=chance) + 0.5
            out = out.to(wide) + (wide * weight.to(wide)).sum()
    return out
