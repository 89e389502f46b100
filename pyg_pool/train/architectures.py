"""Networks for graphs with the features of a data set, built from options.

Also the names by which operators, readouts, convolutions and models are chosen. The
operators are found by looking at the rooms ``pool`` and ``readout``, so that a new
one is known here, and listed, without a change.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import Data
from torch_geometric.nn import Aggregation

from pyg_pool.core import Hierarchy, Pooling
from pyg_pool.models import (
    KLGNN,
    GraphParsingNetwork,
    GraphUNet,
    HierarchicalClassifier,
)
from pyg_pool.models.conv_factory import CONVS, apply_conv, edge_input, make_conv
from pyg_pool.models.layers import Head, NodeNorm, Readout
from pyg_pool.pool import GPool
from pyg_pool.readout import HistographAggregation
from pyg_pool.train.config import OptionError, TrainConfig, near_names
from pyg_pool.train.data import GraphDataset
from pyg_pool.train.encoders import EdgeEncoder, NodeEncoder

__all__ = [
    "GraphFeatures",
    "GraphModel",
    "PlainGNN",
    "build_model",
    "list_models",
    "list_operators",
    "list_pools",
    "list_readouts",
]

HISTORY = "histograph"
REDUCTIONS = {
    "mean": "Mean of the node features of a graph",
    "max": "Largest value of each node feature of a graph",
    "sum": "Sum of the node features of a graph",
    "min": "Smallest value of each node feature of a graph",
}


@dataclass(frozen=True)
class GraphFeatures:
    """What a model must know of a data set.

    Args:
        kind: ``"ogb"`` for integer atom and bond features, ``"float"`` for others.
        in_channels: Columns of ``x``.
        edge_channels: Columns of ``edge_attr``; 0 for none.
        num_outputs: Classes, or columns of the targets.
    """

    kind: Literal["ogb", "float"]
    in_channels: int
    edge_channels: int
    num_outputs: int

    @classmethod
    def of(cls, dataset: GraphDataset) -> GraphFeatures:
        """Return those of a data set."""
        return cls(
            dataset.feature_kind,
            dataset.in_channels,
            dataset.edge_channels,
            dataset.num_outputs,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint holds them."""
        return asdict(self)


class PlainGNN(Module):
    r"""Convolutions, one readout of the last layer, and a classifier; no pooling.

    .. math::
        X_{l+1} = \mathrm{ReLU}(\mathrm{norm}(\mathrm{conv}_l(X_l)))

    Args:
        in_channels: Size of each input row.
        hidden_channels: Width of the network.
        out_channels: Size of each output row.
        num_layers: Number of convolutions.
        conv: Word for the convolution: ``"gcn"``, ``"gin"``, ``"gine"``.
        edge_channels: Width of ``edge_attr``, for convolutions that take it.
        readout: Readouts joined into one vector per graph. ``"histograph"`` sees the
            input and all layers, the others the last layer.
        dropout: Rate after each layer and in front of the last linear map.

    Shapes:
        x: [N, F]; edge_index: [2, E]; edge_attr: [E, D]; returns [B, out_channels].

    Source:
        Kipf, Welling, "Semi-Supervised Classification with Graph Convolutional
        Networks", ICLR 2017; Xu et al., "How Powerful are Graph Neural Networks?",
        ICLR 2019.

    Example:
        >>> model = PlainGNN(3, 8, 2)
        >>> model(torch.ones(2, 3), torch.tensor([[0, 1], [1, 0]])).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        *,
        conv: str = "gcn",
        edge_channels: int | None = None,
        readout: tuple[str, ...] = ("mean",),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [in_channels] + [hidden_channels] * num_layers
        self.convs = ModuleList(
            make_conv("PlainGNN", conv, a, b, edge_channels=edge_channels)
            for a, b in pairwise(widths)
        )
        self.norms = ModuleList(NodeNorm("batch_norm", b) for b in widths[1:])
        self.takes = edge_input(self.convs[0])
        self.dropout = dropout
        words = [word for word in readout if word != HISTORY]
        self.readout = Readout("PlainGNN", words, hidden_channels)
        width = sum(self.readout.out_channels)
        self.history: Module | None = None
        if len(words) < len(readout):
            heads = 4 if hidden_channels % 4 == 0 else 1
            self.history = HistographAggregation(widths, hidden_channels, heads=heads)
            width += hidden_channels
        self.head = Head([width, hidden_channels, out_channels], "relu", [0.0, dropout])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (*self.convs, *self.norms, self.readout, self.head):
            module.reset_parameters()
        if isinstance(self.history, HistographAggregation):
            self.history.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        *,
        batch: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Return one row of outputs per graph."""
        if batch is None:
            batch_size = 1
        elif batch_size is None:
            batch_size = int(batch.max()) + 1 if batch.numel() else 0
        layers = [x]
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = apply_conv(conv, self.takes, x, edge_index, edge_attr)
            x = norm(x, batch, batch_size).relu()
            x = torch.nn.functional.dropout(x, self.dropout, self.training)
            layers.append(x)
        parts = self.readout(x, batch, batch_size)
        if self.history is not None:
            rows = torch.cat(layers, dim=-1)
            parts.append(self.history(rows, batch, dim_size=batch_size))
        output: Tensor = self.head(torch.cat(parts, dim=-1))
        return output


