"""Names in PyG's resolver and in GraphGym, and a GraphGym run that uses them."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.nn import SAGEConv, aggr
from torch_geometric.nn.aggr import Aggregation

import pyg_pool

room = importlib.import_module("pyg_pool.register")
READOUT_ROOM = "pyg_pool.readout"


class DoubleAggregation(Aggregation):
    """Twice the sum; no parameters."""

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
    ) -> Tensor:
        return 2 * self.reduce(x, index, ptr, dim_size, dim, "sum")


class GainAggregation(DoubleAggregation):
    """The same with a learned factor."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = torch.nn.Parameter(torch.ones(1))

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        return self.gain * super().forward(*args, **kwargs)


class NeedyAggregation(DoubleAggregation):
    """A readout that has to be told its width."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    pyg_pool.unregister()
    yield
    pyg_pool.unregister()


@pytest.fixture
def readouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A readout room with three classes and something that is no readout."""
    fake = ModuleType(READOUT_ROOM)
    things = (DoubleAggregation, GainAggregation, NeedyAggregation)
    vars(fake).update({thing.__name__: thing for thing in things}, helper=len)
    fake.__all__ = [*(t.__name__ for t in things), "helper"]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, READOUT_ROOM, fake)


@pytest.fixture
def graphgym() -> ModuleType:
    pytest.importorskip("yacs")
    return importlib.import_module("torch_geometric.graphgym.register")


@pytest.fixture
def cfg(graphgym: ModuleType) -> Any:
    config = importlib.import_module("torch_geometric.graphgym.config")
    config.set_cfg(config.cfg)
    yield config.cfg
    pyg_pool.unregister()
    config.set_cfg(config.cfg)


def registries(graphgym: ModuleType) -> dict[str, dict[str, Any]]:
    found = {k: dict(v) for k, v in vars(graphgym).items() if k.endswith("_dict")}
    return {**found, "aggr": dict(vars(aggr))}


def test_import_registers_nothing(readouts: None, graphgym: ModuleType) -> None:
    before = registries(graphgym)
    importlib.reload(room)
    assert registries(graphgym) == before


def test_package_can_be_called_before_and_after_the_module_is_loaded() -> None:
    # Loading pyg_pool.register binds the module in the place of the function.
    assert pyg_pool.register() == pyg_pool.register() == room.register()
    assert callable(room)


def test_readouts_are_found_by_name(readouts: None) -> None:
    with pytest.raises(ValueError, match="Could not resolve 'double'"):
        SAGEConv(4, 4, aggr="double")
    done = pyg_pool.register()
    assert done.aggregations == (
        "DoubleAggregation",
        "GainAggregation",
        "NeedyAggregation",
    )
    x, edges = torch.eye(3), torch.tensor([[0, 1], [2, 2]])
    conv = SAGEConv(3, 3, aggr="double", root_weight=False, bias=False)
    with torch.no_grad():
        conv.lin_l.weight.copy_(torch.eye(3))
    torch.testing.assert_close(conv(x, edges)[2], torch.tensor([2.0, 2.0, 0.0]))
    assert isinstance(SAGEConv(3, 3, aggr="gain").aggr_module, GainAggregation)
    SAGEConv((3, 3), 3, aggr=["double", "mean"])
    pyg_pool.unregister()
    with pytest.raises(ValueError, match="Could not resolve 'double'"):
        SAGEConv(4, 4, aggr="double")


def test_own_readout_room_is_used_if_there_is_one() -> None:
    done = pyg_pool.register()
    if importlib.util.find_spec(READOUT_ROOM) is None:
        assert done.aggregations == ()
        return
    names = importlib.import_module(READOUT_ROOM).__all__
    assert set(done.aggregations) <= set(names)
    assert all(hasattr(aggr, name) for name in done.aggregations)


def test_broken_readout_room_is_no_missing_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "readout.py").write_text("import package_that_is_not_there\n")
    monkeypatch.setattr(pyg_pool, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, READOUT_ROOM, raising=False)
    with pytest.raises(ModuleNotFoundError, match="package_that_is_not_there"):
        pyg_pool.register()


