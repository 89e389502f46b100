"""Runs the cases of the Triton twins in a process of their own, and compiles them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CASES = Path(__file__).with_name("triton_cases.py")
NEEDS_TRITON = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
# Modules with kernels; integers among their arguments; numbers fixed when compiled.
MODULES = (
    "segment_triton", "soften_triton", "segment_attention_triton", "pnorm_triton",
    "parse_triton", "gather_sum_triton", "tuple_propagate_triton", "topk_triton",
    "product_triton",
)  # fmt: skip
INTEGERS = {
    "order", "start", "stop", "args", "arg_out", "index", "source", "target",
    "edge_ptr", "first", "count", "base", "batch", "key", "keep", "place", "left",
    "right", "best", "link", "ahead", "lowest", "ahead_out", "lowest_out", "parent",
    "new",
}  # fmt: skip
SIZES = {"width", "heads", "depth", "length", "size", "none", "norms"}
NUMBERS = {"eps", "sign", "limit"}
FIXED = {
    "rows": 16, "columns": 64, "block": 256, "lanes": 32, "axis": 0, "sorted": False,
    "has_args": False, "has_weight": False, "has_value": True, "own": True,
}  # fmt: skip


def run_cases(**variables: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
         "-p", "no:xdist", str(CASES)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        cwd=CASES.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


@NEEDS_TRITON
def test_twins_in_the_interpreter() -> None:
    run_cases(TRITON_INTERPRET="1")


@pytest.mark.gpu
def test_twins_on_the_device() -> None:
    run_cases(TRITON_INTERPRET="0")


def kind_of(kernel: str, name: str) -> str:
    """Type of an argument, in Triton's words."""
    if kernel in ("_best_kernel", "_link_kernel") and name == "score":
        return "*i64"
    if name == "bits":
        return "*i32"
    if kernel == "_first_kernel" and name == "out":
        return "*i64"
    if kernel == "_key_kernel" and name == "out":
        return "*i64"
    if name in SIZES | {"side"}:
        return "i32"
    if name in NUMBERS:
        return "fp32"
    return "*i64" if name in INTEGERS else "*fp32"


@NEEDS_TRITON
@pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") == "1", reason="the interpreter is on"
)
@pytest.mark.parametrize("module", MODULES)
def test_kernels_compile_for_a_device_that_is_not_here(module: str) -> None:
    triton = importlib.import_module("triton")
    compiler: Any = importlib.import_module("triton.compiler")
    target = importlib.import_module("triton.backends.compiler").GPUTarget
    fixed = {**FIXED, "kind": triton.language.float32}
    room = importlib.import_module(f"pyg_pool.kernels.{module}")
    names = [name for name in vars(room) if name.endswith("_kernel")]
    assert names
    for name in names:
        kernel = getattr(room, name)
        words = kernel.arg_names
        kinds = {w: "constexpr" if w in fixed else kind_of(name, w) for w in words}
        if name == "_rows_kernel" and module == "pnorm_triton":
            kinds["rows"] = "constexpr"
        given = {(i,): fixed[w] for i, w in enumerate(words) if w in fixed}
        source = compiler.ASTSource(kernel, kinds, given)
        done = triton.compile(source, target=target("cuda", 80, 32))
        assert "ptx" in done.asm
