"""Whether a trial is what its arm's name says, by the facts on the wire (comparisons.md, rule 2): one that is not does not count."""

from __future__ import annotations

from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange

_PROTOCOLS = {"h1": ("http/1.0", "http/1.1"), "h2": ("h2",)}
_TLS_VERSIONS = {"tls1.2": "TLSv1.2", "tls1.3": "TLSv1.3"}


def mislabelled(exchange: Exchange, connection: Connection | None) -> str | None:
    """The reason why the trial does not belong to its arm; None when it does, or when nothing contradicts it."""
    if exchange.arm is None:
        return None
    words = set(exchange.arm.rpartition(" ")[2].lower().split("+"))
    return (
        _protocol(words, exchange)
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
