"""How Sphinx builds this documentation."""

from __future__ import annotations

import re
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

project = "pyg_pool"
author = "pyg_pool contributors"
copyright = author
release = re.findall(
    r'__version__ = "(.+)"', (ROOT / "pyg_pool" / "__init__.py").read_text()
)[0]
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"pyg_pool {release}"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_inherit_docstrings = False
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [
    ("Shapes", "notes_style"),
    ("Source", "notes_style"),
]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3


def is_reachable(page: str) -> bool:
    """Whether the list of names of another documentation can be fetched now."""
    try:
        with urllib.request.urlopen(f"{page}objects.inv", timeout=5):
            return True
    except OSError:
        return False


# Links into other documentations are made where the network allows it; without
# them the pages are the same, with plain names.
intersphinx_mapping = {
    name: (page, None)
    for name, page in {
        "python": "https://docs.python.org/3/",
        "torch": "https://docs.pytorch.org/docs/stable/",
        "torch_geometric": "https://pytorch-geometric.readthedocs.io/en/latest/",
    }.items()
    if is_reachable(page)
}
