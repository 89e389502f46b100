"""Runs the cases of the Triton twins in a process of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("triton_cases.py")


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


@pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton is not installed"
)
def test_twins_in_the_interpreter() -> None:
    run_cases(TRITON_INTERPRET="1")


@pytest.mark.gpu
def test_twins_on_the_device() -> None:
    run_cases(TRITON_INTERPRET="0")
