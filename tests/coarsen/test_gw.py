"""Distances and heat traces against stored values."""

from __future__ import annotations

import numpy as np
import pytest

from pyg_pool.coarsen import gw_distance
from pyg_pool.coarsen.gw import TIMES, coarse_space, heat_trace, space_of, transport
from pyg_pool.coarsen.objective import move_cost
from pyg_pool.coarsen.state import plain_state, state_of
from tests.coarsen.golden_graphs import graph_of, read, stored

PAIRS = [
    (name, number)
    for name in stored("gwpairs_*")
    for number in range(len(read(name)["outputs"]["pairs"]))
]


# The stored values are local optima; older numpy leads the solver to higher ones.
SAME_OPTIMA = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="numpy 2 made the values"
)


@SAME_OPTIMA
@pytest.mark.parametrize(("name", "number"), PAIRS)
def test_golden_pairs(name: str, number: int) -> None:
    golden = read(name)
    inputs, pair = golden["inputs"], golden["outputs"]["pairs"][number]
    tolerance = golden["tolerance"]["abs"]
    both = [inputs["graphs"][graph] for graph in pair["pair"]]
    kind = (inputs["kernel"], inputs["mass"])
    fine = [space_of(graph_of(each), *kind) for each in both]
    value, plan = transport(*fine)
    assert value <= pair["gw2_full"] + tolerance
    coarse, bounds = [], []
    for each in both:
        state, label = state_of(graph_of(each), *kind), np.array(each["labels"])
        n = int(label.max()) + 1
        coarse.append(coarse_space(state, label, n))
        bounds.append(move_cost(state, plain_state(state, label, n)))
    np.testing.assert_allclose(bounds, pair["induced_bounds"], atol=tolerance)
    rows, cols = (
        np.eye(len(s[1]))[e["labels"]] for s, e in zip(coarse, both, strict=True)
    )
    small, _ = transport(*coarse, rows.T @ plan @ cols)
    assert small <= pair["gw2_coarse_from_projected_plan"] + tolerance
    gap = abs(np.sqrt(small) - np.sqrt(value))
    assert gap <= np.sqrt(bounds[0]) + np.sqrt(bounds[1]) + 1e-6


@SAME_OPTIMA
@pytest.mark.parametrize("name", stored("algebra_*"))
def test_golden_distance_to_the_coarse_graph(name: str) -> None:
    golden = read(name)
    graph, label = graph_of(golden["inputs"]), np.array(golden["inputs"]["labels"])
    n = int(label.max()) + 1
    for pair, expected in golden["outputs"]["per_kernel_and_mass"].items():
        state = state_of(graph, *pair.split("/"))
        mass = state.mass / state.mass.sum()
        start = np.zeros((label.size, n))
        start[np.arange(label.size), label] = mass
        fine = space_of(graph, *pair.split("/"))
        value, _ = transport(fine, coarse_space(state, label, n), start)
        assert value <= expected["gw2_local_optimum_from_induced_transport"] + 1e-6
        assert value <= expected["induced_transport_gw2"] + 1e-9


@pytest.mark.parametrize("name", stored("netlsd_*"))
def test_golden_heat_trace(name: str) -> None:
    from pyg_pool.coarsen import from_labels

    golden = read(name)
    inputs, outputs = golden["inputs"], golden["outputs"]
    found = from_labels(graph_of(inputs), inputs["labels"])
    coarse = found.graph(self_loops=True)
    trace = heat_trace(coarse)
    tolerance = golden["tolerance"]["abs"]
    expected = outputs["heat_trace_every_25"]
    np.testing.assert_allclose(trace[::25], expected, atol=tolerance)
    np.testing.assert_allclose(np.linalg.norm(trace), outputs["norm"], atol=1e-4)
    assert TIMES.size == trace.size == 250


def test_more_starts_never_find_more() -> None:
    graph = graph_of(read("algebra_path5")["inputs"])
    other = graph_of(read("algebra_star7")["inputs"])
    once = gw_distance(graph, other)
    assert gw_distance(graph, other, starts=5) <= once


def test_no_starts() -> None:
    graph = graph_of(read("algebra_path5")["inputs"])
    with pytest.raises(ValueError, match="starts=0"):
        gw_distance(graph, graph, starts=0)
