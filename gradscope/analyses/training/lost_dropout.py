"""Dropout that an evaluation has switched off for good: the rate is an attribute of a module, which
a forward pass in eval mode sets to 0, and nothing puts back."""

from __future__ import annotations

import dis
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import NamedTuple

from torch import nn

from gradscope.analyses.training.stores import methods
from gradscope.recording.source import Site

MAX_RATES = 5_000
"""Rates that are remembered until training goes on."""


class _Rate(NamedTuple):
    """A module with a rate above 0, the attribute, and the place that has put it in eval mode."""

    module: weakref.ref[nn.Module]
    name: str
    place: int


class LostDropout:
    """Watches such rates from a call of ``eval`` to the next step in train mode.

    Args:
        found: told of those that are 0 by then.
    """

    def __init__(self, found: Callable[..., None]) -> None:
        self._found = found
        self._rates: dict[tuple[int, str], _Rate] = {}

    def note_eval(self, module: nn.Module, place: int) -> None:
        """The program puts a module in eval mode."""
        for part in nn.Module.modules(module):
            for name in _rates_of(part) if len(self._rates) < MAX_RATES else ():
                self._rates[id(part), name] = _Rate(weakref.ref(part), name, place)

    def note_step(self) -> None:
        """A step was made: what is in train mode again has been trained."""
        for key, rate in list(self._rates.items()):
            module = rate.module()
            if module is not None and not module.training:
                continue
            del self._rates[key]
            if module is not None and vars(module).get(rate.name) == 0:
                site = _set_in_eval(module, rate.name)
                if site is not None:
                    name = f"{type(module).__name__}.{rate.name}"
                    self._found("dropout lost", rate.place, name=name, site=site)


def _rates_of(module: nn.Module) -> Iterator[str]:
    is_dropout = issubclass(type(module), nn.modules.dropout._DropoutNd)
    for name, value in vars(module).items():
        is_rate = "drop" in name or (is_dropout and name == "p")
        if is_rate and type(value) is float and 0 < value <= 1:
            yield name


def _set_in_eval(module: nn.Module, name: str) -> Site | None:
    """The line that sets an attribute in a method which asks for the mode; a schedule does not."""
    codes: list[CodeType] = [code for kind in type(module).__mro__ for code in methods(kind)]
    for code in (one for one in codes if "training" in one.co_names):
        for one in dis.get_instructions(code):
            line = one.positions.lineno if one.positions is not None else None
            if one.opname == "STORE_ATTR" and one.argval == name and line:
                return Site(code, -line)
    return None
