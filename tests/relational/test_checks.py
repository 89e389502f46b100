"""Numbers, attributes and sizes that are refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pyg_pool.relational import checks, enumerate_tuples, expand_copies
from pyg_pool.relational.checks import check_room, check_whole, free_memory
from pyg_pool.relational.tuples import find_tuples, lay_ground


@pytest.mark.parametrize("value", [1.5, "1", [1], torch.tensor(0.5)])
def test_numbers_that_are_not_whole(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Owner got l=.* expected a whole number"):
        check_whole("Owner", l=value)


def test_numbers_that_are_too_small() -> None:
    check_whole("Owner", 1, l=1, ego=None)
    check_whole("Owner", l=torch.tensor(0))
    with pytest.raises(ValueError, match="Owner got l=0, expected l >= 1"):
        check_whole("Owner", 1, l=0)


def test_lists_are_refused_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = torch.device("cpu")
    assert free_memory(device) > 2**20
    check_room(1, device)
    with pytest.raises(ValueError, match=r"domain.*ego.*num_samples.*chunk_size"):
        check_room(1e15, device)
    none = torch.empty((2, 0), dtype=torch.long)
    for domain in ("all", "distinct", "subset"):
        with pytest.raises(ValueError, match="fewer labels"):
            enumerate_tuples(none, None, 4, domain, num_nodes=9000)
    # All words and the copies ask, whatever the size.
    monkeypatch.setattr(checks, "LARGE", 0)
    monkeypatch.setattr(checks, "free_memory", lambda device: 1)
    star = torch.stack([torch.zeros(20, dtype=torch.long), torch.arange(1, 21)])
    for domain in ("star", "star_set", "path", "connected", "dist<=2", "dist_set<=2"):
        with pytest.raises(ValueError, match="expected at most"):
            enumerate_tuples(star, None, 3, domain)
    monkeypatch.undo()
    tuples, ground = find_tuples(star, None, 1, "all"), lay_ground(star, None)
    monkeypatch.setattr(checks, "LARGE", 0)
    monkeypatch.setattr(checks, "free_memory", lambda device: 1)
    with pytest.raises(ValueError, match="expected at most"):
        expand_copies(ground, tuples)
