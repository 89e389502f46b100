"""Which backend runs a primitive.

``native`` is plain torch code: it exists for every primitive, runs on every
device, is what ``torch.compile`` traces, and is the reference of all others.
``numba`` is a compiled CPU twin, reached for float tensors in eager mode above a
measured size. ``scipy`` multiplies large sparse matrices. ``triton`` is a twin for
CUDA, ``torch_scatter`` and ``torch_sparse`` call those packages; these run only when
chosen. A backend is forced by :func:`use_backend` or by the environment variable
``PYG_POOL_BACKEND``; the default ``auto`` decides by size and device.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from pyg_pool.errors import check_choice, require
from pyg_pool.typing import Backend

__all__ = ["available_backends", "current_backend", "use_backend", "warm_up"]

CHOSEN_NAMES = ("triton", "torch_scatter", "torch_sparse")
BACKENDS = ("auto", "native", "numba", "scipy", *CHOSEN_NAMES)
# What the backends that run only when chosen by name can do.
CHOSEN: dict[str, tuple[str, ...]] = {
    "triton": (
        "segment_reduce",
        "segment_softmax",
        "segment_attention",
        "segment_pnorm",
        "parse",
        "connected_components",
        "topk",
        "gather_sum",
        "tuple_propagate",
        "sparse_product",
    ),
    "torch_scatter": ("segment_reduce", "segment_softmax"),
    "torch_sparse": ("coalesce",),
}

# Sizes from which the compiled twin is used instead of native torch, set from the
# record of ``python -m benchmarks.crossover``.
NUMBA_FROM = {
    "sparse_product": 1024,  # entries of both factors
    "filter_edges": 1024,  # edges
    "gated_rows": 1024,  # elements of the picked rows
    "relu_dropout": 4096,  # elements
    "segment_pnorm": 1024,  # elements
    "topk": 1024,  # rows
    "pick": 1024,  # elements
    "parse": 1024,  # edges or nodes
    "coalesce": 1024,  # edges
    "distinct_pairs": 1024,  # edges
    "pair_logits": 1024,  # elements of the pairs
    "propagate": 1024,  # elements at the edges
    "norm_sum": 16384,  # elements
    "hop_pairs": 1,  # nodes
    "join_product": 1024,  # elements of the products
    "gather_sum": 1024,  # elements at the edges
    "tuple_propagate": 1024,  # elements
    "attend": 1024,  # elements at the edges
    "pool_mesh": 256,  # pairs of faces
    "layer_mix": 1024,  # elements
    "segment_reduce": 1024,  # elements
    "segment_softmax": 1024,  # elements
    "segment_attention": 1024,  # elements
}

# Entries of both factors from which SciPy's product is used.
SCIPY_FROM = 2**18

# What os.environ holds its variables in: a look into it runs no Python code, where
# that of os.environ costs a small input more than all other choices together.
_environment: Any = getattr(os.environ, "_data", os.environ)
VARIABLE: Any = "PYG_POOL_BACKEND"
if _environment is not os.environ:
    VARIABLE = os.environ.encodekey(VARIABLE)

_forced: ContextVar[str | None] = ContextVar("pyg_pool_backend", default=None)
_seen: ContextVar[set[tuple[str, str]] | None] = ContextVar("seen", default=None)


def current_backend() -> str:
    """Returns the name of the backend in force, ``"auto"`` where none is forced."""
    forced = _forced.get()
    if forced is not None:
        return forced
    if VARIABLE not in _environment:
        return "auto"
    name = os.environ["PYG_POOL_BACKEND"]
    check_choice("PYG_POOL_BACKEND", "value", name, BACKENDS)
    return name


@contextmanager
def use_backend(name: Backend) -> Iterator[None]:
    """Forces one backend inside a ``with`` block.

    Args:
        name: ``"auto"``, ``"native"``, ``"numba"``, ``"scipy"``, ``"triton"``,
            ``"torch_scatter"`` or ``"torch_sparse"``. A primitive without a twin of
            that name, or a tensor on another device, uses ``native``.

    Raises:
        ValueError: If there is no such backend.
        ImportError: If its package is not installed.

    Example:
        >>> from pyg_pool.kernels import current_backend, use_backend
        >>> with use_backend("native"):
        ...     current_backend()
        'native'
    """
    check_choice("use_backend", "name", name, BACKENDS)
    if name in CHOSEN:
        peer(name)
    token = _forced.set(name)
    try:
        yield
    finally:
        _forced.reset(token)


def peer(name: str) -> ModuleType:
    """Returns the package behind a backend.

    Raises:
        ImportError: If it is not installed; names the extra that brings it.
    """
    return require(name, "triton" if name == "triton" else "scatter")


@contextmanager
def watch_backends() -> Iterator[set[tuple[str, str]]]:
    """Collects which backend runs which primitive inside a ``with`` block.

    Example:
        >>> import torch
        >>> from pyg_pool.kernels import segment_reduce, use_backend
        >>> from pyg_pool.kernels.dispatch import watch_backends
        >>> with use_backend("numba"), watch_backends() as seen:
        ...     _ = segment_reduce(torch.ones(2))
        >>> seen
        {('segment_reduce', 'numba')}
    """
    seen: set[tuple[str, str]] = set()
    token = _seen.set(seen)
    try:
        yield seen
    finally:
        _seen.reset(token)


def available_backends() -> dict[str, str]:
    """Returns each backend with ``"yes"`` or the reason why it is not there."""
    out = {"native": "yes", "scipy": "yes"}
    for name in ("numba", *CHOSEN_NAMES):
        found = importlib.util.find_spec(name) is not None
        out[name] = "yes" if found else f"the package {name} is not installed"
    if out["triton"] == "yes" and not (torch.cuda.is_available() or is_interpreted()):
        out["triton"] = "torch finds no CUDA device"
    return out


def is_interpreted() -> bool:
    """Whether Triton kernels run in its interpreter, on the CPU and slowly."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def runs_numba(primitive: str, size: int, *tensors: Tensor) -> bool:
    """Whether the numba twin of a primitive takes these tensors."""
    return not is_traced() and _takes_twin(current_backend(), primitive, size, tensors)


