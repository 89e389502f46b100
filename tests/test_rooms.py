"""The house rules that a machine can check by reading the sources.

Which room may import what stands in docs/guide/architecture.md; the table below is
its working copy. Imports are read from the syntax tree, those inside functions and
those by literal name (``require("ogb", ...)``) as well.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pyg_pool"
TESTS = ROOT / "tests"

EVERYWHERE = ("torch", "typing_extensions", "pyg_pool.errors", "pyg_pool.typing")
FORBIDDEN_WORDS = {"base", "common", "misc", "util", "utils"}
OPERATOR_ROOMS = {
    "coarsen",
    "core",
    "kernels",
    "mesh",
    "models",
    "pool",
    "readout",
    "relational",
    "transforms",
}
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50
# Tests of the project as a whole, which have no source file of their name.
WHOLE_PROJECT_TESTS = {
    "test_benchmarks.py",
    "test_compile.py",
    "test_export.py",
    "test_examples.py",
    "test_faults.py",
    "test_gpn_training.py",
    "test_public.py",
    "test_rooms.py",
}
WHOLE_PROJECT_FOLDERS = {"faults", "golden"}


@dataclass(frozen=True)
class Room:
    """What the files of one room may import.

    ``free`` names may be imported anywhere, ``inside`` names only in functions (or
    for type checking), ``types`` only for type checking, ``only_in`` names only in
    files that match the pattern. ``siblings`` says whether its files may import each
    other.
    """

    free: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    only_in: dict[str, str] = field(default_factory=dict)
    siblings: bool = True


ROOMS = {
    "kernels": Room(
        only_in={
            "numba": "*_numba.py",
            "llvmlite": "*_numba.py",
            "numpy": "*_[ns][uc][mi][bp]*.py",  # *_numba.py and *_scipy.py
            "scipy": "*_scipy.py",
            "triton": "*_triton.py",
            "torch_scatter": "dispatch.py",
            "torch_sparse": "dispatch.py",
        },
    ),
    "core": Room(free=("pyg_pool.kernels", "torch_geometric", "numpy")),
    "pool": Room(
        free=("pyg_pool.core", "pyg_pool.kernels", "torch_geometric"),
        siblings=False,
    ),
    "readout": Room(
        free=("pyg_pool.core", "pyg_pool.kernels", "torch_geometric"),
        siblings=False,
    ),
    "relational": Room(
        free=(
            "pyg_pool.core",
            "pyg_pool.kernels",
            "pyg_pool.readout",
            "torch_geometric",
        ),
    ),
    "view": Room(
        free=("pyg_pool.core", "numpy", "scipy"),
        inside=("matplotlib", "plotly"),
        types=("pyg_pool.mesh",),
    ),
    "transforms": Room(
        free=(
            "pyg_pool.core",
            "pyg_pool.coarsen",
            "pyg_pool.relational",
            "pyg_pool.mesh",
            "torch_geometric",
        ),
    ),
    "coarsen": Room(
        free=(
            "pyg_pool.core",
            "pyg_pool.kernels",
            "torch_geometric.data",
            "numpy",
            "scipy",
            "numba",
            "tqdm",
        ),
        inside=("pyarrow", "ot", "networkx"),
        only_in={"dask": "distributed.py", "ray": "distributed.py"},
    ),
    "mesh": Room(
        free=(
            "pyg_pool.core",
            "pyg_pool.kernels",
            "numpy",
            "scipy",
            "torch_geometric",
            "tqdm",
        ),
        inside=("trimesh", "igl"),
    ),
    "models": Room(
        free=(
            "pyg_pool.core",
            "pyg_pool.pool",
            "pyg_pool.readout",
            "pyg_pool.relational",
            "pyg_pool.mesh",
            "torch_geometric.nn",
        ),
    ),
    "train": Room(
        free=(
            "pyg_pool.core",
            "pyg_pool.kernels",
            "pyg_pool.pool",
            "pyg_pool.readout",
            "pyg_pool.relational",
            "pyg_pool.view",
            "pyg_pool.transforms",
            "pyg_pool.coarsen",
            "pyg_pool.mesh",
            "pyg_pool.models",
            "torch_geometric",
            "numpy",
            "scipy",
            "tqdm",
            "lightning",
            "torchmetrics",
            "ogb",
            "matplotlib",
            "datamol",
            "rdkit",
            "sklearn",
            "pandas",
            "yaml",
        ),
    ),
    "register": Room(free=("torch_geometric",), inside=("pyg_pool",)),
    "cli": Room(free=("typer", "click", "rich", "tqdm"), inside=("pyg_pool",)),
    "testing": Room(free=("pyg_pool", "torch_geometric", "numpy")),
    "errors": Room(free=("torch_geometric",)),
    "typing": Room(free=("torch_geometric",)),
    "__init__": Room(
        free=("pyg_pool.core", "pyg_pool.pool", "pyg_pool.readout"),
        inside=("pyg_pool",),
    ),
    "__main__": Room(free=("pyg_pool.cli",)),
}
NOT_IMPORTED_BY_ROOMS = {"register", "cli", "testing"}


@dataclass(frozen=True)
class Import:
    """One imported name: where it stands and in which surroundings."""

    name: str
    line: int
    in_function: bool
    for_types: bool


def room_of(file: PurePosixPath) -> str:
    """``pool/gpool.py`` lies in ``pool``, ``cli.py`` is a room by itself."""
    return file.parts[0] if len(file.parts) > 1 else file.stem


def read_imports(tree: ast.AST) -> Iterator[Import]:
    """All imports of a module; ``from a import b`` counts as ``a.b``."""

    def visit(node: ast.AST, in_function: bool, for_types: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, in_function, for_types)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            for alias in node.names:
                name = f"{start}.{alias.name}" if alias.name != "*" else start
                yield Import(name, node.lineno, in_function, for_types)
        elif isinstance(node, ast.Call) and (name := literal_import(node)):
            yield Import(name, node.lineno, in_function, for_types)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from visit(child, in_function, True)
            for child in node.orelse:
                yield from visit(child, in_function, for_types)
            return
        is_function = isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        )
        for child in ast.iter_child_nodes(node):
            yield from visit(child, in_function or is_function, for_types)

    return visit(tree, False, False)


def literal_import(call: ast.Call) -> str | None:
    """The module that ``import_module("m")`` or ``require("m", ...)`` loads."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in {"import_module", "require", "__import__"} or not call.args:
        return None
    first = call.args[0]
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if is_text else None


