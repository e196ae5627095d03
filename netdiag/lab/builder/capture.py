"""What the observer's file holds: offload merging, lost and doubled frames, snap length, link layer, and a clock that may be wrong."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO

from netdiag.capture.writer import PcapngWriter
from netdiag.lab.builder.network import Sighting
from netdiag.lab.builder.segment import ETHERNET_BYTES, Datagram, Segment, parse
from netdiag.lab.builder.tls_session import KeyLog
from netdiag.lab.clock import ns
from netdiag.lab.host_settings import CaptureSettings
from netdiag.wire.tables import Interface
from netdiag.wire.tcp_flags import ACK, PSH

_LINK_TYPES = {"ethernet": 1, "raw": 101, "cooked": 113}
_LARGEST_MERGED = 65_000
_DUPLICATE_AFTER_NS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame at the capture point, by the capture's own clock."""

    number: int | None
    """In the file, from 1; None when the capture does not hold it."""
    at: int
    data: bytes
    """Ethernet, whole."""
    from_client: bool
    kind: str
    duplicate: bool = False


def frames_at_tap(sightings: Sequence[Sighting], settings: CaptureSettings) -> list[Frame]:
    """All frames that passed the capture point, in order; numbered as far as the file holds them."""
    passing = [s for s in sightings if s.at is not None]
    frames = [Frame(number=None, at=s.at or 0, data=s.frame, from_client=s.from_client, kind=s.kind) for s in passing]
    if settings.merge_us is not None:
        frames = _Merger(ns(settings.merge_us / 1e3), settings.at).frames(frames)
    if not frames:
        return []
    frames = _numbered(list(_doubled(frames, settings.duplicate)), settings)
    return [replace(frame, at=_clock(frame.at, frames[0].at, settings)) for frame in frames]


class _Merger:
    """Joins segments as an offloading network card would."""

    def __init__(self, within_ns: int, vantage: str) -> None:
        self._within_ns, self._vantage = within_ns, vantage
        self._open: dict[bool, tuple[Frame, Segment, int]] = {}
        self._acks: dict[bool, list[tuple[Frame, int]]] = {True: [], False: []}
        self._out: list[tuple[int, int, Frame]] = []

    def frames(self, frames: list[Frame]) -> list[Frame]:
        for place, frame in enumerate(frames):
            self._take(place, frame, parse(frame.data))
        for side in (True, False):
            self._close(side)
        return [frame for _, _, frame in sorted(self._out, key=lambda entry: entry[:2])]

    def _take(self, place: int, frame: Frame, item: Segment | Datagram | None) -> None:
        side = frame.from_client
        held, opposite = self._open.get(side), self._open.get(not side)
        if isinstance(item, Segment) and opposite is not None and not item.payload and item.ack != opposite[1].seq:
            self._acks[not side].append((frame, place))
        elif isinstance(item, Segment) and held is not None and _follows(held, frame, item, self._within_ns):
            self._join(side, held, frame, item)
        else:
            self._close(side)
            if isinstance(item, Segment) and item.payload and frame.kind == "new":
                self._open[side] = (frame, item, place)
            else:
                self._out.append((frame.at, place, frame))

    def _join(self, side: bool, held: tuple[Frame, Segment, int], frame: Frame, segment: Segment) -> None:
        """Receive offload stamps the last of the merged segments, send offload the first."""
        whole = replace(held[1], payload=held[1].payload + segment.payload, flags=held[1].flags | segment.flags)
        local = self._vantage == ("client" if side else "server")
        at = held[0].at if local else frame.at
        self._open[side] = (replace(held[0], at=at, data=b""), whole, held[2])

    def _close(self, side: bool) -> None:
        """The stack behind the card has the merged segment now, and only now acknowledges it."""
        if side in self._open:
            frame, segment, place = self._open.pop(side)
            self._out.append((frame.at, place, replace(frame, data=frame.data or segment.frame())))
            for ack, ack_place in self._acks[side]:
                self._out.append((max(ack.at, frame.at), ack_place, replace(ack, at=max(ack.at, frame.at))))
            self._acks[side].clear()


