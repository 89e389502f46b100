"""Measures one side against another: alternating times, peak memory, records.

A row names two sides, ours and a peer. One step is the forward pass, the sum of
squares over all floating outputs, and the backward pass to inputs and parameters;
gradients are dropped between steps, outside the clock. Times are taken in one fresh
process in which both sides alternate; the figure is the median of the quotients
peer / ours over at least nine pairs after two warm-up pairs. Peak memory is taken
in a fresh process per row and side, as the rise of the resident peak above the
level just before the first step; large blocks are mapped one by one there, so that
the figure is what a step holds and not what the allocator keeps.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import multiprocessing
import resource
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.inputs import GraphInput, load_graphs

MIN_PAIRS = 9
MAX_PAIRS = 400
MIN_SECONDS = 2.0
WARMUPS = 2
MEMORY_STEPS = 2
M_MMAP_THRESHOLD = -3  # from glibc's malloc.h
CLEAR_REFS = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")

Forward = Callable[[Tensor, Tensor], Sequence[Tensor]]


@dataclass(frozen=True)
class Side:
    """One contestant of a row.

    Args:
        label: Full name of what is measured.
        build: Given the input, returns the modules whose parameters get gradients
            and a function from node features and edge weights to all floating
            outputs.
        needs: Import names without which the side cannot be measured.
    """

    label: str
    build: Callable[[GraphInput], tuple[Sequence[torch.nn.Module], Forward]]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """Ours against a peer, on some inputs.

    Args:
        name: Key of the row inside its file.
        ours: Our side.
        peer: The peer's side.
        inputs: Names of the inputs the row runs on.
        weight_gradient: Whether edge weights require a gradient.
        note: What a reader must know beside the figures.
        check: Facts to record beside the figures, computed once from the input.
    """

    name: str
    ours: Side
    peer: Side
    inputs: tuple[str, ...] = ("a", "b", "c")
    weight_gradient: bool = True
    note: str = ""
    check: Callable[[GraphInput], dict[str, float]] | None = None


@dataclass(frozen=True)
class Job:
    """One line of the result table: a row on one input under one setting."""

    bench: str
    row: str
    input: str
    shuffled: bool = False
    threads: int = 1


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of a sample."""

    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarise at least two values; quartiles interpolate between them."""
        q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median=median, q1=q1, q3=q3)


@dataclass(frozen=True)
class PairTimes:
    """Seconds of both sides, pair by pair, without the warm-ups."""

    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    @property
    def quotients(self) -> list[float]:
        """How many times faster ours was, pair by pair."""
        return [p / o for o, p in zip(self.ours, self.peer, strict=True)]


def _dot(out: Tensor) -> Tensor:
    """Sum of squares, in one pass."""
    flat = out.reshape(-1)
    return flat.dot(flat)


class Step:
    """Forward, sum of squares, backward; ``clear`` drops the gradients after it."""

    def __init__(self, side: Side, graph: GraphInput, *, weight_gradient: bool) -> None:
        """Build the side and take copies of the input that require gradients."""
        torch.manual_seed(0)
        self.modules, self.forward = side.build(graph)
        self.x = graph.x.detach().clone().requires_grad_()
        self.edge_weight = (
            graph.edge_weight.detach().clone().requires_grad_(weight_gradient)
        )
        self.losses: list[Tensor] = []

    @property
    def loss(self) -> float:
        """The sum of squares of the last step."""
        return sum(float(loss) for loss in self.losses)

    def __call__(self) -> None:
        """Run one step."""
        outputs = self.forward(self.x, self.edge_weight)
        plain = [out.detach() for out in outputs]
        self.losses = [_dot(out) for out in plain]
        pairs = zip(outputs, plain, strict=True)
        learned = [pair for pair in pairs if pair[0].requires_grad]
        # Both sides pay for the squares alike, so they should cost as little as can
        # be: their gradient is handed over, not found by steps of autograd.
        torch.autograd.backward(
            [out for out, _ in learned], [values + values for _, values in learned]
        )

    def clear(self) -> None:
        """Drop all gradients."""
        self.x.grad = self.edge_weight.grad = None
        for module in self.modules:
            module.zero_grad(set_to_none=True)


def _nothing() -> None:
    """Stand-in for a step, or for what follows a step that keeps nothing."""


def measure_pairs(
    ours: Callable[[], None],
    peer: Callable[[], None],
    *,
    pairs: int = MIN_PAIRS,
    warmups: int = WARMUPS,
    min_seconds: float = 0.0,
    clear: Callable[[], None] = _nothing,
    clock: Callable[[], float] = time.perf_counter,
) -> PairTimes:
    """Time two steps in turn; who goes first changes from pair to pair.

    Args:
        ours: Our step.
        peer: The peer's step.
        pairs: Least number of pairs that count.
        warmups: Number of pairs before them that do not count.
        min_seconds: Go on, for at most 400 pairs, until the pairs took this long.
        clear: Called after each step, outside the clock.
        clock: Returns seconds.

    Returns:
        The times of the pairs that count.
    """

    def timed(step: Callable[[], None]) -> float:
        start = clock()
        step()
        seconds = clock() - start
        clear()
        return seconds

    times = PairTimes()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for pair in range(-warmups, max(pairs, MAX_PAIRS)):
            if pair >= pairs and sum(times.ours) + sum(times.peer) >= min_seconds:
                break
            gc.collect()
            if pair <= 0:
                # What exists by now, also what the warm-ups have loaded, is left out
                # of later collections: a full one empties the caches and so slows the
                # step that comes after it.
                gc.freeze()
            if pair % 2:
                theirs, own = timed(peer), timed(ours)
            else:
                own, theirs = timed(ours), timed(peer)
            if pair >= 0:
                times.ours.append(own)
                times.peer.append(theirs)
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
    return times


def _status_bytes(key: str) -> int:
    """Read one field of the process status, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{STATUS} has no field {key}; this system cannot be measured.")


