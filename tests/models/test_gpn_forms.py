from __future__ import annotations

import pytest

from pyg_pool.models.gpn_forms import layer_counts


@pytest.mark.parametrize(
    ("first", "second", "third", "wanted"),
    [
        (2, "share", "follow", (2, 2, 2)),
        (2, "follow", "share", (2, 2, 2)),
        (2, 0, "follow", (2, 0, 0)),
        (1, 3, 2, (1, 3, 2)),
    ],
)
def test_layer_counts(first, second, third, wanted) -> None:
    given = {"num_layers": first, "feature_layers": second, "up_layers": third}
    assert layer_counts(given) == wanted
