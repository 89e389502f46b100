"""Several channels at once: vector types for numba, whose loops need no guessing.

Numba leaves it to the compiler to find vector instructions, which fails as soon as a
loop holds an index, a running result and an exponential. Here a number of the type
``Lanes`` holds neighbouring channels, 16 where the processor has AVX-512, else 8.
``left`` says how many of them are there at the end of a row: the rest is neither read
nor written.
"""

from __future__ import annotations

import operator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import (
    intrinsic,
    lower_builtin,
    models,
    register_model,
)

__all__ = [
    "FLOAT", "LANES", "add_up", "below", "beyond", "both", "equal", "fetch",
    "is_number", "like", "load", "pick", "splat", "store",
]  # fmt: skip


def _lanes() -> int:
    """Numbers of 32 bits in the widest register that is worth using."""
    features: Any = llvm.get_host_cpu_features()
    return 16 if features.get("avx512f") else 8


LANES = _lanes()
WORDS: dict[str, Any] = {
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
    "int32": ir.IntType(32),
    "bool": ir.IntType(1),
}


class Lanes(types.Type):
    """Type of several numbers of one kind."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(name=f"Lanes({kind}, {LANES})")


FLOAT, DOUBLE, INT, MASK = (Lanes(kind) for kind in WORDS)
KINDS = {types.float32: FLOAT, types.float64: DOUBLE, types.int32: INT}


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        start: Any = super().__init__
        start(manager, kind, ir.VectorType(WORDS[kind.kind], LANES))


def _spread(builder: Any, value: Any) -> Any:
    """The same number in every lane."""
    kind = ir.VectorType(value.type, LANES)
    one = builder.insert_element(
        ir.Constant(kind, ir.Undefined), value, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


def _splat_rule(context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _spread(builder, args[0])

    return KINDS[value](value), build


def _pick_rule(context: Any, mask: Any, a: Any, b: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(*args)

    return a(MASK, a, a), build


def _add_up_rule(context: Any, a: Any) -> Any:
    """Sum over the lanes, pairwise."""
    out = types.float32 if a is FLOAT else types.float64

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, half = args[0], LANES
        while half > 1:
            half //= 2
            turn = [(lane + half) % LANES for lane in range(LANES)]
            order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), turn)
            other = builder.shuffle_vector(value, value, order)
            value = builder.fadd(value, other)
        return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

    return out(a), build


def _like_rule(context: Any, a: Any, value: Any) -> Any:
    """A number in every lane, of the kind of other lanes."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(a).element
        number = args[1]
        if str(kind) == "float":
            number = builder.fptrunc(number, kind)
        return _spread(builder, number)

    return a(a, types.float64), build


def _both_rule(context: Any, a: Any, b: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.and_(*args)

    return MASK(MASK, MASK), build


def _is_number_rule(context: Any, a: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fcmp_ordered("ord", args[0], args[0])

    return MASK(a), build


splat: Any = intrinsic(_splat_rule)
like: Any = intrinsic(_like_rule)
both: Any = intrinsic(_both_rule)
is_number: Any = intrinsic(_is_number_rule)
pick: Any = intrinsic(_pick_rule)
add_up: Any = intrinsic(_add_up_rule)


def _compared(sign: str, is_ordered: bool) -> Any:
    """A comparison of lanes, which is false (true if not ordered) for NaN."""

    def rule(context: Any, a: Any, b: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = builder.fcmp_ordered if is_ordered else builder.fcmp_unordered
            return kind(sign, *args)

        return MASK(a, a), build

    return intrinsic(rule)


below: Any = _compared("<", True)
equal: Any = _compared("==", True)
# True for NaN as well.
beyond: Any = _compared(">", False)


def _address(builder: Any, pointer: Any, at: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [at]), ir.PointerType(kind))


def _present(builder: Any, left: Any) -> Any:
    """The mask of the lanes before ``left``."""
    lane = ir.Constant(ir.VectorType(left.type, LANES), list(range(LANES)))
    return builder.icmp_signed("<", lane, _spread(builder, left))


def _masked(builder: Any, name: str, kind: Any, args: list[Any], out: Any) -> Any:
    """A call of LLVM's masked load or store."""
    letter = {"float": "f32", "double": "f64", "i32": "i32"}[str(kind.element)]
    function = builder.module.declare_intrinsic(
        f"llvm.masked.{name}.v{LANES}{letter}.p0",
        (),
        ir.FunctionType(out, [arg.type for arg in args]),
    )
    return builder.call(function, args)


def _load_rule(context: Any, pointer: Any, at: Any, left: Any) -> Any:
    """Lanes from an address on; 0 beyond those that are there."""
    out = KINDS[pointer.dtype]

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = context.get_value_type(out)
        place = _address(builder, args[0], args[1], kind)
        size = kind.element
        align = 8 if str(size) == "double" else 4
        is_full = builder.icmp_signed(">=", args[2], ir.Constant(args[2].type, LANES))
        with builder.if_else(is_full) as (then, otherwise):
            with then:
                whole = builder.load(place, align=align)
                first = builder.block
            with otherwise:
                number = ir.Constant(ir.IntType(32), align)
                zero = ir.Constant(kind, [0] * LANES)
                part = _masked(
                    builder, "load", kind,
                    [place, number, _present(builder, args[2]), zero], kind,
                )  # fmt: skip
                second = builder.block
        value = builder.phi(kind)
        value.add_incoming(whole, first)
        value.add_incoming(part, second)
        return value

    return out(pointer, types.int64, types.int64), build


def _store_rule(context: Any, pointer: Any, at: Any, value: Any, left: Any) -> Any:
    """Writes the lanes that are there."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[2].type
        place = _address(builder, args[0], args[1], kind)
        align = 8 if str(kind.element) == "double" else 4
        is_full = builder.icmp_signed(">=", args[3], ir.Constant(args[3].type, LANES))
        with builder.if_else(is_full) as (then, otherwise):
            with then:
                builder.store(args[2], place, align=align)
            with otherwise:
                number = ir.Constant(ir.IntType(32), align)
                mask = _present(builder, args[3])
                given = [args[2], place, number, mask]
                _masked(builder, "store", kind, given, ir.VoidType())
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value, types.int64), build


def _fetch_rule(context: Any, pointer: Any, at: Any) -> Any:
    """Asks for memory that will be read soon."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.PointerType(ir.IntType(8))
        place = builder.bitcast(builder.gep(args[0], [args[1]]), byte)
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", (), shape)
        how = [ir.Constant(word, number) for number in (0, 3, 1)]  # read, keep, data
        builder.call(function, [place, *how])
        return context.get_dummy_value()

    return types.void(pointer, types.int64), build


fetch: Any = intrinsic(_fetch_rule)
load: Any = intrinsic(_load_rule)
store: Any = intrinsic(_store_rule)


def _operator(sign: Any, name: str) -> None:
    """Lets numba know one of Python's operators for lanes."""
    kinds = (FLOAT, DOUBLE)
    describe: Any = signature
    cases = [describe(kind, kind, kind) for kind in kinds]
    register: Any = infer_global(sign)  # type: ignore[no-untyped-call]
    register(type(f"_Lanes{name}", (ConcreteTemplate,), {"cases": cases}))

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return getattr(builder, name)(*args, flags=("contract",))

    for kind in kinds:
        lower: Any = lower_builtin
        lower(sign, kind, kind)(build)


for _sign, _name in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):  # fmt: skip
    _operator(_sign, _name)
