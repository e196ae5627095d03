"""What each side of each connection sent, as columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.plain import plain
from netdiag.wire.close import Close
from netdiag.wire.flows import Flows
from netdiag.wire.options import syn_options
from netdiag.wire.packet_count import unseen_packets
from netdiag.wire.stalls import StallKind, Stalls
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Packets, SegmentKind, Table
from netdiag.wire.tcp_flags import SYN
from netdiag.wire.transmissions import transmissions

_RETRANSMISSIONS = (
    SegmentKind.RETRANSMISSION,
    SegmentKind.SPURIOUS,
    SegmentKind.FAST_RETRANSMISSION,
    SegmentKind.TAIL_LOSS_PROBE,
)


@plain(frozen=True, slots=True, kw_only=True)
class SideTable(Table):
    """One row per side; the columns are the fields of ``records.Side``, with NONE for None."""

    packets: Int64
    payload_bytes: Int64
    mss_bytes: Int64
    window_scale: Int64
    sack: Int64
    """1 permitted, 0 not, NONE when the SYN was not captured."""
    retransmitted_segments: Int64
    fast_retransmissions: Int64
    timeout_retransmissions: Int64
    tail_loss_probes: Int64
    spurious_retransmissions: Int64
    out_of_order_segments: Int64
    duplicate_acks: Int64
    keep_alives: Int64
    captured_twice: Int64
    zero_windows: Int64
    zero_window_ns: Int64
    window_full_ns: Int64
    missing_bytes: Int64
    unseen_packets: Int64
    loss_ns: Int64
    unseen_loss_ns: Int64
    loss_beyond_ns: Int64
    reordering_ns: Int64
    first_payload_at: Int64
    first_payload_packet: Int64
    last_payload_at: Int64
    last_payload_packet: Int64
    fin_at: Int64
    fin_packet: Int64
    rst_at: Int64
    rst_packet: Int64
    hop_limit: Int64
    rst_hop_limit: Int64
    window_scale_used: Int64
    """The shift of the windows that this side announces: 0 unless both SYNs offered scaling; NONE where that is not known."""

    def values(self) -> list[tuple[Any, ...]]:
        """Every row as the fields of a ``Side``, in the order of ``FIELDS``; NONE as None."""
        columns = {name: with_none(getattr(self, name)) for name in FIELDS}
        columns["sack"] = [None if value is None else bool(value) for value in columns["sack"]]
        return list(zip(*columns.values(), strict=True))

    def with_stalls(self, stalls: Stalls, missing_bytes: Int64) -> SideTable:
        """The same with durations and missing octets filled in."""
        return replace(
            self,
            zero_window_ns=_durations(stalls, StallKind.ZERO_WINDOW, len(self)),
            window_full_ns=_durations(stalls, StallKind.FULL_WINDOW, len(self)),
            loss_ns=_durations(stalls, StallKind.LOSS, len(self)),
            unseen_loss_ns=_durations(stalls, StallKind.UNSEEN_LOSS, len(self)),
            loss_beyond_ns=_durations(stalls, StallKind.LOSS_BEYOND, len(self)),
            reordering_ns=_durations(stalls, StallKind.REORDERING, len(self)),
            missing_bytes=missing_bytes,
        )


FIELDS = tuple(name for name in SideTable.__dataclass_fields__ if name != "window_scale_used")


def with_none(column: NDArray[Any]) -> list[Any]:
    """The column's values; NONE as None."""
    values: list[Any] = column.tolist()
    if len(column) and int(column.min()) == NONE:
        return [None if value == NONE else value for value in values]
    return values


