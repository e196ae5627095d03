"""One name resolution."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.records.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class NameResolution:
    """One question to one resolver with all its attempts: paired by (client, id, question)."""

    name: str
    """QNAME without the final dot, control characters escaped."""
    type: str
    """QTYPE mnemonic (``A``, ``AAAA``, ``HTTPS`` …) or ``TYPE65``."""
    resolver: Endpoint
    client: Endpoint
    transport: str
    """``udp`` or ``tcp``."""
    query_at: int | None
    """First query; None when only the answer was captured."""
    query_packet: int | None
    response_at: int | None
    """None when nothing came back."""
    response_packet: int | None
    duration_ns: int | None
    rcode: str | None
    addresses: tuple[str, ...] = ()
    cname_chain: tuple[str, ...] = ()
    attempts: int = 1
    """Queries sent with this id and question."""
    ttl_s: int | None = None
    """Smallest TTL of the answer's address records."""
    truncated: bool = False
    connection_id: int | None = None
    """The connection that this answer led to."""
