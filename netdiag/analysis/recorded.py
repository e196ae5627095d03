"""A probe's recording without packets: its writes and reads become stream segments, so that decoding, exchanges and phases are one code
path at every evidence level.

A write's instant is the kernel's transmit stamp of its last octet, a read's the receive stamp; where the kernel gave none, the
application's own instant stands in. What only packets would show (name resolution, the TCP handshake) comes from the client's calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from netdiag.analysis.dialogue import Dialogue
from netdiag.analysis.exchanges import handshake_marks, turn_marks
from netdiag.analysis.hearing import hear_all
from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.protocols.tls.keylog import parse_keylog
from netdiag.protocols.turn import Turn
from netdiag.records.connection import Connection, Side, Sides, Vantage
from netdiag.records.exchange import Outcome
from netdiag.records.recording import ClientConnection, ClientRequest, Recording, SocketOperation, Span
from netdiag.records.tcp_info import TcpInfo
from netdiag.records.timing import Clock
from netdiag.wire.tables import NONE, SegmentKind, Segments
from netdiag.wire.tls_records import chain

M = Milestone
CLIENT, SERVER = 0, 1
ABSENT_NS = 5_000_000
"""What is shorter is the handling of what was read."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What the recorded octets of one connection say."""

    dialogue: Dialogue
    marks: Marks
    """TLS handshake, by the clock of the operations."""
    clock: Clock

    def turn_of(self, request: ClientRequest, ordinal: int) -> Turn | None:
        """The turn of a request: by stream, or as the ``ordinal``-th on its connection."""
        turns = [t for leg in self.dialogue.legs for t in leg.turns if t.method != "CONNECT" and not t.pushed]
        if request.stream_id is not None:
            return next((t for t in turns if t.stream_id == request.stream_id), None)
        return turns[ordinal] if ordinal < len(turns) else None


def hear(recording: Recording, clock: Clock) -> dict[int, Heard]:
    """The same decoding that a capture's octets go through, by connection id of the recording."""
    streams = streams_of(recording, clock)
    keylog = parse_keylog(recording.keylog) if recording.keylog else None
    records = chain(streams.buffer, streams.segments)
    ports = {c.id: 0 if c.server is None else c.server.port for c in recording.connections}
    dialogues = hear_all(streams.buffer, streams.segments, records, ports, keylog)
    by_id = {c.id: c for c in recording.connections}
    return {i: _heard(dialogue, by_id[i], clock) for i, dialogue in dialogues.items()}


def _heard(dialogue: Dialogue, connection: ClientConnection, clock: Clock) -> Heard:
    stamped = clock is Clock.KERNEL and any(o.kernel_at is not None for o in connection.operations)
    actual = Clock.KERNEL if stamped else Clock.APPLICATION
    marks = {} if dialogue.session is None else handshake_marks(dialogue.session)
    return Heard(dialogue=dialogue, marks=by_clock(marks, actual), clock=actual)


def by_clock(marks: Marks, clock: Clock) -> Marks:
    """The same instants, said to be of ``clock``."""
    return {milestone: mark._replace(clock=clock) for milestone, mark in marks.items()}


def operation_marks(
    request: ClientRequest, ordinal: int, connection: ClientConnection | None, heard: Heard | None
) -> tuple[Marks, Turn | None]:
    """One request by the instants of the connection's own writes and reads; the set-up before TLS is the application's."""
    turn = None if heard is None else heard.turn_of(request, ordinal)
    if heard is None or connection is None:
        return {}, turn
    marks: Marks = {}
    if opened(request, connection):
        marks.update(set_up_marks(connection))
        marks.update(heard.marks)
    if turn is not None:
        marks.update(by_clock(turn_marks(turn), heard.clock))
    return marks, turn


def connection_record(connection: ClientConnection, id: int, heard: Heard | None) -> Connection | None:
    """What is known of a connection without packets; None when it did not come about."""
    if connection.client is None or connection.server is None or connection.tcp is None:
        return None
    info = connection.tcp_info or TcpInfo()
    dialogue = None if heard is None else heard.dialogue
    return Connection(
        id=id,
        transport="tcp",
        client=connection.client,
        server=connection.server,
        client_known_by="recording",
        first_at=connection.tcp.started_at,
        last_at=connection.closed_at
        or max((o.application_at for o in connection.operations), default=connection.tcp.ended_at),
        first_packet=None,
        last_packet=None,
        handshake_rtt_ns=connection.tcp.ended_at - connection.tcp.started_at,
        min_rtt_ns=info.min_rtt_ns,
        server_rtt_ns=info.min_rtt_ns,
        vantage=Vantage.CLIENT,
        kernel=connection.tcp_info,
        closed_at=connection.closed_at,
        sides=Sides(client=_side(connection, CLIENT, info), server=_side(connection, SERVER, info)),
        tls=None if dialogue is None else dialogue.session,
        http_version=None if dialogue is None else dialogue.http_version,
        application=None if dialogue is None else dialogue.application,
        proxied=None if dialogue is None else dialogue.proxied,
    )


def _side(connection: ClientConnection, direction: int, info: TcpInfo) -> Side:
    """Counts of octets from the operations; of segments only what TCP_INFO says (the kernel knows its own retransmissions alone)."""
    operations = list(_of(connection, direction))
    return Side(
        packets=0,
        payload_bytes=sum(len(o.data) for o in operations),
        retransmitted_segments=(info.total_retransmissions or 0) if direction == CLIENT else 0,
        out_of_order_segments=(info.received_out_of_order or 0) if direction == SERVER else 0,
        first_payload_at=None if not operations else _at(operations[0], Clock.KERNEL),
        last_payload_at=None if not operations else _at(operations[-1], Clock.KERNEL),
    )


def absences(operations: Iterable[SocketOperation]) -> tuple[tuple[int, int], ...]:
    """When the application was not reading: from the end of each read to when it asked for more."""
    found: list[tuple[int, int]] = []
    read_at: int | None = None
    for operation in operations:
        if operation.direction != SERVER:
            continue
        if read_at is not None and operation.asked_at is not None and operation.asked_at - read_at >= ABSENT_NS:
            found.append((read_at, operation.asked_at))
        read_at = operation.application_at
    return tuple(found)
