"""Labels for the faces of any mesh file, from a trained network.

A mesh that is much denser than those of the training is simplified to their size
first; the labels are brought back to the faces that the file has.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pyg_pool.errors import PygPoolWarning
from pyg_pool.mesh import (
    Mesh,
    clean_mesh,
    closest_faces,
    primal_dual_graph,
    read_mesh,
    simplify_mesh,
)
from pyg_pool.mesh.formats import Polygons
from pyg_pool.mesh.geometry import face_geometry
from pyg_pool.train.mesh_segmentation import TrainedMeshModel

__all__ = ["MeshPrediction", "predict_mesh"]

log = logging.getLogger(__name__)

#: Meshes up to this many times the size of the training's are taken as they are.
SLACK = 2.0


@dataclass(frozen=True)
class MeshPrediction:
    """What a network says about a mesh.

    Args:
        labels: Label of each face as given, or one label of the mesh.
        file_labels: Label of each face of the file: the same, but for polygons that
            were cut into triangles, which get the label of most of their area. Faces
            of the file that the mesh has no part of get 0.
        scores: Probability of each label, of each face of ``mesh`` or of the mesh.
        class_names: Names of the labels.
        mesh: The mesh that the network saw, cleaned and perhaps simplified.
        face_map: Face of ``mesh`` that each face of the file got its label from.
        clusters: Cluster of each face of the file after each pooling step.
        note: What was done to the mesh, in words; empty for nothing.

    Shapes:
        labels: [T] or [1] int64; file_labels: [faces of the file] or [1] int64;
        scores: [T', C] or [1, C] float64; face_map and each of clusters: [T] int64.
    """

    labels: NDArray[np.int64]
    file_labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    class_names: list[str]
    mesh: Mesh
    face_map: NDArray[np.int64]
    clusters: list[NDArray[np.int64]]
    note: str

    @property
    def counts(self) -> dict[str, int]:
        """How often each label was given."""
        number = np.bincount(self.labels, minlength=len(self.class_names))
        return dict(zip(self.class_names, number.tolist(), strict=True))


@torch.no_grad()
def predict_mesh(
    model: TrainedMeshModel,
    mesh: Mesh | str | Path,
    *,
    num_faces: int | None = None,
    polygons: Polygons = "error",
) -> MeshPrediction:
    """Label the faces of a mesh, or the mesh.

    Args:
        model: A trained network, see :func:`pyg_pool.train.load_mesh_model`.
        mesh: A mesh or its file; it need not be clean.
        num_faces: Faces to simplify to; 0 never simplifies. Without it a mesh of more
            than twice the faces of the training's is simplified to as many as those.
        polygons: What to do with those of a file, see
            :func:`pyg_pool.mesh.read_mesh`.

    Returns:
        A label for every face as given: also for those that cleaning drops, which
        get the label of the closest face.

    Raises:
        ValueError: If nothing is left of the mesh.
        ImportError: If it has to be simplified and libigl is not installed.
    """
    if not isinstance(mesh, Mesh):
        mesh = read_mesh(mesh, clean=False, polygons=polygons)
    clean = clean_mesh(mesh)
    if clean.num_faces == 0:
        raise ValueError(
            f"predict_mesh got {mesh!r} of which cleaning left no face, expected a "
            f"surface; look at the file with 'pyg-pool mesh show'."
        )
    seen, notes = _simplified(clean, model, num_faces)
    face_map, is_exact = _face_map(mesh, clean, seen)
    if not is_exact.all():
        notes.append(f"{int((~is_exact).sum())} faces got the label of the closest one")
    graph = primal_dual_graph(
        seen,
        model.config.graphs,  # type: ignore[arg-type]
        primal_features=model.config.primal_features,  # type: ignore[arg-type]
    )
    out: Any = model.eval().run(graph)
    share = out.out.double().softmax(1).cpu().numpy()
    best = share.argmax(1)
    is_whole = model.config.task == "classification"
    note = "; ".join(notes)
    if note:
        log.info("%s", note)
    labels = best if is_whole else best[face_map]
    return MeshPrediction(
        labels=labels,
        file_labels=labels if is_whole else _labels_of_polygons(mesh, labels),
        scores=share,
        class_names=model.class_names,
        mesh=seen,
        face_map=face_map,
        clusters=[each.cpu().numpy()[face_map] for each in out.face_clusters],
        note=note,
    )


def _simplified(
    clean: Mesh, model: TrainedMeshModel, num_faces: int | None
) -> tuple[Mesh, list[str]]:
    """The mesh that the network is to see, and what was done."""
    target = num_faces
    if target is None:
        dense = model.num_faces and clean.num_faces > SLACK * model.num_faces
        target = model.num_faces if dense else 0
    if target == 0 or clean.num_faces <= target:
        return clean, []
    small = simplify_mesh(clean, target)
    if small is clean:
        return clean, []
    with warnings.catch_warnings():
        # Nothing that the file has is lost here.
        warnings.simplefilter("ignore", PygPoolWarning)
        found = clean_mesh(small)
    words = (
        f"simplified from {clean.num_faces} to {found.num_faces} faces, labels brought "
        f"back by the closest face"
    )
    return found, [words]


def _face_map(
    mesh: Mesh, clean: Mesh, seen: Mesh
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Face of ``seen`` for each face of ``mesh``, and which are more than a guess."""
    exact = np.ones(mesh.num_faces, dtype=bool)
    if seen is not clean:
        return closest_faces(seen, _centres(mesh)), exact
    if clean.face_index is None:
        return np.arange(mesh.num_faces), exact
    found = np.full(mesh.num_faces, -1, dtype=np.int64)
    found[_input_faces(mesh, clean)] = np.arange(clean.num_faces)
    exact = found >= 0
    if not exact.all():
        found[~exact] = closest_faces(seen, _centres(mesh)[~exact])
    return found, exact


def _input_faces(mesh: Mesh, clean: Mesh) -> NDArray[np.int64]:
    """Face of ``mesh`` of each face that cleaning left."""
    kept: Any = clean.face_index
    if mesh.face_index is None:
        return np.asarray(kept)
    # Both count the faces of the file.
    place = np.full(int(mesh.face_index.max(initial=-1)) + 1, -1, dtype=np.int64)
    place[mesh.face_index] = np.arange(mesh.num_faces)
    return place[kept]


def _labels_of_polygons(mesh: Mesh, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Label of each face of the file that the faces of a mesh were cut from."""
    if mesh.face_index is None:
        return labels
    size = int(mesh.face_index.max(initial=-1)) + 1
    votes = np.zeros((size, int(labels.max(initial=0)) + 1))
    # Triangles without area count too, where a polygon has no others.
    areas = np.nan_to_num(face_geometry(mesh).areas, posinf=0.0)
    areas = areas + np.finfo(float).tiny
    np.add.at(votes, (mesh.face_index, labels), areas)
    found: NDArray[np.int64] = votes.argmax(axis=1)
    return found


def _centres(mesh: Mesh) -> NDArray[np.float64]:
    """Centres of the faces; one with bad corners gets the origin."""
    centres: NDArray[np.float64] = mesh.vertices[mesh.faces].mean(axis=1)
    return np.nan_to_num(centres, nan=0.0, posinf=0.0, neginf=0.0)
