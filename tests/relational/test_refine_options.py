"""Options of the k,l-WL test: each mistake has a message of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyg_pool.relational.refine_options import Setup, check_setup

PLAIN = Setup(1, 1, False, "distinct", True, "tuple", None, "root", None, "mark", False)


def check(options: dict[str, Any]) -> None:
    given = dict(options)
    mode, rounds = given.pop("mode", "exact"), given.pop("rounds", None)
    check_setup(replace(PLAIN, **given), mode, rounds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "got k=0, expected k >= 1"),
        ({"l": -1}, "got l=-1, expected l >= 0"),
        ({"rounds": -1}, "rounds >= 0"),
        ({"ego": -1}, "ego >= 0"),
        ({"pooling": "roots"}, "did you mean 'root'"),
        ({"policy": "delete"}, "expected one of"),
        ({"update": "SWLL"}, "did you mean"),
        ({"mode": "fast"}, "expected one of"),
        ({"ego_mode": "unoin"}, "kl_wl got ego_mode='unoin', .*did you mean 'union'"),
        ({"update": "SWL", "l": 2}, "update='SWL' with k=1 and l=2, expected k=1 and"),
        ({"update": "SWL", "k": 2}, "update='SWL' with k=2 and l=1, expected k=1 and"),
        ({"update": "SWL", "ego": 2}, "ego=2 and policy='mark', expected a whole"),
        ({"update": "SWL", "policy": "none"}, "policy='none', expected a whole marked"),
        ({"update": "SWL", "domain": "star"}, "domain='star', ego=None .* a whole"),
        ({"l": 0, "pooling": "root"}, "pooling='root' with l=0, expected at least one"),
        ({"l": 0, "ego": 1}, "ego=1 with l=0, expected at least one label as centre"),
        ({"ego_mode": "union"}, "ego_mode='union' with ego=None, expected a radius"),
        ({"policy": "delete_node", "l": 2}, "'delete_node' with l=2, expected l=1"),
        ({"policy": "none", "l": 0}, "policy='none' with l=0, expected l=1, a node"),
        ({"policy": "delete_node", "pooling": "root"}, "the root, which is gone"),
        ({"policy": "delete_edge", "ego": 1}, "a whole copy for every edge"),
        ({"policy": "delete_edge", "domain": "all"}, "a whole copy for every edge"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check(options)


@pytest.mark.parametrize("name", ["k", "l", "ego", "rounds"])
def test_numbers_must_be_whole(name: str) -> None:
    for number in (1.5, "1"):
        with pytest.raises(TypeError, match=f"kl_wl got {name}={number!r} of type"):
            check({name: number})


@pytest.mark.parametrize("name", ["k", "l"])
def test_power_and_labels_must_be_given(name: str) -> None:
    with pytest.raises(TypeError, match=f"kl_wl got {name}=None of type NoneType"):
        check({name: None})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"update": "SLFWL", "domain": "all"},
        {"policy": "delete_node", "ego": 0, "ego_mode": "union"},
        {"policy": "delete_edge", "pooling": "node"},
        {"l": 0, "pooling": "node", "k": 3, "rounds": 0},
    ],
)
def test_options_that_go_together(options: dict[str, Any]) -> None:
    check(options)
