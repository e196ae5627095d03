"""Pictures of records: an ``Analysis`` (or part of one) in, a matplotlib figure out. Nothing is shown or written unless asked.

``save(figure, path)`` writes PNG, SVG or PDF by the ending; in a notebook a figure shows itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netdiag.plot.budgets import budget as budget
    from netdiag.plot.comparison import differences as differences
    from netdiag.plot.comparison import ecdf as ecdf
    from netdiag.plot.distribution import distributions as distributions
    from netdiag.plot.lane_rows import lanes as lanes
    from netdiag.plot.stream import arrival as arrival
    from netdiag.plot.style import Picture
    from netdiag.plot.waterfalls import waterfall as waterfall

__all__ = ["arrival", "budget", "differences", "distributions", "ecdf", "lanes", "save", "waterfall"]

FORMATS = (".png", ".svg", ".pdf")
_LAZY = {
    "arrival": "netdiag.plot.stream",
    "budget": "netdiag.plot.budgets",
    "differences": "netdiag.plot.comparison",
    "distributions": "netdiag.plot.distribution",
    "ecdf": "netdiag.plot.comparison",
    "lanes": "netdiag.plot.lane_rows",
    "waterfall": "netdiag.plot.waterfalls",
}


def save(figure: Picture, path: str | os.PathLike[str]) -> None:
    """Write a figure; the ending of ``path`` says the format. Raises ``UsageError`` for another ending, ``OutputError`` when it cannot be written."""
    from netdiag.errors import UsageError
    from netdiag.outfile import replacing

    ending = Path(path).suffix.lower()
    if ending not in FORMATS:
        raise UsageError(f"no picture format {ending or 'without an ending'}; there are {', '.join(FORMATS)}")
    rendered = figure.rendered(ending[1:])
    with replacing(path) as file:
        file.write(rendered)


def __getattr__(name: str) -> object:
    """Load a picture's module on first use: matplotlib takes a second or two."""
    if name not in _LAZY:
        raise AttributeError(f"module 'netdiag.plot' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LAZY[name]), name)
