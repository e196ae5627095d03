"""TCP conversations to test the column layer with: what each side sends, what the capture missed, and the tables that come of it.

talk = Conversation().opens(rtt_ms=20)
lost = talk.client(b"GET / HTTP/1.1\\r\\n\\r\\n", captured=False)
talk.after(200).client_again(lost)
wire = talk.wire()
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from netdiag.records.connection import Connection
from netdiag.wire.chunk import Chunk
from netdiag.wire.connections import track
from netdiag.wire.decode import decode
from netdiag.wire.flows import Flows
from netdiag.wire.measure import ConnectionTable, measure
from netdiag.wire.segments import segment
from netdiag.wire.streams import chunks, rows_of
from netdiag.wire.tables import Buffer, Packets, SegmentKind, Segments
from tests.support.packets import ACK, EPOCH_NS, FIN, PSH, RST, SYN, Timed, ethernet, ipv4, ipv6, tcp, window_of

CLIENT, SERVER = 0, 1
MS = 1_000_000
SYN_OPTIONS = b"\x02\x04\x05\xb4" + b"\x01\x03\x03\x07" + b"\x04\x02"
"""MSS 1460, window scale 7, SACK permitted."""


@dataclass(frozen=True)
class Sent:
    """One segment as it left its sender."""

    side: int
    offset: int
    data: bytes
    flags: int


@dataclass(frozen=True)
class Wire:
    """The column tables of a capture, made when asked for."""

    packets: Packets
    buffer: Buffer

    @cached_property
    def flows(self) -> Flows:
        return track(self.packets, self.buffer)

    @cached_property
    def segments(self) -> Segments:
        return segment(self.flows)

    @cached_property
    def table(self) -> ConnectionTable:
        return measure(self.flows, self.segments, self.buffer)

    def connection(self, i: int = 0) -> Connection:
        return self.table.record(i)

    def chunks(self, side: int, connection: int = 0) -> list[Chunk]:
        return list(chunks(self.buffer, self.segments, rows_of(self.segments, connection, side)))

    def octets(self, side: int, connection: int = 0) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks(side, connection))

    def kinds(self, side: int, connection: int = 0) -> list[str]:
        rows = rows_of(self.segments, connection, side)
        return [SegmentKind(kind).name for kind in self.segments.kind[rows].tolist()]

    def waits_ms(self, side: int, connection: int = 0) -> list[float | None]:
        """Of each segment with new octets, in file order: deliverable − seen; None when never deliverable."""
        part = self.segments.take(rows_of(self.segments, connection, side))
        new = part.new_offset < part.stream_offset + part.length
        pairs = zip(part.deliverable_at[new].tolist(), part.seen_at[new].tolist(), strict=True)
        return [None if ready < 0 else (ready - seen) / MS for ready, seen in pairs]


def wire_of(frames: Iterable[Timed], *, link_type: int = 1) -> Wire:
    """The tables of some frames."""
    window = window_of(frames, link_type=link_type)
    return Wire(decode(window).packets, window.buffer)


class Conversation:
    """Two ends of one TCP connection. Each packet is captured ``step_ms`` after the one before unless ``after`` says otherwise."""

    def __init__(
        self,
        *,
        client: tuple[str, int] = ("10.0.0.1", 40000),
        server: tuple[str, int] = ("10.0.0.2", 443),
        isns: tuple[int, int] = (1000, 5000),
        at_ns: int = EPOCH_NS,
        step_ms: float = 1.0,
        numbered: bool = True,
    ) -> None:
        self.ends = (client, server)
        self.isns = isns
        self.at_ns = at_ns
        self.step_ms = step_ms
        self.numbered = numbered
        self.frames: list[Timed] = []
        self.sent = [0, 0]
        """Stream offset of the next octet of each side."""
        self.got = [0, 0]
        """What each side acknowledges of the other."""
        self.window = [512, 512]
        self._identification = [100, 30000]
        self._wait_ms: float | None = None

    # --- packets --------------------------------------------------------------------------------------------------------------

    def after(self, ms: float) -> Conversation:
        """The next packet is captured this much later (or earlier, when negative) than the last one."""
        self._wait_ms = ms
        return self

    def packet(
        self,
        side: int,
        data: bytes = b"",
        *,
        flags: int = ACK,
        offset: int | None = None,
        ack: int | None = None,
        options: bytes = b"",
        captured: bool = True,
        identification: int | None = None,
    ) -> Sent:
        """One packet of ``side``; nothing but clock and packet count moves."""
        self.at_ns += int((self.step_ms if self._wait_ms is None else self._wait_ms) * MS)
        self._wait_ms = None
        if identification is None:
            self._identification[side] += 1
            identification = self._identification[side] if self.numbered else 0
        start = self.sent[side] if offset is None else offset
        here, there = self.ends[side], self.ends[1 - side]
        seq = self.isns[side] + (0 if flags & SYN else 1) + start
        acked = self.isns[1 - side] + 1 + (self.got[side] if ack is None else ack)
        segment = tcp(
            data,
            source_port=here[1],
            destination_port=there[1],
            seq=seq,
            ack=acked if flags & ACK else 0,
            flags=flags,
            window=self.window[side],
            options=options,
        )
        if ":" in here[0]:
            frame = ethernet(ipv6(segment, source=here[0], destination=there[0]))
        else:
            frame = ethernet(ipv4(segment, source=here[0], destination=there[0], identification=identification))
        if captured:
            self.frames.append((self.at_ns, frame))
        return Sent(side, start, data, flags)

    def opens(self, *, rtt_ms: float = 20.0, options: bytes = SYN_OPTIONS) -> Conversation:
        """SYN, SYN-ACK a round trip later, ACK at once: as captured at the client."""
        self.packet(CLIENT, flags=SYN, options=options)
        self.after(rtt_ms).packet(SERVER, flags=SYN | ACK, options=options)
        self.after(0.05).packet(CLIENT)
        return self

    def say(self, side: int, data: bytes, *, captured: bool = True, flags: int = ACK | PSH) -> Sent:
        """New octets in one segment. The peer acknowledges them with whatever it sends next."""
        sent = self.packet(side, data, flags=flags, captured=captured)
        self.sent[side] += len(data) + (flags & FIN)
        self.got[1 - side] = max(self.got[1 - side], self.sent[side]) if captured else self.got[1 - side]
        return sent

    def client(self, data: bytes, *, captured: bool = True) -> Sent:
        return self.say(CLIENT, data, captured=captured)

    def server(self, data: bytes, *, captured: bool = True) -> Sent:
        return self.say(SERVER, data, captured=captured)

    def again(self, sent: Sent) -> Sent:
        """The same octets in a new packet."""
        return self.packet(sent.side, sent.data, flags=sent.flags, offset=sent.offset)

    def acks(self, side: int, upto: int | None = None, *, options: bytes = b"") -> Sent:
        """A bare acknowledgement of everything (or of the octets before ``upto``)."""
        if upto is not None:
            self.got[side] = upto
        return self.packet(side, options=options)

    def acks_everything(self, side: int) -> Sent:
        """A bare acknowledgement of all that the peer sent, captured or not."""
        return self.acks(side, self.sent[1 - side])

    def closes(self) -> Conversation:
        """FIN, FIN, ACK, the client first."""
        self.say(CLIENT, b"", flags=FIN | ACK)
        self.say(SERVER, b"", flags=FIN | ACK)
        self.acks(CLIENT)
        return self

    def resets(self, side: int) -> Conversation:
        self.packet(side, flags=RST | ACK)
        return self

    # --- tables ---------------------------------------------------------------------------------------------------------------

    def wire(self) -> Wire:
        return wire_of(self.frames)


def interleaved(*talks: Conversation) -> Wire:
    """All conversations in one capture, by time."""
    return wire_of(sorted((frame for talk in talks for frame in talk.frames), key=lambda frame: frame[0]))


def filled_window() -> Conversation:
    """The server fills the client's window of 1,280 octets and waits 40 ms for it to open."""
    talk = Conversation().opens()
    talk.window[CLIENT] = 10
    talk.acks(CLIENT)
    talk.server(b"x" * 1000)
    talk.server(b"x" * 280)
    talk.after(40).acks(CLIENT)
    return talk
