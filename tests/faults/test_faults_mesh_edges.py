"""Odd meshes, each with its right outcome from the file to the network."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

from pyg_pool import PrimalDualPooling
from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import (
    GraphRecipe,
    Mesh,
    MeshAugmentation,
    MeshDataset,
    MeshSample,
    clean_mesh,
    generate_shape,
    primal_dual_graph,
    read_mesh,
    write_labels,
    write_mesh,
)
from pyg_pool.models import MeshClassifier, PrimalDualConv

FLAP = Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]])
NOTHING = Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=int))
SOUP = Mesh(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 0, 0], [6, 0, 0], [5, 1, 0]],
    [[0, 1, 2], [3, 4, 5]],
)
NAMES = ("x", "x_dual", "edge_index", "edge_index_dual", "edge_to_dual")


def graphs_of(data: Any) -> dict[str, Any]:
    return {name: data[name] for name in NAMES}


def pooled(data: Any, attention: Any = None, **options: Any) -> Any:
    if attention is None:
        attention = torch.rand(data.edge_index.size(1))
    return PrimalDualPooling(**options)(**graphs_of(data), attention=attention)


def sheet(size: int) -> Mesh:
    """A flat open sheet of squares cut in two."""
    x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    points = np.stack([x, y, 0 * x], axis=2).reshape(-1, 3)
    corner = (x * size + y)[:-1, :-1].reshape(-1)
    first = np.stack([corner, corner + size, corner + size + 1], axis=1)
    second = np.stack([corner, corner + size + 1, corner + 1], axis=1)
    return Mesh(points, np.concatenate([first, second]))


def test_empty_mesh_keeps_its_place_in_a_batch() -> None:
    parts = [primal_dual_graph(m) for m in (FLAP, NOTHING, FLAP, NOTHING)]
    batch = Batch.from_data_list(parts)
    out = PrimalDualPooling(fraction_to_keep=0.0)(
        **graphs_of(batch), attention=torch.ones(4), batch=batch.batch,
        batch_dual=batch.batch_dual, batch_size=4,
    )  # fmt: skip
    assert out.batch.tolist() == [0, 2]
    assert out.ratio_nodes.shape == out.ratio_edges.shape == (4,)
    model = MeshClassifier(1, 7, 3, channels=(16, 16)).eval()
    assert model(batch).shape == (4, 3)


def test_meshes_without_pairs_pass_convolution_and_pooling() -> None:
    data = primal_dual_graph(SOUP)
    conv = PrimalDualConv(1, 7, 8)
    torch.nn.init.normal_(conv.primal.bias)
    out = conv(**graphs_of(data))
    torch.testing.assert_close(out.x, conv.primal.bias.relu().expand(2, -1))
    assert out.x_dual.shape[0] == 0
    for options in ({"threshold": 0.1}, {"fraction_to_keep": 0.0}):
        same = pooled(data, **options)
        assert all(torch.equal(getattr(same, name), data[name]) for name in NAMES)


def test_fin_is_removed_or_kept_apart() -> None:
    fin = Mesh(np.eye(3), [[0, 1, 2], [0, 2, 1]])
    with pytest.warns(PygPoolWarning, match="dropped 2 of 2 faces"):
        assert clean_mesh(fin).num_faces == 0
    graph = primal_dual_graph(fin)
    assert graph.num_nodes == 2
    assert graph.edge_index.size(1) == 0


def test_everything_merged_leaves_a_node_for_each_component() -> None:
    mesh = sheet(4)
    twice = Mesh(
        np.concatenate([mesh.vertices, mesh.vertices + 9.0]),
        np.concatenate([mesh.faces, mesh.faces + mesh.num_vertices]),
    )
    data = primal_dual_graph(twice)
    out = pooled(data, fraction_to_keep=0.0)
    size = mesh.num_faces
    assert out.selection.cluster.tolist() == [0] * size + [1] * size
    assert out.x_dual.shape[0] == out.edge_index.size(1) == 0
    conv = PrimalDualConv(1, 7, 8)
    after = conv(**{name: getattr(out, name) for name in NAMES})
    assert after.x.shape == (2, 8)
    model = MeshClassifier(1, 7, 3, channels=(16, 16), fraction_to_keep=0.0)
    assert model(data).isfinite().all()


def test_equal_scores_are_taken_in_the_order_of_the_faces() -> None:
    data = primal_dual_graph(sheet(5))
    low, high = data.edge_index
    pairs = data.edge_index[:, low < high].t().tolist()
    ones = torch.ones(data.edge_index.size(1))
    for number in (1, 4, 9):
        out = pooled(data, ones, num_edges_to_keep=len(pairs) - number)
        assert out.selected_edges.t().tolist() == pairs[:number]


def test_ten_faces_beside_a_hundred_thousand() -> None:
    large = sheet(225)  # 100,352 faces
    small = Mesh(large.vertices, large.faces[:10])
    parts = [primal_dual_graph(m) for m in (small, large)]
    batch = Batch.from_data_list(parts)
    attention = torch.rand(batch.edge_index.size(1))
    out = PrimalDualPooling(fraction_to_keep=0.9)(
        **graphs_of(batch), attention=attention, batch=batch.batch,
        batch_dual=batch.batch_dual, batch_size=2,
    )  # fmt: skip
    number = out.selected_edges[0].lt(10).sum()
    edges = [part.edge_index.size(1) // 2 for part in parts]
    assert int(number) == int((1.0 - 0.9) * edges[0])
    assert out.selected_edges.size(1) - int(number) == int((1.0 - 0.9) * edges[1])
    # No padding: as many rows as the meshes have faces.
    assert batch.x.size(0) == large.num_faces + 10


def test_geometry_is_measured_in_float64() -> None:
    # Far from the origin, where float32 does not tell the corners apart.
    near, far = FLAP.vertices * 1e-3, FLAP.vertices * 1e-3 + 1e5
    for dtype in (torch.float16, torch.bfloat16):
        first, second = (
            primal_dual_graph(Mesh(points, FLAP.faces), dtype=dtype)
            for points in (near, far)
        )
        assert second.x_dual.dtype == dtype
        torch.testing.assert_close(first.x_dual, second.x_dual, atol=0.02, rtol=0.02)


def test_fault_augmentation_of_open_meshes() -> None:
    # A single pair of faces: fewer inner edges than vertices, most without one.
    chance = torch.Generator().manual_seed(0)
    for mesh in (FLAP, SOUP, NOTHING, sheet(3)):
        done = MeshAugmentation(scale=0.1, slide=1.0, flip=1.0)(mesh, chance)
        assert done.num_faces == mesh.num_faces


def test_fault_no_face_is_lost_in_silence(tmp_path: Path) -> None:
    mesh = generate_shape("box")
    faces = mesh.faces.copy()
    turned = np.arange(0, len(faces), 7)
    faces[turned] = faces[turned][:, [0, 2, 1]]
    write_mesh(tmp_path / "a.off", Mesh(mesh.vertices, faces))
    write_labels(tmp_path / "a.seg", np.arange(len(faces)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = read_mesh(tmp_path / "a.off", labels=tmp_path / "a.seg")
    assert whole.num_faces == len(faces)
    with pytest.warns(PygPoolWarning, match=rf"dropped \d+ of {len(faces)} faces"):
        less = read_mesh(
            tmp_path / "a.off", labels=tmp_path / "a.seg", fix_winding=False
        )
    # What stayed has its own labels, not those of its neighbours.
    assert less.num_faces < len(faces)
    assert less.labels.tolist() == less.face_index.tolist()


def test_fault_options_without_effect_are_refused() -> None:
    for build in (
        lambda: primal_dual_graph(FLAP, dual_edges_ordered=True),  # type: ignore[call-arg]
        lambda: MeshClassifier(1, 7, 3, aggr_primal="sum"),  # type: ignore[call-arg]
        lambda: PrimalDualPooling(fraction_to_keep=0.5, aggr="sum"),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="unexpected keyword"):
            build()


def test_fault_cache_does_not_know_where_a_file_lies(tmp_path: Path) -> None:
    kept = []
    for folder in ("one", "two/three"):
        path = tmp_path / folder / f"{len(kept)}.off"
        path.parent.mkdir(parents=True)
        write_mesh(path, FLAP)
        MeshDataset(
            [MeshSample(path, target=1)], ["a", "b"], recipe=GraphRecipe(),
            cache=tmp_path / "cache",
        )  # fmt: skip
        kept.append(sorted(file.name for file in (tmp_path / "cache").iterdir()))
    assert len(kept[0]) == 1
    assert kept[0] == kept[1]
