"""Options of a mesh training run: one checked dataclass, kept as YAML beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pyg_pool.errors import require
from pyg_pool.train.checkpoint import write_atomic
from pyg_pool.train.config import (
    FORMAT,
    OptionError,
    _at_least,
    _coerced,
    _is_device,
    config_for_run,
    parse_seeds,
    refuse_unknown,
)

__all__ = ["MeshConfig", "mesh_options_for_run", "write_mesh_config"]

#: Options that say where and how fast, but not what is computed.
FREE_ON_RESUME = (
    "data", "layout", "download", "cache", "workers", "epochs", "device", "threads",
)  # fmt: skip
TASKS = ("classification", "segmentation")
MODELS = ("auto", "classifier", "segmenter", "unet")
LAYOUTS = {
    "classification": ("auto", "shrec", "cubes"),
    "segmentation": ("auto", "princeton", "coseg", "human"),
}
#: Versions of a mesh where augmentation is on and their number was left open.
VERSIONS = 20


@dataclass(frozen=True, kw_only=True)
class MeshConfig:
    """Everything that decides the numbers of a mesh training run.

    Args:
        data: Folder of meshes, see :func:`pyg_pool.train.load_meshes`.
        task: ``"classification"`` of meshes or ``"segmentation"`` of faces.
        categories: Only these folders of a segmentation set; all where left out.
        layout: How the folder is laid out: ``"shrec"`` or ``"cubes"`` for
            classification, ``"princeton"``, ``"coseg"`` or ``"human"`` for
            segmentation; ``"auto"`` sees it from the folder.
        download: Whether to fetch the set of this layout where the folder does not
            exist.
        polygons: ``"error"``, or ``"fan"`` to cut polygons into triangles.
        cache: Folder that keeps the graphs; ``"auto"`` is one beside the data, or the
            user's where that cannot be written, ``"none"`` keeps none.
        workers: Processes that make the graphs; 0 works in this one.
        graphs: Kind of the dual graphs, ``"A"``, ``"B"`` or ``"C"``.
        primal_features: ``"area"``, ``"dual"`` or ``"shape"``, the features of a face.
        model: ``"classifier"``, ``"segmenter"``, ``"unet"``, or ``"auto"``: the first
            for classification, the last for segmentation.
        channels: Widths of the blocks, per head.
        heads: Heads of the attention on the way down.
        num_skips: Convolutions after the first one of each block.
        norm: Norm of the blocks: ``"group"``, ``"batch"`` or ``"none"``.
        norm_groups: Groups of the group norm.
        keep: Share of edges that each pooling step keeps.
        reduce: How pooling merges features: ``"mean"`` or ``"sum"``.
        dropout: Rate at which attention is dropped in training.
        versions: Versions of each training mesh, of which each epoch draws one: the
            mesh itself, and others that are changed by the three options below; 0 is
            20 where one of them is set, else 1.
        slide: Share of the vertices that slide along the surface.
        flip: Share of the edges that flip.
        scale: Standard deviation of the factor of each vertex.
        head_channels: Hidden layer of the classifier.
        epochs: Epochs of a run. A run may be resumed with more.
        batch_size: Meshes in a batch; batches differ by at most one mesh.
        lr: Learning rate of Adam.
        weight_decay: Weight decay, decoupled.
        constant_epochs: Epochs before the rate falls linearly to 0 at the end; 0
            keeps it constant.
        loss_per: Whether each ``"face"`` or each ``"mesh"`` weighs the same.
        val_share: Share of the training meshes held out for validation.
        evaluate: Whether the ``"last"`` or the ``"best"`` checkpoint is tested;
            without validation the best has the smallest training loss.
        seeds: One run for each seed.
        matmul: Precision of products of float32 matrices, as torch names it:
            ``"highest"``, ``"high"`` or ``"medium"``; the lower two are faster where
            the processor has bfloat16 or TF32 units.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        threads: CPU threads of torch; 0 leaves torch's own choice.

    Raises:
        OptionError: If a value has the wrong type or is out of range.

    Example:
        >>> config = MeshConfig(data="meshes", task="segmentation")
        >>> config.channels, config.lr
        ((32, 64, 128), 0.001)
    """

    data: str
    task: str = "classification"
    categories: tuple[str, ...] = ()
    layout: str = "auto"
    download: bool = False
    polygons: str = "error"
    cache: str = "auto"
    workers: int = 0
    graphs: str = "A"
    primal_features: str = "area"
    model: str = "auto"
    channels: tuple[int, ...] = ()
    heads: int = 0
    num_skips: int = 1
    norm: str = "group"
    norm_groups: int = 16
    keep: float = 0.0
    reduce: str = "mean"
    dropout: float = 0.0
    versions: int = 0
    slide: float = 0.0
    flip: float = 0.0
    scale: float = 0.0
    head_channels: int = 100
    epochs: int = 200
    batch_size: int = 16
    lr: float = 0.0
    weight_decay: float = 0.0
    constant_epochs: int = 0
    loss_per: str = "face"
    val_share: float = 0.0
    evaluate: str = "last"
    seeds: tuple[int, ...] = (0,)
    matmul: str = "highest"
    device: str = "auto"
    threads: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = _mesh_coerced(item.name, item.type, getattr(self, item.name))
            object.__setattr__(self, item.name, value)
        for name, (is_fine, expected) in _RULES.items():
            value = getattr(self, name)
            if not is_fine(value):
                raise OptionError(
                    f"option {name!r} got {value!r}, expected {expected}; give such a "
                    f"value."
                )
        augmented = self.slide > 0 or self.flip > 0 or self.scale > 0
        open_ones = {**self._own_choice(), "versions": VERSIONS if augmented else 1}
        for name, value in open_ones.items():
            if not getattr(self, name) or getattr(self, name) == "auto":
                object.__setattr__(self, name, value)
        if augmented != (self.versions > 1):
            raise OptionError(
                f"option 'versions' got {self.versions} with slide={self.slide}, "
                f"flip={self.flip} and scale={self.scale}, expected more than 1 with "
                f"one of them set and else 1; set slide=0.2 and flip=0.2, or leave "
                f"all four out."
            )
        if self.layout not in LAYOUTS[self.task]:
            raise OptionError(
                f"option 'layout' got {self.layout!r} with task={self.task!r}, "
                f"expected {', '.join(LAYOUTS[self.task])}; choose it, or the other "
                f"task."
            )
        wanted = "classifier" if self.task == "classification" else "unet or segmenter"
        if self.model not in wanted:
            raise OptionError(
                f"option 'model' got {self.model!r} with task={self.task!r}, expected "
                f"{wanted}; choose it, or leave the option out."
            )

    def _own_choice(self) -> dict[str, Any]:
        """Values of the options that were left open."""
        if self.task == "classification":
            return {
                "model": "classifier", "channels": (64, 128), "heads": 3, "keep": 0.8,
                "lr": 2e-4,
            }  # fmt: skip
        is_unet = self.model in ("auto", "unet")
        return {
            "model": "unet",
            "channels": (32, 64, 128) if is_unet else (64, 96),
            "heads": 1,
            "keep": 0.7 if is_unet else 0.8,
            "lr": 1e-3 if is_unet else 2e-4,
        }

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> MeshConfig:
        """Build a configuration from names and values, refusing unknown names.

        Raises:
            OptionError: If a name is unknown, ``data`` is missing, or a value cannot
                be used.

        Example:
            >>> MeshConfig.from_dict({"data": "meshes", "epochs": "5"}).epochs
            5
        """
        refuse_unknown(options, tuple(item.name for item in fields(cls)))
        if "data" not in options:
            raise OptionError(
                "configuration got no option 'data', expected a folder of meshes; "
                "name one."
            )
        return cls(**dict(options))

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values that YAML and JSON can hold."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def write_mesh_config(config: MeshConfig, path: str | Path) -> None:
    """Write `config` to a YAML file, atomically."""
    yaml = require("yaml", "train")
    text = yaml.safe_dump({"format": FORMAT, **config.to_dict()}, sort_keys=False)
    write_atomic(path, text.encode())


def mesh_options_for_run(
    given: Mapping[str, Any], out: str | Path, *, resume: bool = False
) -> MeshConfig:
    """Return the configuration of a run in folder `out`.

    On a resume the options come from the folder; those in `given` must agree, except
    for the number of epochs and those that say where and how fast.

    Args:
        given: Options that the caller set, by name.
        out: The run folder.
        resume: Whether an existing run is carried on.

    Raises:
        OptionError: If the folder holds a run and `resume` is false, or if options
            differ from those of the run that is resumed.
    """
    config: MeshConfig = config_for_run(
        MeshConfig,
        given,
        out,
        resume=resume,
        free=FREE_ON_RESUME,
        clashes=_schedule_clashes,
    )
    return config


def _schedule_clashes(stored: MeshConfig, asked: MeshConfig) -> list[str]:
    """Epochs may grow unless the falling rate depends on their number."""
    if asked.constant_epochs and asked.epochs != stored.epochs:
        return ["epochs (the falling rate depends on it)"]
    return []


def _mesh_coerced(name: str, kind: Any, value: Any) -> Any:
    """Return `value` in the type its field has, or raise."""
    if name == "seeds":
        return parse_seeds(value)
    if name in ("channels", "categories"):
        parts: Sequence[Any] = value.split(",") if isinstance(value, str) else value
        each = "int" if name == "channels" else "str"
        return tuple(_coerced(name, each, part) for part in parts)
    return _coerced(name, kind, value)


def _share() -> tuple[Callable[[Any], bool], str]:
    """Rule for a share below 1."""
    return lambda value: 0 <= value < 1, "a number of at least 0 and below 1"


def _one_of(*words: str) -> tuple[Callable[[Any], bool], str]:
    """Rule for an option with a fixed set of words."""
    return lambda value: value in words, f"one of {', '.join(words)}"


def _finite() -> tuple[Callable[[Any], bool], str]:
    """Rule for numbers from 0 on."""
    return lambda value: 0 <= value < math.inf, "a finite number from 0 on"


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "task": _one_of(*TASKS),
    "layout": _one_of(
        *dict.fromkeys(word for words in LAYOUTS.values() for word in words)
    ),
    "polygons": _one_of("error", "fan"),
    "cache": (lambda value: value != "", "auto, none or a folder"),
    "workers": _at_least(0),
    "graphs": _one_of("A", "B", "C"),
    "primal_features": _one_of("area", "dual", "shape"),
    "model": _one_of(*MODELS),
    "channels": (lambda value: all(v > 0 for v in value), "numbers above 0"),
    "heads": _at_least(0),
    "num_skips": _at_least(0),
    "norm": _one_of("group", "batch", "none"),
    "norm_groups": _at_least(1),
    "keep": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "reduce": _one_of("mean", "sum"),
    "dropout": _share(),
    "versions": _at_least(0),
    "slide": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "flip": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "scale": _finite(),
    "head_channels": _at_least(1),
    "epochs": _at_least(1),
    "batch_size": _at_least(1),
    "lr": _finite(),
    "weight_decay": _finite(),
    "constant_epochs": _at_least(0),
    "loss_per": _one_of("face", "mesh"),
    "val_share": _share(),
    "evaluate": _one_of("last", "best"),
    "seeds": (
        lambda value: len(value) == len(set(value)) > 0 and min(value) >= 0,
        "different whole numbers from 0 on",
    ),
    "matmul": _one_of("highest", "high", "medium"),
    "device": (_is_device, "auto, cpu, cuda, cuda:N or mps"),
    "threads": _at_least(0),
}
