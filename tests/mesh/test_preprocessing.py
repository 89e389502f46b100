"""Graphs from files: the cache, several processes, labels and versions."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import (
    GraphRecipe,
    Mesh,
    MeshAugmentation,
    MeshSample,
    generate_shape,
    preprocessing,
    primal_dual_graph,
    write_labels,
    write_mesh,
)
from pyg_pool.mesh.preprocessing import (
    default_cache,
    mesh_workers,
    prepare_graphs,
    read_sample,
)

RECIPE = GraphRecipe(label_values=(1, 3, 7))


@pytest.fixture
def sample(tmp_path: Path) -> MeshSample:
    mesh = generate_shape("cup", generator=torch.Generator().manual_seed(0))
    write_mesh(tmp_path / "a.off", mesh)
    write_labels(tmp_path / "a.seg", 2 * mesh.labels + 1)
    return MeshSample(tmp_path / "a.off", tmp_path / "a.seg")


def equal(a: object, b: object) -> bool:
    return set(a.keys()) == set(b.keys()) and all(
        torch.equal(a[key], b[key])
        for key in a.keys()  # noqa: SIM118
    )


def test_labels_are_numbered_from_zero(sample: MeshSample) -> None:
    assert sorted(set(read_sample(sample, RECIPE).labels.tolist())) == [0, 1, 2]
    graph = prepare_graphs([(sample, 0)], RECIPE)[0]
    assert graph.y.unique().tolist() == [0, 1, 2]
    whole = prepare_graphs([(MeshSample(sample.path, target=4), 0)], GraphRecipe())[0]
    assert whole.y.tolist() == [4]


def test_cache_is_used_and_follows_the_content(
    sample: MeshSample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = prepare_graphs([(sample, 0)], RECIPE, cache=cache)[0]
    assert len(list(cache.iterdir())) == 1
    made = []
    monkeypatch.setattr(
        preprocessing,
        "primal_dual_graph",
        lambda *a, **k: made.append(a) or primal_dual_graph(*a, **k),
    )
    again = prepare_graphs([(sample, 0)], RECIPE, cache=cache)[0]
    assert equal(first, again)
    assert not made
    moved = MeshSample(tmp_path / "b.off", sample.labels)
    moved.path.write_bytes(sample.path.read_bytes())
    prepare_graphs([(moved, 0)], RECIPE, cache=cache)
    assert not made
    changes = [
        (sample, GraphRecipe(config="B", label_values=(1, 3, 7))),
        (sample, GraphRecipe(label_values=(7, 3, 1))),
        (MeshSample(sample.path, target=1), GraphRecipe()),
    ]
    for number, (other, recipe) in enumerate(changes, start=1):
        prepare_graphs([(other, 0)], recipe, cache=cache)
        assert len(made) == number
    write_labels(sample.labels, np.ones(532, dtype=int))
    assert prepare_graphs([(sample, 0)], RECIPE, cache=cache)[0].y.unique().numel() == 1


def test_damaged_cache_is_made_again(sample: MeshSample, tmp_path: Path) -> None:
    first = prepare_graphs([(sample, 0)], RECIPE, cache=tmp_path / "cache")[0]
    (file,) = (tmp_path / "cache").iterdir()
    size = file.stat().st_size
    for content in (b"", file.read_bytes()[: size // 2]):
        file.write_bytes(content)
        again = prepare_graphs([(sample, 0)], RECIPE, cache=tmp_path / "cache")[0]
        assert equal(first, again)
        assert file.stat().st_size == size


def test_cache_that_cannot_be_written_is_left_out(
    sample: MeshSample, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(PygPoolWarning, match="cannot be written to"):
        found = prepare_graphs([(sample, 0)], RECIPE, cache=tmp_path / "file" / "cache")
    assert found[0].num_nodes == 532


def test_cache_that_takes_nothing_more_is_said(
    sample: MeshSample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preprocessing, "save_tensors", full)
    with pytest.warns(PygPoolWarning, match=r"did not take 1 graphs \(No space left"):
        found = prepare_graphs([(sample, 0)], RECIPE, cache=tmp_path / "cache")
    assert found[0].num_nodes == 532


def test_default_cache_lies_beside_the_data_or_with_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    assert default_cache(tmp_path) == tmp_path / ".graphs"
    (tmp_path / "file").write_text("")
    own = tmp_path / "own" / "pyg_pool" / "meshes"
    assert default_cache(tmp_path / "file") == own
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert default_cache(tmp_path / "file") is None


def test_workers_start_only_for_what_is_missing(
    sample: MeshSample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mesh_workers(0) as none:
        assert none == 0
    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            found = prepare_graphs(
                [(sample, 0)] * 2, RECIPE, cache=tmp_path, workers=pool, progress=True
            )
            assert [graph.num_nodes for graph in found] == [532, 532]
            shown = capsys.readouterr().err
    # The second time all comes from the cache, without a bar.
    assert shown == ""
    pool.shutdown()
    prepare_graphs([(sample, 0)] * 2, RECIPE, cache=tmp_path, workers=pool)


@pytest.mark.slow
def test_processes_give_the_same_in_order(
    sample: MeshSample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    recipe = GraphRecipe(label_values=(1, 3, 7), augmentation=MeshAugmentation())
    jobs = [(sample, version) for version in range(4)]
    alone = prepare_graphs(jobs, recipe, cache=tmp_path / "one")
    both = prepare_graphs(
        jobs, recipe, cache=tmp_path / "two", workers=2, progress=True
    )
    assert all(equal(a, b) for a, b in zip(alone, both, strict=True))
    assert "4/4" in capsys.readouterr().err
    names = [sorted(p.name for p in (tmp_path / n).iterdir()) for n in ("one", "two")]
    assert names[0] == names[1]


def test_versions_differ_and_come_back(sample: MeshSample) -> None:
    recipe = GraphRecipe(label_values=(1, 3, 7), augmentation=MeshAugmentation())
    jobs = [(sample, version) for version in range(3)]
    graphs, again = prepare_graphs(jobs, recipe), prepare_graphs(jobs, recipe)
    assert equal(graphs[0], prepare_graphs([(sample, 0)], RECIPE)[0])
    assert all(equal(a, b) for a, b in zip(graphs, again, strict=True))
    assert not torch.equal(graphs[1].x, graphs[0].x)
    assert not torch.equal(graphs[1].x, graphs[2].x)
    assert torch.equal(graphs[1].y, graphs[0].y)


def test_losses_are_said_once_and_again_from_the_cache(tmp_path: Path) -> None:
    fin = Mesh(np.eye(3), [[0, 1, 2], [0, 2, 1]])
    for name in ("a", "b"):
        write_mesh(tmp_path / f"{name}.off", fin)
    jobs = [(MeshSample(tmp_path / f"{n}.off", target=0), 0) for n in ("a", "b")]
    for _ in range(2):
        with pytest.warns(PygPoolWarning, match="Repair changed 2 meshes") as said:
            graphs = prepare_graphs(jobs, GraphRecipe(), cache=tmp_path / "cache")
        assert len(said) == 1
        assert graphs[0].num_nodes == 0
