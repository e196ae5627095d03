"""Short names of records for people, already harmless to print."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from netdiag.records.connection import Connection
from netdiag.records.exchange import CONNECT, Exchange, Outcome
from netdiag.sanitise import one_line

Row = TypeVar("Row", Connection, Exchange)


class Rows(Protocol):
    """As much of an ``Analysis`` as names need; the analysis itself asks for labels when a notebook shows it."""

    @property
    def connections(self) -> Sequence[Connection]:
        """See ``Analysis``."""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """See ``Analysis``."""


_PROTOCOLS = {"h2": "HTTP/2", "h3": "HTTP/3", "http/1.1": "HTTP/1.1", "http/1.0": "HTTP/1.0"}
_OUTCOMES = {
    "dns_fail": "DNS failure",
    "tls_fail": "TLS failure",
    "http_error": "HTTP error",
    "stream_error": "error event",
    "superseded": "another address reached",
}
_ARMS = {**_PROTOCOLS, "h1": "HTTP/1.1", "http1": "HTTP/1.1", "http2": "HTTP/2"}
_VERSIONS = {"TLSv1.0": "TLS 1.0", "TLSv1.1": "TLS 1.1", "TLSv1.2": "TLS 1.2", "TLSv1.3": "TLS 1.3", "SSLv3": "SSL 3"}


UNREAD_ARM = "encrypted"
"""The arm of requests of a file that could not be read."""


def protocol_name(protocol: str | None) -> str:
    """``HTTP/2`` for ``h2``; ``encrypted`` when nothing could be read."""
    return UNREAD_ARM if protocol is None else _PROTOCOLS.get(protocol, one_line(protocol, most=20))


def arm_name(arm: str) -> str:
    """An arm as a heading: ``HTTP/1.1 warm`` for ``h1+warm``, ``HTTP/1.1, reused`` for ``http/1.1, reused``."""
    words = re.split(r"([+ ,]+)", one_line(arm, most=60))
    return "".join(_ARMS.get(word, " " if word == "+" else word) for word in words)


def tls_version_name(version: str) -> str:
    """``TLS 1.3`` for ``TLSv1.3``."""
    return _VERSIONS.get(version, one_line(version, most=16))


def cipher_name(suite: str) -> str:
    """``AES-128-GCM`` for ``TLS_AES_128_GCM_SHA256`` and its TLS 1.2 relatives: what protects the records; the full name is in the document."""
    name = one_line(suite, most=60).removeprefix("TLS_").rpartition("WITH_")[2]
    for digest in ("_SHA256", "_SHA384", "_SHA"):
        name = name.removesuffix(digest)
    return name.replace("_", "-")


def host_of(exchange: Exchange, connection: Connection | None = None) -> str:
    """The name that was asked for, else SNI, else the server's address; ``?`` when none is known."""
    name = exchange.authority or exchange.server_name
    if name is None and connection is not None:
        name = (connection.tls.sni if connection.tls else None) or str(connection.server)
    return one_line(name, most=120) if name else "?"


def request_label(exchange: Exchange, *, host: str | None = None, most: int = 120) -> str:
    """``GET /v1/models``, with ``host`` before the path where several hosts are shown; ``host`` alone, or nothing, where the request cannot
    be read: its number stands beside every label anyway."""
    if exchange.method is None and exchange.path is None:
        return one_line(host or "", most=most)
    if exchange.method == CONNECT and exchange.path is None:  # its target is host and port alone
        return one_line(f"CONNECT {exchange.authority or '?'}", most=most)
    return one_line(f"{exchange.method or '?'} {host or ''}{exchange.path or '?'}", most=most)


def result_label(exchange: Exchange) -> str:
    """The final status (with the gRPC status where there is one), and how the request failed where the status does not say it; nothing
    where it could not be read."""
    if exchange.status is None:
        return "" if exchange.outcome is Outcome.UNKNOWN else outcome_words(exchange.outcome)
    grpc = f" grpc {exchange.grpc_status}" if exchange.grpc_status is not None else ""
    said = exchange.outcome in (Outcome.OK, Outcome.HTTP_ERROR, Outcome.UNKNOWN)
    return f"{exchange.status}{grpc}" + ("" if said else f" {outcome_words(exchange.outcome)}")


def outcome_words(outcome: str) -> str:
    """``read timeout`` for ``timeout:read``, ``closed early`` for ``closed_early``."""
    kind, _, what = outcome.partition(":")
    return f"{what} {kind}" if what else _OUTCOMES.get(kind, kind.replace("_", " "))


def connection_of(analysis: Rows, connection_id: int | None) -> Connection | None:
    """The connection with this id; ids are positions unless the analysis was filtered."""
    return None if connection_id is None else by_id(analysis.connections, connection_id)


def exchange_of(analysis: Rows, exchange_id: int) -> Exchange | None:
    """The exchange with this id, None when there is none."""
    return by_id(analysis.exchanges, exchange_id)


def by_id(rows: Sequence[Row], wanted: int) -> Row | None:
    """The row with the id ``wanted``: at its own position, or before it where rows were filtered out."""
    if 0 <= wanted < len(rows) and rows[wanted].id == wanted:
        return rows[wanted]
    return next((row for row in rows if row.id == wanted), None)
