"""The application's clock against the kernel's: told apart by cause and effect, and brought together where they differ.

The kernel sends an octet after the write that handed it over, and has received an octet before the read that returned it. So every write
says that the kernel's clock is ahead by at most (its stamp − the application's), and every read that it is ahead by at least as much. Where
0 lies outside those bounds the clocks differ; bounds that exclude each other say that the wall clock was set in between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.records.anomaly import Anomaly
from netdiag.records.recording import ClientConnection, ClientRequest, Recording, SocketOperation, Span

TOLERANCE_NS = 1_000_000
"""Below this nobody is told: a clock that is being slewed moves so much in seconds."""
_CLIENT = 0


@dataclass(frozen=True, slots=True)
class OffsetBounds:
    """How far the kernel's clock is ahead of the application's, in ns; None where nothing bounds it."""

    lo: int | None
    hi: int | None

    @property
    def consistent(self) -> bool:
        """False when the clock was set between two of the operations."""
        return self.lo is None or self.hi is None or self.lo <= self.hi + TOLERANCE_NS

    @property
    def least(self) -> int:
        """The smallest correction that restores cause and effect; 0 within the tolerance."""
        if self.lo is not None and self.lo > TOLERANCE_NS:
            return self.lo
        return self.hi if self.hi is not None and self.hi < -TOLERANCE_NS else 0


def bounds(operations: Iterable[SocketOperation]) -> OffsetBounds:
    """From all operations that the kernel stamped."""
    lo: int | None = None
    hi: int | None = None
    for operation in operations:
        if operation.kernel_at is None:
            continue
        ahead = operation.kernel_at - operation.application_at
        if operation.direction == _CLIENT:
            hi = ahead if hi is None else min(hi, ahead)
        else:
            lo = ahead if lo is None else max(lo, ahead)
    return OffsetBounds(lo, hi)


def align(recording: Recording) -> tuple[Recording, tuple[Anomaly, ...]]:
    """The recording with the application's instants moved onto the kernel's clock wherever the two differ, and what is to be said about it.

    Durations by the application's clock stay what they are. A request during which the clock was set keeps its own instants.
    """
    by_id = {c.id: c for c in recording.connections}
    whole = {c.id: bounds(c.operations) for c in recording.connections}
    offsets = {r.id: _offset(r, by_id, whole) for r in recording.requests}
    if not any(offsets.values()) and all(b.consistent and not b.least for b in whole.values()):
        return recording, _stepped(recording)
    requests = tuple(_moved_request(r, offsets[r.id]) for r in recording.requests)
    connections = tuple(
        _moved_connection(c, _opening_offset(c, recording.requests, offsets, whole)) for c in by_id.values()
    )
    aligned = dataclasses.replace(recording, requests=requests, connections=connections)
    return aligned, (*_stepped(recording), *_different(offsets, whole))


def _offset(request: ClientRequest, by_id: dict[int, ClientConnection], whole: dict[int, OffsetBounds]) -> int:
    """The least correction for one request: its connection's, or by its own operations where the connection saw a step."""
    connection = by_id.get(request.connection_id if request.connection_id is not None else -1)
    if connection is None:
        return 0
    if whole[connection.id].consistent:
        return whole[connection.id].least
    own = bounds(o for o in connection.operations if request.submitted_at <= o.application_at <= request.ended_at)
    return own.least if own.consistent else 0


def _opening_offset(
    connection: ClientConnection,
    requests: Sequence[ClientRequest],
    offsets: dict[int, int],
    whole: dict[int, OffsetBounds],
) -> int:
    """Of the set-up: that of the request which paid for it."""
    if whole[connection.id].consistent:
        return whole[connection.id].least
    return next((offsets[r.id] for r in requests if r.connection_id == connection.id), 0)


_INSTANTS = ("submitted_at", "assigned_at", "first_write_at", "last_write_at", "headers_at", "last_read_at", "ended_at")


def _moved_request(request: ClientRequest, by_ns: int) -> ClientRequest:
    if not by_ns:
        return request
    moved = {name: at + by_ns for name in _INSTANTS if (at := getattr(request, name)) is not None}
    return dataclasses.replace(
        request,
        body_reads=tuple((at + by_ns, size) for at, size in request.body_reads),
        interim=tuple(dataclasses.replace(i, at=i.at + by_ns) for i in request.interim),
        **moved,
    )


def _moved_connection(connection: ClientConnection, by_ns: int) -> ClientConnection:
    """Its operations keep both stamps as they were taken, or nobody could check them any more."""
    if not by_ns:
        return connection
    moved: dict[str, Any] = {
        name: _moved_span(getattr(connection, name), by_ns) for name in ("resolve", "tcp", "tls", "proxy")
    }
    attempts = tuple(
        dataclasses.replace(a, started_at=a.started_at + by_ns, ended_at=a.ended_at + by_ns)
        for a in connection.attempts
    )
    closed_at = None if connection.closed_at is None else connection.closed_at + by_ns
    return dataclasses.replace(connection, attempts=attempts, closed_at=closed_at, **moved)


def _moved_span(span: Span | None, by_ns: int) -> Span | None:
    return None if span is None else Span(started_at=span.started_at + by_ns, ended_at=span.ended_at + by_ns)


def _stepped(recording: Recording) -> tuple[Anomaly, ...]:
    step_ns = recording.clock_step_ns
    if step_ns is None or abs(step_ns) <= TOLERANCE_NS:
        return ()
    reason = f"the wall clock moved by {step_ns / 1e6:+.1f} ms against the monotonic clock during the run"
    return (Anomaly(protocol="clock", reason=reason),)


def _different(offsets: dict[int, int], whole: dict[int, OffsetBounds]) -> tuple[Anomaly, ...]:
    torn = [i for i, b in whole.items() if not b.consistent]
    known = [offset for offset in offsets.values() if offset]
    found = []
    if known:
        span = f"{min(known) / 1e6:+.1f}" + (f" to {max(known) / 1e6:+.1f}" if min(known) != max(known) else "")
        reason = (
            f"the kernel's clock differs from the application's by at least {span} ms in {len(known)} of {len(offsets)} requests;"
            " the application's instants were moved onto it"
        )
        found.append(Anomaly(protocol="clock", reason=reason))
    if torn:
        listed = ", ".join(map(str, torn[:5])) + (" …" if len(torn) > 5 else "")
        found.append(
            Anomaly(protocol="clock", reason=f"the wall clock was set while connection {listed} of the probe was open")
        )
    return tuple(found)
