"""Rectangles and titles that every picture shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import Patch

from netdiag.palette import MUTED
from netdiag.plot.style import PAPER, phase_look
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of, host_of
from netdiag.records.source import EvidenceLevel
from netdiag.sanitise import one_line


@dataclass(frozen=True, slots=True)
class Box:
    """One rectangle in data coordinates; ``bottom`` is the smaller y."""

    left: float
    right: float
    bottom: float
    top: float


def add_boxes(axes: Any, phase: str, boxes: Sequence[Box], **look: Any) -> None:
    """All bars of one phase as one collection."""
    if not boxes:
        return
    corners = [[(b.left, b.bottom), (b.left, b.top), (b.right, b.top), (b.right, b.bottom)] for b in boxes]
    axes.add_collection(PolyCollection(corners, **{**phase_look(phase), **look}))


def add_lines(axes: Any, lines: Sequence[tuple[tuple[float, float], tuple[float, float]]], **look: Any) -> None:
    """Straight lines as one collection."""
    if lines:
        axes.add_collection(LineCollection(list(lines), **look))


def phase_legend(axes: Any, present: Iterable[str], **place: Any) -> None:
    """One patch per phase, in the order given."""
    handles = [Patch(label=name, **phase_look(name)) for name in present]
    if handles:
        axes.legend(handles=handles, ncols=len(handles), handlelength=1.1, handleheight=1.0, columnspacing=1.4, **place)


def headline(analysis: Analysis, exchanges: Sequence[Exchange]) -> str:
    """``api.example.com · 20 requests``."""
    hosts = list(dict.fromkeys(host_of(e, connection_of(analysis, e.connection_id)) for e in exchanges[:1000]))
    where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts" if hosts else "no request"
    path = one_line(analysis.source.path.rpartition("/")[2], most=60) if analysis.source.path else ""
    count = f"{len(exchanges)} request{'s' if len(exchanges) != 1 else ''}"
    return " · ".join(part for part in (path, where, count) if part)


def evidence_line(analysis: Analysis) -> str:
    """``evidence L3: 812 packets, 0 dropped, keys``, with a warning where the result is partial or the peer unverified."""
    source = analysis.source
    what = {EvidenceLevel.L0: "application clock only", EvidenceLevel.L1: "kernel stamps, no packets"}.get(
        source.evidence_level
    )
    if what is None:
        drops = "drops unknown" if source.dropped_packets is None else f"{source.dropped_packets:,} dropped"
        keys = "keys" if source.evidence_level is EvidenceLevel.L3 else "no keys"
        what = f"{source.packets:,} packets, {drops}, {keys}"
    cut = f" · cut at byte {source.cut_at_byte:,}" if source.cut_at_byte is not None else ""
    unverified = " · certificate NOT verified" if source.verification not in (None, "on") else ""
    return f"evidence {source.evidence_level}: {what}{cut}{unverified}"


def titles(picture: Any, title: str, below: str, *, top_in: float = 0.3) -> None:
    """The two title lines at the left edge, placed in inches so that tall and flat pictures look alike."""
    height = picture.get_figheight()
    picture.text(0.012, 1 - top_in / height, title, fontsize=13, fontweight="bold", va="center", ha="left")
    picture.text(0.012, 1 - (top_in + 0.24) / height, below, fontsize=9.5, color=MUTED, va="center", ha="left")


def halo(axes: Any, x: float, y: float, text: str, **look: Any) -> None:
    """Text on a white ground, readable over bars and grid."""
    ground = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
    axes.text(x, y, text, **{"bbox": ground, **look})
