"""Triangle meshes: reading, repair, labels, and the graphs that networks work on."""

from __future__ import annotations

from pyg_pool.mesh.augment import (
    MeshAugmentation,
    flip_edges,
    scale_vertices,
    slide_vertices,
)
from pyg_pool.mesh.cleaning import clean_mesh
from pyg_pool.mesh.conv import PrimalDualConv, PrimalDualConvOutput
from pyg_pool.mesh.data import PrimalDualData
from pyg_pool.mesh.datasets import (
    COSEG,
    SHREC16,
    CubeEngraving,
    HumanBody,
    PrincetonSegmentation,
)
from pyg_pool.mesh.dual_graph import primal_dual_graph
from pyg_pool.mesh.face_to_primal_dual import FaceToPrimalDual
from pyg_pool.mesh.feature_scaling import FeatureScaling
from pyg_pool.mesh.formats import fan_triangles, read_mesh, write_mesh
from pyg_pool.mesh.geometry import Mesh
from pyg_pool.mesh.graph_dataset import MeshDataset
from pyg_pool.mesh.labels import (
    MeshEdges,
    edge_labels_to_faces,
    face_labels_to_edges,
    mesh_edges,
    read_labels,
    vertex_labels_to_faces,
    write_labels,
)
from pyg_pool.mesh.layouts import MeshSample
from pyg_pool.mesh.preprocessing import GraphRecipe
from pyg_pool.mesh.shapes import (
    PART_NAMES,
    SHAPE_KINDS,
    generate_shape,
    generate_shapes,
)
from pyg_pool.mesh.simplify import closest_faces, simplify_mesh

__all__ = [
    "COSEG",
    "PART_NAMES",
    "SHAPE_KINDS",
    "SHREC16",
    "CubeEngraving",
    "FaceToPrimalDual",
    "FeatureScaling",
    "GraphRecipe",
    "HumanBody",
    "Mesh",
    "MeshAugmentation",
    "MeshDataset",
    "MeshEdges",
    "MeshSample",
    "PrimalDualConv",
    "PrimalDualConvOutput",
    "PrimalDualData",
    "PrincetonSegmentation",
    "clean_mesh",
    "closest_faces",
    "edge_labels_to_faces",
    "face_labels_to_edges",
    "fan_triangles",
    "flip_edges",
    "generate_shape",
    "generate_shapes",
    "mesh_edges",
    "primal_dual_graph",
    "read_labels",
    "read_mesh",
    "scale_vertices",
    "simplify_mesh",
    "slide_vertices",
    "vertex_labels_to_faces",
    "write_labels",
    "write_mesh",
]