def _map_large_blocks() -> None:
    """Have glibc map and unmap every large block on its own.

    Otherwise it keeps freed blocks by a rule that depends on what came before, and
    the same step differs by half from process to process.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, 2**16)


def _give_back_freed_memory() -> None:
    """Return freed memory to the system, lest a step use it without being seen."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _reset_peak() -> bool:
    """Set the resident peak to the present level; False where it is forbidden."""
    try:
        CLEAR_REFS.write_text("5")
    except OSError:
        return False
    return True


class PeakMeter:
    """Measures how far the resident peak rises above the level at its creation.

    Where the system does not let the peak be reset, the process's peak since its
    start counts, so the figure can only be too high.
    """

    def __init__(self) -> None:
        """Note the level."""
        _give_back_freed_memory()
        self.is_reset = _reset_peak()
        self.level = _status_bytes("VmRSS")

    def rise(self) -> int:
        """Return the rise up to now, in bytes."""
        if self.is_reset:
            peak = _status_bytes("VmHWM")
        else:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return max(0, peak - self.level)


def peak_rise(step: Callable[[], None], clear: Callable[[], None] = _nothing) -> int:
    """Return by how many bytes a few steps raise the resident peak."""
    meter = PeakMeter()
    for _ in range(MEMORY_STEPS):
        step()
        clear()
    return meter.rise()


