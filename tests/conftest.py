"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

try:
    from pyg_pool.kernels import available_backends, use_backend
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("pyg_pool"):
        raise
    BACKENDS = ["native"]
else:
    # SciPy's only primitive is the sparse product, whose tests add it themselves.
    BACKENDS = [
        name
        for name, state in available_backends().items()
        if state == "yes" and name != "scipy"
    ]

NEEDS_A_MARK = {
    "triton": pytest.mark.gpu,
    "torch_scatter": pytest.mark.scatter,
    "torch_sparse": pytest.mark.scatter,
}

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Older torch breaks the traced graph where a size depends on the data."""
    if torch.__version__ < (2, 10):
        for item in items:
            if re.search(r"_compile(s|d_equals_eager)?(?![a-z])", item.name):
                item.add_marker(pytest.mark.skip("needs torch 2.10"))


@pytest.fixture(autouse=True)
def _seed(request: pytest.FixtureRequest) -> None:
    """Each test draws the same numbers, alone or among others."""
    torch.manual_seed(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(
    params=[pytest.param(n, marks=NEEDS_A_MARK.get(n, ())) for n in BACKENDS]
)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a test once with every installed backend in force."""
    if BACKENDS == ["native"]:
        yield request.param
        return
    with use_backend(request.param):
        yield request.param


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> torch.device:
    """Runs a test on the CPU and, with ``-m gpu``, on the first CUDA device."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    return torch.device(request.param)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with real data sets, laid out as PyG and OGB expect them."""
    name = os.environ.get("PYG_POOL_DATA")
    if not name:
        pytest.skip("no data: set PYG_POOL_DATA, or call make test-data DATA=folder")
    root = Path(name)
    if not root.is_dir():
        pytest.fail(f"PYG_POOL_DATA={name} is no folder; name one that holds data sets")
    return root
