"""Type aliases and the option words shared by all rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor

OptTensor = Tensor | None
Activation = str | Callable[[Tensor], Tensor]

SegmentReduce = Literal["sum", "mean", "max", "min", "prod", "logsumexp"]
EdgeReduce = Literal["sum", "mean", "max", "min", "mul", "none"]
NodeReduce = Literal["sum", "mean", "max", "min", "weighted"]
Lift = Literal["transpose", "mean", "pinv"]
Augment = Literal["none", "binary", "weighted", "square"]
Negative = Literal["abs", "relu", "split", "error"]
Rounding = Literal["ceil", "floor"]
Backend = Literal[
    "auto", "native", "numba", "scipy", "triton", "torch_scatter", "torch_sparse"
]
