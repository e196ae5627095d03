"""One name resolution."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.records.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class NameResolution:
    """One question to one resolver with all its attempts: paired by (client, id, question)."""

    name: str
    """QNAME without the final dot, control characters escaped; empty where neither the query's question nor the answer's could be read."""
    type: str
    """QTYPE mnemonic (``A``, ``AAAA``, ``HTTPS`` …) or ``TYPE65``."""
    resolver: Endpoint
    client: Endpoint
    transport: str
    """``udp``, ``tcp``, or ``tls`` (RFC 7858, with keys)."""
    query_at: int | None
    """First query; None when only the answer was captured."""
    query_packet: int | None
    response_at: int | None
    """None when nothing came back."""
    response_packet: int | None
    duration_ns: int | None
    """None without one of the two, or where the capture's clock stepped back between them."""
    rcode: str | None
    addresses: tuple[str, ...] = ()
    cname_chain: tuple[str, ...] = ()
    attempts: int = 1
    """Queries sent with this id and question."""
    ttl_s: int | None = None
    """Smallest TTL of the answer's address records."""
    truncated: bool = False
    answered_question: str | None = None
    """Name and type in the answer where they are not those asked: only id and ports fit, so a careful resolver ignores it (RFC 5452
    section 9.1), and its addresses are not given here. None when the answer repeats the question, or has none."""
    connection_id: int | None = None
    """The connection that this answer led to."""
