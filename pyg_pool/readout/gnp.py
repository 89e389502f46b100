r"""GNP: a norm with learned exponents that contains sum, mean, max and min.

Ko, Kwon, Shin and Lee, "Learning to Pool in Graph Neural Networks for Extrapolation",
2021. Departures: exponents keep a distance from 0, where the norm is not continuous;
the two branches are added up with learned weights by default, so that the width stays;
``negative="split"`` keeps signs.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn import Linear
from torch_geometric.nn.aggr import Aggregation

from pyg_pool.core.naming import spell_call
from pyg_pool.errors import check_choice
from pyg_pool.kernels.group_pnorm import NEGATIVES, group_pnorm
from pyg_pool.kernels.norm_pair import norm_pair, pair_exponents
from pyg_pool.kernels.segment import segment_count, segment_index
from pyg_pool.typing import Negative, OptTensor

__all__ = ["GNPAggregation", "parameter_groups"]

Mode = Literal["mix", "proj", "cat", "pos", "neg"]
Start = float | tuple[float, ...]

MODES = ("mix", "proj", "cat", "pos", "neg")

# Inverse of p, and q, of the poolings that have a name.
POSITIVE = {
    "sum": (1.0, 0.0),
    "mean": (1.0, 1.0),
    "max": (0.0, 0.0),
    "euclidean norm": (0.5, 0.0),
    "root mean square": (0.5, 0.5),
    "variance preserving sum": (1.0, 0.5),
}
NEGATIVE = {
    "min": (0.0, 0.0),
    "harmonic sum": (-1.0, 0.0),
    "harmonic mean": (-1.0, -1.0),
}


class GNPAggregation(Aggregation):
    r"""Norm with learned exponents that can become a sum, a mean, a max or a min.

    .. math::
        y^{\pm} = n^{-q_\pm} \Big( \sum_{i=1}^{n} v_i^{\,p_\pm} \Big)^{1/p_\pm}, \qquad
        v_i = |x_i| + \varepsilon, \qquad
        p_\pm = \pm(\mathrm{softplus}(r_\pm) + p_{\min})

    The branch with :math:`p_+ > 0` holds sum, mean and max, the one with
    :math:`p_- < 0` harmonic mean and min.

    Args:
        in_channels: Width of the input; needed by ``mode="proj"`` only.
        out_channels: Width of the output of ``mode="proj"``; without it that of the
            input.
        mode: ``"mix"`` adds the branches with learned weights that start at 1,
            ``"proj"`` puts a linear layer on both, ``"cat"`` concatenates them,
            ``"pos"`` and ``"neg"`` are one branch alone.
        channels: 1 for exponents shared by all channels, or the width for own ones.
        negative: What becomes of negative numbers, see :func:`gnp`. Sum and mean of
            signed features need ``"split"``.
        p: Magnitude of both exponents at the start, or the pair of them with signs.
        q: Size exponent of both branches at the start, or a pair.
        p_min: Least magnitude of the exponents.
        eps: Added to every magnitude.
        learn: Whether the exponents are learned.

    Shapes:
        x: ``[*, N, *, F]``; index: ``[N]`` int64; ptr: ``[B + 1]`` int64; returns
        ``[*, B, *, F]``, ``[*, B, *, 2F]`` for ``"cat"`` and
        ``[*, B, *, out_channels]`` for ``"proj"``.

    Raises:
        ValueError: If an option or a shape does not fit.

    Note:
        Ties share their gradient. An empty group gives 0. A single element comes back
        as its magnitude for all exponents. Half precision is computed in float32.
        Results are cut at a third of the largest number of the dtype. Exponents learn
        slowly: see :func:`parameter_groups`. Time and memory grow with N F.

    Source:
        J. Ko, T. Kwon, K. Shin, J. Lee. Learning to Pool in Graph Neural Networks for
        Extrapolation. 2021.

    Example:
        >>> import torch
        >>> from pyg_pool import GNPAggregation
        >>> readout = GNPAggregation(mode="pos", negative="split")
        >>> readout(torch.tensor([[1.0], [-3.0], [4.0]]), torch.tensor([0, 0, 1]))
        tensor([[-2.0000],
                [ 4.0000]], grad_fn=<SelectBackward0>)
        >>> readout.closest()
        {'pos': ['sum']}
        >>> GNPAggregation(mode="cat")
        GNPAggregation(mode='cat', p=(1.0, -1.0), q=(0.0, 0.0))
    """

    def __init__(
        self,
        in_channels: int | None = None,
        out_channels: int | None = None,
        *,
        mode: Mode = "mix",
        channels: int = 1,
        negative: Negative = "abs",
        p: Start = 1.0,
        q: Start = 0.0,
        p_min: float = 0.05,
        eps: float = 1e-7,
        learn: bool = True,
    ) -> None:
        super().__init__()
        check_choice("GNPAggregation", "mode", mode, MODES)
        check_choice("GNPAggregation", "negative", negative, NEGATIVES)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.mode, self.channels, self.negative = mode, channels, negative
        self.start_p, self.start_q, self.p_min = p, q, p_min
        self.eps, self.learn = eps, learn
        self.branches = (mode,) if mode in ("pos", "neg") else ("pos", "neg")
        self._check_options()
        shape = len(self.branches), channels
        for name in ("raw_p", "raw_q"):
            if learn:
                self.register_parameter(name, Parameter(torch.empty(shape)))
            else:
                self.register_buffer(name, torch.empty(shape))
        if mode == "mix":
            self.weight = Parameter(torch.empty(shape))
        if mode == "proj":
            width: Any = in_channels
            self.lin = Linear(2 * width, out_channels or width)
        self.reset_parameters()

    def _check_options(self) -> None:
        """Raises ``ValueError`` for options that do not go together."""
        low = min(self._starts()[0])
        if not low > self.p_min > 0 or self.eps < 0 or self.channels < 1:
            raise ValueError(
                f"GNPAggregation got p={self.start_p}, p_min={self.p_min}, "
                f"eps={self.eps} and channels={self.channels}, expected p of the sign "
                f"of its branch and beyond p_min > 0, eps >= 0 and channels >= 1; "
                f"correct these options."
            )
        is_proj = self.mode == "proj"
        if (self.in_channels is None) if is_proj else (self.out_channels is not None):
            raise ValueError(
                f"GNPAggregation got mode={self.mode!r}, in_channels="
                f"{self.in_channels} and out_channels={self.out_channels}, expected "
                f"in_channels with mode='proj', out_channels with no other mode; set "
                f"or drop them."
            )

    def _starts(self) -> tuple[list[float], list[float]]:
        """Magnitude of p and value of q of each branch at the start."""
        p, q = self.start_p, self.start_q
        signs = [1.0 if branch == "pos" else -1.0 for branch in self.branches]
        if isinstance(p, tuple):
            p_all = [s * v for s, v in zip(signs, p, strict=True)]
        else:
            p_all = [abs(p)] * len(signs)
        return p_all, list(q) if isinstance(q, tuple) else [q] * len(signs)

    def reset_parameters(self) -> None:
        """Sets exponents and weights back to their start."""
        p_all, q_all = self._starts()
        with torch.no_grad():
            for row, (p, q) in enumerate(zip(p_all, q_all, strict=True)):
                excess = p - self.p_min
                # Rounded like a new parameter, whatever the module's dtype is by now.
                raw = excess + math.log(-math.expm1(-excess))
                self.raw_p[row] = torch.tensor(raw, dtype=torch.float32, device="cpu")
                self.raw_q[row] = q
            if self.mode == "mix":
                self.weight.fill_(1.0)
        if self.mode == "proj":
            self.lin.reset_parameters()

    @property
    def p(self) -> Tensor:
        """Exponents in force, ``[R, channels]``, a row per branch."""
        wide = self.raw_p.to(torch.promote_types(self.raw_p.dtype, torch.float32))
        if self.mode in ("pos", "neg"):
            size = torch.nn.functional.softplus(wide) + self.p_min
            return size if self.mode == "pos" else -size
        return pair_exponents(wide, self.p_min)

    @property
    def q(self) -> Tensor:
        """Exponents of the size in force, ``[R, channels]``, a row per branch."""
        return self.raw_q.to(torch.promote_types(self.raw_q.dtype, torch.float32))

    def forward(
        self,
        x: Tensor,
        index: OptTensor = None,
        ptr: OptTensor = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        """Returns one row per group."""
        if self.in_channels is not None and x.size(-1) != self.in_channels:
            raise ValueError(
                f"GNPAggregation got x of shape {list(x.shape)}, expected "
                f"{self.in_channels} channels in the last dimension; build it with "
                f"in_channels={x.size(-1)}."
            )
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        groups = index, ptr, dim_size, dim
        given: Any = {"eps": self.eps, "negative": self.negative}
        if self.mode in ("pos", "neg"):
            norms = group_pnorm("GNPAggregation", wide, self.p, self.q, groups, **given)
            return norms[0].to(x.dtype)
        weight = self.weight if self.mode == "mix" else None
        norms = norm_pair(
            "GNPAggregation", wide, self.raw_p, self.raw_q, weight,
            groups, low=self.p_min, **given,
        )  # fmt: skip
        if self.mode == "mix":
            return norms.to(x.dtype)
        both = torch.cat([norms[0], norms[1]], -1)
        if self.mode == "cat":
            return both.to(x.dtype)
        index, size = segment_index("GNPAggregation", x.movedim(dim, 0), *groups[:3])
        shape = [1] * x.dim()
        shape[dim] = size
        is_empty = (segment_count(index, size) == 0).view(shape)
        weight, bias = (t.to(both.dtype) for t in (self.lin.weight, self.lin.bias))
        with torch.autocast(x.device.type, enabled=False):
            out = torch.nn.functional.linear(both, weight, bias)
        return out.masked_fill(is_empty, 0.0).to(x.dtype)

    def closest(self) -> dict[str, list[str]]:
        """Names the standard pooling that each branch is nearest to, per channel."""
        out = {}
        for branch, p_row, q_row in zip(self.branches, self.p, self.q, strict=True):
            pairs = zip(p_row.tolist(), q_row.tolist(), strict=True)
            out[branch] = [_nearest(p, q) for p, q in pairs]
        return out

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Parameters as optimisers take them, see :func:`parameter_groups`."""
        return parameter_groups(self, lr)

    def __repr__(self) -> str:
        """The call, with the exponents as they are by now where they are shared."""
        names = inspect.signature(type(self)).parameters
        given = {n: getattr(self, n) for n in names if n not in ("p", "q")}
        given.update(p=self.start_p, q=self.start_q)
        if self.channels == 1:
            for name, row in (("p", self.p), ("q", self.q)):
                given[name] = tuple(round(v, 6) for v in row.flatten().tolist())
        return spell_call(type(self), given)


