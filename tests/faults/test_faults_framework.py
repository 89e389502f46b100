"""Faults P37 to P41: compilation, stable names, safe files, wrappers, installation."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import pyg_pool
from pyg_pool import GPool, PoolOutput, Selection, as_pyg_tuple
from pyg_pool.errors import require
from pyg_pool.testing import PoolingSpec, ReadoutSpec, framework, random_batch
from tests.faults.inputs import (
    READOUTS,
    build_model,
    every_model,
    every_pooling,
    every_readout,
    path,
)

ROOT = Path(__file__).resolve().parents[2]


# Every operator and primitive, with gradients: tests/test_compile.py.
def test_fault_p37_pooling_compiles_without_breaks() -> None:
    framework.check_compile(PoolingSpec(GPool))


@pytest.mark.parametrize("spec", [s for s in READOUTS if s.label.startswith("level")])
def test_fault_p37_readouts_compile_without_breaks(spec: ReadoutSpec) -> None:
    framework.check_compile(spec)


def test_fault_p37_classifier_compiles_once_for_all_sizes() -> None:
    model = build_model("hierarchical", dtype=torch.float32)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="eager")
    try:
        for i, sizes in enumerate([(7, 5, 6), (9, 4, 8, 5), (6, 30)]):
            given = random_batch(sizes, 4).to("cpu", torch.float32)
            call = {"batch": given.batch, "batch_size": given.batch_size}
            with torch._dynamo.config.patch(error_on_recompile=i > 0):
                found = compiled(given.x, given.edge_index, **call)
            torch.testing.assert_close(found, model(given.x, given.edge_index, **call))
    finally:
        torch._dynamo.reset()


class Tensors(torch.nn.Module):
    """A pooling operator that returns tensors only."""

    def __init__(self, pool: torch.nn.Module) -> None:
        super().__init__()
        self.pool = pool

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor
    ) -> tuple[Tensor, Tensor]:
        out = self.pool(x, edge_index, batch=batch, batch_size=2)
        return out.x, out.edge_index


def test_fault_p37_export_takes_other_sizes() -> None:
    module = Tensors(GPool(4).eval())
    nodes, edges = torch.export.Dim("nodes"), torch.export.Dim("edges")
    program = torch.export.export(
        module,
        (torch.randn(9, 4), path(9), torch.zeros(9, dtype=torch.long)),
        dynamic_shapes={
            "x": {0: nodes},
            "edge_index": {1: edges},
            "batch": {0: nodes},
        },
    )
    given = (torch.randn(14, 4), path(14), torch.zeros(14, dtype=torch.long))
    found = program.module()(*given)
    for a, b in zip(found, module(*given), strict=True):
        torch.testing.assert_close(a, b)


def test_fault_p38_public_names_are_pinned() -> None:
    assert set(pyg_pool.__all__) >= {
        "GPool",
        "GUnpool",
        "Hierarchy",
        "PoolOutput",
        "Pooling",
        "Selection",
        "as_pyg_tuple",
        "register",
    }
    assert [field.name for field in dataclasses.fields(PoolOutput)] == [
        "x",
        "edge_index",
        "edge_attr",
        "batch",
        "selection",
        "score",
        "loss",
        "batch_size",
    ]
    names = set(dir(Selection.from_nodes(torch.tensor([0]), 1)))
    assert names >= {
        "node_index",
        "num_nodes",
        "cluster_index",
        "num_clusters",
        "weight",
        "to_sparse",
        "compose",
    }


@every_pooling
def test_fault_p38_one_call_and_one_result(spec: PoolingSpec) -> None:
    operator = spec.build()
    parameters = inspect.signature(operator.forward).parameters
    assert list(parameters)[:5] == [
        "x",
        "edge_index",
        "edge_attr",
        "batch",
        "batch_size",
    ]
    for name in list(parameters)[3:]:
        assert parameters[name].kind == inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is None
    assert type(spec.call(operator, spec.random())) is PoolOutput


def test_fault_p38_weights_keep_their_names() -> None:
    assert list(GPool(3).state_dict()) == ["weight"]
    assert list(GPool(3, bias=True).state_dict()) == ["weight", "bias"]
    operator = GPool(3)
    for name in ("weight", "select.weight"):  # PyG's, old and new
        operator.load_state_dict({name: torch.ones(1, 3)})
        assert torch.equal(operator.weight, torch.ones(1, 3))
        torch.nn.init.zeros_(operator.weight)


def test_fault_p38_six_values_for_code_written_for_pyg() -> None:
    out = GPool(2)(torch.randn(4, 2), path(4))
    x, edge_index, edge_attr, batch, perm, score = as_pyg_tuple(out)
    assert torch.equal(x, out.x)
    assert torch.equal(edge_index, out.edge_index)
    assert edge_attr is None
    assert torch.equal(batch, out.batch)
    assert torch.equal(perm, out.selection.node_index)
    assert torch.equal(score, out.score)


@pytest.fixture
def only_safe_loading(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records every ``torch.load``, and fails those that switch the check off."""
    loaded: list[str] = []
    original = torch.load

    def load(file, *args, **kwargs):
        assert kwargs.get("weights_only", True) is not False, f"unsafe load of {file}"
        loaded.append(str(file))
        return original(file, *args, **kwargs)

    monkeypatch.setattr(torch, "load", load)
    return loaded


