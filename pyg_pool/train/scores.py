"""Losses and scores of graph predictions, with missing labels left out.

A label of NaN means that nobody measured it: it takes part neither in the loss nor in
the score. Scores of ``ogbg-*`` sets come from OGB's own ``Evaluator`` instead.
"""

from __future__ import annotations

import logging
import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["METRICS", "Task", "check_shapes", "loss", "score"]

log = logging.getLogger(__name__)

Task = Literal["multiclass", "binary", "regression"]

METRICS = {"accuracy": True, "rocauc": True, "ap": True, "rmse": False}
"""Names of the scores, and whether a greater one is better."""


def loss(y_pred: Tensor, y_true: Tensor, *, task: Task) -> Tensor:
    r"""Mean loss over the labels that are there.

    Args:
        y_pred: Raw outputs of a model (no softmax, no sigmoid).
        y_true: Targets.
        task: Cross entropy for "multiclass", binary cross entropy for "binary", mean
            squared error for "regression".

    Returns:
        A scalar; zero, with zero gradients, where no label is there.

    Shapes:
        y_pred: [B, T] float; y_true: [B] int64 for "multiclass", else [B, T] float.

    Raises:
        ValueError: If the shapes do not fit.

    Note:
        Computed in float32 where the predictions are half precision.

    Example:
        >>> nan = float("nan")
        >>> y_true = torch.tensor([[1.0, nan], [nan, 2.0]])
        >>> loss(torch.zeros(2, 2), y_true, task="regression")
        tensor(2.5000)
    """
    if y_pred.dtype in (torch.float16, torch.bfloat16):
        y_pred = y_pred.float()
    check_shapes(y_pred, y_true, task)
    if task == "multiclass":
        if y_true.numel() == 0:
            return y_pred.sum() * 0
        return functional.cross_entropy(y_pred, y_true)
    there = ~torch.isnan(y_true)
    target = torch.where(there, y_true, 0).to(y_pred.dtype)
    # `where` before the loss: behind it, gradients would be 0 * inf = NaN.
    y_pred = torch.where(there, y_pred, 0)
    if task == "binary":
        each = functional.binary_cross_entropy_with_logits(
            y_pred, target, reduction="none"
        )
    else:
        each = (y_pred - target).square()
    return torch.where(there, each, 0).sum() / there.sum().clamp(min=1)


def score(y_true: Tensor, y_pred: Tensor, *, task: Task, metric: str) -> float:
    """Score predictions.

    Args:
        y_true: Targets.
        y_pred: Raw outputs of a model; for "multiclass" also class numbers [n].
        task: Kind of the targets.
        metric: "accuracy", "rocauc", "ap" or "rmse"; the last three are means over
            the columns in which they are defined.

    Returns:
        The score; NaN where it is defined in no column (no label, or for "rocauc"
        and "ap" only one class).

    Shapes:
        y_pred: [n, T] float or [n] int64; y_true: [n] int64, or [n, T] float.

    Raises:
        ValueError: If the shapes or the metric do not fit.

    Example:
        >>> score(torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2]),
        ...       task="multiclass", metric="accuracy")
        0.75
    """
    y_true, y_pred = y_true.detach().cpu(), y_pred.detach().cpu()
    if y_pred.is_floating_point():
        y_pred = y_pred.double()
    if task == "multiclass" and y_pred.dim() == 1:
        y_pred = functional.one_hot(y_pred).double()
    check_shapes(y_pred, y_true, task)
    if task == "multiclass" and metric == "accuracy":
        hits = y_pred.argmax(dim=1) == y_true
        return float(hits.double().mean())
    if metric not in _BY_COLUMN:
        raise ValueError(
            f"score got metric {metric!r} for a {task} task, expected one of "
            f"{', '.join(sorted(METRICS))} that fits it; take the set's own metric."
        )
    values = []
    for target, guess in zip(y_true.T.double(), y_pred.T, strict=True):
        there = ~torch.isnan(target)
        values.append(_BY_COLUMN[metric](target[there], guess[there]))
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        log.warning("%s is undefined: one class only, or no label", metric)
        return float("nan")
    return sum(defined) / len(defined)


def check_shapes(y_pred: Tensor, y_true: Tensor, task: Task) -> None:
    """Refuse predictions and targets of different sizes."""
    wanted = (y_true.size(0),) if task == "multiclass" else tuple(y_true.shape)
    given = tuple(y_pred.shape[:1]) if task == "multiclass" else tuple(y_pred.shape)
    ranks = (y_pred.dim(), y_true.dim())
    if given != wanted or ranks != ((2, 1) if task == "multiclass" else (2, 2)):
        form = "[B, classes] and [B]" if task == "multiclass" else "[B, T] for both"
        raise ValueError(
            f"{task} loss or score got predictions {list(y_pred.shape)} and targets "
            f"{list(y_true.shape)}, expected {form}; use the set's num_outputs."
        )


def _roc_auc(target: Tensor, guess: Tensor) -> float:
    """Area under the ROC curve by ranks; ties count a half."""
    positive = target == 1
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    if n_pos == 0 or n_neg == 0:
        return float("nan")
    _, group, size = torch.unique(guess, return_inverse=True, return_counts=True)
    # Mean rank of a run of equal guesses that ends at `last` (counted from 1).
    last = size.cumsum(0).double()
    rank = (last - (size.double() - 1) / 2)[group]
    area = float(rank[positive].sum()) - n_pos * (n_pos + 1) / 2
    return area / (n_pos * n_neg)


def _average_precision(target: Tensor, guess: Tensor) -> float:
    """Sum of precision times gain in recall, over the distinct thresholds."""
    positive = (target == 1).double()
    if positive.sum() == 0 or positive.sum() == len(positive):
        return float("nan")
    _, group, size = torch.unique(guess, return_inverse=True, return_counts=True)
    hits = positive.new_zeros(size.numel()).index_add_(0, group, positive).flip(0)
    precision = hits.cumsum(0) / size.flip(0).cumsum(0)
    return float((precision * hits).sum() / hits.sum())


def _rmse(target: Tensor, guess: Tensor) -> float:
    """Root of the mean squared error."""
    return float((target - guess).square().mean().sqrt())


_BY_COLUMN = {"rocauc": _roc_auc, "ap": _average_precision, "rmse": _rmse}
