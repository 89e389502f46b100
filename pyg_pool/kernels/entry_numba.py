"""Compiled kernels that are called with addresses.

A call through numba's own dispatcher looks at the type of every array. Small inputs
spend more time on that than on the work; a plain C function takes whole numbers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

from numba import cfunc, types

__all__ = ["Entry", "entry"]

Call = Callable[..., int]


class Entry:
    """A kernel, compiled for a type of the rows when it is first called with it.

    Args:
        function: The kernel; returns 0 or a whole number that says what is wrong.
        spec: A letter per argument: ``x`` address of rows, ``i`` of int64, ``j`` of
            int32, ``d`` of float64, ``n`` whole number, ``f`` number.
    """

    def __init__(self, function: Callable[..., int], spec: str) -> None:
        self.function, self.spec = function, spec.replace(" ", "")
        self._kept: list[Any] = []  # lest the code be freed

    @cached_property
    def single(self) -> Call:
        """The kernel for float32."""
        return self._compiled(types.float32)

    @cached_property
    def double(self) -> Call:
        """The kernel for float64."""
        return self._compiled(types.float64)

    def _compiled(self, kind: Any) -> Call:
        pointer: Any = types.CPointer
        letters = {
            "x": pointer(kind), "i": pointer(types.int64), "j": pointer(types.int32),
            "d": pointer(types.float64), "n": types.int64, "f": types.float64,
        }  # fmt: skip
        shape = types.int64(*(letters[letter] for letter in self.spec))
        kept: Any = cfunc(shape, cache=True, error_model="numpy")(self.function)
        self._kept.append(kept)
        words = {"f": ctypes.c_double}
        given = [words.get(letter, ctypes.c_int64) for letter in self.spec]
        # A call of this kind gives up the lock of the interpreter.
        return ctypes.CFUNCTYPE(ctypes.c_int64, *given)(kept.address)


def entry(spec: str) -> Callable[[Callable[..., int]], Entry]:
    """Makes a kernel of a function; see :class:`Entry`."""
    return lambda function: Entry(function, spec)