def test_fault_p39_tu_set_loads_twice(
    tmp_path: Path, only_safe_loading: list[str]
) -> None:
    pytest.importorskip("lightning")
    from pyg_pool.train import load_dataset

    raw = tmp_path / "TINY" / "raw"
    raw.mkdir(parents=True)
    edges, graphs = [], []
    for graph in range(10):
        first = 3 * graph + 1
        edges += [f"{first}, {first + 1}", f"{first + 1}, {first}"]
        graphs += [graph + 1] * 3
    (raw / "TINY_A.txt").write_text("\n".join(edges) + "\n")
    (raw / "TINY_graph_indicator.txt").write_text("\n".join(map(str, graphs)) + "\n")
    labels = [graph % 2 for graph in range(10)]
    (raw / "TINY_graph_labels.txt").write_text("\n".join(map(str, labels)) + "\n")
    first, second = (load_dataset("TINY", tmp_path, download=False) for _ in range(2))
    for a, b in zip(first.graphs, second.graphs, strict=True):
        assert torch.equal(a.x, b.x)
        assert torch.equal(a.edge_index, b.edge_index)
    assert len(first.graphs) == 10


class Malicious:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("code in a file was run",))


def test_fault_p39_checkpoints_run_no_code(
    tmp_path: Path, only_safe_loading: list[str]
) -> None:
    pytest.importorskip("lightning")
    from pyg_pool.train.checkpoint import load_checkpoint, save_checkpoint

    save_checkpoint({"epoch": 3, "weight": torch.ones(2)}, tmp_path / "good.ckpt")
    assert load_checkpoint(tmp_path / "good.ckpt")["epoch"] == 3
    torch.save({"epoch": Malicious()}, tmp_path / "bad.ckpt")
    with pytest.raises(ValueError, match="cannot be read"):
        load_checkpoint(tmp_path / "bad.ckpt")
    assert len(only_safe_loading) == 2


@pytest.mark.parametrize("thing", ["selection", "hierarchy"])
def test_fault_p39_own_files_hold_no_pickle(tmp_path: Path, thing: str) -> None:
    import numpy as np

    from pyg_pool import Hierarchy

    selection = Selection.from_nodes(torch.tensor([1, 0]), 3, torch.rand(2))
    out = GPool(2)(torch.randn(3, 2), path(3))
    whole = Hierarchy.from_outputs(torch.randn(3, 2), path(3), None, None, 1, [out])
    file = tmp_path / "thing.npz"
    (selection if thing == "selection" else whole).save(file)
    with np.load(file, allow_pickle=False) as arrays:
        for name in arrays.files:
            assert arrays[name].dtype != object
    bad = tmp_path / "bad.npz"
    bad.write_bytes(pickle.dumps(Malicious()))
    with pytest.raises(ValueError, match="not a complete file"):
        (Selection if thing == "selection" else Hierarchy).load(bad)


