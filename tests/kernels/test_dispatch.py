"""Which backend runs, and who decides."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading

import pytest
import torch

from pyg_pool.kernels import available_backends, current_backend, use_backend
from pyg_pool.kernels import dispatch as room
from pyg_pool.kernels.dispatch import NUMBA_FROM, runs_numba

ANY = torch.ones(1)


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYG_POOL_BACKEND", raising=False)


def test_blocks_nest_and_end() -> None:
    assert current_backend() == "auto"
    with use_backend("native"):
        assert current_backend() == "native"
        with use_backend("numba"):
            assert current_backend() == "numba"
        assert current_backend() == "native"
    assert current_backend() == "auto"


def leave_by_an_error() -> None:
    with use_backend("native"):
        raise KeyError


def test_block_ends_after_an_error() -> None:
    with pytest.raises(KeyError):
        leave_by_an_error()
    assert current_backend() == "auto"


def test_variable_is_read_and_a_block_overrides_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYG_POOL_BACKEND", "numba")
    assert current_backend() == "numba"
    with use_backend("native"):
        assert current_backend() == "native"


def test_unknown_names_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        pytest.raises(ValueError, match=r"got name='numbaa', .* did you mean 'numba'"),
        use_backend("numbaa"),  # type: ignore[arg-type]
    ):
        pass
    monkeypatch.setenv("PYG_POOL_BACKEND", "fast")
    with pytest.raises(ValueError, match="PYG_POOL_BACKEND got value='fast'"):
        current_backend()


def test_block_holds_in_its_own_thread_only() -> None:
    seen: list[str] = []
    with use_backend("native"):
        thread = threading.Thread(target=lambda: seen.append(current_backend()))
        thread.start()
        thread.join()
    assert seen == ["auto"]


def test_missing_backend_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_backends()["native"] == "yes"
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert room.available_backends()["numba"] == "the package numba is not installed"


@pytest.mark.parametrize("primitive", NUMBA_FROM)
def test_size_decides_unless_a_backend_is_forced(primitive: str) -> None:
    size = NUMBA_FROM[primitive]
    assert runs_numba(primitive, size, ANY)
    assert not runs_numba(primitive, size - 1, ANY)
    with use_backend("numba"):
        assert runs_numba(primitive, 0, ANY)
    with use_backend("native"):
        assert not runs_numba(primitive, 2**40, ANY)


def test_numba_is_left_out_on_other_devices_and_in_traces() -> None:
    there = torch.ones(1, device="meta")
    with use_backend("numba"):
        assert not runs_numba("sparse_product", 2**40, ANY, there)

        def run(x: torch.Tensor) -> torch.Tensor:
            return x + 1 if runs_numba("sparse_product", 2**40, x) else x - 1

        fast = torch.compile(run, fullgraph=True, backend="eager")
        assert run(ANY).item() == 2.0
        assert fast(ANY).item() == 0.0


def test_warm_up_starts_the_compiled_twins() -> None:
    code = (
        "import sys, pyg_pool.kernels as k; name = 'pyg_pool.kernels.topk_numba';"
        "before = name in sys.modules; k.warm_up();"
        "print(before, bool(sys.modules[name].radix_order.signatures))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["False", "True"]
