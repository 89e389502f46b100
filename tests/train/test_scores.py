from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from pyg_pool.train.scores import METRICS, check_shapes, loss, score

NAN = float("nan")


def test_losses_by_hand() -> None:
    y_pred = torch.tensor([[2.0, -1.0], [0.5, 3.0]])
    expected = -torch.log_softmax(y_pred, 1)[[0, 1], [1, 0]].mean()
    given = loss(y_pred, torch.tensor([1, 0]), task="multiclass")
    torch.testing.assert_close(given, expected)
    y_true = torch.tensor([[1.0, NAN], [0.0, 1.0]])
    terms = -torch.log(
        torch.stack(
            [y_pred[0, 0].sigmoid(), 1 - y_pred[1, 0].sigmoid(), y_pred[1, 1].sigmoid()]
        )
    )
    torch.testing.assert_close(loss(y_pred, y_true, task="binary"), terms.mean())
    torch.testing.assert_close(
        loss(y_pred, y_true, task="regression"),
        torch.tensor((1.0 + 0.25 + 4.0) / 3),
    )


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_missing_labels_give_no_gradient(task: str) -> None:
    y_true = torch.tensor([[NAN, 1.0], [0.0, NAN]])
    y_pred = torch.tensor([[math.inf, 2.0], [1.0, -math.inf]], requires_grad=True)
    result = loss(y_pred, y_true, task=task)
    assert result.isfinite()
    result.backward()
    grad = y_pred.grad
    assert grad is not None
    assert grad.isfinite().all()
    assert ((grad == 0) == y_true.isnan()).all()


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_loss_without_any_label_is_zero(task: str) -> None:
    y_pred = torch.randn(3, 2, requires_grad=True)
    result = loss(y_pred, torch.full((3, 2), NAN), task=task)
    result.backward()
    assert result.item() == 0
    assert y_pred.grad is not None
    assert (y_pred.grad == 0).all()


def test_half_precision_is_computed_in_single() -> None:
    y_pred = torch.full((4, 1), 300.0)
    given = loss(y_pred.half(), torch.zeros(4, 1), task="regression")
    torch.testing.assert_close(given, torch.tensor(90000.0))
    empty = loss(torch.randn(0, 3), torch.empty(0).long(), task="multiclass")
    assert empty.item() == 0


def test_accuracy_takes_outputs_and_classes() -> None:
    y_true = torch.tensor([0, 1, 2, 2])
    y_pred = functional.one_hot(torch.tensor([0, 2, 2, 2]), 3).float()
    given = {"task": "multiclass", "metric": "accuracy"}
    assert score(y_true, y_pred, **given) == 0.75
    assert score(y_true, y_pred.argmax(1), **given) == 0.75


def test_roc_auc_by_pairs() -> None:
    y_true = (torch.rand(60, 1) < 0.3).float()
    y_pred = torch.randint(8, (60, 1)).float()  # with many ties
    positive, negative = y_pred[y_true == 1], y_pred[y_true == 0]
    wins = positive[:, None] > negative
    ties = positive[:, None] == negative
    expected = (wins.double() + ties.double() / 2).mean().item()
    given = score(y_true, y_pred, task="binary", metric="rocauc")
    assert given == pytest.approx(expected, abs=1e-12)


def test_average_precision_by_hand() -> None:
    # Thresholds from above: 1 of 1 (recall 1/3), then the tie 2 of 3, then 3 of 4.
    y_true = torch.tensor([[1.0], [1.0], [0.0], [1.0], [NAN]])
    y_pred = torch.tensor([[4.0], [3.0], [3.0], [2.0], [9.0]])
    expected = (1 + 2 / 3 + 3 / 4) / 3
    given = score(y_true, y_pred, task="binary", metric="ap")
    assert given == pytest.approx(expected, abs=1e-12)


def test_scores_are_means_over_defined_columns() -> None:
    y_true = torch.tensor([[1.0, 1.0, NAN], [0.0, 1.0, NAN], [NAN, 1.0, NAN]])
    y_pred = torch.tensor([[1.0, 5.0, 0.0], [0.0, 4.0, 0.0], [9.0, 3.0, 0.0]])
    assert score(y_true, y_pred, task="binary", metric="rocauc") == 1.0
    rmse = score(y_true, y_pred, task="regression", metric="rmse")
    assert rmse == pytest.approx(math.sqrt((16 + 9 + 4) / 3) / 2)
    undefined = score(y_true[:, 1:], y_pred[:, 1:], task="binary", metric="rocauc")
    assert math.isnan(undefined)


@pytest.mark.parametrize("metric", ["rocauc", "ap"])
def test_scores_equal_scikit_learn(metric: str) -> None:
    sklearn = pytest.importorskip("sklearn.metrics", reason="scikit-learn is missing")
    reference = {
        "rocauc": sklearn.roc_auc_score,
        "ap": sklearn.average_precision_score,
    }[metric]
    y_true = (torch.rand(200, 1) < 0.2).float()
    y_pred = (torch.randn(200, 1) * 4).round() / 4 + y_true
    expected = reference(y_true.numpy(), y_pred.numpy())
    given = score(y_true, y_pred, task="binary", metric=metric)
    assert given == pytest.approx(expected, abs=1e-9)


def test_shapes_and_metrics_are_checked() -> None:
    for task, y_pred, y_true in [
        ("multiclass", torch.zeros(3, 2), torch.zeros(2).long()),
        ("multiclass", torch.zeros(2, 2), torch.zeros(2, 1).long()),
        ("binary", torch.zeros(3), torch.zeros(3, 1)),
        ("regression", torch.zeros(3, 1), torch.zeros(3)),
    ]:
        with pytest.raises(ValueError, match=f"{task} loss or score got predictions"):
            check_shapes(y_pred, y_true, task)
        with pytest.raises(ValueError, match=r"expected \[B, "):
            loss(y_pred, y_true, task=task)
    with pytest.raises(ValueError, match="got metric 'acc' for a binary task"):
        score(torch.zeros(2, 1), torch.zeros(2, 1), task="binary", metric="acc")
    assert [m for m, greater in METRICS.items() if not greater] == ["rmse"]
