"""What the lab really did, and when: rows stamped beside the system call, kept in order, written as JSON lines.

Instants are wall-clock nanoseconds of the machine, the clock that stamps packets on loopback, so they compare with a capture directly.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthRow:
    """One thing done. ``kind`` is one of: ``accept``, ``client-hello``, ``server-flight``, ``tls-done``, ``tls-failed``, ``request-first``,
    ``request-last``, ``interim``, ``headers``, ``event``, ``response-last``, ``fault``, ``goaway``, ``close``."""

    at: int
    """Just before the write was handed to the kernel; for octets received, the kernel's arrival stamp where it gives one."""
    kind: str
    connection: int
    """Number of the accepted connection, from 0."""
    request: int | None = None
    """Number of the request on its connection, from 0; None for what belongs to the connection."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else is known: sizes in ``*_bytes``, instants in ``*_at``, names."""

    def to_dict(self) -> dict[str, Any]:
        """Flat, as it stands in the JSON lines."""
        row: dict[str, Any] = {"at": self.at, "kind": self.kind, "connection": self.connection}
        if self.request is not None:
            row["request"] = self.request
        return row | self.facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedEvent:
    """One event (or piece of a body) as it left."""

    kind: str
    scheduled_at: int
    written_at: int
    """Just before ``send``."""
    sent_at: int
    """Just after ``send`` had taken the last octet."""
    size_bytes: int
    offset: int
    """Of its first octet in the server's TCP stream (of the TLS record's header under TLS)."""
    wire_bytes: int


@dataclass(slots=True, kw_only=True)
class ServedExchange:
    """One request as the server saw it; a moment is None when it never came."""

    connection: int
    client: str
    """``address:port`` of the peer, the key to join with a capture."""
    server: str
    request: int
    stream_id: int | None = None
    method: str | None = None
    path: str | None = None
    status: int | None = None
    request_first_at: int | None = None
    request_last_at: int | None = None
    interim_at: list[int] = field(default_factory=list)
    headers_at: int | None = None
    headers_offset: int | None = None
    """Where the final head begins in the server's TCP stream."""
    headers_end_offset: int | None = None
    """Just after it (of the TLS records that carry it)."""
    events: list[ServedEvent] = field(default_factory=list)
    response_last_at: int | None = None
    response_end_offset: int | None = None
    """Just after the last octet of the answer in the server's TCP stream."""
    request_bytes: int | None = None
    response_bytes: int | None = None
    fault: str | None = None

    @property
    def has_ended(self) -> bool:
        """The last octet was written, or a fault ended it."""
        return self.response_last_at is not None or self.fault not in (None, "stall")

    @property
    def wait_ns(self) -> int | None:
        """Last request octet received to final head written: the server's own part of the client's wait."""
        if self.headers_at is None or self.request_last_at is None:
            return None
        return self.headers_at - self.request_last_at


class TruthLog:
    """Rows in the order in which they were made. Safe to read from another thread while the server writes."""

    def __init__(self, stream: TextIO | None = None) -> None:
        """``stream`` gets each row as a line of JSON at once."""
        self._rows: list[TruthRow] = []
        self._stream = stream

    def add(self, kind: str, connection: int, *, at: int, request: int | None = None, **facts: Any) -> None:
        """Note one thing done."""
        row = TruthRow(at=at, kind=kind, connection=connection, request=request, facts=facts)
        self._rows.append(row)
        if self._stream is not None:
            self._stream.write(json.dumps(row.to_dict()) + "\n")
            self._stream.flush()

    def __iter__(self) -> Iterator[TruthRow]:
        return iter(tuple(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, kind: str, *, connection: int | None = None) -> list[TruthRow]:
        """Rows of one kind, of one connection or of all."""
        return [r for r in self if r.kind == kind and connection in (None, r.connection)]

    def settle(self, seconds: float = 1.0) -> Self:
        """Wait until every request that has begun has ended (a client may know the end before its row is written), at most so long."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not all(e.has_ended for e in self.exchanges()):
            time.sleep(0.002)
        return self

    def clear(self) -> None:
        """Forget everything so far (open connections keep their numbers)."""
        self._rows.clear()

    def dump(self, file: TextIO) -> None:
        """All rows as JSON lines."""
        for row in self:
            file.write(json.dumps(row.to_dict()) + "\n")

    def exchanges(self) -> list[ServedExchange]:
        """One record per request, in the order of their first octets."""
        return served_exchanges(self)


def served_exchanges(rows: Iterable[TruthRow]) -> list[ServedExchange]:
    """Gather rows to exchanges. Rows of a connection whose ``accept`` is missing get empty addresses."""
    peers: dict[int, tuple[str, str]] = {}
    exchanges: dict[tuple[int, int], ServedExchange] = {}
    for row in rows:
        if row.kind == "accept":
            peers[row.connection] = (row.facts["client"], row.facts["server"])
        if row.request is None:
            continue
        key = (row.connection, row.request)
        if key not in exchanges:
            client, server = peers.get(row.connection, ("", ""))
            exchanges[key] = ServedExchange(
                connection=row.connection, client=client, server=server, request=row.request
            )
        _note(exchanges[key], row)
    return list(exchanges.values())


def _note(exchange: ServedExchange, row: TruthRow) -> None:
    facts = row.facts
    match row.kind:
        case "request-first":
            exchange.request_first_at = row.at
            exchange.stream_id = facts.get("stream_id")
        case "request-last":
            exchange.request_last_at = row.at
            exchange.method, exchange.path = facts.get("method"), facts.get("path")
            exchange.request_bytes = facts.get("body_bytes")
        case "interim":
            exchange.interim_at.append(row.at)
        case "headers":
            exchange.headers_at = row.at
            exchange.status, exchange.headers_offset = facts.get("status"), facts.get("offset")
            if "offset" in facts and "wire_bytes" in facts:
                exchange.headers_end_offset = facts["offset"] + facts["wire_bytes"]
        case "event":
            exchange.events.append(
                ServedEvent(
                    kind=facts["event"],
                    scheduled_at=facts["scheduled_at"],
                    written_at=row.at,
                    sent_at=facts["sent_at"],
                    size_bytes=facts["size_bytes"],
                    offset=facts["offset"],
                    wire_bytes=facts["wire_bytes"],
                )
            )
        case "response-last":
            exchange.response_last_at = row.at
            exchange.response_bytes = facts.get("body_bytes")
            exchange.response_end_offset = facts["offset"] + facts["wire_bytes"]
        case "fault":
            exchange.fault = facts.get("fault")
