"""Records what the layers of a model return while it runs, by forward hooks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn.models.basic_gnn import BasicGNN

from pyg_pool.errors import check_choice

__all__ = ["Recorder", "call_model", "default_layers", "frozen", "recording"]

INPUT = "input"


@dataclass
class Recorder:
    """What was recorded, by layer and in the order of the calls.

    Attributes:
        layers: Names of the modules, ``"input"`` for the input of the model.
        calls: ``[N, F]`` results of each.
    """

    layers: tuple[str, ...]
    calls: dict[str, list[Tensor]] = field(default_factory=dict)

    def history(self, x: Tensor) -> list[Tensor]:
        """Returns all records in order.

        Args:
            x: Input of the model, taken for ``"input"``.

        Raises:
            ValueError: If a layer did not run, or has no row per node.
        """
        found = []
        for name in self.layers:
            calls = [x] if name == INPUT else self.calls.get(name, [])
            for call in calls:
                if call.dim() != 2 or call.size(0) != x.size(0):
                    raise ValueError(
                        f"the history got a result of shape {list(call.shape)} from "
                        f"layer {name!r}, expected [{x.size(0)}, channels], one row "
                        f"per node; record layers in front of pooling only."
                    )
            if not calls:
                raise ValueError(
                    f"the history got no result from layer {name!r}, expected at "
                    f"least one call; name modules that run in the forward pass."
                )
            found += calls
        return found


@contextmanager
def recording(model: Module, layers: Sequence[str]) -> Iterator[Recorder]:
    """Records layers of a model inside a ``with`` block.

    Args:
        model: Any module.
        layers: Names of modules as ``named_modules()`` gives them, ``"input"`` for the
            input of the model. A module that runs several times is recorded each time.

    Raises:
        ValueError: If there is no such module.

    Example:
        >>> import torch
        >>> from pyg_pool.core.history_hooks import recording
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> x = torch.ones(4, 2)
        >>> with recording(model, ["input", "0", "1"]) as record:
        ...     _ = model(x)
        >>> [layer.shape[1] for layer in record.history(x)]
        [2, 3, 3]
    """
    modules = dict(model.named_modules())
    record = Recorder(tuple(layers))
    handles = []
    try:
        for name in dict.fromkeys(record.layers):
            if name == INPUT:
                continue
            check_choice("the history", "layer", name, [INPUT, *filter(None, modules)])
            calls = record.calls.setdefault(name, [])

            def keep(_: Any, __: Any, out: Any, calls: list[Tensor] = calls) -> None:
                calls.append(_first_tensor(out))

            handles.append(modules[name].register_forward_hook(keep))
        yield record
    finally:
        for handle in handles:
            handle.remove()


def _first_tensor(out: Any) -> Tensor:
    """The result itself, or the first of several (GAT returns its attention too)."""
    while isinstance(out, (tuple, list)) and out:
        out = out[0]
    if not isinstance(out, Tensor):
        raise TypeError(
            f"the history got a result of type {type(out).__name__} from a layer, "
            f"expected a tensor of shape [num_nodes, channels]; record another layer."
        )
    return out


def default_layers(model: Module) -> list[str]:
    """The input and every layer of one of PyG's basic models, after all it applies.

    Layers are taken after normalisation, activation and dropout; the last one, which
    has none of these without ``jk``, as it is.

    Raises:
        ValueError: If the model is of another kind.

    Example:
        >>> from torch_geometric.nn import GIN
        >>> from pyg_pool.core.history_hooks import default_layers
        >>> default_layers(GIN(3, 8, 3))
        ['input', 'dropout', 'convs.2']
    """
    if not isinstance(model, BasicGNN):
        raise ValueError(
            f"the history got a {type(model).__name__} and no layers, expected one of "
            f"PyG's basic models (GCN, GIN, GraphSAGE, GAT, PNA); pass layers=[...] "
            f"with names of modules."
        )
    number = len(model.convs)
    if model.jk_mode is not None:
        return [INPUT, "dropout"]
    middle = ["dropout"] if number > 1 else []
    return [INPUT, *middle, f"convs.{number - 1}"]


def call_model(model: Module, batch: Any) -> Any:
    """Calls a model with what its ``forward`` asks for by name.

    Args:
        model: Takes a batch as its only needed argument, or ``x``, ``edge_index`` and
            others by their names in the batch.
        batch: A PyG batch.
    """
    signature = inspect.signature(model.forward)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        p.name
        for p in signature.parameters.values()
        if p.kind in kinds and p.default is p.empty
    ]
    if len(needed) == 1 and needed[0] != "x":
        return model(batch)
    if needed == ["x"] and "edge_index" not in signature.parameters:
        return model(batch.x)
    given = {
        name: getattr(batch, name, None)
        for name in signature.parameters
        if name in ("x", "edge_index", "edge_weight", "edge_attr", "batch", "pos", "z")
    }
    given = {n: v for n, v in given.items() if v is not None or n in needed}
    if isinstance(model, BasicGNN):
        # Convolutions that can take attributes fail on them if built without a width.
        if getattr(model.convs[0], "edge_dim", None) is None:
            given.pop("edge_attr", None)
        if not model.supports_edge_weight:
            given.pop("edge_weight", None)
    if "batch_size" in signature.parameters:
        given["batch_size"] = batch.num_graphs
    return model(**given)


@contextmanager
def frozen(model: Module) -> Iterator[None]:
    """Evaluation mode without gradients inside a ``with`` block; modes come back."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes.items():
            module.training = mode
