"""Checks of input: what passes, what is said otherwise."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex, set_debug
from torch_geometric.typing import WITH_TORCH_SPARSE, SparseTensor

from pyg_pool import errors
from pyg_pool.errors import (
    PygPoolWarning,
    check_batch,
    check_choice,
    check_edges,
    check_features,
    deprecated,
    reads_values,
    require,
)

EDGES = torch.tensor([[0, 1], [1, 2]])
SKETCH = "owner got .*, expected .*; ."  # given, expected, how to mend


def test_require_gives_the_module() -> None:
    assert require("json", "ogb") is sys.modules["json"]
    assert require("torch.nn", "ogb") is torch.nn


def test_require_names_the_extra() -> None:
    for name in ("package_not_there", "package_not_there.part"):
        with pytest.raises(ImportError, match=r"'pyg_pool\[mesh\]'") as caught:
            require(name, "mesh")
        assert f"{name!r} is not installed" in str(caught.value)
        assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_require_hides_no_other_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half_there.py").write_text("import the_other_half\n")
    (tmp_path / "broken_one.py").write_text("raise ImportError('too old')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="the_other_half"):
        require("half_there", "mesh")
    with pytest.raises(ImportError, match="too old"):
        require("broken_one", "mesh")


def test_deprecation_is_seen_at_the_caller() -> None:
    def old_name() -> None:
        deprecated("old_name", since="0.2", gone="0.4", instead="new_name")

    with pytest.warns(
        FutureWarning, match=r"since pyg_pool 0\.2 .* 0\.4; use new_"
    ) as w:
        old_name()
    assert w[0].filename == __file__


def test_own_warnings_can_be_told_apart() -> None:
    assert issubclass(PygPoolWarning, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PygPoolWarning)
        warnings.warn("nothing", PygPoolWarning, stacklevel=1)


def test_choices() -> None:
    check_choice("owner", "how", "sum", ("sum", "mean"))
    check_choice("owner", "how", "sum", (word for word in ("mean", "sum")))
    for value, hint in [
        ("men", "did you mean 'mean'"),
        ("zebra", "choose one of these"),
        (None, "choose one of these"),
        (["sum"], "expected one of"),
    ]:
        with pytest.raises(ValueError, match=SKETCH) as caught:
            check_choice("owner", "how", value, ("sum", "mean"))
        assert f"how={value!r}, expected one of ['sum', 'mean']" in str(caught.value)
        assert hint in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16, torch.double])
def test_features_pass(dtype: torch.dtype) -> None:
    x = torch.ones(3, 2, dtype=dtype)
    assert check_features("owner", x, 2) is x
    assert check_features("owner", x[:, 0]).shape == (3, 1)
    assert check_features("owner", x[:, :0]).shape == (3, 0)


@pytest.mark.parametrize(
    ("x", "kind", "message"),
    [
        ([[1.0]], TypeError, "x of type list, expected a torch.Tensor"),
        (torch.ones(3, 2).long(), TypeError, "x of dtype torch.int64"),
        (torch.ones(3, 2).bool(), TypeError, "x of dtype torch.bool"),
        (torch.ones(3, 2, 2), ValueError, r"x of shape \[3, 2, 2\]"),
        (torch.tensor(1.0), ValueError, r"x of shape \[\]"),
        (
            torch.ones(3, 5),
            ValueError,
            r"\[3, 5\], .* 2\]; build it with in_channels=5",
        ),
        (torch.ones(3), ValueError, r"\[3, 1\], expected \[num_nodes, 2\]"),
    ],
)
def test_wrong_features(x: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        check_features("owner", x, 2)
    assert str(caught.value).startswith("owner got x of ")


def test_edges_pass() -> None:
    assert check_edges("owner", EDGES, None, 3) is EDGES
    for shape in [(2,), (2, 1), (2, 4), (2, 0)]:
        check_edges("owner", EDGES, torch.ones(shape), 3)
    assert check_edges("owner", EDGES[:, :0], None, 0).shape == (2, 0)
    plain = check_edges("owner", EdgeIndex(EDGES, sparse_size=(3, 3)), None, 3)
    assert type(plain) is Tensor
    assert plain.equal(EDGES)
    parameter = torch.nn.Parameter(EDGES, requires_grad=False)
    assert check_edges("owner", parameter, None, 3).equal(EDGES)
    check_edges("owner", EDGES + 100, None, None)  # any number of nodes


@pytest.mark.parametrize(
    ("edges", "attr", "kind", "message"),
    [
        ([[0], [1]], None, TypeError, "edge_index of type list, expected an int64"),
        (EDGES.t()[:, :1].reshape(2), None, ValueError, r"edge_index of shape \[2\]"),
        (torch.ones(3, 2).long(), None, ValueError, r"\[3, 2\], expected \[2, num_edg"),
        (EDGES.int(), None, ValueError, "dtype torch.int32, expected torch.int64"),
        (EDGES, torch.ones(3), ValueError, r"edge_attr of shape \[3\] for 2 edges"),
        (EDGES, torch.tensor(1.0), ValueError, r"edge_attr of shape \[\] for 2 edges"),
        (
            EDGES + 1,
            None,
            ValueError,
            r"ids 1 to 3 for 3 nodes, expected ids in 0\.\.2",
        ),
        (EDGES - 1, None, ValueError, "ids -1 to 1 for 3 nodes"),
    ],
)
def test_wrong_edges(
    edges: Any, attr: Tensor | None, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        check_edges("owner", edges, attr, 3)
    assert str(caught.value).startswith("owner got edge_")


def test_negative_ids_are_found_without_a_number_of_nodes() -> None:
    with pytest.raises(ValueError, match="node ids -1 to 1"):
        check_edges("owner", EDGES - 1, None, None)


def test_sparse_adjacencies_are_refused_with_a_way_out() -> None:
    sparse = torch.sparse_coo_tensor(
        EDGES, torch.ones(2), (3, 3), check_invariants=True
    )
    with pytest.raises(TypeError, match=r"to_edge_index\(adj\), and flip"):
        check_edges("owner", sparse, None, 3)
    if not WITH_TORCH_SPARSE:  # PyG's stand-in bears the same name
        stand_in = SparseTensor.__new__(SparseTensor)
        with pytest.raises(TypeError, match=r"sparse adjacency \(SparseTensor\)"):
            check_edges("owner", stand_in, None, 3)


def test_batch_gives_the_number_of_graphs() -> None:
    batch = torch.tensor([2, 0, 0])
    assert check_batch("owner", None, None, 3) == 1
    assert check_batch("owner", None, 1, 0) == 1
    assert check_batch("owner", batch, None, 3) == 3
    assert check_batch("owner", batch, 5, 3) == 5
    assert check_batch("owner", batch[:0], None, 0) == 0
    assert check_batch("owner", batch[:0], 4, 0) == 4


@pytest.mark.parametrize(
    ("batch", "size", "message"),
    [
        (None, 2, "batch_size=2 without batch"),
        (torch.tensor([0, 1]), None, r"batch of shape \[2\] .* expected \[3\]"),
        (torch.tensor([[0, 1, 1]]), None, r"batch of shape \[1, 3\]"),
        (torch.ones(3), None, "dtype torch.float32"),
        (torch.tensor([0, 2, 1]), 2, r"graph ids 0 to 2 .* expected ids in 0\.\.1"),
        (torch.tensor([0, -1, 1]), 2, "graph ids -1 to 1"),
    ],
)
def test_wrong_batch(batch: Tensor | None, size: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        check_batch("owner", batch, size, 3)
    assert str(caught.value).startswith("owner got batch")


def test_values_are_read_on_the_cpu_or_in_debug_mode() -> None:
    there = torch.empty(2, 1, dtype=torch.long, device="meta")
    assert reads_values(EDGES)
    assert not reads_values(there)
    check_edges("owner", there, None, 0)  # shape and type are right
    with set_debug(True):
        assert reads_values(there)


def test_checks_leave_no_break_when_traced_by_compile() -> None:
    def run(x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        assert not errors.reads_values(edges)
        kept = edges[:, edges[0] != edges[1]]  # a size known at run time only
        check_edges("owner", kept, None, x.size(0))
        check_batch("owner", batch, 2, x.size(0))
        return check_features("owner", x, 1) + kept.size(1)

    fast = torch.compile(run, fullgraph=True, backend="eager")
    out = fast(torch.ones(3), EDGES, torch.zeros(3).long())
    assert out.tolist() == [[3.0]] * 3


@pytest.mark.parametrize("call", [check_edges, check_batch])
def test_every_message_says_how_to_mend(call: Callable[..., Any]) -> None:
    wrong = {check_edges: (EDGES, None, 1), check_batch: (None, 2, 3)}[call]
    with pytest.raises(ValueError, match=SKETCH):
        call("owner", *wrong)
