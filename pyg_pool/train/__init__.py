"""Training: data sets, options, run folders; Lightning is loaded when a run starts."""

from __future__ import annotations

from pyg_pool.train.architectures import (
    GraphFeatures,
    GraphModel,
    PlainGNN,
    build_model,
    list_models,
    list_operators,
    list_pools,
    list_readouts,
)
from pyg_pool.train.config import OptionError, TrainConfig
from pyg_pool.train.data import (
    DatasetInfo,
    GraphDataset,
    Skipped,
    Split,
    list_datasets,
    load_dataset,
)
from pyg_pool.train.demo import Demo, DemoResult, DemoRow
from pyg_pool.train.encoders import EdgeEncoder, NodeEncoder, encoders
from pyg_pool.train.graph_classification import (
    GraphJob,
    JobSummary,
    RunResult,
    load_model,
    train_graphs,
)
from pyg_pool.train.mesh_config import MeshConfig
from pyg_pool.train.mesh_data import MeshSet, load_meshes
from pyg_pool.train.mesh_prediction import MeshPrediction, predict_mesh
from pyg_pool.train.mesh_results import MeshCategory, MeshRun, MeshSummary
from pyg_pool.train.mesh_scores import (
    area_weighted_accuracy,
    edge_faces,
    edge_predictions,
    face_accuracy,
    learning_rate_factor,
    mesh_loss,
    soft_edge_accuracy,
)
from pyg_pool.train.mesh_segmentation import (
    MeshJob,
    TrainedMeshModel,
    build_mesh_model,
    load_mesh_model,
    train_meshes,
)
from pyg_pool.train.messages import show_messages
from pyg_pool.train.store import GraphStore
from pyg_pool.train.versions import versions

__all__ = [
    "DatasetInfo",
    "Demo",
    "DemoResult",
    "DemoRow",
    "EdgeEncoder",
    "GraphDataset",
    "GraphFeatures",
    "GraphJob",
    "GraphModel",
    "GraphStore",
    "JobSummary",
    "MeshCategory",
    "MeshConfig",
    "MeshJob",
    "MeshPrediction",
    "MeshRun",
    "MeshSet",
    "MeshSummary",
    "NodeEncoder",
    "OptionError",
    "PlainGNN",
    "RunResult",
    "Skipped",
    "Split",
    "TrainConfig",
    "TrainedMeshModel",
    "area_weighted_accuracy",
    "build_mesh_model",
    "build_model",
    "edge_faces",
    "edge_predictions",
    "encoders",
    "face_accuracy",
    "learning_rate_factor",
    "list_datasets",
    "list_models",
    "list_operators",
    "list_pools",
    "list_readouts",
    "load_dataset",
    "load_mesh_model",
    "load_meshes",
    "load_model",
    "mesh_loss",
    "predict_mesh",
    "show_messages",
    "soft_edge_accuracy",
    "train_graphs",
    "train_meshes",
    "versions",
]
