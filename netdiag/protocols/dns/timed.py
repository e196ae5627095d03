"""A DNS message with when and between whom it travelled: what streams and datagrams give, and what is paired."""

from __future__ import annotations

from dataclasses import dataclass, replace

from netdiag.protocols.dns.message import DnsMessage
from netdiag.records.endpoint import Endpoint

UNSPECIFIED = Endpoint("", 0)
"""Stands for an endpoint that the decoder does not know: an address is never made up."""


@dataclass(frozen=True, slots=True)
class TimedMessage:
    """One message as it travelled."""

    message: DnsMessage
    source: Endpoint
    destination: Endpoint
    at: int
    """When it was captured (its last octet, over TCP: when that was deliverable); ns since the epoch."""
    packet: int | None
    transport: str = "udp"

    def between(self, client: Endpoint, resolver: Endpoint) -> TimedMessage:
        """The same message with its endpoints: a query goes to the resolver, an answer comes from it."""
        source, destination = (resolver, client) if self.message.response else (client, resolver)
        return replace(self, source=source, destination=destination)
