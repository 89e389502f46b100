"""The graph of similar rows that GLOT passes messages on, as a function."""

from __future__ import annotations

from torch import Tensor

from pyg_pool.errors import check_features
from pyg_pool.kernels.segment import segment_index
from pyg_pool.kernels.similarity import similar_pairs
from pyg_pool.typing import OptTensor

__all__ = ["token_graph"]


def token_graph(
    x: Tensor,
    index: OptTensor = None,
    tau: float = 0.6,
    *,
    max_neighbors: int | None = None,
    window: int | None = None,
    self_loops: bool = True,
    chunk_size: int | None = None,
    dim_size: int | None = None,
) -> Tensor:
    r"""Returns the edges between similar tokens of the same sequence.

    .. math::
        i \to j \iff \cos(x_i, x_j) > \tau

    Args:
        x: States of the tokens, of all sequences.
        index: Sequence of each token, in any order; without it there is one.
        tau: Threshold. From 1 on there are no edges, below -1 all.
        max_neighbors: Keeps only the most similar sources of each token, the token
            itself not counted; ties by lower index.
        window: Keeps only sources at most this many tokens away.
        self_loops: Whether tokens have an edge to themselves where the threshold
            allows it; one of zeros never has.
        chunk_size: Tokens that are compared at once; without it as many as make four
            million similarities.
        dim_size: Number of sequences.

    Returns:
        Edges from source to target, sorted by target, then source.

    Shapes:
        x: ``[N, F]``; index: ``[N]`` int64; returns ``[2, E]`` int64.

    Raises:
        TypeError: If x holds no floats.
        ValueError: If shapes do not fit.

    Note:
        Without ``max_neighbors`` and ``window`` an edge goes both ways. Near the
        threshold the rounding of the similarities, taken in float32 for half
        precision, decides. Time grows with the sum of the squared lengths, with
        ``window`` with that of the lengths; memory with a block and the edges.

    Source:
        K. S. I. Mantri, C.-B. Schönlieb, Z. Lähner, M. Eliasof. Towards Improved
        Sentence Representations using Token Graphs. ICLR 2026.

    Example:
        >>> import torch
        >>> from pyg_pool.readout import token_graph
        >>> token_graph(torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0]]))
        tensor([[0, 1, 0, 1, 2],
                [0, 0, 1, 1, 2]])
    """
    x = check_features("token_graph", x)
    index, size = segment_index("token_graph", x, index, None, dim_size)
    return similar_pairs(
        x, index, size, tau, max_neighbors=max_neighbors, window=window,
        chunk_size=chunk_size, self_loops=self_loops,
    )  # fmt: skip
