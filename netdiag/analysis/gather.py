"""All windows of a capture decoded into one set of tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.analysis.clock_steps import ClockSteps
from netdiag.analysis.sharing import Runner, one_by_one
from netdiag.records.anomaly import Anomaly
from netdiag.wire.decode import COLUMN_TYPES, RAW_TYPES, Decoded, Decoder, Dissected, dissect
from netdiag.wire.distinct import distinct
from netdiag.wire.icmp import IcmpError
from netdiag.wire.tables import NONE, Buffer, Datagrams, Int64, Packets, Window
from netdiag.wire.tables import RawPackets as Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Every packet of the capture that could be decoded, in file order."""

    buffer: Buffer
    packets: Packets
    datagrams: Datagrams
    """Behind all others, those of which only the first IP fragment was captured."""
    reassembled: dict[int, bytes]
    """Payload of UDP datagrams that came in IP fragments, by frame number."""
    icmp: tuple[IcmpError, ...]
    link_types: tuple[int, ...]
    captured: int
    """Packets in the file, decoded or not."""
    first_at: int | None
    last_at: int | None
    tcp_last_at: int
    """Of the TCP packets; NONE without any."""
    not_decoded: dict[str, int]
    anomalies: tuple[Anomaly, ...]


def gather(
    windows: Iterable[Window], keep: Callable[[Packets, int], None] | None = None, run: Runner = one_by_one
) -> Gathered:
    """Decode window by window; only columns stay in memory, the octets stay in the file.

    ``keep`` takes the packets of each window instead (with the offset up to which the file was read); then ``packets`` is empty.
    ``run`` may dissect some windows while the next one is read.
    """
    decoder, parts, steps = Decoder(), list[Decoded](), ClockSteps()
    link_types: set[int] = set()
    buffer: Buffer = b""
    captured, spans, tcp_last_at = 0, [], NONE
    for window, dissected in run(_dissected, windows):
        buffer = window.buffer
        captured += len(window.packets)
        spans.append(_span(window.packets))
        steps.see(window.packets)
        link_types |= _link_types(window)
        decoded = _timed(decoder.complete(dissected))
        tcp_last_at = int(decoded.packets.captured_at.max(initial=tcp_last_at))
        if keep is not None:
            keep(decoded.packets, window.end_offset)
            decoded.packets = _no_packets()
        parts.append(decoded)
    known = [span for span in spans if span is not None]
    given_up = decoder.finish()
    datagrams = Datagrams.concat([*(p.datagrams for p in parts), decoder.beginnings(buffer)])
    return Gathered(
        buffer=buffer,
        packets=Packets.concat([p.packets for p in parts]) if parts else _no_packets(),
        datagrams=datagrams,
        reassembled={number: data for p in parts for number, data in p.reassembled.items()},
        icmp=tuple(error for p in parts for error in p.icmp),
        link_types=tuple(sorted(link_types)),
        captured=captured,
        first_at=min((first for first, _ in known), default=None),
        last_at=max((last for _, last in known), default=None),
        tcp_last_at=tcp_last_at,
        not_decoded=dict(sum((p.not_decoded for p in parts), given_up)),
        anomalies=(*steps.anomalies(), *(a for p in parts for a in p.anomalies)),
    )


def _dissected(window: Window) -> tuple[Window, Dissected]:
    return window, dissect(window)


UNTIMED = "without a time stamp"


def _timed(decoded: Decoded) -> Decoded:
    """Without the packets that carry no time (pcapng's Simple Packet Blocks): nothing here can be told of them, and no instant is invented."""
    for name in ("packets", "datagrams"):
        table = getattr(decoded, name)
        known = table.captured_at != NONE
        if not known.all():
            decoded.not_decoded[UNTIMED] += len(table) - int(np.count_nonzero(known))
            setattr(decoded, name, table.take(known))
    return decoded


def _no_packets() -> Packets:
    return Packets(**_nothing(RAW_TYPES | COLUMN_TYPES))


def _link_types(window: Window) -> set[int]:
    """Of the interfaces that captured something; a packet may name an interface that the file does not describe."""
    interface = window.packets.interface
    alike = len(interface) and (interface == interface[0]).all()
    used = [int(interface[0])] if alike else distinct(interface).tolist()
    return {window.interfaces[i].link_type for i in used if 0 <= i < len(window.interfaces)}


def _span(packets: Raw) -> tuple[int, int] | None:
    stamped: Int64 = packets.captured_at[packets.captured_at != NONE]
    return (int(stamped.min()), int(stamped.max())) if len(stamped) else None


def _nothing(types: dict[str, type[np.generic]]) -> dict[str, NDArray[Any]]:
    return {name: np.empty(0, kind) for name, kind in types.items()}
