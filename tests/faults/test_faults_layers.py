"""Faults P46 to P50: traps in layers and options."""

from __future__ import annotations

import copy
import inspect
import io
import math
import pickle

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from pyg_pool import GPool, Hierarchy
from pyg_pool.core import HierarchyData
from pyg_pool.kernels import topk
from pyg_pool.models import GraphUNet, HierarchicalClassifier
from pyg_pool.testing import PoolingSpec, ReadoutSpec, framework
from tests.faults.inputs import (
    MODELS,
    build_model,
    every_model,
    every_pooling,
    every_readout,
    no_edges,
    path,
)

BAD_RATIOS = [0.0, -1.0, math.nan, 1.5, 0, -2, math.inf]


def with_ratio(spec: PoolingSpec, ratio: object):
    """The operator's class with a ratio, or a skip."""
    cls = type(spec.build())
    names = inspect.signature(cls).parameters
    if "ratio" not in names:
        pytest.skip("has no ratio")
    width = {"in_channels": 4} if "in_channels" in names else {}
    return cls(**width, ratio=ratio)


@every_pooling
def test_fault_p46_ratio_one_keeps_all(spec: PoolingSpec) -> None:
    x = torch.randn(6, 4)
    assert with_ratio(spec, 1.0)(x, path(6)).x.size(0) == 6
    assert with_ratio(spec, 1)(x, path(6)).x.size(0) == 1
    for ratio in BAD_RATIOS:
        with pytest.raises(ValueError, match="ratio"):
            with_ratio(spec, ratio)(x, path(6))


def test_fault_p46_ratio_of_the_kernel() -> None:
    score = torch.randn(6)
    assert len(topk(score, 1.0)) == 6
    assert len(topk(score, 1)) == 1
    for ratio in BAD_RATIOS:
        with pytest.raises(ValueError, match="ratio"):
            topk(score, ratio)


@pytest.mark.parametrize("ratio", BAD_RATIOS)
def test_fault_p46_ratio_of_the_models(ratio: float) -> None:
    with pytest.raises(ValueError, match="ratio"):
        GraphUNet(4, 8, 2, depth=1, ratio=ratio)
    with pytest.raises(ValueError, match="ratio"):
        HierarchicalClassifier(4, 8, 2, 1, ratio)
    with_all = HierarchicalClassifier(4, 8, 2, 1, 1.0).run(torch.randn(6, 4), path(6))
    assert with_all.hierarchy.levels[1].num_nodes == 6


DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_fault_p47_sizes_are_not_counted_in_16_bits(dtype: torch.dtype) -> None:
    x = torch.randn(1001, 4).to(dtype)
    assert GPool(4, ratio=0.5).to(dtype)(x, no_edges()).x.size(0) == 501
    for size, ratio, wanted in [(261, 0.1, 27), (2061, 0.1, 207), (4099, 0.5, 2050)]:
        score = torch.randn(size).to(dtype)
        assert len(topk(score, ratio)) == wanted
        batch = torch.tensor([0] * size + [1] * 3)
        both = torch.cat([score, score[:3]])
        kept = topk(both, ratio, batch=batch, batch_size=2)
        assert int((batch[kept] == 0).sum()) == wanted


@every_pooling
def test_fault_p47_every_dtype_keeps_as_many(spec: PoolingSpec) -> None:
    x = torch.randn(1001, 4).bfloat16()
    sizes = [spec.build(t)(x.to(t), no_edges()).x.size(0) for t in DTYPES]
    assert len(set(sizes)) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@every_pooling
def test_fault_p48_vector_of_zeros(spec: PoolingSpec, dtype: torch.dtype) -> None:
    operator = spec.build(dtype)
    for parameter in operator.parameters():
        parameter.data.zero_()
    x = torch.randn(6, 4).to(dtype).requires_grad_()
    out = operator(x, path(6))
    assert out.x.isfinite().all()
    out.x.sum().backward()
    assert x.grad.isfinite().all()
    for parameter in operator.parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all()


@every_pooling
def test_fault_p49_poolings_know_their_options(spec: PoolingSpec) -> None:
    framework.check_options(spec)
    with pytest.raises(TypeError, match="ratoi"):
        type(spec.build())(4, ratoi=0.1)


