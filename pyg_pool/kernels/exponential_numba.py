"""Exponential and logarithm of float32, of several numbers at once or of one.

Both are polynomials on the bits of a number, within two units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from pyg_pool.kernels.lanes_numba import FLOAT, LANES

__all__ = ["LOWEST", "exp", "exp_down", "exponential", "log", "magnitude"]

# ln 2 in two parts: the first times a small whole number is exact.
LN2_HIGH, LN2_LOW, LOG2_E = 0.693359375, -2.12194440e-4, 1.4426950216293335
# The second is the logarithm of the largest number, less 1.
LOWEST, HIGHEST = np.float32(-87.0), np.float32(87.72)
SQRT_HALF_BITS = 0x3F3504F3
# Adding it rounds to a whole number, which then stands in the low bits.
MAGIC = 12582912.0
EXP = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
    1.6666665459e-1, 5.0000001201e-1, 1.0, 1.0,
)  # fmt: skip
LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
    1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
    3.3333331174e-1,
)  # fmt: skip


class _Number:
    """A value with Python's operators, which write instructions."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value
        self.is_whole = isinstance(value.type.element, ir.IntType)

    def _of(self, other: _Number | float) -> Any:
        if isinstance(other, _Number):
            return other.value
        return ir.Constant(self.value.type, [other] * LANES)

    def _do(self, names: str, other: _Number | float) -> _Number:
        name = names.split()[self.is_whole]
        run = getattr(self.builder, name)
        return _Number(self.builder, run(self.value, self._of(other)))

    def __add__(self, other: _Number | float) -> _Number:
        return self._do("fadd add", other)

    def __sub__(self, other: _Number | float) -> _Number:
        return self._do("fsub sub", other)

    def __mul__(self, other: _Number | float) -> _Number:
        return self._do("fmul mul", other)

    def __and__(self, other: _Number | float) -> _Number:
        return self._do("and_ and_", other)

    def __or__(self, other: _Number | float) -> _Number:
        return self._do("or_ or_", other)

    def __lshift__(self, other: int) -> _Number:
        return self._do("shl shl", other)

    def __rshift__(self, other: int) -> _Number:
        return self._do("ashr ashr", other)

    def less(self, other: _Number | float) -> Any:
        """Where this is smaller; false for NaN."""
        return self.builder.fcmp_ordered("<", self.value, self._of(other))

    def where(self, mask: Any, other: _Number | float) -> _Number:
        """This where the mask holds, the other elsewhere."""
        value = self.builder.select(mask, self.value, self._of(other))
        return _Number(self.builder, value)

    def times_plus(self, factor: _Number | float, more: _Number | float) -> _Number:
        """Product and sum, rounded once where the processor can."""
        kind = self.value.type
        name = f"llvm.fmuladd.v{LANES}f32"
        function = self.builder.module.declare_intrinsic(
            name, (), ir.FunctionType(kind, [kind] * 3)
        )
        args = [self.value, self._of(factor), self._of(more)]
        return _Number(self.builder, self.builder.call(function, args))

    def bits(self) -> _Number:
        """The same bits as whole numbers."""
        kind = ir.VectorType(ir.IntType(32), LANES)
        return _Number(self.builder, self.builder.bitcast(self.value, kind))

    def number(self) -> _Number:
        """The same bits as a float32."""
        kind = ir.VectorType(ir.FloatType(), LANES)
        return _Number(self.builder, self.builder.bitcast(self.value, kind))

    def rounded(self) -> _Number:
        """Whole numbers as float32."""
        kind = ir.VectorType(ir.FloatType(), LANES)
        return _Number(self.builder, self.builder.sitofp(self.value, kind))


def _horner(at: _Number, factors: tuple[float, ...]) -> _Number:
    """A polynomial from the highest power down."""
    first = ir.Constant(at.value.type, [factors[0]] * LANES)
    out = _Number(at.builder, first)
    for factor in factors[1:]:
        out = out.times_plus(at, factor)
    return out


