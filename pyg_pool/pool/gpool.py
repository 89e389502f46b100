"""gPool: keep the nodes that project highest on a trainable vector.

Three known forms are presets: the paper's, the authors' code, PyG's ``TopKPooling``.
Departures from all: nodes are ranked on the raw projection (a squashed score makes
ties out of clear winners), ties and NaN follow a fixed rule, the number of kept nodes
does not depend on the dtype, a zero vector is harmless, and the two-hop adjacency is
computed for the kept nodes only.
"""

from __future__ import annotations

from inspect import signature

import torch
from torch import Tensor
from torch_geometric.nn.pool.connect import ConnectOutput

from pyg_pool.core import Pooling, PoolOutput, Selection
from pyg_pool.core.augment import augmented
from pyg_pool.core.gpool_form import (
    INCREASING,
    PRESETS,
    gate_function,
    options_of,
)
from pyg_pool.core.naming import rename_on_load, spell_call
from pyg_pool.errors import check_features
from pyg_pool.kernels import filter_edges, segment_softmax, take_rows, use_backend
from pyg_pool.kernels.dispatch import turns_to_scipy
from pyg_pool.kernels.gate import GATES, gated_rows, project, unit
from pyg_pool.kernels.pick import Form, pick
from pyg_pool.kernels.topk import above, best_rows
from pyg_pool.typing import Activation, Augment, OptTensor, Rounding

__all__ = ["GPool"]

# PyG's and the authors' names of the projection.
LOADED_NAMES = ((r"select\.", ""), (r"proj\.", ""))


