"""Everything that is known of each connection from its TCP headers, as columns for all and as a record for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from netdiag.records.connection import Connection, Side, Sides
from netdiag.records.endpoint import Endpoint
from netdiag.wire.client_side import KnownBy
from netdiag.wire.close import Close, CloseReason, close
from netdiag.wire.endpoints import Endpoints, endpoints
from netdiag.wire.flows import Flows
from netdiag.wire.kept import kept
from netdiag.wire.loss import loss_beyond_stalls, loss_stalls, missing_bytes, open_holes, unseen_loss_stalls
from netdiag.wire.receipts import Receipts, receipts
from netdiag.wire.rtt import half_loops
from netdiag.wire.segments import acknowledged_to
from netdiag.wire.sides import FIELDS as SIDE_FIELDS
from netdiag.wire.sides import SideTable, sides, with_none
from netdiag.wire.stalls import Stalls
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments, Table, UInt8
from netdiag.wire.transmissions import transmissions
from netdiag.wire.window import full_window_stalls, full_windows, window_edges, zero_window_stalls, zero_windows
from netdiag.wire.window_limited import window_limited


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings(Table):
    """Per connection: its first and last packet, its handshake and its end. Times and frame numbers; NONE where there is none."""

    first_at: Int64
    first_packet: Int64
    last_at: Int64
    last_packet: Int64
    syn_at: Int64
    syn_packet: Int64
    syn_ack_at: Int64
    syn_ack_packet: Int64
    ack_at: Int64
    ack_packet: Int64
    syn_retries: Int64
    handshake_rtt_ns: Int64
    client_rtt_ns: Int64
    server_rtt_ns: Int64
    closed_at: Int64
    closed_by: Int64
    """0 client, 1 server."""
    close_reason: Int64
    """A ``CloseReason``."""
    complete: Bool
    client_known_by: UInt8


@dataclass(frozen=True, kw_only=True)
class ConnectionTable:
    """All connections of a capture, in the order of their first packet. Records are made only when asked for."""

    openings: Openings
    """One row per connection."""
    sides: SideTable
    """Row ``2c`` is the client's of connection ``c``, ``2c + 1`` the server's."""
    stalls: Stalls
    """When a direction was held up by loss, reordering or a window."""
    endpoints: Endpoints
    receipts: Receipts
    """What of the clients' octets the servers acknowledged by themselves."""

    def __len__(self) -> int:
        return len(self.openings)

    def rtt_halves_ns(self, i: int) -> tuple[int | None, int | None]:
        """``server_rtt_ns`` and ``client_rtt_ns`` of connection ``i``."""
        values = self._opening_values[i]
        return values[_SERVER_RTT], values[_CLIENT_RTT]

    def record(self, i: int, *, id: int | None = None, **told: Any) -> Connection:
        """Connection ``i``, under its number here if it has no other ``id``. Its vantage, TLS session and application protocol are for the analysis to tell."""
        client, server = self.endpoints.of(i)
        fields = dict(zip(_OPENING_FIELDS, self._opening_values[i], strict=True))
        closer, reason, known_by = fields.pop("closed_by"), fields.pop("close_reason"), fields.pop("client_known_by")
        return Connection(
            id=i if id is None else id,
            transport="tcp",
            client=Endpoint(*client),
            server=Endpoint(*server),
            client_known_by=KnownBy(known_by).text,
            closed_by=None if closer is None else ("client", "server")[closer],
            close_reason=CloseReason(reason).text,
            min_rtt_ns=_sum(fields["client_rtt_ns"], fields["server_rtt_ns"]),
            sides=Sides(client=self.side(i, 0), server=self.side(i, 1)),
            **fields,
            **told,
        )

    def side(self, i: int, which: int) -> Side:
        """What one side of connection ``i`` sent."""
        return Side(**dict(zip(SIDE_FIELDS, self._side_values[2 * i + which], strict=True)))

    @kept
    def _opening_values(self) -> list[tuple[Any, ...]]:
        """All rows as Python values: converted column by column, many times faster than value by value."""
        return list(zip(*(with_none(getattr(self.openings, name)) for name in _OPENING_FIELDS), strict=True))

    @kept
    def _side_values(self) -> list[tuple[Any, ...]]:
        return self.sides.values()


_OPENING_FIELDS = tuple(Openings.__dataclass_fields__)
_SERVER_RTT, _CLIENT_RTT = _OPENING_FIELDS.index("server_rtt_ns"), _OPENING_FIELDS.index("client_rtt_ns")


