"""Which copies share the edges of their graph."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GAT, GCN

from pyg_pool.relational import CopyGIN, RelationalPooling

RING = torch.stack([torch.arange(40), (torch.arange(40) + 1) % 40])


def test_large_whole_copies_share_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = RelationalPooling(GCN(2, 4, 2, 4), 1)
    seen = []
    base_forward = model.base.forward

    def spy(x: Tensor, edge_index: Tensor) -> Tensor:
        seen.append(edge_index.size(1))
        return base_forward(x, edge_index)

    monkeypatch.setattr(model.base, "forward", spy)
    model(torch.ones(40, 1), RING)
    assert seen[-1] == 40
    model(torch.ones(10, 1), RING[:, :9])
    assert seen[-1] == 90


def test_unknown_layouts_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'shared'"):
        RelationalPooling(GCN(2, 4, 2, 4), 1, layout="share")


def test_what_cannot_be_shared_is_refused_when_asked_for() -> None:
    x = torch.ones(40, 1)
    with pytest.raises(ValueError, match="GAT and whole copies"):
        RelationalPooling(GAT(2, 4, 2, 4), 1, layout="shared")(x, RING)
    with pytest.raises(ValueError, match="GCN and cut copies"):
        RelationalPooling(GCN(2, 4, 2, 4), 1, ego=1, layout="shared")(x, RING)


@pytest.mark.parametrize("ego", [None, 2])
@pytest.mark.parametrize("edge_channels", [0, 3])
@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
def test_gin_on_copies_equals_listed_edges(
    ego: int | None, edge_channels: int, norm: str, train: bool, backend: str
) -> None:
    torch.manual_seed(3)
    base = CopyGIN(3, 6, 2, edge_channels=edge_channels, norm=norm)
    model = RelationalPooling(base, 1, ego=ego, tuple_pool="max").double().train(train)
    if not train:
        for buffer in model.buffers():
            buffer.data.add_(1)  # statistics unlike those of fresh networks
    state = {key: value.clone() for key, value in model.state_dict().items()}
    x = torch.randn(40, 2, dtype=torch.float64)
    attr = torch.rand(40, 3, dtype=torch.float64) if edge_channels else None
    batch = torch.arange(40) // 25
    edges = RING[:, (RING // 25)[0] == (RING // 25)[1]]
    attr = None if attr is None else attr[: edges.size(1)]
    found = []
    for layout in ("listed", "auto"):
        model.load_state_dict(state)
        model.layout = layout
        out = model(x, edges, attr, batch=batch)
        grads = torch.autograd.grad(out.square().sum(), list(model.parameters()))
        with torch.no_grad():
            model.load_state_dict(state)
            found.append([out.detach(), model(x, edges, attr, batch=batch), *grads])
        found[-1] += [buffer.clone() for buffer in model.buffers()]
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(one, two)
