"""Bad traffic and damaged files as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """Something that should not be there, and where; the analysis went on after it."""

    protocol: str
    """``file``, ``link``, ``ip``, ``tcp``, ``udp``, ``tls``, ``key-log``, ``http/1.1``, ``h2``, ``dns``, ``quic`` …"""
    reason: str
    """One sentence with the numbers in it; already free of control characters."""
    connection_id: int | None = None
    packet: int | None = None
    offset: int | None = None
    """Octets from the start of the capture file (``file``), or of the stream (a connection's protocol); None where it has no place."""
