"""The rows behind one exchange, for pictures and for ``netdiag packets``: its connection's packets, TLS records, messages and holes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from netdiag.analysis.gather import Gathered
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.labels import connection_of
from netdiag.records.lanes import ExchangeLanes, LaneHole, LaneKind, LanePacket, LaneSpan
from netdiag.records.timing import Phase, PhaseName
from netdiag.wire.connections import track
from netdiag.wire.flows import Flows
from netdiag.wire.measure import measure
from netdiag.wire.record_view import TlsRecordView
from netdiag.wire.segments import segment
from netdiag.wire.stalls import StallKind, Stalls
from netdiag.wire.streams import record_views, rows_of
from netdiag.wire.tables import Int64, SegmentKind, Segments
from netdiag.wire.tcp_flags import FIN, RST, SYN
from netdiag.wire.tls_records import chain

SIDES = ("client", "server")
MOST_PACKETS = 5_000
"""More would be a black block in a picture and a book in a terminal."""

_KINDS = {
    SegmentKind.RETRANSMISSION: LaneKind.RETRANSMISSION,
    SegmentKind.FAST_RETRANSMISSION: LaneKind.RETRANSMISSION,
    SegmentKind.TAIL_LOSS_PROBE: LaneKind.RETRANSMISSION,
    SegmentKind.SPURIOUS: LaneKind.SPURIOUS,
    SegmentKind.OUT_OF_ORDER: LaneKind.OUT_OF_ORDER,
    SegmentKind.KEEP_ALIVE: LaneKind.KEEP_ALIVE,
}
_HANDSHAKE, _APPLICATION_DATA = 22, 23
_RECORDS = {20: "ChangeCipherSpec", 21: "alert", _APPLICATION_DATA: "application data", 24: "heartbeat"}
_MESSAGES = {
    0: "HelloRequest",
    1: "ClientHello",
    2: "ServerHello",
    4: "NewSessionTicket",
    11: "Certificate",
    12: "ServerKeyExchange",
    13: "CertificateRequest",
    14: "ServerHelloDone",
    15: "CertificateVerify",
    16: "ClientKeyExchange",
    20: "Finished",
    22: "CertificateStatus",
}


def behind(gathered: Gathered, analysis: Analysis, exchange: Exchange) -> ExchangeLanes:
    """Everything of ``exchange`` that lies in the capture ``gathered``, of which ``analysis`` was made."""
    connection = connection_of(analysis, exchange.connection_id)
    messages = tuple(sorted(_messages(analysis, exchange), key=lambda m: m.seen_at))
    if connection is None or connection.transport != "tcp":
        return ExchangeLanes(exchange=exchange, connection=connection, messages=messages)
    flows = track(gathered.packets, gathered.buffer)
    segments = segment(flows)
    packets = _packets(flows, segments, exchange, connection.id)
    stalls = measure(flows, segments, gathered.buffer).stalls
    return ExchangeLanes(
        exchange=exchange,
        connection=connection,
        packets=packets[:MOST_PACKETS],
        records=tuple(_records(gathered, segments, exchange, connection.id)),
        messages=messages,
        holes=tuple(_holes(stalls, exchange, connection.id)),
        left_out=max(0, len(packets) - MOST_PACKETS),
    )


def _packets(flows: Flows, segments: Segments, exchange: Exchange, connection: int) -> tuple[LanePacket, ...]:
    found: list[LanePacket] = []
    for side, name in enumerate(SIDES):
        sent = flows.packets.take(flows.rows(connection, side))
        chosen = sent.take(_inside(sent.captured_at, exchange))
        kinds = _segment_kinds(segments, connection, side)
        columns = (chosen.number, chosen.captured_at, chosen.payload_bytes, chosen.flags)
        for number, at, size, flags in zip(*(column.tolist() for column in columns), strict=True):
            kind = _kind(flags, size, kinds.get(number))
            found.append(LanePacket(number=number, at=at, side=name, kind=kind, payload_bytes=size))
    return tuple(sorted(found, key=lambda p: p.number))


def _inside(instants: Int64, exchange: Exchange) -> Int64:
    chosen: Int64 = np.flatnonzero((instants >= exchange.started_at) & (instants <= exchange.ended_at))
    return chosen


def _segment_kinds(segments: Segments, connection: int, side: int) -> dict[int, int]:
    rows = rows_of(segments, connection, side)
    return dict(zip(segments.packet[rows].tolist(), segments.kind[rows].tolist(), strict=True))


def _kind(flags: int, payload_bytes: int, segment_kind: int | None) -> LaneKind:
    for flag, kind in ((RST, LaneKind.RST), (SYN, LaneKind.SYN)):
        if flags & flag:
            return kind
    if payload_bytes and segment_kind is not None:
        resent = _KINDS.get(SegmentKind(segment_kind))
        if resent is not None:
            return resent
    if flags & FIN:
        return LaneKind.FIN
    return LaneKind.DATA if payload_bytes else LaneKind.ACK


def _records(gathered: Gathered, segments: Segments, exchange: Exchange, connection: int) -> Iterator[LaneSpan]:
    records = chain(gathered.buffer, segments, np.array([connection]))
    spans = (
        (side, view)
        for side in (0, 1)
        for view in record_views(gathered.buffer, segments, records, rows_of(records, connection, side))
    )
    for side, view in sorted(spans, key=lambda found: found[1].first_seen_at):
        ended_at = view.deliverable_at if view.deliverable_at is not None else view.first_seen_at
        if ended_at >= exchange.started_at and view.first_seen_at <= exchange.ended_at:
            yield LaneSpan(
                side=SIDES[side],
                label=_record_label(view, exchange),
                seen_at=view.first_seen_at,
                deliverable_at=view.deliverable_at,
                size_bytes=view.length,
                first_packet=view.first_packet,
                last_packet=view.last_packet,
                of_this_exchange=_carries(exchange, side, view),
            )


def _record_label(view: TlsRecordView, exchange: Exchange) -> str:
    if view.content_type == _HANDSHAKE:
        first = view.fragment()[:1]
        # In TLS 1.2 the Finished is encrypted, and its first octet is any number.
        return _MESSAGES.get(first[0], "handshake, encrypted") if first else "handshake"
    tls = _phase(exchange, PhaseName.TLS)
    if view.content_type == _APPLICATION_DATA and tls is not None and view.first_seen_at <= tls.ended_at:
        return "handshake, encrypted"
    return _RECORDS.get(view.content_type, f"content type {view.content_type}")


def _carries(exchange: Exchange, side: int, view: TlsRecordView) -> bool:
    """Whether the record holds octets of this exchange: of its handshake, its request or its answer."""
    at = view.first_seen_at if side == 0 or view.deliverable_at is None else view.deliverable_at
    names = (PhaseName.TLS, PhaseName.SEND) if side == 0 else (PhaseName.TLS, PhaseName.TRANSFER)
    return any(phase.started_at <= at <= phase.ended_at for phase in exchange.phases if phase.name in names)


def _messages(analysis: Analysis, exchange: Exchange) -> Iterator[LaneSpan]:
    """Requests and answers of this exchange, and those of others that shared its connection at the time."""
    yield from _own_messages(exchange, "", own=True)
    for other in analysis.exchanges:
        shares = other.connection_id == exchange.connection_id and other.id != exchange.id
        if shares and other.started_at < exchange.ended_at and other.ended_at > exchange.started_at:
            yield from _own_messages(other, f"#{other.id} ", own=False)


def _own_messages(exchange: Exchange, prefix: str, *, own: bool) -> Iterable[LaneSpan]:
    sends = [phase for phase in exchange.phases if phase.name is PhaseName.SEND]
    parts = ("request",) if len(sends) < 2 else ("request head", "request body")  # 100 (Continue) lies between them
    for part, send in zip(parts, sends, strict=False):
        yield _message("client", f"{prefix}{part}", send, exchange.request_bytes if len(sends) < 2 else None, own)
    transfer = _phase(exchange, PhaseName.TRANSFER)
    for interim in exchange.interim:
        yield LaneSpan(
            side="server",
            label=f"{prefix}{interim.status}",
            seen_at=interim.at,
            deliverable_at=interim.at,
            size_bytes=None,
            first_packet=interim.packet,
            last_packet=interim.packet,
            of_this_exchange=own,
        )
    if transfer is not None:
        status = f"{exchange.status} " if exchange.status is not None else ""
        yield _message("server", f"{prefix}{status}response", transfer, exchange.response_bytes, own)


def _message(side: str, label: str, phase: Phase, size_bytes: int | None, own: bool) -> LaneSpan:
    return LaneSpan(
        side=side,
        label=label,
        seen_at=phase.started_at,
        deliverable_at=phase.ended_at,
        size_bytes=size_bytes,
        first_packet=phase.first_packet,
        last_packet=phase.last_packet,
        of_this_exchange=own,
    )


def _phase(exchange: Exchange, name: PhaseName) -> Phase | None:
    return next((phase for phase in exchange.phases if phase.name is name), None)


def _holes(stalls: Stalls, exchange: Exchange, connection: int) -> Iterator[LaneHole]:
    mine = (stalls.connection == connection) & (stalls.kind == StallKind.LOSS)
    during = (stalls.ended_at >= exchange.started_at) & (stalls.started_at <= exchange.ended_at)
    rows = stalls.take(mine & during)
    for side, begin, end in zip(rows.direction.tolist(), rows.started_at.tolist(), rows.ended_at.tolist(), strict=True):
        yield LaneHole(side=SIDES[side], from_at=begin, until_at=end)


def frames_of(gathered: Gathered, analysis: Analysis) -> frozenset[int]:
    """Numbers of all frames of the analysis's connections and of its name resolutions."""
    flows = track(gathered.packets, gathered.buffer)
    chosen = np.isin(flows.connection, [c.id for c in analysis.connections if c.transport == "tcp"])
    asked = (n for r in analysis.resolutions for n in (r.query_packet, r.response_packet) if n is not None)
    return frozenset((*flows.packets.number[chosen].tolist(), *asked))
