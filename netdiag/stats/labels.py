"""Whether a trial is what its arm's name says, by the facts on the wire: one that is not does not count."""

from __future__ import annotations

import re

from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange
from netdiag.units import NS_PER_S, format_duration

_PROTOCOLS = {"h1": ("http/1.0", "http/1.1"), "h2": ("h2",)}
_IDLE = re.compile(r"idle(\d{1,6}(?:\.\d{1,3})?)(ms|s|min)")
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_IDLE_SLACK_S = 1.0
"""A server's tail and the rate limit may lengthen a pause."""
_TLS_VERSIONS = {"tls1.2": "TLSv1.2", "tls1.3": "TLSv1.3"}


def mislabelled(exchange: Exchange, connection: Connection | None) -> str | None:
    """The reason why the trial does not belong to its arm; None when it does, or when nothing contradicts it."""
    if exchange.arm is None:
        return None
    words = set(exchange.arm.rpartition(" ")[2].lower().split("+"))
    return (
        _idle(words, exchange)
        or _protocol(words, exchange)
        or _warmth(words, exchange, connection)
        or _connection(words, connection)
        or _delivery(words, exchange)
    )


def _protocol(words: set[str], exchange: Exchange) -> str | None:
    for word, spoken in _PROTOCOLS.items():
        if word in words and exchange.protocol is not None and exchange.protocol not in spoken:
            return f"{word} trial spoke {exchange.protocol}"
    return None


def _warmth(words: set[str], exchange: Exchange, connection: Connection | None) -> str | None:
    if "warm" in words:
        return None if exchange.reused else "warm trial on a new connection"
    if words & {"cold", "resumed"} and exchange.reused:
        return "trial for a new connection on a reused one"
    resumed = None if connection is None or connection.tls is None else connection.tls.resumed
    if "resumed" in words and resumed is False:
        return "resumed trial with a full handshake"
    return "cold trial with a resumed session" if "cold" in words and resumed else None


def _idle(words: set[str], exchange: Exchange) -> str | None:
    """A connection that lay idle for another time than its arm says answers another question."""
    asked = next((found for word in words if (found := _IDLE.fullmatch(word))), None)
    if asked is None or exchange.idle_before_ns is None:
        return None
    idle_s, actual_s = float(asked[1]) * _SECONDS[asked[2]], exchange.idle_before_ns / NS_PER_S
    if idle_s * 0.9 <= actual_s <= idle_s * 1.1 + _IDLE_SLACK_S:
        return None
    return f"{asked[0]} trial after {format_duration(exchange.idle_before_ns)} of idleness"


def _connection(words: set[str], connection: Connection | None) -> str | None:
    if connection is None:
        return None
    family = "ipv6" if ":" in connection.server.address else "ipv4"
    asked = words & {"ipv4", "ipv6"}
    if asked and family not in asked:
        return f"{asked.pop()} trial over {family}"
    version = None if connection.tls is None else connection.tls.version
    for word, name in _TLS_VERSIONS.items():
        if word in words and version is not None and version != name:
            return f"{word} trial spoke {version}"
    return None


def _delivery(words: set[str], exchange: Exchange) -> str | None:
    """Only where the answer's head could be read does its being whole mean anything."""
    if "whole" in words and exchange.stream is not None and exchange.stream.events:
        return "whole trial got a stream of events"
    unreadable = exchange.status is None or not exchange.response_headers
    return None if "stream" not in words or exchange.stream is not None or unreadable else "stream trial got no events"