class GraphModel(Module):
    """Encoders of a data set's features in front of a network.

    Args:
        network: Called as ``network(x, edge_index, edge_attr, batch=..., ...)``.
        node_encoder: Makes floats of ``x``.
        edge_encoder: The same for ``edge_attr``; without one the network sees none.
    """

    def __init__(
        self,
        network: Module,
        *,
        node_encoder: Module,
        edge_encoder: Module | None = None,
    ) -> None:
        super().__init__()
        self.node_encoder = node_encoder
        self.edge_encoder = edge_encoder
        self.network = network

    @property
    def is_pooled(self) -> bool:
        """Whether the network has levels to show."""
        return hasattr(self.network, "run")

    def forward(self, data: Data) -> tuple[Tensor, Tensor]:
        """Return the outputs, [B, C], and the auxiliary loss of the pools."""
        if self.is_pooled:
            result = self._call(self.network.run, data)
            return result.out, result.loss
        output = self._call(self.network, data)
        return output, output.new_zeros(())

    @torch.no_grad()
    def hierarchy(self, data: Data) -> Hierarchy:
        """Return the levels that the network makes of some graphs.

        Raises:
            TypeError: If the network does not pool.
        """
        if not self.is_pooled:
            raise TypeError(
                f"GraphModel.hierarchy got a {type(self.network).__name__}, expected "
                "a network with pooling; choose 'hierarchical', 'unet' or 'gpn'."
            )
        result: Hierarchy = self._call(self.network.run, data).hierarchy
        return result

    def _call(self, call: Any, data: Data) -> Any:
        """Encode the features and call the network with all it can use."""
        attr = None
        if self.edge_encoder is not None:
            attr = self.edge_encoder(data.edge_attr)
        size = data.y.size(0) if data.batch is not None else 1
        return call(
            self.node_encoder(data.x),
            data.edge_index,
            attr,
            batch=data.batch,
            batch_size=size,
        )