def _follows(held: tuple[Frame, Segment, int], frame: Frame, segment: Segment, within_ns: int) -> bool:
    before = held[1]
    same = (before.source, before.source_port, before.destination_port) == (
        segment.source,
        segment.source_port,
        segment.destination_port,
    )
    contiguous = segment.seq == (before.seq + len(before.payload)) & 0xFFFFFFFF and segment.ack == before.ack
    plain = not (segment.flags & ~(ACK | PSH)) and not before.flags & PSH
    fits = bool(segment.payload) and len(before.payload) + len(segment.payload) <= _LARGEST_MERGED
    return same and contiguous and plain and fits and frame.at - held[0].at <= within_ns


def _doubled(frames: list[Frame], which: Sequence[int]) -> Iterator[Frame]:
    for number, frame in enumerate(frames, 1):
        yield frame
        if number in which:
            yield replace(frame, at=frame.at + _DUPLICATE_AFTER_NS, duplicate=True)


def _numbered(frames: list[Frame], settings: CaptureSettings) -> list[Frame]:
    frames.sort(key=lambda frame: frame.at)
    out, number, first_at = [], 0, frames[0].at
    for place, frame in enumerate(frames, 1):
        kept = place not in settings.drop and place > settings.skip
        kept = kept and settings.only in (None, "client" if frame.from_client else "server")
        kept = kept and (settings.until_ms is None or frame.at - first_at <= ns(settings.until_ms))
        number += kept
        out.append(replace(frame, number=number if kept else None))
    return out


def _clock(at: int, first_at: int, settings: CaptureSettings) -> int:
    """True time to the capture's."""
    offset_ns = ns(settings.clock_offset_ms) * (-1 if settings.clock_behind else 1)
    drift_ns = round((at - first_at) * settings.drift_ppm / 1e6)
    stepped = settings.step_at_ms is not None and at - first_at >= ns(settings.step_at_ms)
    return at + offset_ns + drift_ns - (ns(settings.step_ms) if stepped else 0)


def write_capture(
    file: BinaryIO, frames: Sequence[Frame], settings: CaptureSettings, keylog: KeyLog, comments: dict[int, str]
) -> None:
    """A pcapng of the numbered frames; ``comments`` by frame number."""
    interface = Interface(
        link_type=_LINK_TYPES[settings.link],
        snap_bytes=settings.snap_bytes or 0,
        ticks_per_second=1_000_000_000,
        name="lab0",
    )
    held = [frame for frame in frames if frame.number is not None]
    with PcapngWriter(file, interfaces=[interface], application="netdiag lab") as writer:
        writer.secrets(_secrets(keylog, settings.secrets))
        for frame in held:
            data = _linked(frame, settings)
            comment = comments.get(frame.number or 0) if settings.comments else None
            cut = data if settings.snap_bytes is None else data[: settings.snap_bytes]
            writer.packet(cut, frame.at, original_bytes=len(data), comment=comment)
        last_at = held[-1].at if held else 0
        writer.statistics(len(held), len(settings.drop), at_ns=last_at)


def _secrets(keylog: KeyLog, which: str) -> bytes:
    lines = keylog.lines
    if which == "none":
        return b""
    if which == "client":
        lines = [line for line in lines if line.startswith("CLIENT_")]
    if which == "other":
        lines = [f"{label} {'00' * 32} {secret}" for label, _, secret in map(str.split, lines)]
    return "".join(line + "\n" for line in lines).encode()


def _linked(frame: Frame, settings: CaptureSettings) -> bytes:
    data = frame.data
    if settings.link == "raw":
        return data[ETHERNET_BYTES:]
    if settings.link == "cooked":
        outgoing = frame.from_client == (settings.at == "client")
        head = struct.pack("!HHH8s2s", 4 if outgoing else 0, 1, 6, data[6:12] + b"\0\0", data[12:14])
        return head + data[ETHERNET_BYTES:]
    if settings.vlan is not None:
        return data[:12] + struct.pack("!HH", 0x8100, settings.vlan) + data[12:]
    return data
