"""The benchmark inputs have the promised properties; the statistics are right."""

from __future__ import annotations

import itertools
import json
import mmap
import random
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GINConv

from benchmarks import (
    extrapolation,
    gpu,
    harness,
    mesh_training,
    readout_table,
    record,
    report,
    token_distractors,
)
from benchmarks import extrapolation_tasks as tasks
from benchmarks.__main__ import bench_files
from benchmarks.bench_readouts import ROWS as READOUT_ROWS
from benchmarks.gin_backbone import gin_layer
from benchmarks.inputs import GRAPH_INPUTS, GraphInput, load_graphs, load_segments
from benchmarks.readout_table import batches, mlp
from benchmarks.runner import main
from pyg_pool.train import GraphDataset, GraphStore, Split

SIZES = {
    "a": (3_260, 6_740, 128),
    "b": (9_630, 38_500, 32),
    "c": (100_000, 1_000_000, 1),
    "d": (5_000, 50_000, 1),
}


def edge_keys(graph: GraphInput) -> Tensor:
    return graph.edge_index[0] * graph.x.size(0) + graph.edge_index[1]


@pytest.mark.parametrize("name", GRAPH_INPUTS)
def test_sizes(name: str) -> None:
    graph = load_graphs(name)
    nodes, columns, graphs = SIZES[name]
    assert graph.x.size(0) == pytest.approx(nodes, rel=0.015)
    assert graph.edge_index.size(1) == pytest.approx(columns, rel=0.015)
    assert graph.x.shape == (graph.batch.numel(), 64)
    assert graph.num_graphs == graphs == int(graph.batch.max()) + 1
    assert graph.x.dtype == graph.edge_weight.dtype == torch.float32


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("name", GRAPH_INPUTS)
def test_edges_are_simple_and_symmetric(name: str, shuffled: bool) -> None:
    graph = load_graphs(name, shuffled=shuffled)
    row, column = graph.edge_index
    keys, order = edge_keys(graph).sort()
    back, back_order = (column * graph.x.size(0) + row).sort()
    assert (row != column).all()
    assert (keys.diff() > 0).all()
    torch.testing.assert_close(keys, back)
    torch.testing.assert_close(graph.edge_weight[order], graph.edge_weight[back_order])
    assert (graph.batch[row] == graph.batch[column]).all()
    assert 0.5 <= float(graph.edge_weight.min()) < 0.55
    assert 1.45 < float(graph.edge_weight.max()) <= 1.5


def test_molecules_are_trees_with_few_rings() -> None:
    graph = load_graphs("a")
    sizes = torch.bincount(graph.batch)
    edges = torch.bincount(graph.batch[graph.edge_index[0]]) // 2
    assert (int(sizes.min()), int(sizes.max())) == (18, 32)
    assert int(torch.bincount(graph.edge_index[0]).max()) == 4
    assert ((edges >= sizes - 1) & (edges <= sizes + 1)).all()
    parts = torch.arange(graph.x.size(0))
    for _ in range(32):
        parts.scatter_reduce_(
            0, graph.edge_index[0], parts[graph.edge_index[1]], "amin"
        )
    assert parts.unique().numel() == graph.num_graphs


def test_random_graphs_have_four_columns_a_node() -> None:
    graph = load_graphs("b")
    sizes = torch.bincount(graph.batch)
    assert int(sizes.min()) >= 270
    assert int(sizes.max()) <= 330
    torch.testing.assert_close(
        torch.bincount(graph.batch[graph.edge_index[0]]), 4 * sizes
    )


@pytest.mark.parametrize("name", ["c", "d"])
def test_half_of_the_edges_are_local(name: str) -> None:
    graph = load_graphs(name)
    row, column = graph.edge_index
    share = ((row - column).abs() <= 50).double().mean().item()
    by_chance = 0.5 * 101 / graph.x.size(0)
    assert share == pytest.approx(0.5 + by_chance, abs=0.003)


def test_shuffling_renumbers_and_changes_no_graph() -> None:
    plain, shuffled = load_graphs("b"), load_graphs("b", shuffled=True)
    assert (plain.batch.diff() >= 0).all()
    assert (shuffled.batch.diff() < 0).any()
    torch.testing.assert_close(
        torch.bincount(plain.batch), torch.bincount(shuffled.batch)
    )
    for end in (0, 1):
        torch.testing.assert_close(
            shuffled.x[shuffled.edge_index[end]], plain.x[plain.edge_index[end]]
        )
    torch.testing.assert_close(shuffled.edge_weight, plain.edge_weight)


