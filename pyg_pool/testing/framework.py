"""Checks that poolings and readouts share: files, copies, compilation, options."""

from __future__ import annotations

import copy
import functools
import inspect
import io
import math
import pickle
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from pyg_pool.kernels import available_backends, use_backend
from pyg_pool.testing.contract import (
    POOLING_CHECKS,
    READOUT_CHECKS,
    OperatorSpec,
    PoolingSpec,
    all_same,
    expect,
    listed,
    same,
    total,
)
from pyg_pool.testing.gallery import SEED
from pyg_pool.testing.watch import Watch, as_on_device

__all__ = [
    "check_backends",
    "check_compile",
    "check_compile_gradients",
    "check_copies",
    "check_determinism",
    "check_errors",
    "check_host_waits",
    "check_inference",
    "check_inputs_kept",
    "check_memory",
    "check_options",
    "check_parameters",
    "check_repr",
    "check_reset",
    "check_state_dict",
    "check_vectorised",
]

BOTH = (POOLING_CHECKS, READOUT_CHECKS)


def gradients(
    spec: OperatorSpec, operator: Module, *sizes: int, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Result and gradients of one pass, by name."""
    leaf = spec.random(*sizes, dtype=dtype).leaf()
    operator.zero_grad()
    out = spec.tensors(operator, leaf)
    total(out).backward()
    named = {"x": leaf.x.grad} | {n: p.grad for n, p in operator.named_parameters()}
    if leaf.edge_attr is not None:
        named["edge_attr"] = leaf.edge_attr.grad
    grads = {f"gradient of {n}": g.clone() for n, g in named.items() if g is not None}
    return {name: value.detach() for name, value in out.items()} | grads


@listed("state_dict", *BOTH)
def check_state_dict(spec: OperatorSpec) -> None:
    """Another operator gives the same numbers after loading the state."""
    operator, other = spec.build(), spec.build(seed=SEED + 1)
    file = io.BytesIO()
    torch.save(operator.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    sample = spec.random()
    _expect_equal(spec.tensors(other, sample), spec.tensors(operator, sample), "state")


@listed("copies", *BOTH)
def check_copies(spec: OperatorSpec) -> None:
    """Operator and result go through deepcopy, pickle and ``torch.save``."""
    operator, sample = spec.build(), spec.random()
    args, kwargs = spec.arguments(sample)
    result = operator(*args, **kwargs)
    wanted = spec.unpack(result)
    for way, copied in _copies(operator):
        _expect_equal(spec.tensors(copied, sample), wanted, f"operator after {way}")
    with torch.no_grad():
        result = operator(*args, **kwargs)
    for way, copied in _copies(result):
        _expect_equal(spec.unpack(copied), wanted, f"result after {way}")


def _copies(thing: Any) -> list[tuple[str, Any]]:
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return [
        ("deepcopy", copy.deepcopy(thing)),
        ("pickle", pickle.loads(pickle.dumps(thing))),
        ("torch.save", torch.load(file, weights_only=False)),
    ]


def _expect_equal(
    actual: dict[str, Tensor], expected: dict[str, Tensor], what: str
) -> None:
    all_same(actual, expected, what, rtol=0.0, atol=0.0)


@listed("compile", *BOTH)
def check_compile(spec: OperatorSpec) -> None:
    """``torch.compile(fullgraph=True, dynamic=True)`` gives eager's numbers.

    Other numbers of nodes, edges and graphs must not compile again.
    """
    _compare_compiled(spec, "eager")


@listed("compile_gradients", *BOTH)
def check_compile_gradients(spec: OperatorSpec) -> None:
    """The same where the gradient is traced as well (backend ``aot_eager``)."""
    _compare_compiled(spec, "aot_eager")


def _compare_compiled(spec: OperatorSpec, backend: str) -> None:
    operator = spec.build(torch.float32)
    try:
        torch._dynamo.reset()
        compiled: Any = torch.compile(
            operator, fullgraph=True, dynamic=True, backend=backend
        )
        for i, sizes in enumerate([(7, 5, 6), (9, 4, 8, 5, 3), (6, 30)]):
            wanted = gradients(spec, operator, *sizes, dtype=torch.float32)
            with torch._dynamo.config.patch(error_on_recompile=i > 0):
                found = gradients(spec, compiled, *sizes, dtype=torch.float32)
            found = {n.replace("_orig_mod.", ""): v for n, v in found.items()}
            what = f"compiled with {backend}, graphs of {sizes} nodes"
            all_same(found, wanted, what, rtol=1e-4, atol=1e-5)
    finally:
        torch._dynamo.reset()


@listed("repr", *BOTH)
def check_repr(spec: OperatorSpec) -> None:
    """``repr`` is the call that builds the same operator."""
    operator = spec.build()
    names = {
        **vars(torch.nn),
        **vars(sys.modules[type(operator).__module__]),
        type(operator).__name__: type(operator),
        "torch": torch,
        "inf": math.inf,
        "nan": math.nan,
    }
    text = repr(operator)
    try:
        again = eval(text, names)
    except (SyntaxError, NameError, TypeError, AttributeError, ValueError) as error:
        raise AssertionError(f"repr cannot be read back: {text!r} ({error})") from error
    expect(repr(again) == text, f"repr reads back as {again!r}, expected {text!r}")
    again = again.to(spec.device, torch.float64).eval()
    again.load_state_dict(operator.state_dict())
    sample = spec.random(7, 5, 16)
    what = f"the operator read back from {text!r}"
    _expect_equal(spec.tensors(again, sample), spec.tensors(operator, sample), what)


@listed("reset", *BOTH)
def check_reset(spec: OperatorSpec) -> None:
    """``reset_parameters`` draws as the constructor does; constants come back."""
    first, second = spec.build(), spec.build(seed=SEED + 1)
    constant = {
        name: torch.equal(a, b)
        for (name, a), b in zip(
            first.named_parameters(), second.parameters(), strict=True
        )
    }
    drawn: list[dict[str, Tensor]] = []
    for _ in range(2):
        operator: Any = spec.build()
        for parameter in operator.parameters():
            parameter.data.fill_(1e4)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            operator.reset_parameters()
        drawn.append({n: p.detach().clone() for n, p in operator.named_parameters()})
    _expect_equal(drawn[0], drawn[1], "reset_parameters with one seed, run twice")
    for name, start in first.named_parameters():
        now = drawn[0][name]
        expect(bool((now != 1e4).all()), f"reset_parameters leaves {name} as it was")
        if constant[name]:
            same(now, start.detach(), f"{name} after reset_parameters")


@listed("parameters", *BOTH)
def check_parameters(spec: OperatorSpec) -> None:
    """In training every parameter gets a finite gradient that is not all zero.

    That of a parameter listed as inert is zero but for rounding.
    """
    operator = spec.build(torch.float32).train()
    leaf = spec.random(12, 9, 14, dtype=torch.float32).leaf()
    total(spec.tensors(operator, leaf)).backward()
    for name, parameter in operator.named_parameters():
        grad = parameter.grad
        expect(grad is not None, f"the parameter {name} gets no gradient")
        if grad is not None:
            expect(bool(grad.isfinite().all()), f"the gradient of {name} is not finite")
            if name in spec.inert:
                small = float(grad.abs().max()) < 1e-3
                expect(small, f"{name} is listed as inert, but has the gradient {grad}")
            else:
                expect(bool((grad != 0).any()), f"the gradient of {name} is zero")


@listed("options", *BOTH)
def check_options(spec: OperatorSpec) -> None:
    """A misspelt option raises ``TypeError``, in the constructor and in the call."""
    operator, sample = spec.build(), spec.random()
    args, kwargs = spec.arguments(sample)
    for what, call, function in (
        ("the constructor", type(operator), type(operator).__init__),
        ("the call", functools.partial(operator, *args, **kwargs), operator.forward),
    ):
        error = _raised(functools.partial(call, not_an_option=1))
        expect(error is not None, f"{what} swallows the unknown option not_an_option=1")
        named = isinstance(error, TypeError) and "not_an_option" in str(error)
        expect(named, f"{what} does not name the unknown option: {error!r}")
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
        swallows = inspect.Parameter.VAR_KEYWORD in kinds
        expect(not swallows, f"{what} takes **kwargs")


def _raised(call: Callable[[], Any]) -> Exception | None:
    """The ``ValueError`` or ``TypeError`` of a call."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return error
    return None


@listed("errors", *BOTH)
def check_errors(spec: OperatorSpec) -> None:
    """Wrong input raises and says what came, what was expected and how to mend it."""
    operator, sample = spec.build(), spec.random()
    args, kwargs = spec.arguments(sample)
    is_pooling = isinstance(spec, PoolingSpec)
    wrong = (
        _wrong_calls(args, kwargs)
        if is_pooling
        else {"index of another length": ((args[0], args[1][:-1]), kwargs)}
    )
    for what, (positional, named) in wrong.items():
        error = _raised(functools.partial(operator, *positional, **named))
        expect(error is not None, f"{what} is taken without an error")
        clear = "got" in str(error) and "expected" in str(error)
        expect(clear or not is_pooling, f"{what}: unclear message {str(error)!r}")


def _wrong_calls(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Calls of a pooling operator that must not pass."""
    x, edge_index, edge_attr = args
    return {
        "x of whole numbers": ((x.long(), *args[1:]), kwargs),
        "x of rank 3": ((x.unsqueeze(0), *args[1:]), kwargs),
        "an edge to a node too many": ((x, edge_index + x.size(0), edge_attr), kwargs),
        "a negative node": ((x, edge_index - 1, edge_attr), kwargs),
        "edge_attr of another length": ((x, edge_index, edge_attr[:-1]), kwargs),
        "batch of another length": (args, {**kwargs, "batch": kwargs["batch"][:-1]}),
        "batch beyond batch_size": (args, {**kwargs, "batch_size": 2}),
        "batch_size without batch": (args, {"batch_size": 3}),
    }


@listed("inference", *BOTH)
def check_inference(spec: OperatorSpec) -> None:
    """Without gradients (``no_grad``, ``inference_mode``) the numbers are the same."""
    operator, leaf = spec.build(), spec.random(7, 0, 1, 5, 0).leaf()
    found = spec.tensors(operator, leaf)
    wanted = {name: value.detach() for name, value in found.items()}
    for what, mode in (("no_grad", torch.no_grad), ("inference", torch.inference_mode)):
        with mode():
            all_same(spec.tensors(operator, leaf), wanted, f"under {what}")


@listed("inputs_kept", *BOTH)
def check_inputs_kept(spec: OperatorSpec) -> None:
    """A call changes no input in place."""
    sample = spec.random()
    before = copy.deepcopy(sample)
    spec.tensors(spec.build(), sample)
    for name in ("x", "edge_index", "edge_attr", "batch"):
        now, then = getattr(sample, name), getattr(before, name)
        expect(torch.equal(now, then), f"{name} was changed in place")


@listed("determinism", *BOTH)
def check_determinism(spec: OperatorSpec) -> None:
    """Two runs give the same bits, also where torch is told to be deterministic."""
    operator = spec.build(torch.float32)
    was = torch.are_deterministic_algorithms_enabled()
    for strict in (False, True):
        torch.use_deterministic_algorithms(strict)
        try:
            sizes = (30, 20)
            first, second = (
                gradients(spec, operator, *sizes, dtype=torch.float32) for _ in range(2)
            )
        finally:
            torch.use_deterministic_algorithms(was)
        _expect_equal(second, first, f"second run (deterministic mode: {strict})")


@listed("backends", *BOTH)
def check_backends(spec: OperatorSpec) -> None:
    """Every installed backend gives the native numbers and gradients."""
    operator = spec.build()
    sizes = (40, 0, 25)
    with use_backend("native"):
        wanted = gradients(spec, operator, *sizes, dtype=torch.float64)
    for name, state in available_backends().items():
        if state == "yes":
            with use_backend(name):  # type: ignore[arg-type]
                found = gradients(spec, operator, *sizes, dtype=torch.float64)
            all_same(found, wanted, f"backend {name!r}")


@listed("host_waits", *BOTH)
def check_host_waits(spec: OperatorSpec) -> None:
    """Given the number of graphs, no value is read on the host.

    Data-dependent sizes (``nonzero``) are not counted: choosing edges needs one.
    """
    operator = spec.build(torch.float32)
    sample = spec.random(dtype=torch.float32)
    with as_on_device(), Watch() as watch:
        spec.tensors(operator, sample)
    expect(not watch.reads, f"the host waits for values: {watch.reads}")


@listed("memory", *BOTH)
def check_memory(spec: OperatorSpec) -> None:
    """The largest tensor grows with nodes and edges, not with their squares.

    One large graph beside many small ones must not pad these.
    """
    operator = spec.build(torch.float32)
    sample = spec.random(1500, *[2] * 300, dtype=torch.float32)
    with use_backend("native"), Watch() as watch:
        spec.tensors(operator, sample)
    size = sample.x.numel() + sample.num_edges + sample.batch_size
    limit = 8 * 20 * size
    expect(
        watch.largest <= limit,
        f"a tensor of {watch.largest} bytes for {sample.num_nodes} nodes and "
        f"{sample.num_edges} edges, expected at most {limit}",
    )


@listed("vectorised", *BOTH)
def check_vectorised(spec: OperatorSpec) -> None:
    """Ten times more nodes, edges and graphs take about as many steps.

    Steps are torch calls and executed lines of Python.
    """
    operator = spec.build(torch.float32)
    counts, lines = [], []
    for sizes in ((8, 5, 6), (8, 5, 6), tuple([8, 5, 6] * 10)):
        sample = spec.random(*sizes, dtype=torch.float32)
        run = functools.partial(spec.tensors, operator, sample)
        with use_backend("native"):
            with Watch() as watch:
                run()
            lines.append(lines_of(run))
        counts.append(watch.total)
    for steps, what in ((counts, "torch calls"), (lines, "lines of Python")):
        expect(
            steps[2] <= 1.5 * steps[1] + 8,
            f"{steps[1]} {what} for 19 nodes, {steps[2]} for 190: a loop in Python",
        )


def lines_of(run: Callable[[], Any]) -> int:
    """Number of lines of Python that a call executes."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(previous)
    return count
