r"""Names for PyG's aggregation resolver and for GraphGym.

Nothing happens on import: :func:`register` is called by whoever wants the names,
as often as they like, and :func:`unregister` takes them back.

After it every readout of this library works by name in PyG (``aggr="..."`` in any
convolution), and a GraphGym configuration may say:

.. code-block:: yaml

    gnn:
      head: pyg_pool_readout    # graph head with any readouts, built per model
      stage_type: gpool         # pools after each layer; or stack_history
    pyg_pool:
      readout: [mean, softmax]  # one name or a list, as PyG's resolver knows them
      readout_kwargs: {softmax: {learn: true}}
      levels: sum               # with gpool: add the readouts of all levels
      ratio: 0.8
      nonlinearity: tanh
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
from collections.abc import Callable, MutableMapping
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.nn import aggr
from torch_geometric.nn.aggr import Aggregation
from torch_geometric.nn.resolver import aggregation_resolver

__all__ = ["Registered", "register", "unregister"]

DEFAULT_READOUT = ("mean", "max")

_log = logging.getLogger(__name__)

# What register() wrote: where, under which key, and what.
_written: list[tuple[MutableMapping[str, Any], str, Any]] = []


class Registered(NamedTuple):
    """What :func:`register` has put where.

    Args:
        aggregations: Readouts known to PyG's resolver.
        graphgym: Entries of GraphGym's registries, as ``registry.key``.
        skipped: Why a part was left out; empty if none was.
    """

    aggregations: tuple[str, ...]
    graphgym: tuple[str, ...]
    skipped: str


def register() -> Registered:
    """Makes the readouts, heads and stages of this library known to PyG.

    Every readout becomes an attribute of ``torch_geometric.nn.aggr``, where PyG's
    resolver finds it. In GraphGym these names appear: the head ``pyg_pool_readout``,
    the stages ``gpool`` and ``stack_history``, the configuration node ``pyg_pool``,
    and a pooling function for each readout without parameters. A second call changes
    nothing.

    Returns:
        What is registered, and why GraphGym was skipped if it was: it needs ``yacs``.

    Raises:
        ValueError: If a name is taken by something else; nothing is changed then.

    Note:
        GraphGym's pooling functions are called without the number of graphs, so a
        batch that ends with an empty graph lacks its row. The head
        ``pyg_pool_readout`` passes the number on.

    Example:
        >>> import pyg_pool
        >>> done = pyg_pool.register()
        >>> done == pyg_pool.register()
        True
        >>> pyg_pool.unregister()
    """
    readouts = _readouts()
    resolver = [(vars(aggr), name, cls) for name, cls in readouts.items()]
    entries: list[tuple[str, MutableMapping[str, Any], str, Any]] = []
    skipped = ""
    if importlib.util.find_spec("yacs") is None:
        skipped = (
            "GraphGym: the package 'yacs' is not installed; install it with: pip "
            "install 'pyg_pool[graphgym]'"
        )
    else:
        entries = _graphgym_entries(readouts)
    for mapping, name, cls in resolver:
        _check_free("torch_geometric.nn.aggr", mapping, name, cls, _plain)
    for registry, mapping, key, value in entries:
        _check_free(f"GraphGym's {registry} registry", mapping, key, value)
    for _, name, cls in resolver:
        setattr(aggr, name, cls)
    for _, mapping, key, value in entries:
        mapping[key] = value
    _remember([*resolver, *(entry[1:] for entry in entries)])
    if entries:
        _fill_config()
    done = Registered(
        tuple(readouts),
        tuple(f"{where}.{key}" for where, _, key, _ in entries),
        skipped,
    )
    _log.info("registered %s", done)
    return done


def unregister() -> None:
    """Takes back what :func:`register` did; names changed since then are left alone."""
    while _written:
        mapping, key, value = _written.pop()
        if mapping.get(key) is not value:
            continue
        if mapping is vars(aggr):
            delattr(aggr, key)
            continue
        del mapping[key]
        if value is add_config:
            from torch_geometric.graphgym.config import cfg

            cfg.pop("pyg_pool", None)


def _remember(entries: list[tuple[MutableMapping[str, Any], str, Any]]) -> None:
    known = {(id(mapping), key) for mapping, key, _ in _written}
    _written.extend(e for e in entries if (id(e[0]), e[1]) not in known)


def _check_free(
    where: str,
    mapping: MutableMapping[str, Any],
    key: str,
    value: Any,
    form: Callable[[str], str] = str,
) -> None:
    """Raises ``ValueError`` if somebody else holds the name, in whatever form."""
    for name, holder in list(mapping.items()):
        if form(name) == form(key) and not _is_ours(holder, value):
            raise ValueError(
                f"register got the name {key!r} for {where}, where {name!r} is "
                f"{holder!r} already, expected a free name; remove that entry, or do "
                f"not call pyg_pool.register()."
            )


def _plain(name: str) -> str:
    """A name as PyG's resolver reads it."""
    return name.lower().replace("_", "")


