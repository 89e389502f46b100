"""Names: weights of other programs, and a model spelled as the call that builds it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch.nn import Module

__all__ = ["rename_on_load", "spell_call"]

Rules = Sequence[tuple[str, str]]


def rename_on_load(module: Module, rules: Rules) -> None:
    """Lets ``load_state_dict`` take the names of another program.

    Args:
        module: The module that loads.
        rules: Pairs of a pattern at the start of a name (without prefix) and its
            replacement, applied one after the other.
    """
    module.register_load_state_dict_pre_hook(partial(_rename, tuple(rules)))


def _rename(
    rules: Rules, module: Module, state: dict[str, Any], prefix: str, *_: Any
) -> None:
    """Renames the entries under ``prefix`` in place."""
    for name in [name for name in state if name.startswith(prefix)]:
        new = name.removeprefix(prefix)
        for pattern, replacement in rules:
            new = re.sub(f"^{pattern}", replacement, new)
        if prefix + new != name:
            state[prefix + new] = state.pop(name)


def spell_call(cls: type, given: Mapping[str, Any]) -> str:
    """The constructor call with the arguments that differ from their defaults."""
    words = []
    for name, parameter in inspect.signature(cls).parameters.items():
        value = given[name]
        if parameter.default is parameter.empty:
            words.append(_spell(value))
        elif value is not parameter.default and value != parameter.default:
            words.append(f"{name}={_spell(value)}")
    return f"{cls.__name__}({', '.join(words)})"


def _spell(value: Any) -> str:
    """A value as source text; functions and classes by their name."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_spell(each) for each in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return repr(value)
