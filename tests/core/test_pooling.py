"""The common call, its result, and what is carried along."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pyg_pool import Pooling, PoolOutput, Selection
from pyg_pool.core import connect, lift, reduce

CYCLE = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


class Given(Pooling):
    """Uses a selection that was made before."""

    def __init__(self, selection: Selection) -> None:
        super().__init__()
        self.selection = selection

    def select(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        batch: Tensor,
        batch_size: int,
    ) -> Selection:
        self.seen = x.shape, batch.tolist(), batch_size
        return self.selection


def pairs(weight: Tensor | None = None) -> Selection:
    return Selection.from_clusters(torch.tensor([0, 0, 1, 1]), weight=weight)


def test_stages_run_in_order() -> None:
    x, attr = torch.randn(4, 3, requires_grad=True), torch.rand(4)
    batch = torch.tensor([0, 0, 2, 2])
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    pool = Given(pairs(weight))
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    out = pool(x, edges, attr, batch=batch, batch_size=4)
    assert isinstance(out, PoolOutput)
    assert pool.seen == ((4, 3), [0, 0, 2, 2], 4)
    torch.testing.assert_close(out.x, reduce(x, pool.selection, "weighted"))
    wanted = connect(pool.selection, edges, attr)
    assert out.edge_index.equal(wanted.edge_index)
    assert out.batch.tolist() == [0, 2]
    assert out.batch_size == 4
    assert out.selection is pool.selection
    assert out.loss.shape == ()
    assert out.loss.item() == 0.0
    assert not out.loss.requires_grad


def test_one_graph_needs_no_batch() -> None:
    pool = Given(pairs())
    out = pool(torch.ones(4), CYCLE)
    assert pool.seen == ((4, 1), [0, 0, 0, 0], 1)
    assert out.batch.tolist() == [0, 0]
    assert out.x.tolist() == [[2.0], [2.0]]
    assert out.edge_index.tolist() == [[0, 1], [1, 0]]
    assert out.edge_attr is None


def test_score_has_a_row_per_cluster() -> None:
    """Weights of single nodes in cluster order; clusters of several have none."""
    gate = torch.tensor([0.3, 0.7])
    turned = Selection(torch.tensor([1, 2]), 4, torch.tensor([1, 0]), 2, gate)
    out = Given(turned)(torch.ones(4, 1), CYCLE)
    assert out.score is not None
    torch.testing.assert_close(out.score, torch.tensor([0.7, 0.3]))
    torch.testing.assert_close(out.x.view(-1), out.score)
    assert Given(pairs(torch.ones(4)))(torch.ones(4, 1), CYCLE).score is None
    assert Given(pairs())(torch.ones(4, 1), CYCLE).score is None


def test_lift_and_move() -> None:
    out = Given(pairs(torch.ones(4)))(torch.randn(4, 2), CYCLE, torch.ones(4, 3))
    for how in ("transpose", "mean", "pinv"):
        wanted = lift(out.x, out.selection, how, weighted=True)  # type: ignore[arg-type]
        got = out.lift(out.x, how, weighted=True)  # type: ignore[arg-type]
        torch.testing.assert_close(got, wanted)
    there = out.to("meta")
    tensors = (there.x, there.edge_index, there.edge_attr, there.batch, there.loss)
    assert {t.device.type for t in tensors if t is not None} == {"meta"}
    assert there.selection.node_index.device.type == "meta"
    assert there.batch_size == 1


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        ((torch.ones(4, 2).long(), CYCLE), TypeError, "Given got x of dtype"),
        ((torch.ones(3, 2), CYCLE), ValueError, "Given got edge_index with node ids"),
        ((torch.ones(4, 2), CYCLE, torch.ones(3)), ValueError, r"edge_attr of shape"),
        ((torch.ones(4, 2), CYCLE.tolist()), TypeError, "edge_index of type list"),
    ],
)
def test_wrong_input_is_explained(
    inputs: tuple[Tensor, ...], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        Given(pairs())(*inputs)


def test_wrong_batch_is_explained() -> None:
    with pytest.raises(ValueError, match="Given got batch of shape"):
        Given(pairs())(torch.ones(4, 2), CYCLE, batch=torch.zeros(3).long())
    with pytest.raises(TypeError, match="positional"):
        Given(pairs())(torch.ones(4, 2), CYCLE, None, torch.zeros(4).long())


def test_operator_without_select_says_what_is_missing() -> None:
    class Nothing(Pooling):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing .* expected a method"):
        Nothing()(torch.ones(4, 2), CYCLE)
    Nothing().reset_parameters()


def carried(selection: Selection, **tensors: Tensor) -> dict[str, Tensor]:
    pool = Given(selection)
    out = pool(torch.ones(selection.num_nodes, 1), CYCLE[:, :0])
    return pool.carry(out, **tensors)


def test_carry_picks_single_nodes() -> None:
    turned = Selection(torch.tensor([1, 2]), 4, torch.tensor([1, 0]), 2)
    out = carried(
        turned,
        pos=torch.arange(8.0).view(4, 2),
        y=torch.tensor([5, 6, 7, 8]),
        mask=torch.tensor([True, True, False, False]),
    )
    assert out["pos"].tolist() == [[4.0, 5.0], [2.0, 3.0]]
    assert out["y"].tolist() == [7, 6]
    assert out["mask"].tolist() == [False, True]


def test_carry_joins_members_by_their_type() -> None:
    cluster = torch.tensor([1, -1, 0, 1, 0])
    # Entries out of order, and a cluster (2) without members.
    order = torch.tensor([3, 2, 0, 1])
    hard = Selection.from_clusters(cluster)
    shuffled = Selection(
        hard.node_index[order], 5, hard.cluster_index[order], 3, kind="hard"
    )
    out = carried(
        shuffled,
        pos=torch.tensor([[1.0], [9.0], [2.0], [3.0], [6.0]]),
        y=torch.tensor([-5, 9, -7, 8, 8]),
        mask=torch.tensor([False, True, False, True, False]),
        edges=torch.tensor([[1, 2], [9, 9], [3, 4], [5, 6], [7, 8]]),
    )
    assert out["pos"].tolist() == [[4.0], [2.0], [0.0]]
    assert out["y"].tolist() == [-7, -5, 0]  # of the lowest members 2 and 0
    assert out["mask"].tolist() == [False, True, False]
    assert out["edges"].tolist() == [[3, 4], [1, 2], [0, 0]]


def test_carry_needs_a_row_per_node() -> None:
    with pytest.raises(ValueError, match=r"carry got pos of shape \[3, 1\] for 4 nod"):
        carried(pairs(), pos=torch.ones(3, 1))
    with pytest.raises(ValueError, match=r"carry got y of shape \[\]"):
        carried(pairs(), y=torch.tensor(1))
