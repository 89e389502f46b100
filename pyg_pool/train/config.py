"""Options of a training run: one checked dataclass, read from and written to YAML.

The file ``config.yaml`` in a run folder holds every option under the name it has
here, plus the version number of the format.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from pyg_pool.errors import require
from pyg_pool.train.checkpoint import write_atomic

__all__ = [
    "OptionError",
    "TrainConfig",
    "near_names",
    "options_for_run",
    "parse_seeds",
    "read_config",
    "write_config",
]

#: Version of the layout of ``config.yaml``.
FORMAT = 1
#: Options that say where and how fast, but not what is computed.
FREE_ON_RESUME = ("root", "workers")
MODELS = ("hierarchical", "unet", "gpn", "gcn", "gin", "kl_gnn")
PRECISIONS = ("32", "64", "bf16", "16")
CONFIG_FILE = "config.yaml"


class OptionError(ValueError):
    """An option, a configuration file or a run folder that cannot be used as given."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """Everything that decides the numbers of a training run.

    Args:
        dataset: Name of the data set, see ``pyg-pool list``.
        root: Folder of data laid out beforehand; :obj:`None` for the default place.
        model: ``"hierarchical"``, ``"unet"``, ``"gpn"``, ``"gcn"``, ``"gin"`` or
            ``"kl_gnn"``.
        pool: Pooling operator of the hierarchical models.
        readout: Readouts joined into one vector per graph.
        conv: Convolution of the hierarchical models; ``"auto"`` takes the model's own.
        hidden: Width of the node features.
        levels: Pooling levels; layers of a model without pooling, and of each block
            of ``"gpn"``, which finds its levels itself.
        ratio: Share of nodes that a pooling level keeps.
        k: Power of the base network of ``"kl_gnn"``: 1, or 2 for 2-FWL.
        l: Number of labels of ``"kl_gnn"``.
        domain: Tuples of nodes that ``"kl_gnn"`` labels.
        encoding: Label features of ``"kl_gnn"``.
        ego: Radius of the balls that the copies of ``"kl_gnn"`` are cut to; 0 keeps
            whole graphs.
        dropout: Probability of dropping a hidden unit.
        epochs: Upper bound on the epochs of one run.
        batch_size: Graphs in a batch; batches of an epoch differ by at most one graph.
        lr: Learning rate of AdamW.
        weight_decay: Weight decay of AdamW.
        patience: Epochs without a better validation score before a run stops; 0
            never stops early.
        seeds: One run for each seed.
        folds: Number of cross-validation folds; 0 uses the data set's own split.
        split_file: File with fixed splits, used instead of `folds`.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``.
        precision: ``"32"``, ``"64"``, or mixed ``"bf16"`` and ``"16"``.
        deterministic: Ask torch for deterministic algorithms. On a CPU the results
            repeat without it; on a GPU only with it, at some cost in speed.
        workers: Processes that load data; 0 loads in the training process.
        threads: CPU threads of torch; 0 leaves torch's own choice.

    Raises:
        OptionError: If a value has the wrong type or is out of range.

    Example:
        >>> config = TrainConfig(model="gcn", seeds=(0, 1))
        >>> config.dataset, config.seeds
        ('solubility', (0, 1))
    """

    dataset: str = "solubility"
    root: str | None = None
    model: str = "hierarchical"
    pool: str = "gpool"
    readout: tuple[str, ...] = ("mean", "max")
    conv: str = "auto"
    hidden: int = 64
    levels: int = 3
    ratio: float = 0.8
    k: int = 1
    l: int = 1  # noqa: E741
    domain: str = "distinct"
    encoding: str = "mark"
    ego: int = 3
    dropout: float = 0.2
    epochs: int = 100
    batch_size: int = 32
    lr: float = 0.001
    weight_decay: float = 0.0
    patience: int = 0
    seeds: tuple[int, ...] = (0,)
    folds: int = 0
    split_file: str | None = None
    device: str = "auto"
    precision: str = "32"
    deterministic: bool = False
    workers: int = 0
    threads: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = _coerced(item.name, item.type, getattr(self, item.name))
            object.__setattr__(self, item.name, value)
        for name, (is_fine, expected) in _RULES.items():
            value = getattr(self, name)
            if not is_fine(value):
                raise OptionError(
                    f"option {name!r} got {value!r}, expected {expected}; "
                    f"give such a value{_hint(name, value)}."
                )
        if self.folds and self.split_file is not None:
            raise OptionError(
                f"options got folds={self.folds} and split_file={self.split_file!r}, "
                "expected at most one of them; leave one out."
            )

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> TrainConfig:
        """Build a configuration from names and values, refusing unknown names.

        Raises:
            OptionError: If a name is unknown or a value cannot be used.

        Example:
            >>> TrainConfig.from_dict({"lr": "1e-2"}).lr
            0.01
        """
        refuse_unknown(options, option_names())
        return cls(**dict(options))

    def to_dict(self) -> dict[str, Any]:
        """Return the options as plain values that YAML and JSON can hold."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