def _sum(one: int | None, other: int | None) -> int | None:
    """The whole round trip from its halves, or the one that is known."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


def measure(flows: Flows, segments: Segments, buffer: Buffer) -> ConnectionTable:
    """All connections of ``flows`` (``segments`` are theirs)."""
    found = transmissions(flows)
    end = close(flows)
    zero = zero_windows(flows, found.copies)
    table = sides(flows, end, zero, buffer)
    edges, halves = window_edges(flows, table.window_scale_used), _half_loops(flows)
    stops = window_limited(flows, edges, table.mss_bytes, halves)
    stalls = Stalls.concat(
        [
            loss_stalls(flows),
            loss_beyond_stalls(flows),
            unseen_loss_stalls(flows),
            zero_window_stalls(flows, zero),
            full_window_stalls(flows, full_windows(flows, edges), edges, stops),
        ]
    )
    stalls = stalls.take(np.lexsort((stalls.started_at, stalls.direction, stalls.connection)))
    missing = missing_bytes(flows, segments, acknowledged_to(flows))
    whole = (missing == 0) & ~open_holes(flows)
    return ConnectionTable(
        openings=_openings(flows, end, whole, halves.reshape(-1, 2)),
        sides=table.with_stalls(stalls, missing),
        stalls=stalls,
        endpoints=endpoints(flows, buffer),
        receipts=receipts(flows),
    )


def _openings(flows: Flows, end: Close, whole: Bool, halves: Int64) -> Openings:
    packets, handshake = flows.packets, transmissions(flows).handshake
    first, last = _outermost(flows)
    at, number = packets.captured_at, packets.number
    rtt = _pick(at, handshake.syn_ack_row) - _pick(at, handshake.answered_syn_row)
    answered = (handshake.syn_ack_row != NONE) & (handshake.answered_syn_row != NONE) & (rtt >= 0)
    opened = answered & (handshake.ack_row != NONE)
    fins = (end.fin_row.reshape(-1, 2) != NONE).all(axis=1)
    closed = fins | (end.rst_row.reshape(-1, 2) != NONE).any(axis=1)
    return Openings(
        first_at=at[first],
        first_packet=number[first],
        last_at=at[last],
        last_packet=number[last],
        syn_at=_pick(at, handshake.syn_row),
        syn_packet=_pick(number, handshake.syn_row),
        syn_ack_at=_pick(at, handshake.syn_ack_row),
        syn_ack_packet=_pick(number, handshake.syn_ack_row),
        ack_at=_pick(at, handshake.ack_row),
        ack_packet=_pick(number, handshake.ack_row),
        syn_retries=np.maximum(handshake.syns - 1, 0),
        handshake_rtt_ns=np.where(answered, rtt, NONE),
        server_rtt_ns=halves[:, 0],
        client_rtt_ns=halves[:, 1],
        closed_at=_pick(at, end.row),
        closed_by=_pick(flows.side.astype(np.int64), end.row),
        close_reason=end.reason,
        complete=opened & closed & whole.reshape(-1, 2).all(axis=1),
        client_known_by=flows.client_known_by,
    )


def _half_loops(flows: Flows) -> Int64:
    """``half_loops``, which are there already where packets came late."""
    found = transmissions(flows)
    known = found.half_loops
    return half_loops(flows, found.handshake, found.resent.rows) if known is None else known


def _outermost(flows: Flows) -> tuple[Int64, Int64]:
    """The first and the last row of each connection, in file order."""
    counts = np.diff(flows.starts)
    number = flows.packets.number
    begin, end = flows.starts[:-1], flows.starts[1:] - 1
    least = np.where(counts > 0, _pick(number, np.where(counts > 0, begin, NONE)), np.iinfo(np.int64).max)
    most = np.where(counts > 0, _pick(number, np.where(counts > 0, end, NONE)), NONE)
    pairs = np.arange(flows.count)
    first = begin.reshape(-1, 2)[pairs, least.reshape(-1, 2).argmin(axis=1)]
    last = end.reshape(-1, 2)[pairs, most.reshape(-1, 2).argmax(axis=1)]
    return first, last


def _pick(column: Int64, rows: Int64) -> Int64:
    """The column's values in ``rows``; NONE where the row is NONE."""
    if not len(column):
        return np.full(len(rows), NONE, np.int64)
    return np.where(rows == NONE, NONE, column[rows])
