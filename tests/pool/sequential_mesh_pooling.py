"""Primal-dual pooling one edge at a time, in plain Python: slow, and easy to check."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass
class Pooled:
    """What the walk over the edges finds."""

    cluster: list[int]
    edges: list[tuple[int, int]]
    duals: dict[tuple[int, int], int]
    dual_map: list[int]
    dual_edges: list[tuple[int, int]]
    selected: list[tuple[int, int]] = field(default_factory=list)


def choose(
    scores: dict[tuple[int, int], float], mesh: list[int], options: dict[str, Any]
) -> list[tuple[int, int]]:
    """The pairs that are contracted."""
    sign = -1 if options.get("largest", True) else 1
    order = sorted(scores, key=lambda pair: (sign * scores[pair], pair))
    order = [pair for pair in order if scores[pair] == scores[pair]]
    number: dict[int, int] = {}
    for i, _ in scores:
        number[mesh[i]] = number.get(mesh[i], 0) + 1
    taken: list[tuple[int, int]] = []
    used: set[int] = set()
    groups = [{face} for face in range(len(mesh))]
    left: dict[int, float] = {}
    for owner, total in number.items():
        if "num_edges_to_keep" in options:
            left[owner] = max(0, total - options["num_edges_to_keep"])
        elif "fraction_to_keep" in options:
            left[owner] = int((1.0 - options["fraction_to_keep"]) * total)
        else:
            left[owner] = total
    for i, j in order:
        if (
            "threshold" in options
            and -sign * scores[i, j] <= -sign * options["threshold"]
        ):
            continue
        if left[mesh[i]] <= 0:
            continue
        if not options.get("consecutive", True) and {i, j} & used:
            continue
        most = options.get("max_cluster_size")
        if most is not None:
            joined = groups[i] | groups[j]
            if len(joined) > most:
                continue
            for face in joined:
                groups[face] = joined
        used |= {i, j}
        taken.append((i, j))
        left[mesh[i]] -= 1
    return sorted(taken)


def pool_sequentially(
    edge_index: Tensor,
    edge_to_dual: Tensor,
    attention: Tensor,
    num_faces: int,
    num_duals: int,
    mesh: list[int],
    config: str,
    **options: Any,
) -> Pooled:
    """Clusters, new edges and the new dual graph."""
    edges = [tuple(edge) for edge in edge_index.t().tolist()]
    weight = dict(
        zip(edges, attention.view(len(edges), -1).mean(1).tolist(), strict=True)
    )
    dual_of = dict(zip(edges, edge_to_dual.tolist(), strict=True))
    scores = {(i, j): (weight[i, j] + weight[j, i]) / 2 for i, j in edges if i < j}
    selected = choose(scores, mesh, options)
    lowest = list(range(num_faces))
    changed = True
    while changed:
        changed = False
        for i, j in selected:
            low = min(lowest[i], lowest[j])
            if lowest[i] != low or lowest[j] != low:
                lowest[i] = lowest[j] = low
                changed = True
    number = {face: k for k, face in enumerate(sorted(set(lowest)))}
    cluster = [number[face] for face in lowest]
    new = sorted(
        {(cluster[i], cluster[j]) for i, j in edges if cluster[i] != cluster[j]}
    )
    keys = [edge for edge in new if config != "A" or edge[0] < edge[1]]
    duals = {key: k for k, key in enumerate(keys)}
    dual_map = [-1] * num_duals
    for i, j in edges:
        key = (cluster[i], cluster[j])
        key = (min(key), max(key)) if config == "A" else key
        dual_map[dual_of[i, j]] = duals.get(key, -1)
    found: set[tuple[int, int]] = set()
    near: dict[int, list[int]] = {}
    for a, b in new:
        near.setdefault(a, []).append(b)
    for a, others in near.items():
        for m in others:
            for n in others:
                if m == n:
                    continue
                if config == "A":
                    ends = [(min(a, k), max(a, k)) for k in (m, n)]
                    found.add((duals[ends[0]], duals[ends[1]]))
                else:
                    into, out = duals[m, a], duals[a, n]
                    found.add((into, out))
                    if config == "B":
                        found.add((out, into))
    if options.get("dual_self_loops"):
        found |= {(k, k) for k in range(len(keys))}
    return Pooled(cluster, new, duals, dual_map, sorted(found), selected)


def random_graphs(
    sizes: list[int], chance: torch.Generator, config: str = "A", extra: float = 0.7
) -> dict[str, Any]:
    """Random graphs of both kinds in one batch, as a pooling operator takes them."""
    pairs: set[tuple[int, int]] = set()
    mesh: list[int] = []
    for owner, size in enumerate(sizes):
        start = len(mesh)
        mesh += [owner] * size
        for _ in range(int(size * (1 + extra))):
            if size > 1:
                i, j = torch.randperm(size, generator=chance)[:2].tolist()
                pairs.add((start + min(i, j), start + max(i, j)))
    both = sorted(pairs | {(j, i) for i, j in pairs})
    edges = torch.tensor(both, dtype=torch.long).view(-1, 2).t().contiguous()
    position = {pair: k for k, pair in enumerate(sorted(pairs))}
    dual = [position[min(e), max(e)] for e in both]
    number = len(pairs) if config == "A" else len(both)
    to_dual = torch.tensor(dual, dtype=torch.long)
    whole = pool_sequentially(
        edges, to_dual if config == "A" else torch.arange(len(both)),
        torch.zeros(len(both)), len(mesh), number, mesh, config,
        num_edges_to_keep=10**9,
    )  # fmt: skip
    links = (
        torch.tensor(whole.dual_edges, dtype=torch.long).view(-1, 2).t().contiguous()
    )
    return {
        "x": torch.randn(len(mesh), 3, generator=chance, dtype=torch.double),
        "x_dual": torch.randn(number, 2, generator=chance, dtype=torch.double),
        "edge_index": edges,
        "edge_index_dual": links,
        "edge_to_dual": to_dual if config == "A" else torch.arange(len(both)),
        "attention": torch.rand(len(both), 2, generator=chance, dtype=torch.double),
        "batch": torch.tensor(mesh, dtype=torch.long),
        "batch_size": len(sizes),
    }