def option_names() -> tuple[str, ...]:
    """Return the names of all options in their order."""
    return tuple(item.name for item in fields(TrainConfig))


def near_names(name: str, known: Sequence[str]) -> str:
    """Return ``"did you mean …"`` for a misspelt name, or an empty string.

    Example:
        >>> near_names("gpol", ["gpool", "mean"])
        "did you mean 'gpool'"
    """
    matches = difflib.get_close_matches(name.lower(), list(known), n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, matches))}" if matches else ""


def refuse_unknown(options: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise ``OptionError`` for the first name that is no option."""
    for name in options:
        if name not in known:
            near = near_names(str(name), known)
            raise OptionError(
                f"configuration got the unknown option {name!r}, expected one of "
                f"{', '.join(known)}; {near or 'correct the name or remove it'}."
            )


def parse_seeds(text: str | int | Sequence[int]) -> tuple[int, ...]:
    """Return the seeds named by a count or by a comma-separated list.

    A single number is a count; a comma makes a list, even of one seed.

    Raises:
        OptionError: If `text` is neither.

    Example:
        >>> parse_seeds("3"), parse_seeds("7,9"), parse_seeds("7,")
        ((0, 1, 2), (7, 9), (7,))
    """
    try:
        if isinstance(text, str) and "," in text:
            return tuple(int(part) for part in text.split(",") if part.strip())
        if isinstance(text, (str, int)):
            return tuple(range(int(text)))
        return tuple(int(seed) for seed in text)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"option 'seeds' got {text!r}, expected a count like 5 or a list like "
            "0,1,2; write a single seed s as 's,'."
        ) from error


def write_config(config: TrainConfig, path: str | Path) -> None:
    """Write `config` to a YAML file, atomically."""
    yaml = require("yaml", "train")
    text = yaml.safe_dump({"format": FORMAT, **config.to_dict()}, sort_keys=False)
    write_atomic(path, text.encode())


def read_config(path: str | Path) -> dict[str, Any]:
    """Return the options named in a YAML file; options left out are absent.

    Raises:
        OptionError: If the file is missing, is no mapping, or has another format.
    """
    yaml = require("yaml", "train")
    path = Path(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise OptionError(
            f"configuration file {str(path)!r} does not exist, expected a YAML file "
            "of options; correct the path."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise OptionError(
            f"configuration file {str(path)!r} cannot be read as YAML ({error}), "
            "expected lines 'option: value'; mend the file."
        ) from error
    if not isinstance(content, dict):
        raise OptionError(
            f"configuration file {str(path)!r} holds {type(content).__name__}, "
            "expected a mapping; write lines 'option: value'."
        )
    found = content.pop("format", FORMAT)
    if found != FORMAT:
        raise OptionError(
            f"configuration file {str(path)!r} has format {found!r}, expected "
            f"{FORMAT}; write it anew with this version of pyg_pool."
        )
    return content


def options_for_run(
    given: Mapping[str, Any], out: str | Path, *, resume: bool = False
) -> TrainConfig:
    """Return the configuration of a run in folder `out`.

    On a resume the options come from the folder; those in `given` must agree.

    Args:
        given: Options that the caller set, by name.
        out: The run folder.
        resume: Whether an existing run is carried on.

    Raises:
        OptionError: If the folder holds a run and `resume` is false, or if options
            differ from those of the run that is resumed.
    """
    config: TrainConfig = config_for_run(
        TrainConfig, given, out, resume=resume, free=FREE_ON_RESUME
    )
    return config


def config_for_run(
    kind: Any,
    given: Mapping[str, Any],
    out: str | Path,
    *,
    resume: bool,
    free: Sequence[str],
    clashes: Callable[[Any, Any], list[str]] = lambda old, new: [],
) -> Any:
    """Return the options of a run of any kind; see :func:`options_for_run`.

    Args:
        kind: The class of the options, with ``from_dict`` and ``to_dict``.
        given: Options that the caller set, by name.
        out: The run folder.
        resume: Whether an existing run is carried on.
        free: Options that may differ on a resume.
        clashes: Names further differences between the stored and the new options.
    """
    path = Path(out) / CONFIG_FILE
    if not path.exists():
        _check_empty(Path(out))
        return kind.from_dict(given)
    if not resume:
        raise OptionError(
            f"run folder {str(out)!r} already holds a run ({CONFIG_FILE} is there), "
            "expected a new folder; choose another one, or resume this run with "
            "--resume."
        )
    stored = kind.from_dict(read_config(path))
    asked = kind.from_dict({**stored.to_dict(), **given})
    changed = [
        f"{name} ({old!r} in the folder, {new!r} now)"
        for name, old in stored.to_dict().items()
        if (new := asked.to_dict()[name]) != old and name not in free
    ]
    changed += clashes(stored, asked)
    if changed:
        raise OptionError(
            f"resuming {str(out)!r} got other options than the run has: "
            f"{', '.join(changed)}; expected the same ones; leave them out, or start "
            "a new run in another folder."
        )
    return asked


def _check_empty(out: Path) -> None:
    """Refuse a target that is a file or a folder with somebody's files in it."""
    # Hidden files are ours: what a kill left of an atomic write.
    if out.exists() and (
        not out.is_dir() or any(not p.name.startswith(".") for p in out.iterdir())
    ):
        kind = "a folder with other files" if out.is_dir() else "a file"
        raise OptionError(
            f"run folder {str(out)!r} is {kind}, expected a new or an empty folder; "
            "choose another one."
        )


def _coerced(name: str, kind: Any, value: Any) -> Any:
    """Return `value` in the type its field has, or raise."""
    if name == "seeds":
        return parse_seeds(value)
    if name == "readout":
        return tuple(value.split(",")) if isinstance(value, str) else tuple(value)
    if value is None and "None" in str(kind):
        return None
    is_bool = isinstance(value, bool)
    try:
        if kind == "bool" and is_bool:
            return value
        if kind == "int" and not is_bool and int(value) == float(value):
            return int(value)
        # YAML 1.1 reads 1e-3 as text, so numbers written as text are accepted.
        if kind == "float" and not is_bool:
            return float(value)
        if str(kind).startswith("str") and isinstance(value, (str, int)):
            return str(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise OptionError(
        f"option {name!r} got {value!r} of type {type(value).__name__}, expected "
        f"{kind}; give such a value."
    )


def _hint(name: str, value: object) -> str:
    """Name the nearest word for an option that has a fixed set of words."""
    words = {"model": MODELS, "precision": PRECISIONS}.get(name, ())
    near = near_names(str(value), words)
    return f" ({near}?)" if near else ""


def _is_device(value: str) -> bool:
    """Tell whether a device name is one we know how to ask for."""
    kind, _, index = value.partition(":")
    if kind == "cuda":
        return index.isdigit() if ":" in value else True
    return value in ("auto", "cpu", "mps")


def _at_least(low: int) -> tuple[Callable[[Any], bool], str]:
    """Rule for whole numbers with a lower bound."""
    return lambda value: value >= low, f"a whole number of at least {low}"


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "model": (lambda value: value in MODELS, f"one of {', '.join(MODELS)}"),
    "readout": (lambda value: len(value) > 0, "at least one readout"),
    "hidden": _at_least(1),
    "levels": _at_least(1),
    "k": (lambda value: value in (1, 2), "1 or 2"),
    "l": _at_least(0),
    "ego": _at_least(0),
    "ratio": (lambda value: 0 < value <= 1, "a number above 0 and at most 1"),
    "dropout": (lambda value: 0 <= value < 1, "a number of at least 0 and below 1"),
    "epochs": _at_least(1),
    "batch_size": _at_least(1),
    "lr": (lambda value: 0 < value < math.inf, "a finite number above 0"),
    "weight_decay": (lambda value: 0 <= value < math.inf, "a finite number from 0 on"),
    "patience": _at_least(0),
    "seeds": (
        lambda value: len(value) == len(set(value)) > 0 and min(value) >= 0,
        "different whole numbers from 0 on",
    ),
    "folds": (lambda value: value == 0 or value >= 2, "0, or at least 2 folds"),
    "device": (_is_device, "auto, cpu, cuda, cuda:N or mps"),
    "precision": (lambda v: v in PRECISIONS, f"one of {', '.join(PRECISIONS)}"),
    "workers": _at_least(0),
    "threads": _at_least(0),
}
