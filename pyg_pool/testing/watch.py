"""Watches what an operator does with torch: calls, sizes, waits for the device."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pyg_pool.kernels import use_backend

__all__ = ["Watch", "as_on_device"]

# What makes the host wait for a value. Data-dependent sizes (nonzero, unique) wait
# too, but there is no selection of edges without one.
READS = ("_local_scalar_dense", "equal", "is_nonzero")


class Watch(TorchDispatchMode):
    """Counts the torch calls inside a ``with`` block.

    Attributes:
        calls: How often each operation ran.
        largest: Bytes of the largest tensor that an operation returned.
        reads: Operations that read a value on the host.

    Example:
        >>> import torch
        >>> from pyg_pool.testing import Watch
        >>> with Watch() as watch:
        ...     size = int(torch.arange(5).max())
        >>> watch.reads
        ['_local_scalar_dense']
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: Counter[str] = Counter()
        self.largest = 0
        self.reads: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs an operation and takes note of it."""
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        self.calls[name] += 1
        if name in READS:
            self.reads.append(name)
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                self.largest = max(self.largest, leaf.untyped_storage().nbytes())
        return out

    @property
    def total(self) -> int:
        """Number of operations."""
        return self.calls.total()


@contextmanager
def as_on_device() -> Iterator[None]:
    """Takes the way that accelerators take: native torch, no checks of values."""
    with ExitStack() as stack:
        stack.enter_context(use_backend("native"))
        for name, module in list(sys.modules.items()):
            if name.startswith("pyg_pool.") and hasattr(module, "reads_values"):
                off = mock.patch.object(module, "reads_values", return_value=False)
                stack.enter_context(off)
        yield