def _nearest(p: float, q: float) -> str:
    """The named pooling with the nearest inverse of p and the nearest q."""
    names = POSITIVE if p > 0 else NEGATIVE
    return min(names, key=lambda n: abs(1 / p - names[n][0]) + abs(q - names[n][1]))


def parameter_groups(model: Module, lr: float | None = None) -> list[dict[str, Any]]:
    """Parameters of a model, the exponents of its GNP readouts in a group of their own.

    Exponents should not decay, and they learn better at a larger rate.

    Args:
        model: A model with any number of :class:`GNPAggregation`.
        lr: Learning rate of the exponents; without it that of the optimiser.

    Returns:
        Two groups for an optimiser: all others, and the exponents.

    Example:
        >>> import torch
        >>> from pyg_pool import GNPAggregation
        >>> from pyg_pool.readout import parameter_groups
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), GNPAggregation())
        >>> optimiser = torch.optim.Adam(parameter_groups(model, lr=0.05), lr=0.01)
        >>> [len(group["params"]) for group in optimiser.param_groups]
        [3, 2]
    """
    readouts = [m for m in model.modules() if isinstance(m, GNPAggregation) and m.learn]
    exponents = [parameter for m in readouts for parameter in (m.raw_p, m.raw_q)]
    known = {id(parameter) for parameter in exponents}
    others = [p for p in model.parameters() if id(p) not in known]
    rate = {} if lr is None else {"lr": lr}
    return [{"params": others}, {"params": exponents, "weight_decay": 0.0, **rate}]
