"""Losses and scores of mesh networks.

Two scores of segmentations are in use and not comparable. That of *faces* counts the
faces with the right label (or their area). MeshCNN's *soft edge* score counts an edge
between two parts as right for either label, and lies above it.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

__all__ = [
    "area_weighted_accuracy",
    "edge_faces",
    "edge_predictions",
    "face_accuracy",
    "learning_rate_factor",
    "mesh_loss",
    "soft_edge_accuracy",
]


def mesh_loss(
    scores: Tensor, y: Tensor, batch: Tensor | None = None, *, per: str = "face"
) -> Tensor:
    """Cross entropy of faces, or of whole meshes.

    Args:
        scores: Raw scores of each face or mesh.
        y: Labels.
        batch: Mesh of each face, for ``per="mesh"``.
        per: ``"face"``: the mean over all rows, so large meshes weigh more;
            ``"mesh"``: the mean over meshes of their means.

    Shapes:
        scores: [N, C] float; y: [N] int64; batch: [N] int64; returns a scalar.

    Raises:
        ValueError: If the rows do not fit, or ``per="mesh"`` comes without ``batch``.

    Example:
        >>> mesh_loss(torch.zeros(3, 4), torch.tensor([0, 1, 3]))
        tensor(1.3863)
    """
    _check_rows("mesh_loss", scores, y)
    scores = scores.float() if scores.dtype in (torch.half, torch.bfloat16) else scores
    if y.numel() == 0:
        return scores.sum() * 0
    if per == "face":
        return cross_entropy(scores, y)
    if per != "mesh" or batch is None:
        raise ValueError(
            f"mesh_loss got per={per!r} and batch={'None' if batch is None else 'ids'},"
            f" expected 'face', or 'mesh' with the mesh of each face; pass batch."
        )
    each = cross_entropy(scores, y, reduction="none")
    _, owner, count = torch.unique(batch, return_inverse=True, return_counts=True)
    total = each.new_zeros(count.numel()).index_add(0, owner, each)
    return (total / count).mean()


def face_accuracy(predicted: Tensor, y: Tensor) -> float:
    """Share of faces with the right label.

    Args:
        predicted: Label of each face.
        y: True labels.

    Shapes:
        predicted, y: [T] int64.

    Example:
        >>> face_accuracy(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 1, 2, 2]))
        0.75
    """
    _check_labels("face_accuracy", predicted, y)
    return float((predicted == y).double().mean()) if y.numel() else float("nan")


def area_weighted_accuracy(
    predicted: Tensor, y: Tensor, face_areas: Tensor, batch: Tensor
) -> float:
    """Share of the area with the right label, meshes weighing by their faces.

    Args:
        predicted: Label of each face.
        y: True labels.
        face_areas: Areas; a mesh of area 0 counts its faces instead.
        batch: Mesh of each face.

    Shapes:
        predicted, y, batch: [T] int64; face_areas: [T] float.

    Note:
        The sum over meshes of (share of its area that is right) times (number of its
        faces), divided by the number of all faces.

    Example:
        >>> y, right = torch.tensor([0, 0]), torch.tensor([0, 1])
        >>> area_weighted_accuracy(right, y, torch.tensor([3.0, 1.0]), y)
        0.75
    """
    _check_labels("area_weighted_accuracy", predicted, y)
    if y.numel() == 0:
        return float("nan")
    _, owner, count = torch.unique(batch, return_inverse=True, return_counts=True)
    area = face_areas.double()
    total = area.new_zeros(count.numel()).index_add(0, owner, area)
    area = torch.where(total[owner] > 0, area, 1.0)
    total = torch.where(total > 0, total, count.double())
    hit = area * (predicted == y)
    right = total.new_zeros(count.numel()).index_add(0, owner, hit) / total
    return float((right * count).sum() / y.numel())


def edge_faces(of_side: Tensor, num_edges: int) -> Tensor:
    """Faces of each edge: the first two that have it, -1 where there are fewer.

    Args:
        of_side: Edge of each side of each face, see :func:`pyg_pool.mesh.mesh_edges`.
        num_edges: Number of edges.

    Shapes:
        of_side: [T, 3] int64; returns [E, 2] int64.

    Example:
        >>> edge_faces(torch.tensor([[0, 1, 2], [1, 3, 4]]), 5).tolist()
        [[0, -1], [0, 1], [0, -1], [1, -1], [1, -1]]
    """
    edge, order = of_side.reshape(-1).sort(stable=True)
    rank = torch.arange(2, device=edge.device)
    start = torch.searchsorted(edge, torch.arange(num_edges, device=edge.device))
    place = (start.unsqueeze(1) + rank).clamp(max=max(edge.numel() - 1, 0))
    there = rank < edge.bincount(minlength=num_edges).unsqueeze(1)
    if edge.numel() == 0:
        return torch.full_like(place, -1)
    return torch.where(there, order[place] // 3, -1)


def edge_predictions(face_scores: Tensor, edge_faces: Tensor) -> Tensor:
    """Label of each edge, from the scores of its one or two faces.

    Args:
        face_scores: Raw scores of each face.
        edge_faces: Faces of each edge, -1 for none; see :func:`edge_faces`.

    Shapes:
        face_scores: [T, C] float; edge_faces: [E, 2] int64; returns [E] int64.

    Example:
        >>> scores = torch.tensor([[9.0, 0.0], [0.0, 1.0]])
        >>> edge_predictions(scores, torch.tensor([[0, 1], [1, -1]]))
        tensor([0, 1])
    """
    share = face_scores.double().softmax(-1)
    there = (edge_faces >= 0).unsqueeze(-1)
    both = share[edge_faces.clamp(min=0)] * there
    return both.sum(1).argmax(-1)


def soft_edge_accuracy(
    predicted: Tensor, soft_labels: Tensor, edge_areas: Tensor
) -> float:
    """MeshCNN's score of one mesh; not a score of faces, and always above it.

    Args:
        predicted: Label of each edge.
        soft_labels: Share of each label among the faces of the edge; any that is
            positive counts as right.
        edge_areas: A third of the areas of its faces, as a share of the mesh's.

    Shapes:
        predicted: [E] int64; soft_labels: [E, C] float; edge_areas: [E] float.

    Note:
        Averaged over meshes, each with the same weight, it is the figure that MeshCNN
        publishes.

    Source:
        Hanocka, Hertz, Fish, Giryes, Fleishman and Cohen-Or, "MeshCNN", SIGGRAPH
        2019.

    Example:
        >>> soft = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
        >>> soft_edge_accuracy(torch.tensor([1, 1]), soft, torch.tensor([0.75, 0.25]))
        0.75
    """
    right = soft_labels.gather(1, predicted.view(-1, 1)).view(-1) > 0
    return float((edge_areas.double() * right).sum())


def learning_rate_factor(epoch: int, constant: int, last: int) -> float:
    """Factor on the learning rate: constant at first, then linear to 0.

    Args:
        epoch: Number of the epoch, from 1 on.
        constant: Last epoch with the full rate.
        last: Last epoch with a rate above 0.

    Example:
        >>> [round(learning_rate_factor(e, 2, 5), 2) for e in range(1, 8)]
        [1.0, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """
    if epoch <= constant:
        return 1.0
    if epoch > last:
        return 0.0
    return (epoch - last - 1) / (constant - last - 1)


def _check_rows(owner: str, scores: Tensor, y: Tensor) -> None:
    if scores.dim() != 2 or y.shape != scores.shape[:1]:
        raise ValueError(
            f"{owner} got scores of shape {list(scores.shape)} and labels of shape "
            f"{list(y.shape)}, expected [N, classes] and [N]; give one label per row."
        )


def _check_labels(owner: str, predicted: Tensor, y: Tensor) -> None:
    if predicted.shape != y.shape or y.dim() != 1:
        raise ValueError(
            f"{owner} got labels of shapes {list(predicted.shape)} and "
            f"{list(y.shape)}, expected [T] for both; take the argmax of scores first."
        )
