from __future__ import annotations

import platform
from importlib import metadata

import pyg_pool
from pyg_pool.train.versions import versions


def test_versions_are_those_installed() -> None:
    found = versions()
    assert found["pyg_pool"] == pyg_pool.__version__
    assert found["python"] == platform.python_version()
    assert found["torch-geometric"] == metadata.version("torch-geometric")


def test_missing_packages_are_left_out() -> None:
    assert "" not in versions().values()
    assert "tensorflow" not in versions()
