"""Stars of a root and some of its neighbours, cut out of the graph."""

from __future__ import annotations

import torch
from torch import Tensor

from pyg_pool.relational.copies import Copies, expand_copies
from pyg_pool.relational.domains import Domain, grow, sort_rows
from pyg_pool.relational.neighbours import join_lists
from pyg_pool.relational.tuples import TupleSet, lay_ground

__all__ = ["local_stars"]


# Lists, whose lengths depend on the data.
@torch.compiler.disable  # type: ignore[untyped-decorator]
def local_stars(
    edge_index: Tensor, batch: Tensor, length: int, batch_size: int
) -> Copies:
    """Subgraphs of each root with each choice of ``length - 1`` neighbours.

    A root with fewer neighbours makes one tuple with all of them, padded with -1; a
    root without any makes none.

    Example:
        >>> import torch
        >>> from pyg_pool.relational import local_stars
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> local_stars(path, torch.zeros(3).long(), 3, 1).tuples.index.tolist()
        [[0, 1, -1], [1, 0, 2], [2, 1, -1]]
    """
    ground = lay_ground(edge_index, batch, batch_size)
    table = grow(ground, length, Domain("star_set"))
    degree = ground.lists.count
    few = ((degree > 0) & (degree < length - 1)).nonzero().view(-1)
    rows = few.new_full((few.numel(), length), -1)
    rows[:, 0] = few
    owner, value, place = join_lists(ground.lists, few)
    start = ground.lists.ptr.index_select(0, few).index_select(0, owner)
    rows[owner, place - start + 1] = value
    index = sort_rows(torch.cat([table, rows]))
    graphs = ground.batch.index_select(0, index[:, 0])
    total = graphs.new_zeros(batch_size)
    total = total.scatter_add_(0, graphs, torch.ones_like(graphs))
    tuples = TupleSet(index, graphs, total, batch_size)
    return expand_copies(ground, tuples, ego=0, ego_mode="union")