@every_pooling
def test_fault_p40_every_parameter_learns(spec: PoolingSpec) -> None:
    framework.check_parameters(spec)


@every_readout
def test_fault_p40_every_parameter_of_a_readout_learns(spec: ReadoutSpec) -> None:
    framework.check_parameters(spec)


@pytest.fixture
def one_process(tmp_path: Path):
    """A process group of this process alone."""
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def two_steps(wrapped: torch.nn.Module, total) -> None:
    """The second step of a wrapper fails if a parameter got no gradient."""
    optimiser = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    for _ in range(2):
        given = random_batch([9, 12, 8], 4).to("cpu", torch.float32)
        optimiser.zero_grad()
        total(
            wrapped(
                given.x,
                given.edge_index,
                batch=given.batch,
                batch_size=given.batch_size,
            )
        ).backward()
        optimiser.step()
    assert all(p.grad is not None for p in wrapped.parameters())


@every_model
def test_fault_p40_models_run_under_ddp(model_name: str, one_process: None) -> None:
    model = build_model(model_name, dtype=torch.float32).train()
    two_steps(DistributedDataParallel(model), lambda out: out.square().sum())


@every_pooling
def test_fault_p40_poolings_run_under_ddp(spec: PoolingSpec, one_process: None) -> None:
    operator = spec.build(torch.float32).train()
    two_steps(
        DistributedDataParallel(operator), lambda out: out.x.square().sum() + out.loss
    )


def test_fault_p40_wrapper_finds_an_unused_parameter(one_process: None) -> None:
    model = build_model("hierarchical", dtype=torch.float32).train()
    model.unused = torch.nn.Parameter(torch.ones(1))
    with pytest.raises(RuntimeError, match=r"did not receive grad|finished reduction"):
        two_steps(DistributedDataParallel(model), lambda out: out.square().sum())


WITHOUT_EXTRAS = """
import sys
for name in ("torch_scatter", "torch_sparse", "torch_cluster", "pyg_lib", "lightning",
             "ogb", "rdkit", "datamol", "matplotlib", "typer", "rich", "triton",
             "networkx_", "trimesh", "yacs"):
    sys.modules[name] = None
import torch
from pyg_pool import GPool
from pyg_pool.models import GraphUNet, HierarchicalClassifier
torch.manual_seed(0)
edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
x = torch.randn(4, 3, requires_grad=True)
out = GPool(3, augment="weighted")(x, edges)
out.x.sum().backward()
print(out.x.sum().item(), HierarchicalClassifier(3, 8, 2)(x, edges).sum().item(),
      GraphUNet(3, 8, 2, depth=1)(x, edges).sum().item())
"""


def run_program(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_fault_p41_runs_without_compiled_extras_with_the_same_numbers() -> None:
    without = run_program(WITHOUT_EXTRAS)
    head, tail = WITHOUT_EXTRAS.split("import torch\n", 1)
    torch.manual_seed(0)
    scope: dict = {}
    lines = re.sub(r"print\((.*)\)\n$", r"found = (\1)", tail, flags=re.S)
    exec("import torch\n" + lines, scope)
    wanted = [float(word) for word in without.split()]
    assert wanted == pytest.approx(scope["found"], abs=1e-5)
    assert "torch_scatter" in head


def test_fault_p41_missing_extra_is_named() -> None:
    with pytest.raises(ImportError, match=r"pip install 'pyg_pool\[train\]'"):
        require("a_package_that_nobody_has", "train")


def test_fault_p41_hard_dependencies_have_wheels_everywhere() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[(.*?)^\]", text, re.M | re.S)
    assert block is not None
    names = set(re.findall(r'"([A-Za-z0-9_-]+)', block.group(1)))
    assert names == {"torch", "torch-geometric", "numpy", "scipy", "numba", "tqdm"}


def test_readouts_of_the_models_are_covered() -> None:
    assert {"level-mean", "level-max"} <= {spec.label for spec in READOUTS}
