"""Every example runs as it stands, in small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MAX_LINES = 100


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), environment.get("PYTHONPATH")])
    )
    done = subprocess.run(
        [sys.executable, str(example), "--smoke"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), f"{example.name} shows nothing"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_tells_a_short_story(example: Path) -> None:
    lines = example.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAX_LINES
    assert any(line.startswith("# %%") for line in lines)