def test_register_is_idempotent_and_undone(readouts: None, cfg: Any) -> None:
    graphgym = importlib.import_module("torch_geometric.graphgym.register")
    before = registries(graphgym)
    assert "pyg_pool" not in cfg
    first = pyg_pool.register()
    after = registries(graphgym)
    assert after != before
    assert cfg.pyg_pool.levels == "last"
    cfg.pyg_pool.ratio = 0.3
    assert pyg_pool.register() == first
    assert registries(graphgym) == after
    assert cfg.pyg_pool.ratio == 0.3, "a second call keeps what was configured"
    pyg_pool.unregister()
    assert registries(graphgym) == before
    assert "pyg_pool" not in cfg
    pyg_pool.unregister()
    assert pyg_pool.register() == first


def test_result_lists_the_entries(readouts: None, graphgym: ModuleType) -> None:
    done = pyg_pool.register()
    assert done.skipped == ""
    assert set(done.graphgym) == {
        "head.pyg_pool_readout",
        "stage.gpool",
        "stage.stack_history",
        "config.pyg_pool",
        "pooling.double",
    }


def test_pooling_function_takes_the_number_of_graphs(
    readouts: None, graphgym: ModuleType
) -> None:
    pyg_pool.register()
    pool = graphgym.pooling_dict["double"]
    x, batch = torch.ones(3, 2), torch.tensor([0, 0, 1])
    torch.testing.assert_close(
        pool(x, batch), torch.tensor([[4.0, 4.0], [2.0, 2.0]]), check_stride=False
    )
    assert pool(x, batch, 4).shape == (4, 2)
    assert pool(x, None).tolist() == [[6.0, 6.0]]


def test_later_readouts_join(
    readouts: None, graphgym: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[READOUT_ROOM], "__all__", ["DoubleAggregation"])
    assert pyg_pool.register().aggregations == ("DoubleAggregation",)
    monkeypatch.setattr(
        sys.modules[READOUT_ROOM], "__all__", ["DoubleAggregation", "GainAggregation"]
    )
    assert "GainAggregation" in pyg_pool.register().aggregations
    pyg_pool.unregister()
    assert not hasattr(aggr, "DoubleAggregation")
    assert not hasattr(aggr, "GainAggregation")


def test_set_cfg_after_register_keeps_the_node(cfg: Any) -> None:
    config = importlib.import_module("torch_geometric.graphgym.config")
    pyg_pool.register()
    config.set_cfg(cfg)
    assert cfg.pyg_pool.ratio == 0.5
    pyg_pool.register()
    pyg_pool.unregister()
    assert "pyg_pool" not in cfg


@pytest.mark.parametrize("taken", ["DoubleAggregation", "doubleAGGREGATION"])
def test_taken_resolver_name_is_refused(
    taken: str, readouts: None, graphgym: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggr, taken, aggr.SumAggregation, raising=False)
    before = registries(graphgym)
    with pytest.raises(ValueError, match=r"'DoubleAggregation' for torch_geometric"):
        pyg_pool.register()
    assert registries(graphgym) == before, "a refused call changes nothing"