def _is_ours(holder: Any, value: Any) -> bool:
    return holder is value or any(holder is written for _, _, written in _written)


def _readouts() -> dict[str, type[Aggregation]]:
    """The aggregations of the readout room, by class name."""
    try:
        room = importlib.import_module("pyg_pool.readout")
    except ModuleNotFoundError as error:
        if error.name != "pyg_pool.readout":
            raise
        return {}
    found = {name: getattr(room, name) for name in room.__all__}
    return {
        name: thing
        for name, thing in found.items()
        if isinstance(thing, type) and issubclass(thing, Aggregation)
    }


def _graphgym_entries(
    readouts: dict[str, type[Aggregation]],
) -> list[tuple[str, MutableMapping[str, Any], str, Any]]:
    """Registry, its mapping, key and value of all entries for GraphGym."""
    from torch_geometric.graphgym import register as graphgym
    from torch_geometric.graphgym.config import cfg

    entries = [
        ("head", graphgym.head_dict, "pyg_pool_readout", ReadoutHead),
        ("stage", graphgym.stage_dict, "gpool", GPoolStage),
        ("stage", graphgym.stage_dict, "stack_history", StackHistoryStage),
        ("config", graphgym.config_dict, "pyg_pool", add_config),
    ]
    if graphgym.config_dict.get("pyg_pool") is not add_config:
        _check_free("GraphGym's configuration", cfg, "pyg_pool", None)
    known = {key: v for m, key, v in _written if m is graphgym.pooling_dict}
    for name, cls in readouts.items():
        key = name.removesuffix("Aggregation").lower()
        if key in known:
            entries.append(("pooling", graphgym.pooling_dict, key, known[key]))
        elif (function := _pooling_function(cls)) is not None:
            entries.append(("pooling", graphgym.pooling_dict, key, function))
    return entries


def _pooling_function(
    readout: type[Aggregation],
) -> Callable[[Tensor, Tensor | None, int | None], Tensor] | None:
    """GraphGym's form of a readout; ``None`` where it has parameters of its own."""
    try:
        module = readout()
    except TypeError:  # arguments without defaults
        return None
    if any(True for _ in module.parameters()):
        return None

    def pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
        return module(x, batch, dim_size=size)

    pool.__name__ = readout.__name__
    return pool


def _fill_config() -> None:
    """Adds the node to the configuration in force, which was set up before."""
    from torch_geometric.graphgym.config import cfg

    if "pyg_pool" not in cfg:
        add_config(cfg)


def add_config(cfg: Any) -> None:
    """Adds the node ``pyg_pool`` with its defaults to a GraphGym configuration."""
    cfg["pyg_pool"] = _node(cfg)


def _node(cfg: Any) -> Any:
    node = type(cfg)()
    node.readout = None  # a name or a list of names; None means mean and max
    node.readout_kwargs = type(cfg)(new_allowed=True)
    node.levels = "last"
    node.ratio = 0.5
    node.nonlinearity = "sigmoid"
    return node


