"""Words for methods."""

from __future__ import annotations

from typing import get_args

import pytest

from pyg_pool.coarsen import coarsen
from pyg_pool.coarsen.methods import OWN, Method, Recipe
from tests.coarsen.made_graphs import blocks


@pytest.mark.parametrize("method", get_args(Method))
def test_every_word_has_a_method(method: Method) -> None:
    found = coarsen(blocks(100), num_clusters=40, method=method)
    assert 40 <= found.num_clusters <= 100


def test_who_needs_the_graph() -> None:
    assert not any(Recipe(method).needs_graph for method in OWN)
    assert Recipe("mgc").needs_graph
    assert Recipe("kmeans", init="mgc").needs_graph