def _limit_memory() -> None:
    """Let a step that asks for too much fail, before the system ends processes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            limit = int(0.9 * int(line.split()[1])) * 1024
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def find_row(bench: str, name: str) -> Row:
    """Return a row of a benchmark file by its name."""
    rows: tuple[Row, ...] = importlib.import_module(f"benchmarks.{bench}").ROWS
    for row in rows:
        if row.name == name:
            return row
    known = ", ".join(row.name for row in rows)
    raise ValueError(f"{bench} got the row {name!r}, expected one of {known}.")


def absent_packages(row: Row) -> list[str]:
    """Return the packages a row needs that are not installed."""
    needs = dict.fromkeys(row.ours.needs + row.peer.needs)
    return [name for name in needs if importlib.util.find_spec(name) is None]


def _prepare(job: Job) -> tuple[Row, GraphInput]:
    """Set the threads and load the row and the input inside a child process."""
    # PyG's sparse tensors warn about their beta state once per process.
    warnings.filterwarnings("ignore", message=".*[Ss]parse.*")
    torch.set_num_threads(job.threads)
    _limit_memory()
    return find_row(job.bench, job.row), load_graphs(job.input, shuffled=job.shuffled)


def time_job(job: Job, pairs: int) -> dict[str, Any]:
    """Time both sides of a job in this process."""
    row, graph = _prepare(job)
    ours = Step(row.ours, graph, weight_gradient=row.weight_gradient)
    peer = Step(row.peer, graph, weight_gradient=row.weight_gradient)

    def clear() -> None:
        ours.clear()
        peer.clear()

    times = measure_pairs(ours, peer, pairs=pairs, min_seconds=MIN_SECONDS, clear=clear)
    facts = row.check(graph) if row.check is not None else {}
    scale = max(abs(ours.loss), abs(peer.loss), torch.finfo(torch.float32).tiny)
    return {
        "pairs": len(times.ours),
        "quotient": vars(Spread.of(times.quotients)),
        "ours_seconds": vars(Spread.of(times.ours)),
        "peer_seconds": vars(Spread.of(times.peer)),
        "loss_gap": abs(ours.loss - peer.loss) / scale,
        "facts": facts,
    }


def time_alone(job: Job, pairs: int) -> dict[str, Any]:
    """Time our side of a job only, where the peer cannot run it."""
    row, graph = _prepare(job)
    ours = Step(row.ours, graph, weight_gradient=row.weight_gradient)
    times = measure_pairs(
        ours, _nothing, pairs=pairs, min_seconds=MIN_SECONDS, clear=ours.clear
    )
    return {"pairs": len(times.ours), "ours_seconds": vars(Spread.of(times.ours))}


def memory_job(job: Job, which: str) -> dict[str, Any]:
    """Measure the peak of one side of a job in this process.

    The first figure includes what the first step loads and keeps; the later one is
    taken again after them. Where a step fails, the first figure is how far it got.
    """
    _map_large_blocks()
    row, graph = _prepare(job)
    side = row.ours if which == "ours" else row.peer
    step = Step(side, graph, weight_gradient=row.weight_gradient)
    meter = PeakMeter()
    try:
        first = peak_rise(step, step.clear)
        later = peak_rise(step, step.clear)
    except (RuntimeError, MemoryError) as error:
        return {"error": _one_line(error), f"{which}_peak_bytes": meter.rise()}
    return {f"{which}_peak_bytes": first, f"{which}_later_peak_bytes": later}


def _one_line(error: Exception) -> str:
    """The kind and the first line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _child(pipe: Connection, task: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Run a task in a fresh process and send back its result or its error."""
    try:
        result: dict[str, Any] = task(*args)
    except Exception as error:  # noqa: BLE001 - the parent reports whatever it was
        result = {"error": _one_line(error)}
    pipe.send(result)
    pipe.close()


def in_child(
    task: Callable[..., Any], *args: Any, limit: float | None = None
) -> dict[str, Any]:
    """Run a task in a fresh process; ``{"error": why}`` where it did not end well."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, task, args))
    process.start()
    sender.close()
    try:
        if not receiver.poll(limit):
            process.kill()
            return {"error": f"stopped after {limit:.0f} s"}
        result: dict[str, Any] = receiver.recv()
    except EOFError:
        process.join()
        return {"error": f"process died with exit code {process.exitcode}"}
    finally:
        process.join()
        receiver.close()
    return result
