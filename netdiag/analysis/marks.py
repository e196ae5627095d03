"""Milestones of one exchange: what happened, when, by whose clock, and how sure that is."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from netdiag.records.timing import Clock, Method


class Milestone(StrEnum):
    """The moments between which phases lie. A milestone that is absent was not seen or does not apply."""

    SUBMITTED = "submitted"
    """The application asked for it."""
    ASSIGNED = "assigned"
    """A connection, old or new, was handed to the request."""
    DNS_QUERY = "dns-query"
    """First query for the name, any type."""
    DNS_ANSWER = "dns-answer"
    """Last answer received before the first SYN."""
    SYN = "syn"
    """First SYN of the connection that was used in the end."""
    SYN_ACK = "syn-ack"
    PROXY_ASKED = "proxy-asked"
    """First octet of CONNECT, of the SOCKS greeting, or of the TLS handshake with the proxy."""
    PROXY_READY = "proxy-ready"
    """The proxy's consent was deliverable."""
    CLIENT_HELLO = "client-hello"
    """First octet of the first ClientHello sent."""
    TLS_FINISHED = "tls-finished"
    """The later of: own Finished sent, peer's Finished deliverable."""
    REQUEST_FIRST = "request-first"
    REQUEST_HEAD_LAST = "request-head-last"
    """Last octet of a request head whose body is held back until 100 (Continue); absent for all other requests."""
    CONTINUED = "continued"
    """100 (Continue) deliverable, or the client stopped waiting for it and sent the body."""
    REQUEST_BODY_FIRST = "request-body-first"
    REQUEST_LAST = "request-last"
    RESPONSE_FIRST = "response-first"
    """First octet of the final response head deliverable; interim responses are none."""
    RESPONSE_LAST = "response-last"
    READ_LAST = "read-last"
    """The application had the last octet."""


class Mark(NamedTuple):
    """One moment. ``lo`` and ``hi`` bound it where it is not exact; None means no better than ``at``."""

    at: int
    packet: int | None = None
    clock: Clock = Clock.WIRE
    method: Method = Method.EXACT
    lo: int | None = None
    hi: int | None = None

    @property
    def earliest(self) -> int:
        """Lower bound, nanoseconds."""
        return self.at if self.lo is None else min(self.lo, self.at)

    @property
    def latest(self) -> int:
        """Upper bound, nanoseconds."""
        return self.at if self.hi is None else max(self.hi, self.at)


Marks = dict[Milestone, Mark]