class ReadoutHead(torch.nn.Module):
    """GraphGym head: readouts of each graph, concatenated, then an MLP.

    The readout ``histograph`` sees all layers; it needs the stage ``stack_history``.

    Args:
        dim_in: Width of the node features.
        dim_out: Width of the prediction.
    """

    def __init__(self, dim_in: int, dim_out: int) -> None:
        super().__init__()
        from torch_geometric.graphgym.config import cfg
        from torch_geometric.graphgym.models.layer import MLP, new_layer_config

        self.levels = cfg.pyg_pool.levels
        if self.levels not in ("last", "sum"):
            raise ValueError(
                f"pyg_pool_readout got pyg_pool.levels={self.levels!r}, expected "
                f"'last' or 'sum'; 'sum' adds the readouts of all levels of the gpool "
                f"stage."
            )
        names = cfg.pyg_pool.readout or DEFAULT_READOUT
        names = [names] if isinstance(names, str) else list(names)
        given = cfg.pyg_pool.readout_kwargs
        self.sees_layers = [_plain(name).startswith("histograph") for name in names]
        if any(self.sees_layers) and self.levels != "last":
            raise ValueError(
                f"pyg_pool_readout got the readout histograph with pyg_pool.levels="
                f"{self.levels!r}, expected 'last', as layers are not levels; take "
                f"another readout for the gpool stage."
            )
        self.readouts = torch.nn.ModuleList(
            _history_readout(dim_in, dict(given.get(name, {})))
            if sees_layers
            else _resolve(name, dict(given.get(name, {})), dim_in)
            for name, sees_layers in zip(names, self.sees_layers, strict=True)
        )
        width = self._width(dim_in)
        self.layer_post_mp = MLP(
            new_layer_config(
                width, dim_out, cfg.gnn.layers_post_mp, has_act=False, has_bias=True,
                cfg=cfg,
            )
        )  # fmt: skip

    @torch.no_grad()
    def _width(self, dim_in: int) -> int:
        """Width of the concatenated readouts, found by calling them."""
        was_training = self.training
        self.eval()
        index, width = torch.zeros(2).long(), 0
        for readout, sees_layers in zip(self.readouts, self.sees_layers, strict=True):
            form: Any = readout.form if sees_layers else None
            channels = form.starts[-1] if sees_layers else dim_in
            width += readout(torch.zeros(2, channels), index, dim_size=1).size(-1)
        self.train(was_training)
        return width

    def _read(
        self, x: Tensor, index: Tensor, size: int, layers: Tensor | None = None
    ) -> Tensor:
        parts = [
            readout(layers if sees_layers else x, index, dim_size=size)
            for readout, sees_layers in zip(
                self.readouts, self.sees_layers, strict=True
            )
        ]
        return torch.cat(parts, dim=-1)

    def _layers(self, batch: Any) -> Tensor | None:
        """The layers side by side where a readout sees them."""
        if not any(self.sees_layers):
            return None
        if "history" not in batch:
            raise ValueError(
                "pyg_pool_readout got the readout histograph and a batch without "
                "history, expected the layers of the stage stack_history; set "
                "gnn.stage_type to stack_history."
            )
        return torch.cat(list(batch.history), -1)

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Returns the predictions and the labels, one row per graph."""
        size = batch.num_graphs
        if self.levels == "last":
            out = self._read(batch.x, batch.batch, size, self._layers(batch))
        elif "pooled_levels" in batch:
            parts = [self._read(x, index, size) for x, index in batch.pooled_levels]
            out = torch.stack(parts).sum(0)
        else:
            raise ValueError(
                "pyg_pool_readout got pyg_pool.levels='sum' and a batch without "
                "pooled_levels, expected the levels of the gpool stage; set "
                "gnn.stage_type to gpool, or pyg_pool.levels to last."
            )
        batch.graph_feature = self.layer_post_mp(out)
        return batch.graph_feature, batch.y


def _resolve(name: str, options: dict[str, Any], width: int) -> Aggregation:
    if _plain(name) in ("glot", "glotaggregation"):
        options = {"in_channels": width, **options}
    try:
        return aggregation_resolver(name, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"pyg_pool_readout got readout {name!r} with {options}, expected the name "
            f"of a PyG aggregation and its arguments in pyg_pool.readout_kwargs.{name} "
            f"({error}); correct pyg_pool.readout in the configuration."
        ) from error


def _history_readout(width: int, options: dict[str, Any]) -> Aggregation:
    """HISTOGRAPH for the layers of the stage stack_history."""
    from torch_geometric.graphgym.config import cfg

    from pyg_pool.readout import HistographAggregation

    first = width
    if cfg.gnn.layers_pre_mp == 0 and not cfg.dataset.node_encoder:
        first = cfg.share.dim_in
    hidden = options.pop("hidden_channels", width)
    options.setdefault("heads", 4 if hidden % 4 == 0 else 1)
    return HistographAggregation(
        [first, *[width] * cfg.gnn.layers_mp], hidden, **options
    )


class StackHistoryStage(torch.nn.Module):
    """GraphGym stage: layers in a row, all their results kept in ``batch.history``.

    The list starts with the input of the first layer. Readouts over layers need it.

    Args:
        dim_in: Width of the input.
        dim_out: Width of every layer.
        num_layers: Number of layers.
    """

    def __init__(self, dim_in: int, dim_out: int, num_layers: int) -> None:
        super().__init__()
        self.layers = _layers(dim_in, dim_out, num_layers)

    def forward(self, batch: Any) -> Any:
        """Returns the batch with new ``x`` and ``history``."""
        history = [batch.x]
        for layer in self.layers:
            batch = layer(batch)
            history.append(batch.x)
        batch.history = history
        return batch


class GPoolStage(torch.nn.Module):
    """GraphGym stage: gPool after each layer.

    The batch that comes out holds the pooled graphs; ``pooled_levels`` are features
    and graph ids after each pooling step. Tensors with a row per node or edge are
    brought along.

    Args:
        dim_in: Width of the input.
        dim_out: Width of every layer.
        num_layers: Number of layers.
    """

    def __init__(self, dim_in: int, dim_out: int, num_layers: int) -> None:
        super().__init__()
        from torch_geometric.graphgym.config import cfg

        from pyg_pool.pool import GPool

        if cfg.dataset.task != "graph":
            raise ValueError(
                f"the gpool stage got dataset.task={cfg.dataset.task!r}, expected "
                f"'graph', as nodes are dropped; use another gnn.stage_type."
            )
        options = cfg.pyg_pool
        self.layers = _layers(dim_in, dim_out, num_layers)
        self.pools = torch.nn.ModuleList(
            GPool(dim_out, options.ratio, nonlinearity=options.nonlinearity)
            for _ in range(num_layers)
        )

    def forward(self, batch: Any) -> Any:
        """Returns the batch of pooled graphs."""
        levels = []
        for layer, pool in zip(self.layers, self.pools, strict=True):
            batch = _pooled(layer(batch), pool)
            levels.append((batch.x, batch.batch))
        batch.pooled_levels = levels
        return batch


def _layers(dim_in: int, dim_out: int, num_layers: int) -> torch.nn.ModuleList:
    from torch_geometric.graphgym.models.gnn import GNNLayer

    return torch.nn.ModuleList(
        GNNLayer(dim_in if i == 0 else dim_out, dim_out) for i in range(num_layers)
    )


def _pooled(batch: Any, pool: Any) -> Batch:
    """The batch after a pooling step; a new object, as PyG's slices would be wrong."""
    size = batch.num_graphs
    edges = torch.arange(batch.num_edges, device=batch.x.device)
    out = pool(batch.x, batch.edge_index, edges, batch=batch.batch, batch_size=size)
    values: dict[str, Any] = {}
    for key, value in batch.to_dict().items():
        # Labels are one per graph, even where there are as many nodes as graphs.
        if key in ("y", "ptr") or not isinstance(value, Tensor):
            values[key] = value
        elif batch.is_node_attr(key):
            dim = batch.__cat_dim__(key, value)
            values[key] = value.index_select(dim, out.selection.node_index)
        elif batch.is_edge_attr(key):
            dim = batch.__cat_dim__(key, value)
            values[key] = value.index_select(dim, out.edge_attr)
        else:
            values[key] = value
    values.update(x=out.x, edge_index=out.edge_index, batch=out.batch)
    count = torch.bincount(out.batch, minlength=size)
    values["ptr"] = torch.cat([count.new_zeros(1), count.cumsum(0)])
    pooled = Batch(**values)
    pooled._num_graphs = size
    return pooled


class _CallableModule(ModuleType):
    """Lets ``pyg_pool.register()`` work although this module bears the same name."""

    def __call__(self) -> Registered:
        return register()


sys.modules[__name__].__class__ = _CallableModule
