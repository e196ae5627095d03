"""What is true about a built capture, as records: the side file beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

FORMAT = "netdiag/lab-truth"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueSpan:
    """One phase."""

    name: str
    started_at: int
    ended_at: int
    first_packet: int | None = None
    last_packet: int | None = None

    @property
    def duration_ns(self) -> int:
        """Its length."""
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueEvent:
    """One event of a streamed answer at the capture point."""

    kind: str
    seen_at: int | None
    deliverable_at: int | None
    packet: int | None
    size_bytes: int


@dataclass(slots=True, kw_only=True)
class TrueExchange:
    """One request. ``phases`` are disjoint and in order; what lies between them is unattributed."""

    connection: int
    request: int
    stream_id: int | None
    client: str
    server: str
    protocol: str
    method: str
    path: str
    status: int | None
    outcome: str
    reused: bool
    started_at: int | None = None
    ended_at: int | None = None
    phases: list[TrueSpan] = field(default_factory=list)
    interim_at: list[int] = field(default_factory=list)
    request_packet: int | None = None
    response_packet: int | None = None
    server_wait_ns: int | None = None
    """The server's own: last request octet read to final head written."""
    events: list[TrueEvent] = field(default_factory=list)

    @property
    def total_ns(self) -> int | None:
        """First packet to last octet deliverable."""
        return None if self.started_at is None or self.ended_at is None else self.ended_at - self.started_at

    def phase_ns(self, name: str) -> int | None:
        """Sum of a phase's spans; None when it does not apply."""
        spans = [p.duration_ns for p in self.phases if p.name == name]
        return sum(spans) if spans else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueConnection:
    """One TCP connection that was tried."""

    client: str
    server: str
    plan: int
    winner: bool
    syn_at: int | None
    syn_packet: int | None
    syn_ack_at: int | None
    syn_ack_packet: int | None
    ack_at: int | None
    ack_packet: int | None
    syns: int
    client_packets: int
    server_packets: int
    sent_again: dict[str, dict[str, int]]
    """By side, then by kind (``fast``, ``rto``, ``tlp``): segments that the sender sent again, whether or not they passed here."""
    lost: dict[str, int]
    """By side: frames that the path dropped."""
    tls: dict[str, Any] | None
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueResolution:
    """One question."""

    name: str
    type: str
    query_at: int | None
    query_packet: int | None
    answer_at: int | None
    answer_packet: int | None
    attempts: int
    rcode: int | None
    addresses: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Truth:
    """Of one built scenario."""

    scenario: str
    seed: int
    frames: int
    exchanges: list[TrueExchange]
    connections: list[TrueConnection]
    resolutions: list[TrueResolution]

    def to_dict(self) -> dict[str, Any]:
        """For the side file; integers are nanoseconds since the epoch (``*_at``) or long (``*_ns``)."""
        document = {"schema": FORMAT, **asdict(self)}
        for row, exchange in zip(document["exchanges"], self.exchanges, strict=True):
            row["total_ns"] = exchange.total_ns
            for span, phase in zip(row["phases"], exchange.phases, strict=True):
                span["duration_ns"] = phase.duration_ns
        return document
