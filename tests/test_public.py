"""What the package shows to the outside: a light import and documented names."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pyg_pool"
API = ROOT / "docs" / "api"

HEAVY = {
    "dask",
    "datamol",
    "igl",
    "lightning",
    "matplotlib",
    "networkx",
    "numba",
    "ogb",
    "ot",
    "plotly",
    "pyarrow",
    "ray",
    "rdkit",
    "rich",
    "torch_scatter",
    "torch_sparse",
    "torchmetrics",
    "trimesh",
    "triton",
    "typer",
    "yacs",
}
LAZY_ROOMS = {"cli", "coarsen", "mesh", "models", "register", "testing", "train"}


def public_modules() -> list[str]:
    """The package and its rooms, as far as they declare public names."""
    files = [PACKAGE / "__init__.py", *PACKAGE.glob("*/__init__.py")]
    files += [PACKAGE / f"{name}.py" for name in ("errors", "register", "testing")]
    names = []
    for file in sorted(files):
        if file.exists() and "__all__" in file.read_text(encoding="utf-8"):
            path = file.relative_to(ROOT).with_suffix("")
            names.append(".".join(p for p in path.parts if p != "__init__"))
    return names


MODULES = public_modules()


def loaded_by(first: str, second: str) -> set[str]:
    """Modules that ``second`` adds to those of ``first``, in a new interpreter."""
    program = (
        f"import json, sys\n{first}\nbefore = set(sys.modules)\n{second}\n"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def added() -> set[str]:
    peers = (
        "import torch, torch_geometric.data, torch_geometric.nn, torch_geometric.utils"
    )
    return loaded_by(peers, "import pyg_pool")


def test_import_loads_no_heavy_package(added: set[str]) -> None:
    assert "pyg_pool" in added
    assert {name.split(".")[0] for name in added} & HEAVY == set()


def test_import_leaves_rooms_to_their_first_use(added: set[str]) -> None:
    rooms = {name.split(".")[1] for name in added if name.startswith("pyg_pool.")}
    assert rooms & LAZY_ROOMS == set()


def test_heavy_package_would_be_seen() -> None:
    assert "numba" in loaded_by("import torch", "import numba")


@pytest.mark.parametrize("module", MODULES)
def test_public_names_exist_once(module: str) -> None:
    names = importlib.import_module(module).__all__
    assert len(names) == len(set(names))
    missing = [n for n in names if not hasattr(importlib.import_module(module), n)]
    assert not missing, f"{module}.__all__ lists {missing}, which it lacks"


def is_own_method(thing: type, method: str) -> bool:
    """Public methods and properties that the class's own file defines.

    PyG writes methods into each subclass of its message passing class.
    """
    value = vars(thing)[method]
    value = value.fget if isinstance(value, property) else value
    value = getattr(value, "__func__", value)
    is_here = getattr(value, "__module__", None) == thing.__module__
    return inspect.isfunction(value) and is_here and not method.startswith("_")


def undocumented(module: ModuleType) -> list[str]:
    """Public functions and classes, and their public methods, without docstring."""
    missing = []
    for name in module.__all__:
        thing = getattr(module, name)
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if not inspect.getdoc(thing):
            missing.append(name)
        if inspect.isclass(thing):
            missing += [
                f"{name}.{method}"
                for method in vars(thing)
                if is_own_method(thing, method)
                and not inspect.getdoc(getattr(thing, method))
            ]
    return missing


@pytest.mark.parametrize("module", MODULES)
def test_public_things_have_docstrings(module: str) -> None:
    assert undocumented(importlib.import_module(module)) == []


def test_missing_docstring_is_found() -> None:
    module = ModuleType("module")
    exec(
        'def f(): ...\nclass A:\n    "A."\n    def m(self): ...\n'
        "    @property\n    def p(self): ...\n"
        "    @classmethod\n    def c(cls): ...\n"
        'def g():\n    "Says."\n__all__ = ["f", "A", "g"]',
        module.__dict__,
    )
    assert undocumented(module) == ["f", "A.m", "A.p", "A.c"]


def documented_modules() -> set[str]:
    """Modules whose public names the pages of docs/api list."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in API.glob("*.rst"))
    return set(re.findall(r"^\.\. automodule:: ([\w.]+)\n +:members:", pages, re.M))


def test_every_public_module_has_its_page() -> None:
    assert set(MODULES) - {"pyg_pool"} <= documented_modules()


def test_every_name_of_the_package_is_on_a_page() -> None:
    if "pyg_pool" not in MODULES:
        pytest.skip("the package lists no public names yet")
    package = importlib.import_module("pyg_pool")
    on_pages = {
        name
        for module in documented_modules() & set(MODULES)
        for name in importlib.import_module(module).__all__
    }
    rooms = {m.removeprefix("pyg_pool.") for m in documented_modules()}
    assert set(package.__all__) - on_pages - rooms - {"__version__"} == set()


def test_version_is_written_once() -> None:
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    found = re.findall(r'^__version__ = "(\d+\.\d+\.\d+\S*)"$', text, re.M)
    assert len(found) == 1
    changelog = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert f"## [{found[0]}]" in changelog or "## [Unreleased]" in changelog
