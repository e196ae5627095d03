"""What all lanes of a picture share: a band with a heading, its time axis, and how labels find room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from netdiag.plot.style import WIDTH_IN, TimeUnit, points_per_character

LEFT_IN, RIGHT_IN = 1.35, 0.25
AXES_IN = WIDTH_IN - LEFT_IN - RIGHT_IN
FONT = 8.0
SIDE_HUES = {"client": "#3B6EA8", "server": "#6B5B95"}


@dataclass(frozen=True, slots=True)
class Lane:
    """One band of the picture: its heading, its height in rows, and what draws it from the row at which it begins."""

    heading: str
    rows: float
    draw: Callable[[Any, float], None]


@dataclass(frozen=True, slots=True)
class Scale:
    """Time to places on the axis."""

    origin: int
    unit: TimeUnit
    end: float

    def __call__(self, at: int) -> float:
        """The place of an instant (ns since the epoch)."""
        return self.unit.of(at - self.origin)

    def characters(self, count: int) -> float:
        """How far ``count`` characters of a label reach, in units of the axis."""
        return count * points_per_character(FONT) / 72 * self.end / AXES_IN


def beside(left: float, right: float, text: str, scale: Scale) -> tuple[float, str]:
    """Where a label goes: inside a wide box, else to its right, else to its left where the right edge is too near."""
    width = scale.characters(len(text) + 1)
    gap = scale.end * 0.005
    if width < right - left:
        return (left + right) / 2, "center"
    return (right + gap, "left") if right + width < scale.end else (left - gap, "right")


class Rows:
    """Labels laid into rows, each in the first that is free where it begins."""

    def __init__(self) -> None:
        self._reached: list[float] = []

    def __len__(self) -> int:
        return len(self._reached)

    def free(self, begin: float) -> int:
        """The first row in which nothing reaches ``begin``; a new one where all do."""
        return next((i for i, taken in enumerate(self._reached) if taken <= begin), len(self._reached))

    def fill(self, row: int, end: float) -> None:
        """What was put into that row reaches to ``end``."""
        self._reached[row : row + 1] = [end]