def build_model(config: TrainConfig, features: GraphFeatures) -> GraphModel:
    """Return an untrained model.

    Args:
        config: The options; those of the data and the training do not matter.
        features: What the data set looks like.

    Raises:
        OptionError: If an operator, readout or convolution has no such name.

    Example:
        >>> config = TrainConfig(model="gcn", hidden=8)
        >>> build_model(config, GraphFeatures("float", 3, 0, 2)).is_pooled
        False
    """
    check_names(config)
    conv = _conv_of(config, features)
    if HISTORY in config.readout and config.model not in ("gcn", "gin"):
        raise OptionError(
            f"option 'readout' got {HISTORY!r} with model {config.model!r}, expected a "
            "model without pooling, whose layers have the same nodes; choose the "
            "model 'gcn' or 'gin', or another readout."
        )
    width = config.hidden
    takes_edges = conv in _EDGE_CONVS and features.edge_channels > 0
    if config.model in ("gcn", "gin"):
        network: Module = PlainGNN(
            width,
            width,
            features.num_outputs,
            config.levels,
            conv=conv or config.model,
            edge_channels=width if takes_edges else None,
            readout=config.readout,
            dropout=config.dropout,
        )
    elif config.model == "kl_gnn":
        takes_edges = features.edge_channels > 0
        network = _relational(config, features, width if takes_edges else 0)
    elif config.model == "gpn":
        network = _parsing(config, conv, features, width if takes_edges else None)
    else:
        network = _pooled(config, conv, features, width if takes_edges else None)
    edges = None
    if takes_edges:
        edges = EdgeEncoder(features.kind, features.edge_channels, width)
    nodes = NodeEncoder(features.kind, features.in_channels, width)
    return GraphModel(network, node_encoder=nodes, edge_encoder=edges)


def _relational(config: TrainConfig, features: GraphFeatures, edges: int) -> Module:
    """Return the network on labelled copies."""
    is_cut = config.ego > 0 and config.k == 1 and config.l > 0
    return KLGNN(
        config.hidden,
        config.hidden,
        features.num_outputs,
        config.levels,
        k=config.k,
        l=config.l,
        domain=config.domain,
        encoding=config.encoding,
        ego=config.ego if is_cut else None,
        edge_channels=edges,
        dropout=config.dropout,
    )


def check_names(config: TrainConfig) -> None:
    """Refuse names of operators that nobody knows, before any data are read.

    Raises:
        OptionError: If a pool, readout or convolution has no such name.

    Example:
        >>> check_names(TrainConfig(model="gcn", hidden=8))
    """
    if config.conv not in ("auto", *CONVS):
        raise _unknown("conv", config.conv, ["auto", *CONVS])
    pools = list(list_pools())
    if config.pool not in pools:
        raise _unknown("pool", config.pool, pools)
    _check_readouts(config.readout)


_EDGE_CONVS = ("gat", "gatv2", "gine", "transformer")


def _conv_of(config: TrainConfig, features: GraphFeatures) -> str | None:
    """Return the word of the convolution, or None for the model's own."""
    if config.conv != "auto":
        return config.conv
    if config.model == "gin" and features.edge_channels > 0:
        return "gine"
    return config.model if config.model in ("gcn", "gin") else None


def _pooled(
    config: TrainConfig,
    conv: str | None,
    features: GraphFeatures,
    edge_channels: int | None,
) -> Module:
    """Return one of the two networks with levels."""
    pool = list_pools()[config.pool]
    if config.model == "unet":
        # The two-hop variants of gPool know scalar edge weights only.
        is_gpool = pool is GPool and edge_channels is not None
        augment: Literal["none"] | None = "none" if is_gpool else None
        return GraphUNet(
            config.hidden,
            config.hidden,
            features.num_outputs,
            config.levels,
            config.ratio,
            task="graph",
            conv=conv,
            edge_channels=edge_channels,
            norm="batch_norm",
            dropout=config.dropout,
            pool=pool,
            pool_options=_pool_options(pool, edge_channels),
            augment=augment,
            readout=config.readout,
            head_channels=[config.hidden],
            head_dropout=config.dropout,
        )
    return HierarchicalClassifier(
        config.hidden,
        config.hidden,
        features.num_outputs,
        config.levels,
        config.ratio,
        conv=conv,
        edge_channels=edge_channels,
        norm="batch_norm",
        pool=pool,
        pool_options=_pool_options(pool, edge_channels),
        readout=config.readout,
        dropout=config.dropout,
    )