@pytest.mark.parametrize("shuffled", [False, True])
def test_inputs_are_kept_and_repeatable(shuffled: bool) -> None:
    first = load_graphs("a", shuffled=shuffled)
    assert load_graphs("a", shuffled=shuffled) is first
    load_graphs.cache_clear()
    again = load_graphs("a", shuffled=shuffled)
    assert again is not first
    for key, value in vars(first).items():
        torch.testing.assert_close(getattr(again, key), value, rtol=0, atol=0)


def test_inputs_do_not_change_unnoticed() -> None:
    graph = load_graphs("a")
    assert graph.x.size(0) == 3_220
    assert graph.edge_index.size(1) == 6_696
    assert graph.x[0, 0].item() == pytest.approx(-0.714227, abs=1e-5)
    assert graph.edge_weight.double().sum().item() == pytest.approx(6688.087, abs=1e-2)


def test_unknown_input_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'e', expected one of a, b, c, d; segments"):
        load_graphs("e")


@pytest.mark.parametrize("shuffled", [False, True])
def test_segments_follow_a_power_law(shuffled: bool) -> None:
    data = load_segments(shuffled=shuffled)
    assert data.sizes.numel() == 2_000
    assert int(data.sizes.max()) == 20_000
    assert int(data.sizes.sum()) == pytest.approx(100_000, rel=0.01)
    torch.testing.assert_close(torch.bincount(data.index), data.sizes)
    assert bool((data.index.diff() >= 0).all()) is not shuffled
    # A density ~ size^-2 has its counts above a size fall like 1 / size.
    above = [int((data.sizes > size).sum()) for size in (20, 40, 80, 160)]
    for more, fewer in itertools.pairwise(above):
        assert more / fewer == pytest.approx(2.0, rel=0.1)


