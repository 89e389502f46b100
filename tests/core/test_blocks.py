"""Parts of operators that work in the type of their input."""

from __future__ import annotations

import pytest
import torch

from pyg_pool.core import blocks
from pyg_pool.core.blocks import PairMLP, ResidualMLP, run_layers


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_layers_are_those_of_torch(depth: int) -> None:
    x, pairs = torch.randn(5, 4), torch.tensor([[0, 1, 2], [3, 4, 2]])
    scorer = PairMLP(4, depth)
    wanted = scorer.mlp(x[pairs[0]] * x[pairs[1]]).view(-1)
    torch.testing.assert_close(scorer(x, pairs), wanted)
    torch.testing.assert_close(scorer(x, pairs.flip(0)), wanted)
    assert len([p for p in scorer.parameters() if p.dim() == 2]) == depth
    block = ResidualMLP(4, depth)
    torch.testing.assert_close(block(x), block.norm(x + block.mlp(x)))


def test_half_weights_meet_wide_rows() -> None:
    x, pairs = torch.randn(5, 4), torch.tensor([[0, 1], [3, 4]])
    for depth in (1, 2):
        scorer, block = PairMLP(4, depth).bfloat16(), ResidualMLP(4, depth).half()
        assert scorer.dtype == torch.bfloat16
        assert scorer(x, pairs).dtype == torch.float32
        wide = scorer.float()
        torch.testing.assert_close(scorer(x, pairs), wide(x, pairs))
        assert block(x).dtype == torch.float32
    assert run_layers([], x) is x


def test_pieces_without_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    x, pairs = torch.randn(9, 4), torch.randint(9, (2, 30))
    scorer = PairMLP(4, 2)
    wanted = scorer(x, pairs)
    monkeypatch.setattr(blocks, "CHUNK", 16)
    with torch.no_grad():
        torch.testing.assert_close(scorer(x, pairs), wanted.detach())
        assert scorer(x, pairs[:, :0]).shape == (0,)


def test_pieces_are_made_again_for_the_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, pairs = torch.randn(9, 4, requires_grad=True), torch.randint(9, (2, 300))
    scorer = PairMLP(4, 2)
    held: list[dict[int, int]] = []  # entries of each tensor kept for the gradient

    def gradients() -> tuple[torch.Tensor, ...]:
        held.append({})

        def count(saved: torch.Tensor) -> torch.Tensor:
            storage = saved.untyped_storage()
            held[-1][storage.data_ptr()] = storage.nbytes() // saved.element_size()
            return saved

        with torch.autograd.graph.saved_tensors_hooks(count, lambda saved: saved):
            out = scorer(x, pairs)
        return torch.autograd.grad(out.square().sum(), [x, *scorer.parameters()])

    wanted = gradients()
    monkeypatch.setattr(blocks, "CHUNK", 64)
    for found, whole in zip(gradients(), wanted, strict=True):
        torch.testing.assert_close(found, whole, rtol=1e-4, atol=1e-4)
    assert sum(held[0].values()) > 300 * 4 * 2
    assert sum(held[1].values()) < 300 * 4


def test_pieces_drop_the_same_for_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CHUNK", 16)
    x, pairs = torch.randn(9, 4, dtype=torch.float64), torch.randint(9, (2, 30))
    scorer = PairMLP(4, 2, 0.5).double()

    def scores(rows: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return scorer(rows, pairs)

    assert torch.autograd.gradcheck(scores, x.requires_grad_())


@pytest.mark.parametrize(("depth", "draws"), [(1, False), (2, True)])
def test_dropout_between_layers_only(depth: int, draws: bool) -> None:
    x, pairs = torch.randn(9, 4), torch.randint(9, (2, 30))
    for block, call in (
        (PairMLP(4, depth, 0.5), (x, pairs)),
        (ResidualMLP(4, depth, 0.5), (x,)),
    ):
        assert torch.equal(block(*call), block(*call)) != draws
        block.eval()
        assert torch.equal(block(*call), block(*call))
    assert PairMLP(4, depth, 0.5).is_random == draws
