"""The packets of one side: a line each, as high as its payload is large; holes, and what the packet is where it is special."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netdiag.palette import FAILURE, INK, MUTED
from netdiag.plot.lane import FONT, SIDE_HUES, Lane, Scale, beside
from netdiag.plot.shapes import Box, add_boxes, add_lines, halo
from netdiag.records.lanes import ExchangeLanes, LaneHole, LaneKind, LanePacket
from netdiag.units import format_bytes, format_duration

_PACKETS_HIGH = 1.6
"""Height of the lane in rows."""
_RESENT = frozenset({LaneKind.RETRANSMISSION, LaneKind.SPURIOUS})
_FLAGS = {LaneKind.SYN: "SYN", LaneKind.FIN: "FIN", LaneKind.RST: "RST", LaneKind.KEEP_ALIVE: "keep-alive"}


def packet_lane(shown: ExchangeLanes, side: str, scale: Scale) -> Lane:
    """The packets and the holes of one side."""
    packets = [p for p in shown.packets if p.side == side]
    holes = [h for h in shown.holes if h.side == side]
    largest = max((p.payload_bytes for p in shown.packets), default=0) or 1

    def draw(axes: Any, top: float) -> None:
        bottom = top + _PACKETS_HIGH
        _hole_boxes(axes, holes, scale, top, bottom)
        axes.plot([0, scale.end], [bottom, bottom], color=MUTED, linewidth=0.7, zorder=2)
        for resent, colour in ((False, SIDE_HUES[side]), (True, FAILURE)):
            chosen = [p for p in packets if (p.kind in _RESENT) == resent]
            add_lines(axes, [_stem(p, scale, bottom, largest) for p in chosen], colors=colour, linewidths=1.6, zorder=4)
        _flag_labels(axes, packets, scale, bottom)

    sent = sum(p.payload_bytes for p in packets)
    return Lane(f"{side}\n{len(packets)} packets\n{format_bytes(sent)}", _PACKETS_HIGH, draw)


def _stem(
    packet: LanePacket, scale: Scale, bottom: float, largest: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """A line whose height tells the payload's size; a packet without payload is a stub."""
    share = 0.14 + 0.86 * packet.payload_bytes / largest if packet.payload_bytes else 0.12
    x = scale(packet.at)
    return ((x, bottom), (x, bottom - share * _PACKETS_HIGH))


def _hole_boxes(axes: Any, holes: Sequence[LaneHole], scale: Scale, top: float, bottom: float) -> None:
    for hole in holes:
        left = scale(hole.from_at)
        right = scale(hole.until_at) if hole.until_at is not None else scale.end
        add_boxes(
            axes, "hole", [Box(left, right, top, bottom)], facecolor=FAILURE, edgecolor="none", alpha=0.13, zorder=1
        )
        filled = f"for {format_duration(hole.until_at - hole.from_at)}" if hole.until_at is not None else "never filled"
        text = f"{format_bytes(hole.size_bytes, none='octets')} missing {filled}"
        axes.text((left + right) / 2, top + 0.08, text, ha="center", va="top", fontsize=FONT, color=FAILURE, zorder=6)


def _name(packet: LanePacket) -> str:
    if packet.kind is LaneKind.SYN and packet.side == "server":
        return "SYN-ACK"
    return _FLAGS.get(packet.kind) or ("resent" if packet.kind in _RESENT else "")


def _flag_labels(axes: Any, packets: Sequence[LanePacket], scale: Scale, bottom: float) -> None:
    """SYN, FIN, RST and retransmissions by name, where there is room for the name."""
    reached = -scale.end
    for packet in packets:
        name = _name(packet)
        x = scale(packet.at)
        if not name or x < reached:
            continue
        colour = FAILURE if packet.kind in _RESENT or packet.kind is LaneKind.RST else INK
        flat = 0.12 if packet.payload_bytes == 0 else 0.5
        text = f"{name} {packet.number}"
        place, side = beside(x, x, text, scale)
        halo(
            axes,
            place,
            bottom - flat * _PACKETS_HIGH,
            text,
            fontsize=FONT,
            color=colour,
            ha=side,
            va="center",
            zorder=6,
        )
        reached = x + scale.characters(len(text) + 1)