@pytest.mark.parametrize(
    ("registry", "key"),
    [
        ("head_dict", "pyg_pool_readout"),
        ("stage_dict", "gpool"),
        ("config_dict", "pyg_pool"),
        ("pooling_dict", "double"),
    ],
)
def test_taken_graphgym_key_is_refused(
    registry: str,
    key: str,
    readouts: None,
    graphgym: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other(*_: Any) -> None: ...

    monkeypatch.setitem(getattr(graphgym, registry), key, other)
    with pytest.raises(ValueError, match=rf"'{key}'.*other.*remove that entry"):
        pyg_pool.register()
    assert getattr(graphgym, registry)[key] is other
    assert not hasattr(aggr, "DoubleAggregation")


def test_taken_config_node_is_refused(cfg: Any) -> None:
    cfg["pyg_pool"] = type(cfg)()
    with pytest.raises(ValueError, match="GraphGym's configuration"):
        pyg_pool.register()
    del cfg["pyg_pool"]


def test_changed_entries_are_left_alone(graphgym: ModuleType) -> None:
    def other(*_: Any) -> None: ...

    pyg_pool.register()
    graphgym.stage_dict["gpool"] = other
    pyg_pool.unregister()
    assert graphgym.stage_dict.pop("gpool") is other


def test_without_yacs_graphgym_is_skipped(
    readouts: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "yacs" else find_spec(name, *rest),
    )
    with caplog.at_level(logging.INFO, logger="pyg_pool.register"):
        done = pyg_pool.register()
    assert "yacs" in done.skipped
    assert "pip install 'pyg_pool[graphgym]'" in done.skipped
    assert "pip install" in caplog.text
    assert done.graphgym == ()
    assert done.aggregations
    graphgym = sys.modules.get("torch_geometric.graphgym.register")
    assert graphgym is None or "gpool" not in graphgym.stage_dict


# A real run. Graphs with more triangles are of class 1; the last graph of the
# training, validation and test part has no nodes.

CONFIG = """
accelerator: cpu
dataset:
  format: tiny
  name: tiny
  task: graph
  task_type: classification
model:
  loss_fun: cross_entropy
  graph_pooling: mean
train:
  batch_size: 8
  enable_ckpt: false
gnn:
  layers_pre_mp: 1
  layers_mp: 2
  layers_post_mp: 2
  dim_inner: 8
  layer_type: sageconv
  batchnorm: false
optim:
  max_epoch: 2
"""


class TinyGraphs(InMemoryDataset):
    def __init__(self) -> None:
        super().__init__(None)
        graphs = [self.graph(i) for i in range(24)]
        self.data, self.slices = self.collate(graphs)
        parts = {"train": range(8), "val": range(8, 16), "test": range(16, 24)}
        for name, part in parts.items():
            key = f"{name}_graph_index"
            self._data[key] = torch.tensor(part)
            self.slices[key] = torch.tensor([0, len(part)])
        self._data_list = None

    @staticmethod
    def graph(i: int) -> Data:
        if i % 8 == 7:
            return Data(
                x=torch.empty(0, 3),
                edge_index=torch.empty(2, 0, dtype=torch.long),
                edge_weight=torch.empty(0),
                y=torch.tensor([i % 3]),
            )
        n = 3 + i % 4
        ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
        edges = torch.cat([ring, ring.flip(0)], dim=1)
        x = torch.full((n, 3), float(i % 3)) + torch.arange(n).view(-1, 1) / n
        return Data(
            x=x,
            edge_index=edges,
            edge_weight=torch.rand(edges.size(1)),
            y=torch.tensor([i % 3]),
        )


@pytest.fixture
def run(cfg: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets GraphGym up from a file with some settings changed."""
    pytest.importorskip("lightning")
    graphgym = importlib.import_module("torch_geometric.graphgym")
    registry = importlib.import_module("torch_geometric.graphgym.register")

    def load(form: str, *_: str) -> TinyGraphs | None:
        return TinyGraphs() if form == "tiny" else None

    monkeypatch.setitem(registry.loader_dict, "tiny", load)
    monkeypatch.chdir(tmp_path)
    Path("config.yaml").write_text(CONFIG, encoding="utf-8")

    def configure(*options: Any) -> Any:
        pyg_pool.register()
        args = argparse.Namespace(cfg_file="config.yaml", opts=list(options))
        graphgym.load_cfg(cfg, args)
        cfg.run_dir = str(tmp_path)
        cfg.share.dim_in, cfg.share.dim_out = 3, 3
        return graphgym

    return configure


def a_batch() -> Batch:
    return Batch.from_data_list([TinyGraphs.graph(i) for i in range(4, 8)])


HEAD = ("gnn.head", "pyg_pool_readout")


@pytest.mark.filterwarnings("ignore")  # what PyG and Lightning say about loaders
@pytest.mark.parametrize("stage", ["stack", "gpool", "stack_history"])
def test_graphgym_trains(stage: str, readouts: None, run: Any, cfg: Any) -> None:
    graphgym = run(
        *HEAD, "gnn.stage_type", stage, "pyg_pool.readout", ["mean", "gain"],
        "pyg_pool.levels", "sum" if stage == "gpool" else "last",
    )  # fmt: skip
    module = importlib.import_module("torch_geometric.graphgym.train")
    loaders = module.GraphGymDataModule()
    model = graphgym.create_model()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    silent = {"logger": False, "enable_progress_bar": False}
    graphgym.train(model, loaders, logger=False, trainer_config=silent)
    changed = {k for k, v in model.state_dict().items() if not v.equal(before[k])}
    assert "model.post_mp.readouts.1.gain" in changed
    if stage == "gpool":
        assert "model.mp.pools.0.weight" in changed
    pred, true = model(next(iter(loaders.test_dataloader())))
    assert pred.shape == (8, 3)
    assert true.tolist() == [i % 3 for i in range(16, 24)]


def test_every_model_gets_its_own_parameters(
    readouts: None, run: Any, cfg: Any
) -> None:
    graphgym = run(*HEAD, "pyg_pool.readout", "gain")
    one, two = graphgym.create_model(), graphgym.create_model()
    assert "model.post_mp.readouts.0.gain" in dict(one.named_parameters())
    shared = {id(p) for p in one.parameters()} & {id(p) for p in two.parameters()}
    assert shared == set()


def test_trailing_empty_graph_keeps_its_label(run: Any, cfg: Any) -> None:
    graphgym = run("gnn.head", "graph")
    pred, true = graphgym.create_model()(a_batch())
    assert pred.size(0) < true.size(0), "GraphGym's own head loses the graph"
    graphgym = run(*HEAD)
    pred, true = graphgym.create_model()(a_batch())
    assert pred.size(0) == true.size(0) == 4
    assert pred.isfinite().all()


@pytest.mark.parametrize(
    ("readout", "width"),
    [(None, 16), ("sum", 8), (["mean", "max", "std"], 24), ("sort", 24)],
)
def test_head_finds_the_width(readout: Any, width: int, run: Any, cfg: Any) -> None:
    graphgym = run(*HEAD)
    cfg.pyg_pool.readout = readout
    cfg.pyg_pool.readout_kwargs = type(cfg)({"sort": {"k": 3}})
    cfg.gnn.layers_post_mp = 1
    head = graphgym.create_model().model.post_mp
    weights = [p for name, p in head.named_parameters() if name.endswith("weight")]
    assert weights[0].shape == (3, width)


def test_glot_is_built_with_the_width(run: Any, cfg: Any) -> None:
    graphgym = run(*HEAD, "pyg_pool.readout", "glot")
    cfg.pyg_pool.readout_kwargs = type(cfg)({"glot": {"hidden_channels": 4}})
    model = graphgym.create_model()
    assert repr(model.model.post_mp.readouts[0]) == (
        "GLOTAggregation(8, hidden_channels=4)"
    )
    pred, _ = model(a_batch())
    assert pred.shape == (4, 3)


def test_readout_options_come_from_the_file(run: Any, cfg: Any) -> None:
    with Path("config.yaml").open("a", encoding="utf-8") as file:
        file.write(
            "pyg_pool:\n  readout: [softmax]\n"
            "  readout_kwargs:\n    softmax:\n      learn: true\n"
        )
    graphgym = run(*HEAD)
    names = dict(graphgym.create_model().named_parameters())
    assert "model.post_mp.readouts.0.t" in names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("pyg_pool.readout", "nothing"), "pyg_pool_readout got readout 'nothing'"),
        (("pyg_pool.readout", "lstm"), r"readout 'lstm' .*in_channels"),
        (("pyg_pool.levels", "all"), "levels='all', expected 'last' or 'sum'"),
        (
            ("dataset.task", "node", "gnn.stage_type", "gpool"),
            "the gpool stage got dataset.task='node'",
        ),
    ],
)
def test_wrong_configuration_is_explained(
    options: tuple[str, ...], message: str, run: Any, cfg: Any
) -> None:
    graphgym = run(*HEAD, *options)
    with pytest.raises(ValueError, match=message):
        graphgym.create_model()


def test_levels_without_gpool_are_explained(run: Any, cfg: Any) -> None:
    graphgym = run(*HEAD, "pyg_pool.levels", "sum")
    model = graphgym.create_model()
    with pytest.raises(ValueError, match="batch without pooled_levels"):
        model(a_batch())


def test_history_holds_the_input_of_every_layer(run: Any, cfg: Any) -> None:
    graphgym = run(*HEAD, "gnn.stage_type", "stack_history")
    model = graphgym.create_model().model
    batch = model.pre_mp(model.encoder(a_batch()))
    start = batch.x.clone()
    batch = model.mp(batch)
    assert len(batch.history) == 3
    assert all(x.shape == (batch.num_nodes, 8) for x in batch.history)
    torch.testing.assert_close(batch.history[0], start)
    torch.testing.assert_close(batch.history[-1], batch.x)


@pytest.mark.parametrize("options", [{}, {"hidden_channels": 12, "heads": 3}])
def test_histograph_head_sees_all_layers(
    options: dict[str, int], run: Any, cfg: Any
) -> None:
    graphgym = run(*HEAD, "gnn.stage_type", "stack_history")
    cfg.pyg_pool.readout = ["histograph", "mean"]
    if options:
        cfg.pyg_pool.readout_kwargs.histograph = type(cfg)(options)
    model = graphgym.create_model().model
    readout = model.post_mp.readouts[0]
    assert readout.form.widths == (8, 8, 8)
    assert readout.hidden_channels == options.get("hidden_channels", 8)
    out, labels = model(a_batch())
    assert out.size(0) == labels.size(0) == 4
    out.sum().backward()
    assert all(p.grad is not None for p in readout.parameters())


def test_histograph_head_needs_the_history(run: Any, cfg: Any) -> None:
    graphgym = run(*HEAD, "gnn.stage_type", "stack")
    cfg.pyg_pool.readout = "histograph"
    model = graphgym.create_model()
    with pytest.raises(ValueError, match=r"without history.*stage_type to stack_his"):
        model(a_batch())
    cfg.pyg_pool.levels = "sum"
    with pytest.raises(ValueError, match="expected 'last', as layers are not levels"):
        graphgym.create_model()


def test_gpool_stage_keeps_the_batch_consistent(run: Any, cfg: Any) -> None:
    graphgym = run(*HEAD, "gnn.stage_type", "gpool", "pyg_pool.ratio", 0.75)
    model = graphgym.create_model().model
    before = a_batch()
    before.pos = torch.arange(before.num_nodes).view(-1, 1).float()
    ends = before.edge_index.float().t()
    before.edge_ends = ends  # which fine nodes an edge joined
    after = model.mp(model.pre_mp(model.encoder(before)))
    assert after.num_graphs == 4
    count = torch.bincount(after.batch, minlength=4)
    assert count.tolist() == [3, 3, 3, 0]  # 3, 4 and 5 nodes pooled twice, rounded up
    assert after.ptr.tolist() == [0, *count.cumsum(0).tolist()]
    assert after.y.tolist() == before.y.tolist()
    assert after.x.shape == (9, 8)
    assert 0 < after.num_edges < before.num_edges
    # The k-th row of everything is the same node, and edges join the same nodes.
    kept = after.pos.view(-1).long()
    assert before.batch[kept].equal(after.batch)
    assert kept[after.edge_index].t().float().equal(after.edge_ends)
    assert after.edge_weight.shape == (after.num_edges,)
    assert [x.size(0) for x, _ in after.pooled_levels][-1] == 9
    with pytest.raises(RuntimeError, match="Cannot reconstruct"):
        after.to_data_list()
