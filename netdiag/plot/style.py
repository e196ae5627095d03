"""The one style of all pictures: sizes, fonts, colours, and a figure that neither pyplot nor a global setting can touch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from netdiag.palette import FAILURE, HATCHED, INK, MUTED, PHASE_HUES
from netdiag.units import NS_PER_MS, NS_PER_S

DPI = 100
WIDTH_IN = 12.0
"""1,200 px: what a ticket shows without scaling."""
GRID = "#E5E7EB"
BAND = "#F3F4F6"
PAPER = "#FFFFFF"

_SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # "a$$b" in a path is no formula
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": True,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "hatch.linewidth": 0.8,
    "legend.frameon": False,
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",  # text stays text: selectable, searchable
    "pdf.fonttype": 42,
    "svg.hashsalt": "netdiag",  # same records, same bytes
    "path.simplify": True,
}


@contextmanager
def settings() -> Iterator[None]:
    """Our settings for the time of drawing or saving, whatever a notebook has set; matplotlib's defaults for all others."""
    with matplotlib.rc_context():
        # Reading or setting the backend would load pyplot, and with it perhaps a window system.
        untouched = {"backend", "backend_fallback"}
        defaults = matplotlib.rcParamsDefault
        matplotlib.rcParams.update({name: defaults[name] for name in defaults if name not in untouched})
        matplotlib.rcParams.update(_SETTINGS)
        yield


class Picture(Figure):
    """A figure that a notebook shows by itself and that always draws in our style."""

    def _repr_png_(self) -> bytes:
        return self.rendered("png")

    def rendered(self, format: str) -> bytes:
        """The picture as ``png``, ``svg`` or ``pdf``: the same records give the same octets."""
        buffer = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
        with settings(), warnings.catch_warnings():
            # A path in a script that our font lacks is drawn as boxes (and is real text in SVG): nothing the user could do.
            warnings.filterwarnings("ignore", message="Glyph .* missing from font")
            self.savefig(buffer, format=format, dpi=DPI, metadata=undated.get(format))
        return buffer.getvalue()


def new_picture(height_in: float, *, width_in: float = WIDTH_IN) -> Picture:
    """An empty picture. Call inside ``settings()``."""
    picture = Picture(figsize=(width_in, height_in), dpi=DPI)
    FigureCanvasAgg(picture)
    return picture


def hue(phase: str) -> str:
    """The colour of a phase; grey for a name we do not know."""
    return PHASE_HUES.get(phase, MUTED)


def phase_look(phase: str) -> dict[str, Any]:
    """Face, edge and hatch of a phase's bar."""
    if phase == "unattributed":
        return {"facecolor": PAPER, "edgecolor": MUTED, "linewidth": 0.8}
    if phase in HATCHED:
        return {"facecolor": "#ECEEF0", "edgecolor": hue(phase), "linewidth": 0.6, "hatch": "////"}
    return {"facecolor": hue(phase), "edgecolor": hue(phase), "linewidth": 0.6}


def ink_on(phase: str) -> str:
    """Black or white, whichever is easier to read on a phase's colour."""
    red, green, blue = (int(hue(phase)[i : i + 2], 16) for i in (1, 3, 5))
    return INK if phase in HATCHED or 0.299 * red + 0.587 * green + 0.114 * blue > 140 else PAPER


def thousands(value: float, position: float) -> str:
    """A tick label: ``12,000``; as many decimals as the number has."""
    return f"{value:,.6f}".rstrip("0").rstrip(".").replace("-", "−")


class TimeUnit:
    """Milliseconds for calls, seconds for long captures: one unit for a whole axis."""

    def __init__(self, span_ns: int) -> None:
        seconds = span_ns >= 20 * NS_PER_S
        self.name = "s" if seconds else "ms"
        self._ns = NS_PER_S if seconds else NS_PER_MS

    def of(self, duration_ns: int) -> float:
        """The duration as a number of this unit."""
        return duration_ns / self._ns


def quiet_axes(axes: Any) -> None:
    """Only the bottom line, a light vertical grid behind everything."""
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)
    axes.xaxis.grid(True, color=GRID, linewidth=0.8)
    axes.tick_params(axis="y", length=0)
    axes.set_facecolor("none")


def points_per_character(font_points: float) -> float:
    """Mean width of a character of our font, for placing labels without drawing them first."""
    return font_points * 0.58


__all__ = [
    "BAND",
    "DPI",
    "FAILURE",
    "GRID",
    "INK",
    "MUTED",
    "PAPER",
    "WIDTH_IN",
    "Picture",
    "TimeUnit",
    "hue",
    "ink_on",
    "new_picture",
    "phase_look",
    "points_per_character",
    "quiet_axes",
    "settings",
    "thousands",
]
