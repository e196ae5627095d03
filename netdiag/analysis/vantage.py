"""Where the capture was taken, told by where the round trip is spent."""

from __future__ import annotations

from netdiag.records.connection import Vantage

_NEAR = 0.2
"""A side that answers within this share of the whole round trip is next to the capture point: its own stack's delay, not a path."""
_LOCAL_NS = 200_000
"""Both halves below this: one machine (loopback) or one switch. Then the place cannot be told."""


def vantage(server_rtt_ns: int | None, client_rtt_ns: int | None) -> Vantage | None:
    """``client`` when the client's half of the round trip is short, ``server`` when the server's half is, else ``middle``.

    The halves are the least times from the capture point to that side and back. None when one is not known, or both are too short to tell.
    """
    if server_rtt_ns is None or client_rtt_ns is None or max(server_rtt_ns, client_rtt_ns) < _LOCAL_NS:
        return None
    total_ns = server_rtt_ns + client_rtt_ns
    if client_rtt_ns <= _NEAR * total_ns:
        return Vantage.CLIENT
    return Vantage.SERVER if server_rtt_ns <= _NEAR * total_ns else Vantage.MIDDLE