@every_readout
def test_fault_p49_readouts_know_their_options(spec: ReadoutSpec) -> None:
    with pytest.raises(TypeError, match="not_an_option"):
        type(spec.build())(not_an_option=1)


@pytest.mark.parametrize("cls", [GraphUNet, HierarchicalClassifier])
def test_fault_p49_models_know_their_options(cls: type) -> None:
    with pytest.raises(TypeError, match="ratoi"):
        cls(4, 8, 2, ratoi=0.1)
    with pytest.raises(TypeError, match="bacth"):
        cls(4, 8, 2)(torch.randn(3, 4), path(3), bacth=None)
    with pytest.raises(TypeError, match="augmnet"):
        cls(4, 8, 2, pool="gpool", pool_options={"augmnet": "none"})
    with pytest.raises((TypeError, ValueError), match="gpol"):
        cls(4, 8, 2, pool="gpol")


def test_fault_p49_option_words_are_checked() -> None:
    for option, value in [
        ("nonlinearity", "sigmiod"),
        ("augment", "wieghted"),
        ("rounding", "cel"),
        ("preset", "papr"),
    ]:
        with pytest.raises((ValueError, TypeError), match=value):
            GPool(4, **{option: value})


def test_fault_p49_configuration_and_command_line(tmp_path) -> None:
    pytest.importorskip("lightning")
    testing = pytest.importorskip("typer.testing")
    from pyg_pool.cli.app import app
    from pyg_pool.train import TrainConfig
    from pyg_pool.train.config import read_config, write_config

    with pytest.raises(TypeError, match="epoch_s"):
        TrainConfig(epoch_s=3)
    file = tmp_path / "config.yaml"
    write_config(TrainConfig(), file)
    text = file.read_text()
    assert "epochs:" in text
    assert TrainConfig.from_dict(read_config(file)) == TrainConfig()
    file.write_text(text.replace("epochs:", "epohcs:"))
    with pytest.raises((TypeError, ValueError), match="epohcs"):
        TrainConfig.from_dict(read_config(file))
    result = testing.CliRunner().invoke(app, ["train", "graph", "--epohcs", "1"])
    assert result.exit_code == 2


@every_pooling
def test_fault_p50_poolings_can_be_copied_and_sent(spec: PoolingSpec) -> None:
    framework.check_copies(spec)


@every_readout
def test_fault_p50_readouts_can_be_copied_and_sent(spec: ReadoutSpec) -> None:
    framework.check_copies(spec)


@every_model
def test_fault_p50_models_can_be_copied_and_sent(model_name: str) -> None:
    model = build_model(model_name)
    x = torch.randn(7, 4, dtype=torch.float64)
    wanted = model(x, path(7))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        torch.load(file, weights_only=False),
    ):
        assert torch.equal(other(x, path(7)), wanted)
    result = model.run(x, path(7))
    with torch.no_grad():
        result = model.run(x, path(7))
    again = pickle.loads(pickle.dumps(result))
    assert torch.equal(again.out, wanted)
    assert str(again.hierarchy) == str(copy.deepcopy(result).hierarchy)


def small_graph(size: int) -> HierarchyData:
    """A path with two pooled levels."""
    x = torch.arange(float(size)).view(-1, 1)
    pool = GPool(1, ratio=0.5)
    torch.nn.init.ones_(pool.weight)
    with torch.no_grad():
        first = pool(x, path(size))
        second = pool(first.x, first.edge_index)
    whole = Hierarchy.from_outputs(x, path(size), None, None, 1, [first, second])
    return whole.attach(Data(x=x, edge_index=path(size)))


def test_fault_p50_spawned_workers_load_hierarchies() -> None:
    graphs = [small_graph(size) for size in (4, 6, 9)]
    loader = DataLoader(
        graphs, batch_size=3, num_workers=1, multiprocessing_context="spawn"
    )
    (batch,) = list(loader)
    hierarchy = batch.hierarchy()
    assert [level.num_nodes for level in hierarchy.levels] == [19, 10, 6]
    assert hierarchy.levels[2].batch.tolist() == [0, 1, 1, 2, 2, 2]
    lifted = hierarchy.lift(torch.ones(6, 1), 2)
    assert int(lifted.sum()) == 6


def test_every_model_is_tried() -> None:
    assert {type(build_model(name)) for name in MODELS} == {
        GraphUNet,
        HierarchicalClassifier,
    }
