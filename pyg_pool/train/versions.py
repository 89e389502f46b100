"""Versions of the software a result came from, read without importing it."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

__all__ = ["versions"]

PACKAGES = ("torch", "torch-geometric", "numpy", "scipy", "numba", "lightning", "ogb")
OPTIONAL = ("rdkit", "datamol", "torch-scatter", "torch-sparse", "triton")


def versions() -> dict[str, str]:
    """Return name and version of this library and of what it stands on.

    Packages that are not installed are left out.

    Example:
        >>> "torch" in versions()
        True
    """
    own = sys.modules[__name__.partition(".")[0]]
    found = {
        "pyg_pool": str(getattr(own, "__version__", "unknown")),
        "python": platform.python_version(),
    }
    installed = {
        str(each.metadata["Name"]).lower().replace("_", "-"): each.version
        for each in metadata.distributions()
    }
    wanted = (*PACKAGES, *OPTIONAL)
    return {**found, **{name: installed[name] for name in wanted if name in installed}}
