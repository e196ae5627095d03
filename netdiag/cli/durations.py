"""Durations as people write them: ``6s``, ``500ms``, ``2min``, or a plain number in the option's own unit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

_UNITS_S = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"\s*(\d{1,12}(?:\.\d{0,9})?|\.\d{1,9})\s*([a-zµ]*)\s*")


if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:  # generic only since click 8.2
    _ParamType = click.ParamType


class Duration(_ParamType):
    """A click type. The value is a float in ``unit``, which a number without one is taken to be in."""

    name = "duration"

    def __init__(self, unit: str = "s") -> None:
        self._unit = unit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """``6s``, ``500ms``, ``2min`` or a number, in ``unit``."""
        if isinstance(value, (int, float)):
            return float(value)
        found = _WRITTEN.fullmatch(str(value).lower())
        if found is None or (found[2] or self._unit) not in _UNITS_S:
            self.fail(
                f"{value!r} is no duration: write 6s, 500ms or 2min (a plain number is in {self._unit})", param, ctx
            )
        return float(found[1]) * _UNITS_S[found[2] or self._unit] / _UNITS_S[self._unit]


SECONDS = Duration("s")
MILLISECONDS = Duration("ms")