def covers(rule: str, name: str) -> bool:
    return name == rule or name.startswith(f"{rule}.")


def judge(file: PurePosixPath, room: Room, found: Import) -> str | None:
    """What is wrong with an import, or nothing."""
    name = found.name
    if name.startswith("."):
        return "is relative; write the full path of the module"
    target = name.split(".")[1] if covers("pyg_pool", name) and "." in name else ""
    here = room_of(file)
    if target in NOT_IMPORTED_BY_ROOMS - {here} and here not in {
        *NOT_IMPORTED_BY_ROOMS,
        "__init__",
        "__main__",
    }:
        return f"reaches for {target}, which no room may import"
    if target == here:
        leaf = ([*name.split("."), ""])[2]
        twin = leaf in {f"{file.stem}_numba", f"{file.stem}_triton"}
        allowed = room.siblings or twin or file.name == "__init__.py"
        return None if allowed else "is a sibling; siblings never import each other"
    top = name.split(".")[0]
    if top in sys.stdlib_module_names or any(covers(r, name) for r in EVERYWHERE):
        return None
    if any(covers(rule, name) for rule in room.free):
        return None
    for rule, pattern in room.only_in.items():
        if covers(rule, name):
            fits = fnmatch(file.name, pattern)
            return None if fits else f"is allowed only in {pattern}"
    if any(covers(rule, name) for rule in room.inside):
        fits = found.in_function or found.for_types
        return None if fits else "is allowed only inside functions"
    if any(covers(rule, name) for rule in room.types):
        return None if found.for_types else "is allowed only for type checking"
    return f"is not in the table of {here}"


def import_faults(file: str, source: str) -> list[str]:
    """Imports that the table does not allow, as ``file:line: fault``."""
    path = PurePosixPath(file)
    room = ROOMS.get(room_of(path))
    if room is None:
        return [f"{file}: room {room_of(path)!r} has no row in the table"]
    return [
        f"{file}:{found.line}: {found.name} {fault}"
        for found in read_imports(ast.parse(source))
        if (fault := judge(path, room, found))
    ]


def name_faults(file: str) -> list[str]:
    """Names that say nothing about their content."""
    parts = PurePosixPath(file).with_suffix("").parts
    words = {word for part in parts for word in part.split("_")}
    return [f"{file}: say what is inside, not {w!r}" for w in words & FORBIDDEN_WORDS]


