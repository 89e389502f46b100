"""Any list of mesh files as a data set of graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from pathlib import Path

from torch.utils.data import Dataset

from pyg_pool.mesh.data import PrimalDualData
from pyg_pool.mesh.geometry import Mesh
from pyg_pool.mesh.layouts import MeshSample
from pyg_pool.mesh.preprocessing import GraphRecipe, prepare_graphs, read_sample

__all__ = ["MeshDataset"]

PathLike = str | os.PathLike[str]


class MeshDataset(Dataset[PrimalDualData]):
    """Meshes as graphs, in memory, made once and kept under their content.

    The classes of public sets build it from their folders; build it directly for
    any other list of files.

    Args:
        samples: The meshes with their label files or classes.
        class_names: Names of the classes or parts.
        recipe: How the graphs are made.
        versions: Graphs of each mesh: itself, then changed by the recipe's
            augmentation.
        cache: Folder that keeps the graphs; ``None`` keeps none.
        workers: Processes that make them, or an executor that several sets share; 0
            works in this process.
        progress: Whether to show a bar.

    Example:
        >>> from pyg_pool.mesh import MeshDataset, MeshSample, generate_shape
        >>> from pyg_pool.mesh import write_mesh
        >>> file = getfixture("tmp_path") / "cup.off"
        >>> write_mesh(file, generate_shape("cup"))
        >>> MeshDataset([MeshSample(file, target=0)], ["cup"])
        MeshDataset(1 mesh, 1 class)
    """

    def __init__(
        self,
        samples: Sequence[MeshSample],
        class_names: Sequence[str],
        *,
        recipe: GraphRecipe | None = None,
        versions: int = 1,
        cache: PathLike | None = None,
        workers: int | Executor = 0,
        progress: bool = False,
    ) -> None:
        self.recipe = GraphRecipe() if recipe is None else recipe
        if versions > 1 and self.recipe.augmentation is None:
            raise ValueError(
                f"MeshDataset got versions={versions} without augmentation, expected "
                f"1; set augmentation=MeshAugmentation() in the recipe."
            )
        self.samples = list(samples)
        self.class_names = list(class_names)
        self.versions = versions
        jobs = [(sample, i) for i in range(versions) for sample in self.samples]
        self.graphs = prepare_graphs(
            jobs,
            self.recipe,
            cache=None if cache is None else Path(cache),
            workers=workers,
            progress=progress,
        )

    @property
    def num_classes(self) -> int:
        """Number of classes of a mesh, or of its faces."""
        return len(self.class_names)

    def mesh(self, index: int) -> Mesh:
        """Reads the cleaned mesh of a sample again, for pictures and predictions."""
        return read_sample(self.samples[index % len(self.samples)], self.recipe)

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> PrimalDualData:
        return self.graphs[index]

    def __repr__(self) -> str:
        meshes, classes = len(self.samples), self.num_classes
        times = f" x {self.versions}" if self.versions > 1 else ""
        return (
            f"{type(self).__name__}({meshes} mesh{'' if meshes == 1 else 'es'}{times}, "
            f"{classes} class{'' if classes == 1 else 'es'})"
        )
