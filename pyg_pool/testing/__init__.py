"""The contract of poolings and readouts: graphs to try, and checks that raise.

Every check is a function of a `PoolingSpec` or a `ReadoutSpec`, stands in a table
under a name, and raises ``AssertionError`` naming the check and the operator.
`check_pooling` and `check_readout` run them all; an exception is named with its
reason and shows in the report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch.nn import Module

from pyg_pool.testing import framework, numbers, pooling, readout
from pyg_pool.testing.contract import (
    POOLING_CHECKS,
    READOUT_CHECKS,
    OperatorSpec,
    PoolingSpec,
    ReadoutSpec,
    run_checks,
)
from pyg_pool.testing.gallery import GraphSample, gallery, random_batch, sample
from pyg_pool.testing.primal_dual import (
    check_primal_dual_pooling,
    random_primal_dual,
)
from pyg_pool.testing.registry import poolings, readouts
from pyg_pool.testing.watch import Watch, as_on_device

__all__ = [
    "POOLING_CHECKS",
    "READOUT_CHECKS",
    "GraphSample",
    "OperatorSpec",
    "PoolingSpec",
    "ReadoutSpec",
    "Watch",
    "as_on_device",
    "check_pooling",
    "check_primal_dual_pooling",
    "check_readout",
    "framework",
    "gallery",
    "numbers",
    "pooling",
    "poolings",
    "random_batch",
    "random_primal_dual",
    "readout",
    "readouts",
    "sample",
]


def check_pooling(
    operator: PoolingSpec | Callable[[int], Module],
    *,
    only: list[str] | None = None,
    skip: Mapping[str, str] | None = None,
    device: str | None = None,
) -> dict[str, str]:
    """Runs the contract of pooling operators.

    Args:
        operator: A function ``in_channels -> operator`` (a class will often do), or
            a `PoolingSpec` where the operator promises more or less than usual.
        only: Names of checks to run, see ``POOLING_CHECKS``.
        skip: Checks that the operator is documented not to pass, and why.
        device: Device to run on.

    Returns:
        For each check ``"passed"`` or ``"skipped: ..."`` with the reason.

    Raises:
        AssertionError: If a check fails; names check and operator.
        ValueError: If a name is unknown or a reason is missing.

    Example:
        >>> from pyg_pool import GPool
        >>> from pyg_pool.testing import check_pooling
        >>> check_pooling(GPool, only=["ties", "nan"])
        {'ties': 'passed', 'nan': 'passed'}
    """
    spec = operator if isinstance(operator, PoolingSpec) else PoolingSpec(operator)
    spec = spec if device is None else replace(spec, device=device)
    return run_checks(POOLING_CHECKS, spec, only, skip)


def check_readout(
    operator: ReadoutSpec | Callable[[int], Module],
    *,
    only: list[str] | None = None,
    skip: Mapping[str, str] | None = None,
    device: str | None = None,
) -> dict[str, str]:
    """Runs the contract of readouts.

    Args:
        operator: A function ``in_channels -> aggregation``, or a `ReadoutSpec`.
        only: Names of checks to run, see ``READOUT_CHECKS``.
        skip: Checks that the readout is documented not to pass, and why.
        device: Device to run on.

    Returns:
        For each check ``"passed"`` or ``"skipped: ..."`` with the reason.

    Raises:
        AssertionError: If a check fails; names check and operator.
        ValueError: If a name is unknown or a reason is missing.

    Example:
        >>> from torch_geometric.nn.aggr import MeanAggregation
        >>> from pyg_pool.testing import check_readout
        >>> check_readout(lambda channels: MeanAggregation(), only=["forms"])
        {'forms': 'passed'}
    """
    spec = operator if isinstance(operator, ReadoutSpec) else ReadoutSpec(operator)
    spec = spec if device is None else replace(spec, device=device)
    return run_checks(READOUT_CHECKS, spec, only, skip)
