"""One hue per phase, the same in the terminal, in pictures and in HTML. The words carry the meaning without colour.

Every pair of unhatched hues stays apart under protanopia, deuteranopia and tritanopia (tests/test_palette.py measures it).
"""

from __future__ import annotations

PHASE_HUES: dict[str, str] = {
    "queue": "#A0A4A8",
    "dns": "#A58BE0",
    "proxy": "#7A4A1E",
    "tcp": "#EE9A1A",
    "tls": "#B0307F",
    "send": "#1F5FBF",
    "continue": "#E3D26A",
    "wait": "#12A074",
    "transfer": "#7CC8F0",
    "deliver": "#A0C0C0",
    "backoff": "#A0A4A8",
    "unattributed": "#FFFFFF",
}
"""By phase name, and for back-off and unattributed time, as ``#RRGGBB``."""

HATCHED = frozenset({"queue", "backoff"})
"""Time in which nothing was done for the request: drawn hatched."""

FAILURE = "#C62828"
"""Failures, retransmissions, holes."""
MUTED = "#6B7280"
"""Secondary text."""
INK = "#1F2933"
"""Primary text and outlines in pictures."""

STALL_HUES: dict[str, str] = {"network": FAILURE, "server": "#0B6E4F", "client": "#9A5B00", "undecided": MUTED}
"""By the cause of a stall; its name always stands beside it."""
