"""A TCP endpoint in virtual time: handshake, teardown, and the application's side of both halves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from netdiag.lab.builder.receiver import Receiver
from netdiag.lab.builder.segment import Options, Segment
from netdiag.lab.builder.sender import INITIAL_RTO_NS, Departure, Sender
from netdiag.lab.builder.virtual_time import VirtualLoop, now_ns
from netdiag.lab.clock import ns
from netdiag.lab.host_settings import TcpSettings
from netdiag.wire.tcp_flags import ACK, FIN, PSH, RST, SYN


class TcpError(ConnectionError):
    """The connection cannot go on; ``reason`` is ``refused``, ``reset`` or ``timeout``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Network(Protocol):
    """Where segments go."""

    def transmit(self, segment: Segment, kind: str) -> None:
        """Put a segment on the wire; ``kind`` says why it was sent, for the truth."""


@dataclass(frozen=True, slots=True)
class Place:
    """A transport address, packed."""

    address: bytes
    port: int


@dataclass(slots=True)
class Endpoint:
    """One side of one connection."""

    local: Place
    remote: Place
    settings: TcpSettings
    network: Network
    isn: int
    is_client: bool
    state: str = "closed"
    """``closed``, ``syn-sent``, ``syn-received``, ``established``, ``ended``."""
    on_established: Callable[[Endpoint], None] | None = None
    on_gone: Callable[[Endpoint], None] | None = None
    sender: Sender = field(init=False)
    receiver: Receiver = field(init=False)
    failure: str | None = None
    readable: asyncio.Event = field(default_factory=asyncio.Event)
    _peer_isn: int = 0
    _shift: int = 0
    _peer_shift: int = 0
    _sack: bool = False
    _ip_id: int = 0
    _timer: asyncio.TimerHandle | None = None
    _ack_timer: asyncio.TimerHandle | None = None
    _idle_timer: asyncio.TimerHandle | None = None
    _syn_tries: int = 0
    _syn_sent_at: int = 0
    _progress: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: VirtualLoop = field(init=False)

    def __post_init__(self) -> None:
        """Fresh halves."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        self.sender = Sender(self.settings, self._emit)
        self.receiver = Receiver(self.settings)
        self._ip_id = self.isn & 0x7FFF

    # --- for the application ---------------------------------------------------------------------------------------

    async def connect(self) -> None:
        """Open actively. Raises TcpError."""
        self.state = "syn-sent"
        self._send_syn()
        while self.state == "syn-sent":
            await self._wait_progress()
        self._check()

    def write(self, data: bytes) -> int:
        """Append to the stream; returns the offset of its first octet. Raises TcpError."""
        self._check()
        offset = len(self.sender.stream)
        self.sender.stream += data
        self.sender.push(now_ns())
        self._rearm()
        return offset

    async def drain(self, most_bytes: int) -> None:
        """Return when no more than so many octets wait to be acknowledged. Raises TcpError."""
        while len(self.sender.stream) - self.sender.una > most_bytes:
            self._check()
            await self._wait_progress()

    async def read(self) -> bytes:
        """The next octets in order; empty at the peer's FIN. Raises TcpError on a reset."""
        while not self.receiver.unread:
            if self.failure:
                raise TcpError(self.failure)
            if self.receiver.fin_received:
                return b""
            self.readable.clear()
            await self.readable.wait()
        data = self.receiver.read()
        if self.state == "established" and self.receiver.window_opened():
            self._send_ack("window-update")
        return data

    def end(self) -> None:
        """FIN after everything written."""
        if self.state in ("established", "syn-received") and not self.sender.fin_queued:
            self.sender.fin_queued = True
            self.sender.push(now_ns())
            self._rearm()

    def abort(self) -> None:
        """RST now."""
        if self.state in ("established", "syn-received"):
            self._transmit(RST | ACK, self.sender.nxt + self.sender.fin_sent, b"", "reset")
        self._gone(self.failure or "aborted")

    # --- segments in -----------------------------------------------------------------------------------------------

    def arrive(self, segment: Segment) -> None:
        """A segment has come in from the wire."""
        if self.state == "ended":
            self._answer_late(segment)
        elif segment.flags & RST:
            self._on_reset(segment)
        elif segment.flags & SYN:
            self._on_syn(segment)
        elif self.state != "closed":
            self._on_segment(segment)

    def _answer_late(self, segment: Segment) -> None:
        """After the end: an aborted connection answers with RST, one in TIME-WAIT acknowledges a repeated FIN."""
        if segment.flags & RST:
            return
        if self.failure:
            self._transmit(RST, self.sender.nxt + self.sender.fin_sent, b"", "reset")
        elif segment.flags & FIN or segment.payload:
            self._transmit(ACK, self.sender.nxt + self.sender.fin_sent, b"", "ack")

    def accept(self, segment: Segment) -> None:
        """Open passively with a peer's SYN."""
        self.state = "syn-received"
        self._learn(segment)
        self._send_syn()

    def _on_reset(self, segment: Segment) -> None:
        refused = self.state == "syn-sent"
        if self.state == "closed" or (refused and not segment.flags & ACK):
            return
        self._gone("refused" if refused else "reset")

    def _on_syn(self, segment: Segment) -> None:
        if self.state == "syn-sent" and segment.flags & ACK:
            self._learn(segment)
            self._establish()
            if not self.sender.stream:
                self._send_ack("ack")
        elif self.state == "syn-received":
            self._send_syn()  # our SYN-ACK was lost, or is late
        elif self.state == "established":
            self._send_ack("ack")

    def _learn(self, segment: Segment) -> None:
        options = Options.decode(segment.options)
        self._peer_isn = segment.seq
        self.sender.mss = min(self.settings.mss, options.mss or 536)
        scaling = options.window_scale is not None and self.settings.window_scale is not None
        self._shift = (self.settings.window_scale or 0) if scaling else 0
        self._peer_shift = (options.window_scale or 0) if scaling else 0
        self._sack = options.sack_permitted and self.settings.sack
        self.sender.peer_window = segment.window

    def _establish(self) -> None:
        self.state = "established"
        now = now_ns()
        self.sender.open(self.sender.mss, now)
        if self._syn_tries == 1:
            self.sender.rtt.sample(now - self._syn_sent_at)
        self._cancel_timer()
        self._progress.set()
        self._keep_alive()
        if self.on_established is not None:
            self.on_established(self)

    def _on_segment(self, segment: Segment) -> None:
        if self.state == "syn-received" and segment.flags & ACK:
            self.sender.peer_window = segment.window << self._peer_shift
            self._establish()
        self._keep_alive()
        start = (segment.seq - self._peer_isn - 1) & 0xFFFFFFFF
        start = start - (1 << 32) if start > 1 << 31 else start  # a probe sits one octet before the stream
        self._take_payload(segment, start)
        self._take_ack(segment)
        if self.sender.fin_acked and self.receiver.fin_received:
            self._gone(None)

    def _take_payload(self, segment: Segment, start: int) -> None:
        fin = bool(segment.flags & FIN)
        if not segment.payload and not fin:
            if start < self.receiver.nxt:
                self._send_ack("ack")  # a keep-alive or window probe asks for this
            return
        had = self.receiver.nxt
        at_once = self.receiver.take(start, segment.payload, fin=fin)
        if self.receiver.nxt > had or fin:
            self._loop.at(now_ns() + ns(self.settings.host_us / 1e3), self.readable.set)
        if at_once:
            self._send_ack("ack")
        elif self._ack_timer is None:
            self._ack_timer = self._loop.at(now_ns() + ns(self.settings.delayed_ack_ms), self._send_ack, "delayed-ack")

    def _take_ack(self, segment: Segment) -> None:
        ack = (segment.ack - self.isn - 1) & 0xFFFFFFFF
        if ack > len(self.sender.stream) + self.sender.fin_sent:
            return
        base = (self.isn + 1) & 0xFFFFFFFF
        options = Options.decode(segment.options)
        sacked = [((left - base) & 0xFFFFFFFF, (right - base) & 0xFFFFFFFF) for left, right in options.sack]
        window = segment.window << self._peer_shift
        self.sender.on_ack(ack, sacked, window, has_payload=bool(segment.payload), now=now_ns())
        self._progress.set()
        self._rearm()

    # --- segments out ----------------------------------------------------------------------------------------------

    def _send_syn(self) -> None:
        options = Options(
            mss=self.settings.mss,
            window_scale=self.settings.window_scale if self.is_client or self._peer_shift or self._shift else None,
            sack_permitted=self.settings.sack,
        )
        flags = SYN if self.is_client else SYN | ACK
        kind = "new" if not self._syn_tries else "rto"
        if not self._syn_tries:
            self._syn_sent_at = now_ns()
        self._transmit(flags, -1, b"", kind, options)
        delay_ns = INITIAL_RTO_NS << self._syn_tries
        self._syn_tries += 1
        self._cancel_timer()
        self._timer = self._loop.at(now_ns() + delay_ns, self._syn_timeout)

    def _syn_timeout(self) -> None:
        self._timer = None
        if self.state not in ("syn-sent", "syn-received"):
            return
        if self._syn_tries > self.settings.syn_retries:
            self._gone("timeout")
        else:
            self._send_syn()

    def _emit(self, departure: Departure) -> None:
        flags = ACK | (FIN if departure.fin else 0) | (PSH if departure.push else 0)
        payload = bytes(self.sender.stream[departure.start : departure.end])
        self._transmit(flags, departure.start, payload, departure.kind)

    def _send_ack(self, kind: str) -> None:
        if self.state in ("established", "syn-received"):
            self._transmit(ACK, self.sender.nxt + self.sender.fin_sent, b"", kind)

    def _transmit(self, flags: int, offset: int, payload: bytes, kind: str, options: Options | None = None) -> None:
        receiver = self.receiver
        if flags & ACK:
            receiver.unacknowledged = 0
            receiver.advertised_edge = receiver.nxt + receiver.window
            if self._ack_timer is not None:
                self._ack_timer.cancel()
                self._ack_timer = None
        if options is None and self._sack and receiver.sack_blocks():
            blocks = tuple(
                (left + self._peer_isn + 1, right + self._peer_isn + 1) for left, right in receiver.sack_blocks()
            )
            options = Options(sack=blocks)
        shift = 0 if flags & SYN else self._shift
        ack = self._peer_isn + 1 + receiver.nxt + receiver.fin_received if flags & ACK else 0
        self._ip_id = (self._ip_id + 1) & 0xFFFF
        segment = Segment(
            source=self.local.address,
            destination=self.remote.address,
            source_port=self.local.port,
            destination_port=self.remote.port,
            seq=(self.isn + 1 + offset) & 0xFFFFFFFF,
            ack=ack & 0xFFFFFFFF,
            flags=flags,
            window=min(0xFFFF, receiver.window >> shift),
            options=options.encode() if options is not None else b"",
            payload=payload,
            ip_id=self._ip_id,
            ttl=self.settings.ttl,
        )
        self.network.transmit(segment, kind)

    # --- timers and the end ----------------------------------------------------------------------------------------

    def _rearm(self) -> None:
        self._cancel_timer()
        if self.sender.timer_at is not None and self.state == "established":
            self._timer = self._loop.at(self.sender.timer_at, self._sender_timeout)

    def _sender_timeout(self) -> None:
        self._timer = None
        if self.state == "established":
            self.sender.on_timer(now_ns())
            if self.sender.given_up:
                self._gone("timeout")
            self._rearm()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _keep_alive(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self.settings.keep_alive_ms is not None and self.state == "established":
            self._idle_timer = self._loop.at(now_ns() + ns(self.settings.keep_alive_ms), self._send_keep_alive)

    def _send_keep_alive(self) -> None:
        if self.state == "established" and self.sender.idle:
            self._transmit(ACK, self.sender.nxt - 1, b"", "keep-alive")
        self._keep_alive()

    def _gone(self, failure: str | None) -> None:
        self.state, self.failure = "ended", failure
        for timer in (self._timer, self._ack_timer, self._idle_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._ack_timer = self._idle_timer = None
        self._progress.set()
        self.readable.set()
        if self.on_gone is not None:
            self.on_gone(self)

    def _check(self) -> None:
        if self.failure or self.state == "ended":
            raise TcpError(self.failure or "closed")

    async def _wait_progress(self) -> None:
        self._progress.clear()
        await self._progress.wait()