class GPool(Pooling):
    r"""Graph pooling by projection on a trainable vector (gPool, top-k pooling).

    .. math::
        \mathbf{y} &= \mathbf{X}\mathbf{p} / \|\mathbf{p}\|, \qquad
        \mathbf{i} = \mathrm{top}_k(\mathbf{y})

        \mathbf{X}' &= \bigl(\mathbf{X} \odot \sigma(\mathbf{y})\bigr)_{\mathbf{i}},
        \qquad \mathbf{A}' = \tilde{\mathbf{A}}_{\mathbf{i}, \mathbf{i}}

    Args:
        in_channels: Number of features F (of ``attn`` where that is given).
        ratio: Share of nodes to keep, a float in (0, 1] (1.0 keeps all), or the
            number of nodes to keep per graph, an int.
        preset: ``"paper"``, ``"authors"``, ``"pyg"`` or ``None``: the values of the
            options below that are left ``None``.
        nonlinearity: Gate: ``"sigmoid"`` (default), ``"tanh"`` (``pyg``),
            ``"identity"``, ``"softmax"`` over each graph, another name that PyG
            resolves, or a callable.
        normalize: Whether to divide by the length of the vector (default true;
            ``authors``: false).
        bias: Whether to add a trainable number to the projection (default false;
            ``authors``: true).
        rounding: ``"ceil"`` (default) or ``"floor"`` (``authors``) of the share.
        min_nodes: Nodes to keep at least, where a graph has them (default 1;
            ``authors``: 2).
        min_score: Keep instead the nodes whose softmax score over their graph
            exceeds this value; ``ratio`` is then ignored. The best node of each
            graph always stays.
        multiplier: Factor on the pooled features.
        augment: Adjacency before filtering: ``"none"`` (default, ``pyg``) is A;
            ``"binary"`` (``authors``) the pattern of A A; ``"weighted"`` is
            (A + I)^2 without its diagonal, A without loops; ``"square"``
            (``paper``) is A A.
        max_edges: Refuse two-hop adjacencies with more edges than this, before
            they are allocated.
        dropout: Dropout on the features that are scored, in training.

    Shapes:
        x: ``[N, F]``; edge_index: ``[2, E]`` int64; edge_attr: ``[E]``, ``[E, 1]``
        or, with ``augment="none"``, ``[E, D]``; batch: ``[N]`` int64 in any order;
        attn: ``[N, F]``.

    Raises:
        TypeError: If ``x`` is not floating point, or the edges are a sparse matrix.
        ValueError: If an option is out of range or shapes do not fit.

    Note:
        Rows come graph by graph, in descending score; ties go to the lowest node,
        NaN ranks after every number. With ``min_score`` nodes keep their order
        inside each graph. ``out.selection.node_index`` are the kept rows of the
        input, ``out.score`` their gates; the gate multiplies the features once and
        never the edges. Scores are computed in float32 for half precision, also
        under autocast. Training and evaluation differ by ``dropout`` only. Cost:
        O(N F + N log N + E), plus the two-hop paths between kept nodes. PyG's
        (``select.weight``) and the authors' weight names (``proj.*``) are loaded.

    Source:
        Gao and Ji, "Graph U-Nets", ICML 2019, equations 2 to 4; with
        ``nonlinearity="tanh"``: Cangea et al., "Towards Sparse Hierarchical Graph
        Classifiers", NeurIPS workshop 2018; ``min_score``: Knyazev et al.,
        "Understanding Attention and Generalization in Graph Neural Networks",
        NeurIPS 2019.

    Example:
        >>> import torch
        >>> from pyg_pool import GPool
        >>> pool = GPool(1, ratio=0.5)
        >>> _ = pool.load_state_dict({"weight": torch.ones(1, 1)})
        >>> x = torch.tensor([[1.0], [5.0], [3.0], [4.0]])
        >>> edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
        >>> pool(x, edges).selection.node_index
        tensor([1, 3])
    """

    bias: torch.nn.Parameter | None

    def __init__(
        self,
        in_channels: int,
        ratio: float = 0.5,
        *,
        preset: str | None = None,
        nonlinearity: Activation | None = None,
        normalize: bool | None = None,
        bias: bool | None = None,
        rounding: Rounding | None = None,
        min_nodes: int | None = None,
        min_score: float | None = None,
        multiplier: float = 1.0,
        augment: Augment | None = None,
        max_edges: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        given = dict(locals())
        super().__init__()
        self._given = {name: given[name] for name in signature(GPool).parameters}
        own = {name: given[name] for name in PRESETS[None]}
        options = options_of(ratio, preset, own)
        self.in_channels = in_channels
        self.ratio = ratio
        self.preset = preset
        self.nonlinearity: Activation = options["nonlinearity"]
        self.normalize: bool = options["normalize"]
        self.rounding: Rounding = options["rounding"]
        self.min_nodes: int = options["min_nodes"]
        self.min_score = min_score
        self.multiplier = multiplier
        self.augment: Augment = options["augment"]
        self.max_edges = max_edges
        self.dropout = dropout
        self.act = gate_function(self.nonlinearity)
        self.weight = torch.nn.Parameter(torch.empty(1, in_channels))
        if options["bias"]:
            self.bias = torch.nn.Parameter(torch.empty(1))
        else:
            self.register_parameter("bias", None)
        rename_on_load(self, LOADED_NAMES)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the vector uniformly, as the form of the preset does."""
        if self.normalize:  # PyG: only the direction matters
            bound = self.in_channels**-0.5
        else:  # the authors' Glorot limit
            bound = (6.0 / (self.in_channels + 1)) ** 0.5
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor = None,
        *,
        batch: OptTensor = None,
        batch_size: int | None = None,
        attn: OptTensor = None,
    ) -> PoolOutput:
        """Pools as :class:`Pooling` says; ``attn`` is scored instead of ``x``."""
        if self.augment != "none" and turns_to_scipy(edge_index):
            with use_backend("scipy"):
                return self.forward(
                    x, edge_index, edge_attr, batch=batch, batch_size=batch_size,
                    attn=attn,
                )  # fmt: skip
        found = self._pick(x, edge_index, edge_attr, batch, batch_size, attn)
        if found is not None:
            return found
        single = batch is None
        wanted = self.in_channels if attn is None else None
        x, edge_index, batch, size = self.check(
            x, edge_index, edge_attr, batch, batch_size, in_channels=wanted
        )
        scored = x
        if attn is not None:
            scored = check_features("GPool (attn)", attn, self.in_channels)
        if self.dropout > 0.0 and self.training:
            scored = torch.nn.functional.dropout(scored, self.dropout)
        ids = None if single else batch
        pooled, gate, kept = self._select(x, scored, ids, size)
        if self.multiplier != 1.0:
            pooled = pooled * self.multiplier
        gate = gate.to(x.dtype)
        selection = Selection.from_nodes(kept, x.size(0), gate)
        edges = self.connect(selection, edge_index, edge_attr, batch)
        return self.pack(pooled, edges, selection, gate, x.new_zeros(()), size)

    def _pick(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: OptTensor,
        batch_size: int | None,
        attn: OptTensor,
    ) -> PoolOutput | None:
        """The whole operator in compiled code, where nothing forbids that."""
        if (
            attn is not None
            or self.augment != "none"
            or self.min_score is not None
            or self.multiplier != 1.0
            or self.nonlinearity not in GATES
            or (self.dropout > 0.0 and self.training)
            or type(self) is not GPool
        ):
            return None
        gate, how = str(self.nonlinearity), (self.rounding, self.min_nodes)
        form = Form(self.ratio, gate, self.normalize, *how)
        out = pick(
            x, edge_index, edge_attr, batch, batch_size, self.weight, self.bias, form
        )
        if out is None:
            return None
        kept, size = out.kept, out.batch_size
        selection = Selection(
            kept, x.size(0), out.clusters, kept.size(0), out.score, kind="one_to_one"
        )
        return PoolOutput(
            out.x, out.edge_index, out.edge_attr, out.batch, selection, out.score,
            x.new_zeros(()), size,
        )  # fmt: skip

    def _select(
        self, x: Tensor, scored: Tensor, batch: OptTensor, size: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gated rows, their gates and their nodes."""
        thresholded = self.min_score is not None
        # Below float32 the weight is widened: scores are never held in half.
        wide = torch.promote_types(self.weight.dtype, torch.float32)
        vector = self.weight.view(-1).to(wide)
        if self.normalize and not thresholded:
            vector = unit(vector)
        if self.nonlinearity in GATES and scored is x and not thresholded:
            with torch.no_grad():
                raw = project(x, vector, self.bias)
            kept = self._best(raw, batch, size)
            return *gated_rows(x, kept, vector, self.bias, self.nonlinearity), kept
        raw = project(scored, vector, self.bias)
        if thresholded or self.nonlinearity == "softmax":
            score = segment_softmax(raw, batch, dim_size=size)
        else:
            score = self.act(raw)
        if self.min_score is not None:
            kept = above(score.detach(), raw.detach(), self.min_score, batch, size)
        else:
            ranked = raw if self.nonlinearity in INCREASING else score
            kept = self._best(ranked, batch, size)
        gate = take_rows(score, kept)
        return (take_rows(x, kept) * gate.unsqueeze(-1)).to(x.dtype), gate, kept

    def _best(self, score: Tensor, batch: OptTensor, size: int) -> Tensor:
        how = (self.rounding, self.min_nodes)
        return best_rows(score.detach(), self.ratio, batch, size, *how)

    def connect(
        self,
        selection: Selection,
        edge_index: Tensor,
        edge_attr: OptTensor,
        batch: Tensor,
    ) -> ConnectOutput:
        """Edges between the kept nodes, direct or over two hops."""
        kept = selection.node_index
        graph = batch.index_select(0, kept)
        if self.augment == "none":
            edges, ids = filter_edges(edge_index, kept, selection.num_nodes)
            attr = None if edge_attr is None else take_rows(edge_attr, ids)
            return ConnectOutput(edges, attr, graph)
        index, weight = augmented(
            selection, edge_index, edge_attr, how=self.augment,
            max_edges=self.max_edges, dtype=self.weight.dtype,
        )  # fmt: skip
        return ConnectOutput(index, weight, graph)

    def __repr__(self) -> str:
        """The call that builds it, without the arguments left at their defaults."""
        return spell_call(type(self), self._given)
