"""Terms of the layers that read beside their copy, against loops."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.relational import (
    ContextGIN,
    RelationalPooling,
    expand_copies,
    find_tuples,
    lay_ground,
)
from pyg_pool.relational.context import (
    CONTEXTS,
    _context,
    edges_between_roots,
    is_square_table,
)

EDGES = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 2]])


@pytest.mark.parametrize("ego", [None, 1])
@pytest.mark.parametrize("word", CONTEXTS)
def test_terms_equal_loops(word: str, ego: int | None) -> None:
    tuples = find_tuples(EDGES, None, 1, "distinct")
    copies = expand_copies(lay_ground(EDGES, None), tuples, ego=ego)
    x = torch.randn(copies.num_pairs, 2, dtype=torch.float64)
    pairs = zip(copies.pair_tuple.tolist(), copies.pair_node.tolist(), strict=True)
    h = dict(zip(pairs, x, strict=True))
    between = edges_between_roots(copies, EDGES)
    got = _context(word, x, copies, between)
    for row, (t, u) in enumerate(h):
        want = {
            "root": lambda t=t: h[t, t],
            "copy": lambda t=t: torch.stack([v for k, v in h.items() if k[0] == t]),
            "node": lambda u=u: torch.stack([v for k, v in h.items() if k[1] == u]),
            "across": lambda t=t, u=u: torch.stack(
                [
                    torch.zeros(2, dtype=torch.float64),
                    *(h[w, u] for w, v in EDGES.t().tolist() if v == t and (w, u) in h),
                ]
            ),
        }[word]()
        if word in ("copy", "node"):
            want = want.mean(0)
        elif word == "across":
            want = want.sum(0)
        torch.testing.assert_close(got[row], want)


def test_one_root_is_needed_across_copies() -> None:
    model = RelationalPooling(ContextGIN(3, 4, 1, ("across",)), 2)
    with pytest.raises(ValueError, match="take l=1"):
        model(torch.ones(4, 1), EDGES)
    assert ContextGIN(3, 4, 1, ("across",)).mixes_copies
    assert not ContextGIN(3, 4, 1, ("root", "copy")).mixes_copies


def test_equivariance_and_edge_features() -> None:
    base = ContextGIN(3, 4, 2, CONTEXTS, edge_channels=2).double()
    model = RelationalPooling(base, 1, ego=1, readout="node", level="node").double()
    x = torch.randn(4, 2, dtype=torch.float64)
    attr = torch.randn(5, 2, dtype=torch.float64)
    out = model(x, EDGES, attr)
    order = torch.randperm(4)
    place = torch.argsort(order)
    torch.testing.assert_close(model(x[order], place[EDGES], attr), out[order])
    base.reset_parameters()
    assert not torch.allclose(model(x, EDGES, attr), out)


@pytest.mark.parametrize("edge_channels", [0, 2])
def test_whole_copies_need_no_listed_edges(edge_channels: int, backend: str) -> None:
    torch.manual_seed(6)
    base = ContextGIN(3, 4, 2, CONTEXTS, edge_channels=edge_channels)
    model = RelationalPooling(base, 1).double()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    x = torch.randn(9, 2, dtype=torch.float64)
    # The second graph begins at 5, the third has neither edges nor a second node.
    edges = torch.cat([EDGES, EDGES[:, :3] + 5], dim=1)
    batch = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 2])
    attr = torch.randn(8, 2, dtype=torch.float64) if edge_channels else None
    found = []
    for layout in ("listed", "auto"):
        model.load_state_dict(state)
        model.layout = layout
        out = model(x, edges, attr, batch=batch)
        grads = torch.autograd.grad(out.square().sum(), list(model.parameters()))
        found.append([out.detach(), *grads])
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two)


def test_the_rows_of_whole_copies_follow_from_the_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []
    monkeypatch.setattr(
        "pyg_pool.relational.context.edges_between_roots",
        lambda *_: seen.append("between"),
    )
    monkeypatch.setattr(
        "pyg_pool.relational.copies._whole_edges", lambda *_: seen.append("edges")
    )
    model = RelationalPooling(ContextGIN(3, 4, 2, CONTEXTS), 1)
    model(torch.ones(4, 2), EDGES)
    assert seen == []


def test_square_tables() -> None:
    ground = lay_ground(EDGES, None)
    every = find_tuples(EDGES, None, 1, "distinct")
    assert is_square_table(expand_copies(ground, every))
    assert not is_square_table(expand_copies(ground, every, ego=1))
    pairs = find_tuples(EDGES, None, 2, "distinct")
    assert not is_square_table(expand_copies(ground, pairs))
    some = find_tuples(EDGES, None, 1, "distinct", num_samples=2)
    assert not is_square_table(expand_copies(ground, some))