class FakeClock:
    """Time passes only when a step says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def step(self, name: str, *seconds: float) -> StepOf:
        return StepOf(self, name, list(seconds))


class StepOf:
    def __init__(self, clock: FakeClock, name: str, seconds: list[float]) -> None:
        self.clock, self.name, self.seconds = clock, name, seconds

    def __call__(self) -> None:
        self.clock.calls.append(self.name)
        self.clock.now += self.seconds[len(self.seconds) > 1 and self.count() - 1]

    def count(self) -> int:
        return self.clock.calls.count(self.name)


def test_pairs_alternate_after_the_warm_ups() -> None:
    clock = FakeClock()
    ours = clock.step("ours", 100, 100, 1, 2, 4)
    peer = clock.step("peer", 900, 900, 3, 4, 20)
    times = harness.measure_pairs(ours, peer, pairs=3, warmups=2, clock=clock)
    assert times.ours == [1, 2, 4]
    assert times.peer == [3, 4, 20]
    assert times.quotients == [3, 2, 5]
    assert clock.calls[4:] == ["ours", "peer", "peer", "ours", "ours", "peer"]


def test_what_follows_a_step_is_not_timed() -> None:
    clock = FakeClock()

    def clear() -> None:
        clock.now += 1_000

    times = harness.measure_pairs(
        clock.step("ours", 1),
        clock.step("peer", 2),
        pairs=9,
        clear=clear,
        clock=clock,
    )
    assert times.ours == [1] * 9
    assert times.peer == [2] * 9


@pytest.mark.parametrize(
    ("seconds", "pairs"), [(1.0, 9), (0.05, 20), (0.001, harness.MAX_PAIRS)]
)
def test_short_steps_are_repeated_more_often(seconds: float, pairs: int) -> None:
    clock = FakeClock()
    times = harness.measure_pairs(
        clock.step("ours", seconds),
        clock.step("peer", seconds),
        min_seconds=2 - 1e-9,
        clock=clock,
    )
    assert len(times.ours) == len(times.peer) == pairs


def test_spread_is_median_and_quartiles() -> None:
    spread = harness.Spread.of([9, 1, 3, 7, 5])
    assert spread == harness.Spread(median=5, q1=3, q3=7)


@pytest.mark.skipif(not harness.STATUS.exists(), reason="reads the process status")
def test_peak_rise_sees_what_a_step_frees_again() -> None:
    size = 64 * 2**20

    def step() -> None:
        with mmap.mmap(-1, size) as block:
            for page in range(0, size, mmap.PAGESIZE):
                block[page] = 1

    assert harness.peak_rise(step) == pytest.approx(size, rel=0.1)
    assert harness.peak_rise(lambda: None) < 0.1 * size


def side(scale: float) -> harness.Side:
    layer = torch.nn.Linear(64, 1, bias=False)

    def build(graph: GraphInput) -> tuple[list[torch.nn.Module], harness.Forward]:
        return [layer], lambda x, weight: [scale * x, weight, layer(x)]

    return harness.Side("side", build)


def test_every_benchmark_file_has_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(bench_files(), ["--list"]) == 0
    listed = capsys.readouterr().out
    for name in bench_files():
        assert name in listed


def test_step_is_sum_of_squares_with_gradients() -> None:
    graph = load_graphs("a")
    step = harness.Step(side(3.0), graph, weight_gradient=True)
    step()
    (layer,) = step.modules
    out = graph.x @ layer.weight.detach().t()
    squares = 9 * graph.x.square().sum() + graph.edge_weight.square().sum()
    assert step.loss == pytest.approx(float(squares + out.square().sum()), rel=1e-5)
    torch.testing.assert_close(step.edge_weight.grad, 2 * graph.edge_weight)
    torch.testing.assert_close(
        step.x.grad, 18 * graph.x + 2 * out * layer.weight.detach()
    )
    assert layer.weight.grad is not None
    step.clear()
    assert step.x.grad is step.edge_weight.grad is layer.weight.grad is None
    assert graph.x.grad is None


def test_step_can_hold_edge_weights_constant() -> None:
    step = harness.Step(side(1.0), load_graphs("a"), weight_gradient=False)
    step()
    assert step.edge_weight.grad is None


def entry(**changes: object) -> dict[str, object]:
    return {
        "schema": record.SCHEMA,
        "status": "measured",
        "date": "2020-01-01T00:00:00+00:00",
        "commit": "abc",
        "machine": "processor",
        "load": 0.0,
        "versions": {"torch": "2"},
        "bench": "bench_one",
        "row": "plain",
        "input": "a",
        "shuffled": False,
        "threads": 1,
        "ours": "us",
        "peer": "them",
        "note": "",
        "quotient": {"median": 2.0, "q1": 1.9, "q3": 2.25},
        "ours_seconds": {"median": 0.001, "q1": 0.001, "q3": 0.001},
        "peer_seconds": {"median": 0.002, "q1": 0.002, "q3": 0.002},
        "ours_peak_bytes": 10_000_000,
        "peer_peak_bytes": 50_000_000,
        "ours_later_peak_bytes": 2_000_000,
        "loss_gap": 0.0,
        "facts": {},
        **changes,
    }


def test_records_are_appended_whole(tmp_path: Path) -> None:
    path = tmp_path / "results" / "bench_one.jsonl"
    record.append(path, entry(row="plain"))
    record.append(path, entry(row="square"))
    assert [line["row"] for line in record.read_all(path.parent)] == ["plain", "square"]
    assert [file.name for file in path.parent.iterdir()] == ["bench_one.jsonl"]
    path.write_text(json.dumps({"schema": 0}) + "\n")
    with pytest.raises(ValueError, match="line 1 has schema 0, expected 1; measure"):
        record.read_all(path.parent)


def test_surroundings_are_complete_and_name_no_host() -> None:
    about = record.surroundings()
    assert {"torch", "torch-geometric", "pyg_pool"} <= set(about["versions"])
    assert {"date", "commit", "machine", "load"} <= set(about)
    host = Path("/proc/sys/kernel/hostname")
    if host.exists():
        assert host.read_text().strip() not in json.dumps(about)


def test_finished_mesh_trainings_are_recorded(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    run = {
        "format": 1, "name": "", "seed": 0, "epochs": 2, "majority": 0.5,
        "num_faces": 10, "epoch_seconds": 1.0, "area_weighted": 0.5,
    }  # fmt: skip
    out, results = tmp_path / "run", tmp_path / "results"
    for name, score in (("Cup", 0.9), ("Hand", 0.4)):
        folder = out / f"{name}-seed0"
        folder.mkdir(parents=True)
        result = {**run, "dataset": name, "test_score": score}
        (folder / "result.json").write_text(json.dumps(result))
        (folder / "metrics.jsonl").write_text('{"epoch": 0, "seconds": 1.5}\n' * 2)
    (out / "unfinished-seed0").mkdir()
    (out / "config.yaml").write_text("format: 1\ndata: /secret\nlr: 0.1\n")
    words = ["princeton", "--out", str(out), "--results", str(results)]
    assert mesh_training.main([*words, "--record-only", "--commit", "abc"]) == 0
    cup, hand, mean = record.read_all(results)
    assert (cup["dataset"], cup["seconds"], cup["commit"]) == ("Cup", 3.0, "abc")
    assert (hand["test_score"], hand["settings"]) == (0.4, {"lr": 0.1})
    assert mean["dataset"] == "mean of 2"
    assert (mean["test_score"], mean["num_faces"]) == (pytest.approx(0.65), 20)
    assert "torch" in mean["versions"]


def test_page_shows_the_latest_record_of_a_row() -> None:
    page = report.markdown([entry(), entry(quotient={"median": 4, "q1": 3, "q3": 5})])
    assert (
        "| plain | a | sorted | 1 | 1 | 2 | 4.00 (3.00 to 5.00) | 10.0 | 50.0 | 5.00 |"
        " 2.0 | - |"
    ) in page
    assert "2.00 (1.90" not in page


def test_tables_say_what_went_wrong() -> None:
    skipped = entry(status="skipped", reason="tgp not installed", note="Odd.")
    failed = entry(status="peer failed", reason="no memory")
    gap = entry(loss_gap=0.5)
    table = report.text_table([skipped, failed, gap])
    assert "SKIPPED plain on a: tgp not installed" in table
    assert "PEER FAILED plain on a: no memory" in table
    assert "plain: Odd." in table
    assert "losses differ by 50.0%" in table
    page = report.markdown([failed])
    assert "| peer failed | 10.0 | over 50.0 | over 5.00 |" in page
    assert "- PEER FAILED plain on a: no memory" in page


def test_largest_degrees_and_families() -> None:
    task = tasks.TASKS["max_degree"]
    wanted = {"path": 2, "cycle": 2, "ladder": 3, "4regular": 4}
    for family in tasks.FAMILIES:
        for sample in tasks.samples_of(task, "train", 3, family, 0):
            size, (row, column) = sample.x.size(0), sample.edge_index
            degree = torch.bincount(row, minlength=size)
            assert 20 <= size < 30
            assert sample.x.abs().max() <= 5
            assert torch.equal(degree, torch.bincount(column, minlength=size))
            assert float(sample.y) == int(degree.max())
            assert int(degree.max()) == wanted.get(family, int(degree.max()))
            assert family != "tree" or row.numel() == 2 * (size - 1)
            assert family != "complete" or row.numel() == size * (size - 1)
    big = tasks.samples_of(task, "test", 5, "path", 0)
    assert all(50 <= sample.x.size(0) < 100 for sample in big)
    assert max(float(sample.x.abs().max()) for sample in big) > 9
    inside = tasks.samples_of(task, "test_inside", 5, "path", 0)
    assert max(float(sample.x.abs().max()) for sample in inside) <= 5


def test_lengths_of_shortest_paths() -> None:
    networkx = pytest.importorskip("networkx")
    for sample in tasks.samples_of(tasks.TASKS["shortest_path"], "train", 5, "tree", 1):
        graph = networkx.DiGraph()
        for (a, b), w in zip(
            sample.edge_index.t().tolist(), sample.edge_attr.view(-1).tolist(),
            strict=True,
        ):  # fmt: skip
            graph.add_edge(a, b, weight=w)
        source, target = (int(sample.x[:, i].argmax()) for i in (1, 2))
        length, path = networkx.single_source_dijkstra(graph, source, target)
        assert float(sample.y) == pytest.approx(length, rel=1e-5)
        assert 2 <= len(path) <= 4
        assert sample.edge_attr.min() >= 1
        assert sample.edge_attr.max() <= 5


def test_bodies_keep_their_distances_and_momentum() -> None:
    task = tasks.TASKS["n_body_force"]
    for part, low, high in (("train", 30.0, 1e9), ("test", 0.0, 20.0)):
        for sample in tasks.samples_of(task, part, 5, "general", 2):
            place = sample.x[:, 1:3]
            gap = torch.pdist(place)
            assert low < float(gap.min())
            assert float(gap.max()) < high
            # The engineered term is the whole change of the velocity.
            change = torch.zeros(3, 2).index_add(
                0, sample.edge_index[1], sample.edge_attr
            )
            torch.testing.assert_close(
                sample.x[:, 3:] + change, sample.y, rtol=1e-4, atol=1e-2
            )
    heavy = tasks.samples_of(task, "test_mass", 1, "general", 2)[0]
    assert float(heavy.x[0, 0]) == 200.0


@pytest.mark.parametrize("statistic", tasks.STATISTICS)
def test_statistics_of_sets(statistic: str) -> None:
    task = tasks.TASKS[f"set_{statistic}"]
    for part, low, high in (("train", 20, 40), ("test", 200, 400)):
        for sample in tasks.samples_of(task, part, 4, "general", 3):
            x = sample.x.view(-1)
            found = {
                "mean": x.mean(), "std": x.std(correction=0), "max": x.max(),
                "count": float(x.numel()),
            }[statistic]  # fmt: skip
            assert low <= x.numel() <= high
            assert float(sample.y) == pytest.approx(float(found), rel=1e-4)


def test_extrapolation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    words = ["--task", "set_max", "--samples", "20", "10", "10", "--pooling",
             "none-gnp", "none-max", "--out", str(tmp_path)]  # fmt: skip
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    extrapolation.main([*words, "--epochs", "3", "--runs", str(whole)])
    lines = extrapolation.finished(tmp_path / extrapolation.FILE)
    assert len(lines) == 2
    (tmp_path / extrapolation.FILE).unlink()
    extrapolation.main([*words, "--epochs", "2", "--runs", str(parts)])
    extrapolation.main([*words, "--epochs", "3", "--runs", str(parts)])
    again = extrapolation.finished(tmp_path / extrapolation.FILE)
    for key, line in lines.items():
        for mine, theirs in zip(again[key]["curve"], line["curve"], strict=True):
            assert mine == pytest.approx(theirs)
        assert again[key]["last"] == pytest.approx(line["last"])
    assert "none-max" in extrapolation.table(list(again.values()))


@pytest.mark.parametrize("ratio", [0.2, 0.9])
def test_balanced_sentences_leak_nothing(ratio: float) -> None:
    chance = random.Random(5)
    drawn = [token_distractors.balanced(chance, ratio) for _ in range(400)]
    assert len({len(s.words) for s in drawn}) == 1
    denials = set(token_distractors.DENIALS)
    assert all(sum(word in denials for word in s.words) == 1 for s in drawn)
    assert 150 < sum(s.label for s in drawn) < 250
    assert 40 < token_distractors.word_only(drawn) < 60
    assert 40 < token_distractors.length_only(drawn[:200], drawn[200:]) < 60


def test_released_sentences_leak_their_length() -> None:
    chance = random.Random(5)
    drawn = [token_distractors.released(chance, 0.9) for _ in range(400)]
    lengths = {
        label: {len(s.words) for s in drawn if s.label == label} for label in (0, 1)
    }
    assert lengths == {0: {130, 131}, 1: {119, 120}}
    assert token_distractors.length_only(drawn[:200], drawn[200:]) == 100.0


def test_distractors_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--samples", "24", "8", "8", "--epochs", "1", "--ratio", "0.2", "--out",
             str(tmp_path)]  # fmt: skip
    for _ in range(2):
        token_distractors.main(words)
    lines = (tmp_path / token_distractors.FILE).read_text().splitlines()
    assert [json.loads(line)["readout"] for line in lines] == list(
        token_distractors.READOUTS
    )
    assert capsys.readouterr().out.count("balanced 20%") == 5


def plain_layer(
    conv: GINConv, norm: torch.nn.Module, x: Tensor, edges: Tensor, _: Tensor
) -> Tensor:
    out: Tensor = norm(conv(x, edges)).relu()
    return out


@pytest.mark.parametrize("training", [True, False])
def test_backbone_of_the_readout_table_is_gin(training: bool) -> None:
    graph = load_graphs("a")
    x = graph.x[:200].double().requires_grad_()
    edges = graph.edge_index[:, (graph.edge_index < 200).all(0)]
    results = []
    for run in (plain_layer, gin_layer):
        torch.manual_seed(0)
        conv = GINConv(mlp(64, 16, 16), eps=0.3, train_eps=True).double()
        norm = torch.nn.BatchNorm1d(16).double().train(training)
        out = run(conv, norm, x, edges, edges.flip(0))
        weights = [x, *conv.parameters(), *norm.parameters()]
        slopes = torch.autograd.grad(out.square().sum(), weights)
        results.append([out, *slopes, *norm.buffers()])
    for wanted, found in zip(*results, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_batches_of_an_epoch_are_those_of_the_store() -> None:
    made = torch.Generator().manual_seed(0)
    graphs = GraphStore.from_graphs(
        Data(
            x=torch.rand(nodes, 2, generator=made),
            edge_index=torch.randint(nodes, (2, 2 * nodes), generator=made),
            y=torch.tensor([nodes]),
        )
        for nodes in (3, 1, 4, 2, 5)
    )
    found = list(batches(graphs, 2))
    assert len(found) == 2  # the last would have one graph
    for part, chosen in zip(found, ([0, 1], [2, 3]), strict=True):
        wanted = graphs.batch(chosen)
        for name, value in part._asdict().items():
            assert torch.equal(value, wanted[name])


def test_readout_table_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = GraphStore.from_graphs(
        Data(x=torch.full((3, 2), float(i)), edge_index=edge, y=torch.tensor([i % 2]))
        for i, edge in enumerate([torch.tensor([[0, 1], [1, 2]])] * 12)
    )
    part = torch.arange(12).split(4)
    dataset = GraphDataset(
        name="made", graphs=graphs, task="multiclass", num_outputs=2,
        metric="accuracy", splits=(Split(*part), Split(*part[::-1])),
        feature_kind="float",
    )  # fmt: skip
    monkeypatch.setattr(readout_table, "load_dataset", lambda *_, **__: dataset)
    words = ["made", "--out", str(tmp_path), "--epochs", "2", "--readouts", "mean"]
    readout_table.main([*words, "--folds", "0"])
    readout_table.main([*words, "gnp", "histograph"])
    lines = readout_table.read_results(tmp_path / readout_table.RESULTS)
    assert [(line["fold"], line["readout"]) for line in lines] == [
        (0, "mean"), (0, "gnp"), (0, "histograph"),
        (1, "mean"), (1, "gnp"), (1, "histograph"),
    ]  # fmt: skip
    assert all(line["epochs_run"] == 2 and 0 <= line["test"] <= 1 for line in lines)
    capsys.readouterr()
    readout_table.main([*words, "--show"])
    assert "| made | accuracy | 2 | histograph | 2 |" in capsys.readouterr().out


def test_script_for_a_device_runs_through_without_one(tmp_path: Path) -> None:
    out = tmp_path / "gpu.json"
    assert gpu.main(["--dry", "--out", str(out)]) == 0
    found = json.loads(out.read_text(encoding="utf-8"))["records"]
    assert [row["row"] for row in found[: len(gpu.SEGMENTS)]] == list(gpu.SEGMENTS)
    assert {"topk", "parse", "GPool", "GNPAggregation"} <= {r["row"] for r in found}
    assert all(row["triton_seconds"] > 0 for row in found)


def test_targets_of_a_device_are_judged() -> None:
    base = {"shuffled": False, "gain": 2.9, "share_of_bandwidth": 0.7}
    lines = gpu.targets([{**base, "row": "sum"}, {**base, "row": "pnorm"}])
    assert [line.split(":")[0] for line in lines] == ["met", "MISSED"]


def test_readouts_stand_beside_all_their_relatives() -> None:
    peers = {row.peer.label.partition("(")[0].split(".")[-1] for row in READOUT_ROWS}
    assert {
        "PowerMeanAggregation", "SoftmaxAggregation", "AttentionalAggregation",
        "GraphMultisetTransformer", "SetTransformerAggregation", "Set2Set",
    } <= peers  # fmt: skip
    inputs = {row.name: set(row.inputs) for row in READOUT_ROWS}
    assert inputs["gnp"] == {"a", "b", "c"}
    assert inputs["histograph"] == inputs["glot_sets"] == {"a", "b", "d"}
    assert "c" in inputs["histograph_induced_gmt"]
