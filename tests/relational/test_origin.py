"""Options of prepared copies: which differences count."""

from __future__ import annotations

import pytest

from pyg_pool.relational.origin import Origin


def test_options_that_make_no_difference_are_left_out() -> None:
    one = Origin.of(1, "star", 2, "union", False)
    one.check("KLGNN", Origin.of(1, "all", 2, "root", True))
    Origin.of(2, "dist <= 2", None, "union", True).check(
        "KLGNN", Origin.of(2, "dist<=2", None, "root", True)
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ((3, "star", 2, "union", True), "l=2, expected l=3;"),
        ((2, "path", 2, "union", True), "domain='star', expected domain='path';"),
        ((2, "star", 1, "union", True), "ego=2, expected ego=1;"),
        (
            (2, "star", None, "union", True),
            "ego=2, ego_mode='union', expected ego=None",
        ),
        ((2, "star", 2, "root", True), "ego_mode='union', expected ego_mode='root';"),
        ((2, "star", 2, "union", False), "cover=True, expected cover=False; build"),
    ],
)
def test_other_options_are_refused(
    other: tuple[int, str, int | None, str, bool], message: str
) -> None:
    origin = Origin.of(2, "star", 2, "union", True)
    origin.check("KLGNN", Origin.of(2, "star", 2, "union", True))
    with pytest.raises(ValueError, match=f"KLGNN got copies made with {message}"):
        origin.check("KLGNN", Origin.of(*other))