def _takes_twin(
    name: str, primitive: str, size: int, tensors: tuple[Tensor, ...]
) -> bool:
    """:func:`runs_numba` outside of traces, with the backend in force."""
    for tensor in tensors:
        if not tensor.is_cpu:
            return False
    runs = name == "numba" or (name == "auto" and size >= NUMBA_FROM[primitive])
    seen = _seen.get()
    if seen is not None and (runs or name not in CHOSEN):
        seen.add((primitive, "numba" if runs else "native"))
    return runs


def route(
    primitive: str, size: int, *tensors: Tensor, has_twin: bool = True
) -> str | None:
    """The backend that takes these tensors, ``None`` for native, at one look.

    Args:
        primitive: Key of the tables.
        size: Size of the work.
        tensors: The input.
        has_twin: Whether the compiled CPU twin knows such input.
    """
    if is_traced():
        return None
    return route_untraced(primitive, size, *tensors, has_twin=has_twin)


def route_untraced(
    primitive: str, size: int, *tensors: Tensor, has_twin: bool = True
) -> str | None:
    """:func:`route` where the caller has seen that no graph is traced."""
    name = current_backend()
    if name in CHOSEN:
        return chosen(primitive, *tensors)
    if has_twin and _takes_twin(name, primitive, size, tensors):
        return "numba"
    return None


def chosen(primitive: str, *tensors: Tensor) -> str | None:
    """The backend that was chosen by name and can take these tensors, if any.

    Traced graphs stay with native operations, which the compiler fuses itself.
    """
    if is_traced():
        return None
    name = current_backend()
    if primitive not in CHOSEN.get(name, ()):
        return None
    if name == "triton":
        there = is_interpreted() or all(tensor.is_cuda for tensor in tensors)
    else:
        there = all(tensor.device.type == "cpu" for tensor in tensors)
    seen = _seen.get()
    if seen is not None:
        seen.add((primitive, name if there else "native"))
    return name if there else None


def prefers_scipy(size: int, *tensors: Tensor) -> bool:
    """Whether a sparse product with so many entries in its factors is SciPy's."""
    if is_traced() or any(tensor.device.type != "cpu" for tensor in tensors):
        return False
    name = current_backend()
    return name == "scipy" or (name == "auto" and size >= SCIPY_FROM)


def turns_to_scipy(edge_index: Tensor) -> bool:
    """Whether a whole step that squares an adjacency is better forced to ``scipy``.

    A large product outweighs all other primitives of its step: these stay native,
    and numba, which takes time and memory to start, need not run at all.
    """
    return prefers_scipy(edge_index.numel(), edge_index) and current_backend() == "auto"


def warm_up() -> None:
    """Starts the compiled CPU twins now instead of in the first call that needs one.

    Numba takes a part of a second and some tens of megabytes to start, once per
    process; worth doing before timing, or before a server takes its first request.
    Kernels are compiled when first used and then kept on disk.

    Example:
        >>> from pyg_pool.kernels import warm_up
        >>> warm_up()
    """
    from pyg_pool.kernels import topk_numba

    topk_numba.ranked(torch.zeros(2).double().numpy())


def is_traced() -> bool:
    """Whether only plain torch operations will do: under compile and torch.func."""
    return torch.compiler.is_compiling() or is_vectorised()


def is_exported() -> bool:
    """Whether ``torch.export`` is at work, which allows no guard on a size."""
    asks = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)
    return bool(asks())


def is_vectorised() -> bool:
    """Whether a transform of torch.func is at work."""
    return bool(torch._C._are_functorch_transforms_active())