def _polynomial(at: _Number, square: _Number, factors: tuple[float, ...]) -> _Number:
    """Even and odd powers apart: two short chains of steps instead of a long one."""
    last = len(factors) - 1
    even, odd = factors[last % 2 :: 2], factors[1 - last % 2 :: 2]
    return _horner(square, odd).times_plus(at, _horner(square, even))


def _exp_down(a: _Number) -> _Number:
    """Exponential of what is not above 0 (or is NaN); 0 below e^-87."""
    low = a.less(float(LOWEST))
    lifted = a.times_plus(LOG2_E, MAGIC)
    whole = lifted - MAGIC
    r = whole.times_plus(-LN2_HIGH, a)
    r = whole.times_plus(-LN2_LOW, r)
    y = _polynomial(r, r * r, EXP)
    scale = ((lifted.bits() << 23) + (127 << 23)).number()
    zero = _Number(a.builder, a._of(0.0))
    return zero.where(low, y * scale)


def _exp(a: _Number) -> _Number:
    """Exponential; 0 below e^-87, cut above at a third of the largest number."""
    high = _Number(a.builder, a._of(float(HIGHEST)))
    return _exp_down(a.where(a.builder.not_(high.less(a)), high))


def _log(v: _Number) -> _Number:
    """Logarithm of a positive number; NaN of NaN and infinity, about -105 of 0."""
    is_small = v.less(2.0**-126)
    bits = (v * 2.0**24).where(is_small, v).bits()
    # The exponent, and the number without it between the roots of 1/2 and 2.
    above = bits - SQRT_HALF_BITS
    m = (bits - (above & -(1 << 23))).number() - 1.0
    power = (above >> 23).rounded()
    power = (power - 24.0).where(is_small, power)
    square = m * m
    y = _polynomial(m, square, LOG) * (m * square)
    y = power.times_plus(LN2_LOW, y)
    y = square.times_plus(-0.5, y)
    y = power.times_plus(LN2_HIGH, m + y)
    return v.times_plus(0.0, y)


def _unary(write: Callable[[_Number], _Number]) -> Any:
    """A function of float32 lanes from what writes its instructions."""

    def rule(context: Any, a: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return write(_Number(builder, args[0])).value

        return FLOAT(FLOAT), build

    return intrinsic(rule)


exp: Any = _unary(_exp)
exp_down: Any = _unary(_exp_down)
log: Any = _unary(_log)
magnitude: Any = _unary(lambda a: (a.bits() & 0x7FFFFFFF).number())


# Products and sums of single numbers may be fused; reordering would spoil them.
LOOSE = {"contract", "nsz"}
ROUND = np.float32(128.5)
ONE = np.float32(1)


def _float_rule(context: Any, value: Any) -> Any:
    """The float32 with the bits of an int32."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float32))

    return types.float32(types.int32), build


_float: Any = intrinsic(_float_rule)


@njit(nogil=True, cache=True, fastmath=LOOSE)
def exponential(a: Any) -> Any:
    """Exponential, cut at both ends of the normal numbers."""
    a = LOWEST if a < LOWEST else a
    a = HIGHEST if a > HIGHEST else a
    power = np.int32(np.int32(a * np.float32(LOG2_E) + ROUND) - np.int32(128))
    whole = np.float32(power)
    r = a - whole * np.float32(LN2_HIGH)
    r = r - whole * np.float32(LN2_LOW)
    y = np.float32(1.9875691500e-4)
    y = y * r + np.float32(1.3981999507e-3)
    y = y * r + np.float32(8.3334519073e-3)
    y = y * r + np.float32(4.1665795894e-2)
    y = y * r + np.float32(1.6666665459e-1)
    y = y * r + np.float32(5.0000001201e-1)
    y = y * r * r + r + ONE
    return y * _float(np.int32(np.int32(power + np.int32(127)) << 23))
