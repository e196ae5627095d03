"""A probe's recording without packets: its writes and reads become stream segments, so that decoding, exchanges and phases are one code
path at every evidence level (architecture.md, idea 3).

A write's instant is the kernel's transmit stamp of its last octet, a read's the receive stamp; where the kernel gave none, the
application's own instant stands in. What packets alone would show (name resolution, the TCP handshake) comes from the client's calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.records.exchange import Outcome
from netdiag.records.recording import ClientConnection, ClientRequest, Recording, SocketOperation, Span
from netdiag.records.timing import Clock
from netdiag.wire.tables import NONE, SegmentKind, Segments

M = Milestone
CLIENT, SERVER = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStreams:
    """All connections' octets in one buffer, and where each write and read lies in it. Connection ids are those of the recording."""

    buffer: bytes
    segments: Segments


def streams_of(recording: Recording, clock: Clock) -> RecordedStreams:
    """Segments from the recording backend's operations, by ``Clock.KERNEL`` (where stamped) or ``Clock.APPLICATION``."""
    pieces: list[bytes] = []
    rows: list[tuple[int, int, int, int, int, int]] = []
    place = 0
    for connection in recording.connections:
        for direction in (CLIENT, SERVER):
            offset = 0
            for operation in _of(connection, direction):
                size = len(operation.data)
                rows.append((connection.id, direction, offset, size, place, _at(operation, clock)))
                pieces.append(operation.data)
                place += size
                offset += size
    return RecordedStreams(buffer=b"".join(pieces), segments=_segments(rows))


def _of(connection: ClientConnection, direction: int) -> Iterator[SocketOperation]:
    return (o for o in connection.operations if o.direction == direction and o.data)


def _at(operation: SocketOperation, clock: Clock) -> int:
    if clock is Clock.KERNEL and operation.kernel_at is not None:
        return operation.kernel_at
    return operation.application_at


def _segments(rows: list[tuple[int, int, int, int, int, int]]) -> Segments:
    table = np.array(rows, np.int64).reshape(len(rows), 6)
    connection, direction, offset, size, place, at = table.T
    return Segments(
        connection=connection.astype(np.int32),
        direction=direction.astype(np.uint8),
        packet=np.full(len(rows), NONE, np.int64),
        stream_offset=offset,
        length=size,
        captured_bytes=size,
        payload_offset=place,
        seen_at=at,
        deliverable_at=at,
        kind=np.full(len(rows), SegmentKind.NEW, np.uint8),
        new_offset=offset,
    )


def has_kernel_stamps(recording: Recording) -> bool:
    """Whether the kernel stamped anything: the difference between evidence levels L0 and L1."""
    return any(o.kernel_at is not None for c in recording.connections for o in c.operations)


def _mark(at: int) -> Mark:
    return Mark(at, None, Clock.APPLICATION)


def _span(marks: Marks, span: Span | None, start: Milestone, end: Milestone | None) -> None:
    if span is not None:
        marks[start] = _mark(span.started_at)
        if end is not None:
            marks[end] = _mark(span.ended_at)


def set_up_marks(connection: ClientConnection) -> Marks:
    """Name resolution, connect, proxy and TLS handshake calls, by the application's clock; what failed has no end."""
    marks: Marks = {}
    connected = connection.tcp is not None
    _span(marks, connection.resolve, M.DNS_QUERY, M.DNS_ANSWER if connected or connection.addresses else None)
    _span(marks, connection.tcp, M.SYN, M.SYN_ACK)
    if not connected and connection.attempts:
        marks[M.SYN] = _mark(min(a.started_at for a in connection.attempts))
    _span(marks, connection.proxy, M.PROXY_ASKED, M.PROXY_READY)
    _span(marks, connection.tls, M.CLIENT_HELLO, M.TLS_FINISHED if connection.tls_error is None else None)
    return marks


def application_marks(request: ClientRequest, connection: ClientConnection | None) -> tuple[Marks, Mark | None]:
    """One request by the application's clock, and where it stopped if it failed.

    The set-up belongs to the request that opened the connection: one that was submitted while another opened it waited in the queue.
    """
    marks: Marks = {M.SUBMITTED: _mark(request.submitted_at)}
    if request.assigned_at is not None:
        marks[M.ASSIGNED] = _mark(request.assigned_at)
    if connection is not None and opened(request, connection):
        marks.update(set_up_marks(connection))
    for milestone, at in (
        (M.REQUEST_FIRST, request.first_write_at),
        (M.REQUEST_LAST, request.last_write_at),
        (M.RESPONSE_FIRST, request.headers_at),
    ):
        if at is not None:
            marks[milestone] = _mark(at)
    if request.last_read_at is not None and _whole(request):
        marks[M.RESPONSE_LAST] = _mark(request.last_read_at)
    return marks, None if _whole(request) else _mark(request.ended_at)


def _whole(request: ClientRequest) -> bool:
    return request.outcome in (Outcome.OK, Outcome.HTTP_ERROR)


def opened(request: ClientRequest, connection: ClientConnection) -> bool:
    """Whether this request paid for the connection: it is not reused, and had been submitted before the connecting began."""
    begins = [s.started_at for s in (connection.resolve, connection.tcp, connection.tls) if s is not None]
    begins += [a.started_at for a in connection.attempts]
    return not request.reused and (not begins or request.submitted_at <= min(begins))
