"""Losses, scores and the learning rate against stored values and by hand."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.mesh import Mesh, face_labels_to_edges, mesh_edges
from pyg_pool.train import (
    area_weighted_accuracy,
    edge_faces,
    edge_predictions,
    face_accuracy,
    learning_rate_factor,
    mesh_loss,
    soft_edge_accuracy,
)
from tests.golden_files import load


def test_golden_losses() -> None:
    golden = load("mesh", "losses")
    inputs, outputs = golden["inputs"], golden["outputs"]
    loss = mesh_loss(inputs["logits"], inputs["target"])
    assert float(loss) == pytest.approx(outputs["cross_entropy"], abs=1e-9)
    predicted, number = inputs["logits"].argmax(1), inputs["target"].numel()
    hits = face_accuracy(predicted, inputs["target"]) * number
    assert hits == pytest.approx(outputs["num_correct"], abs=1e-9)
    area = area_weighted_accuracy(
        predicted, inputs["target"], inputs["face_areas"], inputs["batch"]
    )
    expected = outputs["area_weighted_num_correct"]
    assert area * number == pytest.approx(expected, abs=1e-9)


def test_golden_learning_rate() -> None:
    golden = load("mesh", "lr_schedule")
    inputs = golden["inputs"]
    rates = [
        learning_rate_factor(e, inputs["last_epoch_constant_lr"], inputs["last_epoch"])
        for e in range(1, 11)
    ]
    expected = golden["outputs"]["lr_of_epoch_1_to_10"].tolist()
    assert rates == pytest.approx(expected, abs=1e-12)


def test_meshes_may_weigh_the_same() -> None:
    scores = torch.tensor([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    y, batch = torch.tensor([0, 0, 1]), torch.tensor([4, 4, 9])
    each = [float(mesh_loss(scores[[k]], y[[k]])) for k in (0, 2)]
    by_mesh = float(mesh_loss(scores, y, batch, per="mesh"))
    assert by_mesh == pytest.approx(sum(each) / 2)
    by_face = float(mesh_loss(scores, y, batch))
    assert by_face == pytest.approx((2 * each[0] + each[1]) / 3)
    with pytest.raises(ValueError, match="pass batch"):
        mesh_loss(scores, y, per="mesh")
    with pytest.raises(ValueError, match="one label per row"):
        mesh_loss(scores, y[:2])
    assert float(mesh_loss(scores[:0], y[:0])) == 0.0


def test_soft_edges_count_for_either_part() -> None:
    flap = Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], [0, 1]
    )
    edges = mesh_edges(flap)
    soft = torch.as_tensor(face_labels_to_edges(flap, flap.labels, num_classes=2))
    middle = (soft > 0).all(1)
    assert int(middle.sum()) == 1
    area = torch.where(middle, 1 / 3, 1 / 6).double()
    right = soft.argmax(1)
    for label in (0, 1):
        guess = torch.where(middle, label, right)
        assert soft_edge_accuracy(guess, soft, area) == pytest.approx(1.0)
    wrong = soft_edge_accuracy(1 - right, soft, area)
    assert wrong == pytest.approx(1 / 3)
    # As faces, the same guesses are all wrong: the scores are not comparable.
    assert face_accuracy(torch.tensor([1, 0]), torch.tensor([0, 1])) == 0.0
    assert len(edges.ends) == 5


def test_faces_of_the_edges() -> None:
    flap = Mesh(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], [[0, 1, 2], [1, 3, 2]], [0, 1]
    )
    book = Mesh(flap.vertices, [[0, 1, 2], [0, 1, 3], [1, 0, 2]])
    for mesh in (flap, book, Mesh(flap.vertices, [])):
        edges = mesh_edges(mesh)
        found = edge_faces(torch.as_tensor(edges.of_side), len(edges.ends)).tolist()
        for number, pair in enumerate(found):
            own = [f for f, row in enumerate(edges.of_side.tolist()) if number in row]
            assert pair == [*own, -1, -1][:2]


def test_edge_labels_from_face_scores() -> None:
    scores = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 2.0]])
    faces = torch.tensor([[0, 1], [1, 2], [2, -1]])
    assert edge_predictions(scores, faces).tolist() == [0, 1, 1]


def test_area_of_a_flat_mesh_counts_faces() -> None:
    y, batch = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1])
    guess, area = torch.tensor([0, 0, 1]), torch.tensor([0.0, 0.0, 2.0])
    assert area_weighted_accuracy(guess, y, area, batch) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="argmax"):
        face_accuracy(torch.ones(3, 2), y)