def _parsing(
    config: TrainConfig,
    conv: str | None,
    features: GraphFeatures,
    edge_channels: int | None,
) -> Module:
    """Return the network that parses graphs until nothing merges."""
    return GraphParsingNetwork(
        config.hidden,
        config.hidden,
        features.num_outputs,
        conv=conv or "gcn",
        num_layers=config.levels,
        dropout=config.dropout,
        edge_channels=edge_channels,
        edge_reduce="binary" if edge_channels is None else "mean",
    )


def _pool_options(pool: type[Pooling], edge_channels: int | None) -> dict[str, Any]:
    """Return what a pool must be told to carry encoded edge attributes along."""
    merges = "edge_reduce" in inspect.signature(pool).parameters
    return {"edge_reduce": "mean"} if merges and edge_channels is not None else {}


def list_pools() -> dict[str, type[Pooling]]:
    """Return the pooling operators by the names that options use.

    Example:
        >>> "gpool" in list_pools()
        True
    """
    found = _public_classes("pyg_pool.pool", Pooling)
    return {_word(name, "Pooling"): thing for name, thing in found.items()}


def list_operators() -> dict[str, str]:
    """Return all operators of the room ``pool``, each with its description.

    Beside the pooling operators these are those that undo them.
    """
    found = _public_classes("pyg_pool.pool", Module)
    return {_word(name, "Pooling"): summary(thing) for name, thing in found.items()}


def list_readouts() -> dict[str, str]:
    """Return the readouts by name, each with its one-line description."""
    found = _public_classes("pyg_pool.readout", Aggregation)
    own = {_word(name, "Aggregation"): summary(thing) for name, thing in found.items()}
    return {**REDUCTIONS, **own}


def list_models() -> dict[str, str]:
    """Return the models by name, each with its one-line description."""
    return {
        "hierarchical": summary(HierarchicalClassifier),
        "unet": summary(GraphUNet),
        "gpn": summary(GraphParsingNetwork),
        "kl_gnn": summary(KLGNN),
        "gcn": "GCN layers and one readout, without pooling",
        "gin": "GIN layers (with edge features where there are any) and one readout, "
        "without pooling",
    }


def summary(thing: Any) -> str:
    """Return the first line of a docstring, without its full stop."""
    first = (inspect.getdoc(thing) or "").strip().split("\n\n")[0]
    return re.sub(r"\s+", " ", first).replace("``", "").removesuffix(".")


def _public_classes(room: str, kind: type) -> dict[str, type]:
    """Return the public classes of a kind in a room, which need not be there."""
    if importlib.util.find_spec(room) is None:
        return {}
    module = importlib.import_module(room)
    return {
        name: thing
        for name in module.__all__
        if inspect.isclass(thing := getattr(module, name)) and issubclass(thing, kind)
    }


def _word(name: str, suffix: str) -> str:
    """Turn a class name into an option word: ``GraphParsingPooling`` -> graph_parsing.

    A run of capitals counts as one word, as in ``GPool`` -> gpool.
    """
    stem = name.removesuffix(suffix) or name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()


def _check_readouts(words: tuple[str, ...]) -> None:
    """Refuse names that neither this library nor PyG knows."""
    known = [*list_readouts(), *_pyg_aggregations()]
    for word in words:
        if word not in known:
            raise _unknown("readout", word, known)


def _pyg_aggregations() -> list[str]:
    """Return the words of PyG's own aggregations that need no further arguments."""
    return ["median", "std", "var", "softmax", "powermean", "attentional", "deepsets"]


def _unknown(option: str, name: str, known: list[str]) -> OptionError:
    """Return the error for a name that is not known."""
    near = near_names(name, known)
    return OptionError(
        f"option {option!r} got {name!r}, expected one of {', '.join(known)}; "
        f"{near or 'see pyg-pool list'}."
    )
