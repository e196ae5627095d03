"""Where the capture was taken, told by where the round trip of the handshake is spent (phases.md section 1, RTT)."""

from __future__ import annotations

from netdiag.records.connection import Vantage

_NEAR = 0.2
"""A side that answers within this share of the whole round trip is next to the capture point: its own stack's delay, not a path."""
_LOCAL_NS = 200_000
"""Both halves below this: one machine (loopback) or one switch. Then the place cannot be told."""


def vantage(syn_at: int | None, syn_ack_at: int | None, ack_at: int | None) -> Vantage | None:
    """``client`` when the client's ACK follows the SYN-ACK at once, ``server`` when the SYN-ACK follows the SYN at once, else ``middle``.

    None when the handshake was not captured whole, or when both halves are too short to tell. ``syn_at`` must be the SYN that was answered.
    """
    if syn_at is None or syn_ack_at is None or ack_at is None:
        return None
    to_server_ns, to_client_ns = syn_ack_at - syn_at, ack_at - syn_ack_at
    total_ns = to_server_ns + to_client_ns
    if to_server_ns < 0 or to_client_ns < 0 or max(to_server_ns, to_client_ns) < _LOCAL_NS:
        return None
    if to_client_ns <= _NEAR * total_ns:
        return Vantage.CLIENT
    if to_server_ns <= _NEAR * total_ns:
        return Vantage.SERVER
    return Vantage.MIDDLE