def sides(flows: Flows, end: Close, zero: Bool, buffer: Buffer) -> SideTable:
    """Both sides of every connection; ``zero`` marks the packets that announce a window of 0."""
    count, stream, packets = 2 * flows.count, flows.stream, flows.packets
    found = transmissions(flows)
    nothing = np.zeros(count, np.int64)
    by_kind = {kind: _count(stream[found.resent.rows[found.resent.kinds == kind]], count) for kind in SegmentKind}
    first, last = _payload_rows(flows)
    retransmitted = sum((by_kind[kind] for kind in _RETRANSMISSIONS), nothing)
    return SideTable(
        packets=np.diff(flows.starts),
        payload_bytes=_payload_bytes(flows),
        **_syn_columns(flows, buffer),
        retransmitted_segments=retransmitted + _syn_retransmissions(flows),
        fast_retransmissions=by_kind[SegmentKind.FAST_RETRANSMISSION],
        timeout_retransmissions=_count(stream[found.resent.rows[found.resent.by_timer]], count),
        tail_loss_probes=by_kind[SegmentKind.TAIL_LOSS_PROBE],
        spurious_retransmissions=by_kind[SegmentKind.SPURIOUS],
        out_of_order_segments=by_kind[SegmentKind.OUT_OF_ORDER],
        duplicate_acks=_count(stream[found.duplicate_acks], count),
        keep_alives=_count(stream[found.keep_alives], count),
        captured_twice=_count(stream[found.copies], count),
        zero_windows=_count(stream[zero], count),
        zero_window_ns=nothing,
        window_full_ns=nothing,
        missing_bytes=nothing,
        unseen_packets=unseen_packets(flows, found.identification_steps),
        loss_ns=nothing,
        unseen_loss_ns=nothing,
        loss_beyond_ns=nothing,
        reordering_ns=nothing,
        **_when("first_payload", packets, first),
        **_when("last_payload", packets, last),
        **_when("fin", packets, end.fin_row),
        **_when("rst", packets, end.rst_row),
        hop_limit=_pick(packets.hop_limit.astype(np.int64), _first_rows(flows)),
        rst_hop_limit=_pick(packets.hop_limit.astype(np.int64), end.rst_row),
    )


def _when(event: str, packets: Packets, rows: Int64) -> dict[str, Int64]:
    """The columns that tell when something was seen, and in which packet."""
    return {f"{event}_at": _pick(packets.captured_at, rows), f"{event}_packet": _pick(packets.number, rows)}


def _payload_bytes(flows: Flows) -> Int64:
    total = np.concatenate(([0], np.cumsum(flows.packets.payload_bytes, dtype=np.int64)))
    return np.diff(total[flows.starts])


def _syn_columns(flows: Flows, buffer: Buffer) -> dict[str, Int64]:
    """What the SYNs offered, and whether window scaling is in use (RFC 7323 section 2.2: only if both offered it)."""
    count = 2 * flows.count
    rows = np.flatnonzero((flows.packets.flags & SYN) != 0)
    options, stream = syn_options(flows.packets, rows, buffer), flows.stream[rows]
    mss_bytes, window_scale, sack = (np.full(count, NONE, np.int64) for _ in range(3))
    mss_bytes[stream], window_scale[stream], sack[stream] = options.mss_bytes, options.window_scale, options.sack
    seen = flows.sequence.has_syn.reshape(-1, 2)
    offered = window_scale.reshape(-1, 2)
    refused = (seen & (offered == NONE)).any(axis=1)
    agreed = (offered != NONE).all(axis=1)
    used = np.where(agreed[:, None], offered, np.where(refused[:, None], 0, NONE)).reshape(-1)
    return {"mss_bytes": mss_bytes, "window_scale": window_scale, "sack": sack, "window_scale_used": used}


def _syn_retransmissions(flows: Flows) -> Int64:
    handshake = transmissions(flows).handshake
    sent = np.stack((handshake.syns, handshake.syn_acks), axis=1).reshape(-1)
    return np.maximum(sent - 1, 0)


def _first_rows(flows: Flows) -> Int64:
    """The first packet of each direction."""
    return np.where(np.diff(flows.starts) > 0, flows.starts[:-1], NONE)


def _payload_rows(flows: Flows) -> tuple[Int64, Int64]:
    """The first and last packet with payload of each direction."""
    loaded = np.flatnonzero(_loaded(flows))
    stream = flows.stream[loaded]
    first = np.full(2 * flows.count, NONE, np.int64)
    last = first.copy()
    first[stream[::-1]] = loaded[::-1]
    last[stream] = loaded
    return first, last


def _loaded(flows: Flows) -> Bool:
    return flows.sequence.occupies & (flows.packets.payload_bytes > 0)


def _durations(stalls: Stalls, kind: StallKind, count: int) -> Int64:
    out = np.zeros(count, np.int64)
    chosen = stalls.kind == kind
    stream = stalls.connection[chosen].astype(np.int64) * 2 + stalls.direction[chosen]
    np.add.at(out, stream, (stalls.ended_at - stalls.started_at)[chosen])
    return out


def _count(stream: Int64, count: int) -> Int64:
    return np.bincount(stream, minlength=count).astype(np.int64)


def _pick(column: Int64, rows: Int64) -> Int64:
    if not len(column):
        return np.full(len(rows), NONE, np.int64)
    return np.where(rows == NONE, NONE, column[rows])
