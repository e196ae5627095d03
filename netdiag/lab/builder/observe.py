"""When the octets of one direction passed the capture point: first sighting, and the moment a perfect receiver there could use them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from netdiag.lab.builder.capture import Frame
from netdiag.lab.builder.segment import Segment, parse
from netdiag.lab.builder.tcp import Endpoint
from netdiag.wire.tcp_flags import ACK, FIN, RST, SYN


@dataclass(frozen=True, slots=True)
class Sight:
    """An instant by the capture's clock and the frame that shows it (None when the file lacks it)."""

    at: int
    packet: int | None


@dataclass(slots=True)
class Passage:
    """One direction of one connection."""

    isn: int
    syn: Sight | None = None
    fin: Sight | None = None
    """The first FIN, once all octets before it had passed."""
    reset: Sight | None = None
    packets: int = 0
    payload_bytes: int = 0
    last: Sight | None = None
    _spans: list[tuple[int, int, Sight]] = field(default_factory=list)
    _frontier_ends: list[int] = field(default_factory=list)
    _frontier_sights: list[Sight] = field(default_factory=list)
    _beyond: list[tuple[int, int]] = field(default_factory=list)
    _fin_offset: int | None = None

    @property
    def frontier(self) -> int:
        """Octets that have passed without a gap."""
        return self._frontier_ends[-1] if self._frontier_ends else 0

    def add(self, segment: Segment, sight: Sight) -> None:
        """One frame has passed."""
        self.packets += 1
        self.last = sight
        if segment.flags & RST:
            self.reset = self.reset or sight
            return
        if segment.flags & SYN:
            self.syn = self.syn or sight
            return
        start = (segment.seq - self.isn - 1) & 0xFFFFFFFF
        if start > 1 << 31:
            return
        end = start + len(segment.payload)
        self.payload_bytes += len(segment.payload)
        if segment.payload:
            self._spans.append((start, end, sight))
            self._advance(start, end, sight)
        if segment.flags & FIN:
            self._fin_offset = end
        if self.fin is None and self._fin_offset is not None and self.frontier >= self._fin_offset:
            self.fin = sight

    def _advance(self, start: int, end: int, sight: Sight) -> None:
        self._beyond.append((start, end))
        frontier = self.frontier
        for left, right in sorted(self._beyond):
            if left <= frontier:
                frontier = max(frontier, right)
        if frontier > self.frontier:
            self._frontier_ends.append(frontier)
            self._frontier_sights.append(sight)
        self._beyond = [span for span in self._beyond if span[1] > frontier]

    def seen(self, offset: int) -> Sight | None:
        """First sighting of an octet."""
        return next((sight for start, end, sight in self._spans if start <= offset < end), None)

    def deliverable(self, offset: int) -> Sight | None:
        """When this octet and all before it had passed."""
        place = bisect_right(self._frontier_ends, offset)
        return self._frontier_sights[place] if place < len(self._frontier_sights) else None


@dataclass(slots=True)
class RecordEnds:
    """Where the TLS records of a direction end; in clear text every octet is its own."""

    ends: list[int]

    @staticmethod
    def of(stream: bytes | bytearray, *, tls: bool) -> RecordEnds:
        """Walk the headers of a sender's whole stream."""
        ends: list[int] = []
        place = 0
        while tls and place + 5 <= len(stream):
            place += 5 + int.from_bytes(stream[place + 3 : place + 5], "big")
            ends.append(place)
        return RecordEnds(ends)

    def last_octet(self, offset: int) -> int:
        """The octet that must be there before the one at ``offset`` can be used."""
        if not self.ends:
            return offset
        place = bisect_right(self.ends, offset)
        return self.ends[place] - 1 if place < len(self.ends) else offset


@dataclass(slots=True)
class Observed:
    """Both directions of one connection at the capture point."""

    client: Passage
    server: Passage
    first_syn_ack: Sight | None = None
    handshake_ack: Sight | None = None
    syns: int = 0


def observe(frames: Iterable[Frame], endpoint: Endpoint, server_isn: int | None) -> Observed:
    """Pick the frames of the client's endpoint and follow them."""
    seen = Observed(Passage(endpoint.isn), Passage(server_isn or 0))
    mine = (endpoint.local.address, endpoint.local.port, endpoint.remote.address, endpoint.remote.port)
    for frame in frames:
        segment = parse(frame.data)
        if not isinstance(segment, Segment):
            continue
        source = (segment.source, segment.source_port)
        target = (segment.destination, segment.destination_port)
        if frame.from_client and (*source, *target) != mine:
            continue
        if not frame.from_client and (*target, *source) != mine:
            continue
        _note(seen, frame, segment)
    return seen


def _note(seen: Observed, frame: Frame, segment: Segment) -> None:
    sight = Sight(frame.at, frame.number)
    if frame.from_client:
        seen.syns += bool(segment.flags & SYN)
        if seen.first_syn_ack is not None and segment.flags & ACK and not segment.flags & SYN:
            seen.handshake_ack = seen.handshake_ack or sight
        seen.client.add(segment, sight)
    else:
        if segment.flags & SYN:
            seen.first_syn_ack = seen.first_syn_ack or sight
        seen.server.add(segment, sight)