def size_faults(file: str, source: str) -> list[str]:
    """Operator files and functions that should be split."""
    faults = []
    count = len(source.splitlines())
    if room_of(PurePosixPath(file)) in OPERATOR_ROOMS and count > MAX_FILE_LINES:
        faults.append(f"{file}: {count} lines, at most {MAX_FILE_LINES}")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = node.end_lineno - body[0].lineno + 1 if body else 0
            if lines > MAX_FUNCTION_LINES:
                faults.append(
                    f"{file}:{node.lineno}: {node.name} has {lines} lines, at most "
                    f"{MAX_FUNCTION_LINES}"
                )
    return faults


def head_faults(file: str, source: str) -> list[str]:
    """Modules start with a docstring and postponed annotations."""
    tree = ast.parse(source)
    faults = [] if ast.get_docstring(tree) else [f"{file}: no module docstring"]
    if len(tree.body) > 1 and not any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__"
        for node in tree.body
    ):
        faults.append(f"{file}: lacks 'from __future__ import annotations'")
    return faults


def has_behaviour(source: str) -> bool:
    """Whether a module defines functions or classes, and so needs tests."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return any(isinstance(node, kinds) for node in ast.parse(source).body)


def mirror_faults(sources: dict[str, str], tests: set[str]) -> list[str]:
    """Source and test files without their counterpart.

    A compiled twin is tested together with the file whose work it does.
    """
    tested = {
        file
        for file in sources
        if not file.endswith(("__init__.py", "__main__.py", "_numba.py", "_triton.py"))
    }
    wanted = {test_file_of(file) for file in tested if has_behaviour(sources[file])}
    known = {test_file_of(file) for file in sources} | WHOLE_PROJECT_TESTS
    return [
        *(f"tests/{file} is missing" for file in sorted(wanted - tests)),
        *(f"tests/{file} has no source file" for file in sorted(tests - known)),
    ]


def test_file_of(file: str) -> str:
    path = PurePosixPath(file)
    return str(path.with_name(f"test_{path.name}"))


test_file_of.__test__ = False

SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    if not SOURCES:
        pytest.fail(f"no sources found under {PACKAGE}")
    return SOURCES


@pytest.mark.parametrize("file", SOURCES)
def test_file_keeps_the_house_rules(file: str) -> None:
    source = SOURCES[file]
    faults = [
        *import_faults(file, source),
        *name_faults(file),
        *size_faults(file, source),
        *head_faults(file, source),
    ]
    assert not faults, "\n".join(faults)


def test_every_source_file_has_its_test_file(sources: dict[str, str]) -> None:
    tests = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("test_*.py")
        if path.relative_to(TESTS).parts[0] not in WHOLE_PROJECT_FOLDERS
    }
    faults = mirror_faults(sources, tests)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("kernels/a.py", "import torch_geometric", "not in the table"),
        ("kernels/a.py", "from pyg_pool.core import Selection", "not in the table"),
        ("kernels/a.py", "import numba", "only in *_numba.py"),
        ("kernels/a.py", "def f():\n    import numba", "only in *_numba.py"),
        ("kernels/a_numba.py", "import triton", "only in *_triton.py"),
        ("kernels/a.py", "import torch_scatter", "only in dispatch.py"),
        ("kernels/a.py", "import_module('torch_sparse')", "only in dispatch.py"),
        ("core/a.py", "from pyg_pool.pool import GPool", "not in the table"),
        ("core/a.py", "import pyg_pool", "not in the table"),
        ("core/a.py", "from . import select", "relative"),
        ("core/a.py", "from .select import Selection", "relative"),
        ("core/a.py", "require('lightning', 'train')", "not in the table"),
        ("core/a.py", "x: int\nimport torchvision", "not in the table"),
        ("pool/a.py", "from pyg_pool.pool.b import f", "sibling"),
        ("pool/a.py", "from pyg_pool.pool import b", "sibling"),
        ("pool/a.py", "import pyg_pool.readout.gnp", "not in the table"),
        ("readout/a.py", "def f():\n    from pyg_pool.readout import b", "sibling"),
        ("view/a.py", "import matplotlib.pyplot as plt", "inside functions"),
        ("view/a.py", "def f():\n    from pyg_pool.mesh import A", "type checking"),
        ("coarsen/a.py", "import pyarrow", "inside functions"),
        ("coarsen/a.py", "class A:\n    import pyarrow", "inside functions"),
        ("coarsen/a.py", "def f():\n    import dask", "only in distributed.py"),
        ("coarsen/a.py", "from torch_geometric.nn import GCNConv", "not in the"),
        ("mesh/a.py", "try:\n    import trimesh\nexcept ImportError: ...", "inside"),
        ("models/a.py", "from torch_geometric import data", "not in the table"),
        ("models/a.py", "from pyg_pool.kernels import topk", "not in the table"),
        ("train/a.py", "from pyg_pool.cli import main", "no room may import"),
        ("train/a.py", "def f():\n    import pyg_pool.testing", "no room may"),
        ("cli.py", "from pyg_pool.train import fit", "inside functions"),
        ("register.py", "from pyg_pool.readout import A", "inside functions"),
        ("__init__.py", "from pyg_pool.train import fit", "inside functions"),
        ("__init__.py", "import numba", "not in the table"),
        ("errors.py", "from pyg_pool.core import Selection", "not in the table"),
        ("shed/a.py", "import torch", "no row in the table"),
    ],
)
def test_forbidden_import_is_found(file: str, source: str, fault: str) -> None:
    faults = import_faults(file, source)
    assert len(faults) == 1
    assert fault in faults[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("kernels/a.py", "import torch.nn\nfrom pyg_pool.errors import require"),
        ("kernels/a.py", "def f():\n    from pyg_pool.kernels import a_numba"),
        ("kernels/a_numba.py", "import numba\nimport numpy as np"),
        ("kernels/a_triton.py", "from triton import language"),
        ("kernels/dispatch.py", "def f():\n    import torch_scatter"),
        ("core/a.py", "import numpy as np\nfrom pyg_pool.kernels import topk"),
        ("pool/a.py", "from pyg_pool.core.select import Selection"),
        ("pool/__init__.py", "from pyg_pool.pool.gpool import GPool"),
        ("view/a.py", "def f():\n    import matplotlib.pyplot as plt"),
        ("view/a.py", "if TYPE_CHECKING:\n    from pyg_pool.mesh import Mesh"),
        ("view/a.py", "if typing.TYPE_CHECKING:\n    import matplotlib"),
        ("coarsen/a.py", "import scipy.sparse\ndef f():\n    import ot"),
        ("coarsen/distributed.py", "def f():\n    import dask"),
        ("models/a.py", "from torch_geometric import nn\nimport torch_geometric.nn"),
        ("train/a.py", "import ogb\nfrom pyg_pool.models import GraphUNet"),
        ("cli.py", "import typer\ndef f():\n    import pyg_pool.train"),
        ("testing.py", "from pyg_pool.pool import GPool"),
        ("__init__.py", "from pyg_pool.core import Selection"),
        ("__init__.py", "def f():\n    from pyg_pool.register import register"),
    ],
)
def test_allowed_import_passes(file: str, source: str) -> None:
    assert import_faults(file, source) == []


@pytest.mark.parametrize(
    ("file", "is_fault"),
    [
        ("core/utils.py", True),
        ("core/graph_utils.py", True),
        ("common/select.py", True),
        ("core/select.py", False),
        ("core/baseline.py", False),
    ],
)
def test_empty_names_are_found(file: str, is_fault: bool) -> None:
    assert bool(name_faults(file)) == is_fault


def test_long_files_and_functions_are_found() -> None:
    long_file = "x = 1\n" * (MAX_FILE_LINES + 1)
    assert "301 lines" in size_faults("pool/a.py", long_file)[0]
    assert size_faults("train/a.py", long_file) == []
    assert size_faults("pool/a.py", "x = 1\n" * MAX_FILE_LINES) == []

    def function(lines: int) -> str:
        return 'def f():\n    """Says."""\n' + "    x = 1\n" * lines

    assert "51 lines" in size_faults("pool/a.py", function(51))[0]
    assert size_faults("pool/a.py", function(50)) == []


def test_missing_heads_are_found() -> None:
    future = "from __future__ import annotations\n"
    assert head_faults("core/a.py", f'"""Says."""\n{future}x = 1') == []
    assert "docstring" in head_faults("core/a.py", f"{future}x = 1")[0]
    assert "__future__" in head_faults("core/a.py", '"""Says."""\nx = 1')[0]


def test_missing_counterparts_are_found() -> None:
    work = "def f(): ..."
    sources = {
        "core/a.py": work,
        "core/a_numba.py": work,
        "core/__init__.py": work,
        "core/words.py": "X = 1",
        "cli.py": work,
    }
    assert mirror_faults(sources, {"core/test_a.py", "test_cli.py"}) == []
    assert mirror_faults(sources, {"core/test_a.py", "core/test_b.py"}) == [
        "tests/test_cli.py is missing",
        "tests/core/test_b.py has no source file",
    ]


def test_every_room_is_explained() -> None:
    text = (ROOT / "docs" / "guide" / "architecture.md").read_text(encoding="utf-8")
    modules = {"errors", "typing", "__init__", "__main__"}
    assert [room for room in set(ROOMS) - modules if f"`{room}`" not in text] == []
