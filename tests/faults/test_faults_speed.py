"""Faults P33 to P36: loops, padding, waits and dense matrices, seen by structure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pyg_pool import GPool, Selection
from pyg_pool.core import connect, lift, reduce
from pyg_pool.kernels import (
    coalesce,
    connected_components,
    segment_softmax,
    topk,
    use_backend,
)
from pyg_pool.testing import (
    PoolingSpec,
    ReadoutSpec,
    Watch,
    as_on_device,
    framework,
    random_batch,
)
from tests.faults.inputs import (
    build_model,
    every_model,
    every_pooling,
    every_readout,
    path,
)

ROOT = Path(__file__).resolve().parents[2]


@every_pooling
def test_fault_p33_no_python_loop_in_poolings(spec: PoolingSpec) -> None:
    framework.check_vectorised(spec)


@every_readout
def test_fault_p33_no_python_loop_in_readouts(spec: ReadoutSpec) -> None:
    framework.check_vectorised(spec)


def steps(run, *sizes: int) -> tuple[int, int]:
    """Torch calls and lines of Python."""
    given = random_batch(sizes, 4)
    with use_backend("native"):
        with Watch() as watch:
            run(given)
        return watch.total, framework.lines_of(lambda: run(given))


@pytest.mark.parametrize(
    "run",
    [
        lambda g: coalesce(g.edge_index, g.edge_attr, g.num_nodes),
        lambda g: topk(g.x[:, 0], 0.5, batch=g.batch, batch_size=g.batch_size),
        lambda g: segment_softmax(g.x, g.batch, dim_size=g.batch_size),
        lambda g: connect(
            Selection.from_clusters(torch.arange(g.num_nodes) // 2),
            g.edge_index,
            g.edge_attr,
        ),
        lambda g: lift(
            reduce(g.x, pairs := Selection.from_clusters(torch.arange(len(g.x)) // 2)),
            pairs,
        ),
    ],
    ids=["coalesce", "topk", "softmax", "connect", "lift"],
)
def test_fault_p33_no_python_loop_in_kernels(run) -> None:
    assert steps(run, *[8, 6] * 100) == steps(run, *[8, 6] * 2)


def test_fault_p33_components_take_few_rounds() -> None:
    with Watch() as watch:
        connected_components(path(4000), 4000)
    assert watch.total < 400


@every_model
def test_fault_p33_no_python_loop_in_models(model_name: str) -> None:
    model = build_model(model_name)
    counts = []
    for sizes in ([6, 4] * 2, [6, 4] * 20):
        given = random_batch(sizes, 4)
        with use_backend("native"), Watch() as watch:
            model(given.x, given.edge_index, batch=given.batch, batch_size=len(sizes))
        counts.append(watch.total)
    assert counts[1] <= 1.2 * counts[0]


@every_pooling
def test_fault_p34_no_dense_matrix_over_the_batch(spec: PoolingSpec) -> None:
    framework.check_memory(spec)
    given = random_batch([300] * 32, 4).to("cpu", torch.float32)
    with use_backend("native"), Watch() as watch:
        spec.call(spec.build(torch.float32), given)
    assert watch.largest < 4 * given.num_nodes**2 / 100


@every_readout
def test_fault_p34_no_padding_in_readouts(spec: ReadoutSpec) -> None:
    if "memory" in spec.exceptions:
        pytest.skip(spec.exceptions["memory"])
    framework.check_memory(spec)


@every_model
def test_fault_p34_no_padding_in_models(model_name: str) -> None:
    model = build_model(model_name, dtype=torch.float32)
    given = random_batch([1500, *[2] * 300], 4).to("cpu", torch.float32)
    with use_backend("native"), Watch() as watch, torch.no_grad():
        model(given.x, given.edge_index, batch=given.batch, batch_size=301)
    # rows of all layers side by side, or edges; far below 300 x 1500 and 1500 squared
    assert watch.largest < 4 * 50 * (given.num_nodes * 8 + given.num_edges) / 4


@every_pooling
def test_fault_p35_poolings_do_not_wait_for_a_value(spec: PoolingSpec) -> None:
    if "host_waits" in spec.exceptions:
        pytest.skip(spec.exceptions["host_waits"])
    framework.check_host_waits(spec)


@every_readout
def test_fault_p35_readouts_do_not_wait_for_a_value(spec: ReadoutSpec) -> None:
    if "host_waits" in spec.exceptions:
        pytest.skip(spec.exceptions["host_waits"])
    framework.check_host_waits(spec)


def test_fault_p35_classifier_does_not_wait_for_a_value() -> None:
    model = build_model("hierarchical", dtype=torch.float32)
    given = random_batch([7, 0, 5], 4).to("cpu", torch.float32)
    with as_on_device(), Watch() as watch:
        model(given.x, given.edge_index, batch=given.batch, batch_size=3)
    assert watch.reads == []
    with as_on_device(), Watch() as watch:
        model(given.x, given.edge_index, batch=given.batch)
    assert watch.reads  # the price of leaving batch_size out


@pytest.mark.gpu
def test_fault_p35_no_wait_but_for_the_edges_on_cuda() -> None:
    given = random_batch([7, 9, 5], 4).to("cuda", torch.float32)
    operator = GPool(4).cuda()
    score = given.x[:, 0].contiguous()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        segment_softmax(score, given.batch, dim_size=3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    out = operator(
        given.x, given.edge_index, given.edge_attr, batch=given.batch, batch_size=3
    )
    assert out.x.is_cuda


PEAK = """
import resource, torch
from pyg_pool import GPool, Hierarchy, Selection
from pyg_pool.core import connect, reduce

def grid(side):
    ids = torch.arange(side * side).view(side, side)
    right = torch.stack([ids[:, :-1].reshape(-1), ids[:, 1:].reshape(-1)])
    down = torch.stack([ids[:-1].reshape(-1), ids[1:].reshape(-1)])
    edges = torch.cat([right, down], 1)
    return torch.cat([edges, edges.flip(0)], 1)

def coarsen(side):
    edges, x = grid(side), torch.randn(side * side, 16)
    weight = torch.ones(edges.size(1))
    for _ in range(4):
        pairs = Selection.from_clusters(torch.arange(x.size(0)) // 2)
        x = reduce(x, pairs, "mean")
        out = connect(pairs, edges, weight)
        edges, weight = out.edge_index, out.edge_attr

def pool(side):
    edges, x = grid(side), torch.randn(side * side, 16)
    weight = torch.ones(edges.size(1))
    for _ in range(3):
        out = GPool(16, augment="weighted")(x, edges, weight)
        x, edges, weight = out.x, out.edge_index, out.edge_attr

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

coarsen(12), pool(12), pool(50)  # loads and compiles everything
start = peak()
coarsen(141)
middle = peak()
pool(141)
print(middle - start, peak() - start)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes there")
def test_fault_p36_large_grid_stays_sparse() -> None:
    side = 141
    size = 4 * 16 * side**2 + (2 * 8 + 4) * 4 * side * (side - 1)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PEAK],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for rise in done.stdout.split():
        assert int(rise) < 20 * size


def test_fault_p36_no_dense_matrix_of_a_large_grid() -> None:
    nodes = 20_000
    edges = path(nodes)
    with use_backend("native"), Watch() as watch:
        pairs = Selection.from_clusters(torch.arange(nodes) // 2)
        connect(pairs, edges, torch.ones(edges.size(1)))
        lift(reduce(torch.ones(nodes, 4), pairs, "mean"), pairs, "pinv")
        pairs.to_sparse()
    assert watch.largest <= 8 * 4 * edges.size(1)
