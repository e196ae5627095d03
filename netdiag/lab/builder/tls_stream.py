"""One side's TLS connection over a modelled TCP endpoint: records, handshake messages, and the application's reads and writes."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag

from netdiag.lab.builder.tcp import Endpoint, TcpError
from netdiag.lab.builder.tls_keys import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    LARGEST_CONTENT,
    Protection,
    plain_record,
)
from netdiag.lab.builder.tls_messages import END_OF_EARLY_DATA, NEW_SESSION_TICKET, read_ticket
from netdiag.lab.builder.virtual_time import now_ns
from netdiag.lab.link import PeerGone, Received, Sent

CLOSE_NOTIFY = b"\x01\x00"
DEFAULT_BUFFER_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a client keeps for resumption."""

    identity: bytes
    secret: bytes
    """Pre-shared key (TLS 1.3) or master secret (TLS 1.2)."""
    suite_name: str
    is_tls13: bool
    age_add: int
    received_at: int
    alpn: str | None = None


class Stream:
    """Clear text until a handshake has set ``reading`` and ``writing``. Serves as ``netdiag.lab.link.Connection``."""

    def __init__(self, endpoint: Endpoint, *, record_bytes: int | None = None) -> None:
        """``record_bytes``: largest content of a record written."""
        self.endpoint = endpoint
        self.secure = False
        self.reading: Protection | None = None
        self.writing: Protection | None = None
        self.buffer_bytes = DEFAULT_BUFFER_BYTES
        self.new_tickets: list[bytes] = []
        """Bodies of NewSessionTicket messages not yet turned into tickets."""
        self.is_tls13 = False
        self.suite_name = ""
        self.resumption: Callable[[bytes], bytes] | None = None
        """The secret that a ticket with a nonce stands for; None before the handshake is done."""
        self.before_reading: Callable[[], Awaitable[None]] | None = None
        """What of the handshake is still to be read when the application reads first (False Start)."""
        self.end_of_early_data: Callable[[bytes], Awaitable[None]] | None = None
        """Server: what to do when the client's 0-RTT data has ended."""
        self.alpn: str | None = None
        self.last_sent = Sent(now_ns(), now_ns(), 0)
        self._record_bytes = record_bytes or LARGEST_CONTENT
        self._raw = bytearray()
        self._messages = bytearray()

    # --- records and handshake messages ----------------------------------------------------------------------------

    async def read_record(self) -> tuple[int, bytes] | None:
        """Content type and content of the next record, decrypted; None at the end of the stream. Raises PeerGone."""
        while len(self._raw) < 5 or len(self._raw) < 5 + int.from_bytes(self._raw[3:5], "big"):
            data = await self._read_raw()
            if not data:
                return None
            self._raw += data
        kind, size = self._raw[0], int.from_bytes(self._raw[3:5], "big")
        fragment = bytes(self._raw[5 : 5 + size])
        del self._raw[: 5 + size]
        if self.reading is None or kind == CHANGE_CIPHER_SPEC:
            return kind, fragment
        try:
            return self.reading.open(kind, fragment)
        except InvalidTag:
            raise PeerGone("a record was cut or damaged") from None

    async def read_message(self) -> tuple[int, bytes, bytes]:
        """Type, body and all octets of the next handshake message; other records but ChangeCipherSpec end the handshake."""
        while len(self._messages) < 4 or len(self._messages) < 4 + int.from_bytes(self._messages[1:4], "big"):
            record = await self.read_record()
            if record is None or record[0] == ALERT:
                raise PeerGone("the peer ended the handshake")
            if record[0] == HANDSHAKE:
                self._messages += record[1]
        size = 4 + int.from_bytes(self._messages[1:4], "big")
        whole = bytes(self._messages[:size])
        del self._messages[:size]
        return whole[0], whole[4:], whole

    async def read_change(self) -> None:
        """A ChangeCipherSpec record (TLS 1.2)."""
        while True:
            record = await self.read_record()
            if record is None or record[0] == ALERT:
                raise PeerGone("the peer ended the handshake")
            if record[0] == CHANGE_CIPHER_SPEC:
                return

    def record(self, kind: int, content: bytes, *, version: int = 0x0303) -> bytes:
        """Records under the present protection."""
        if self.writing is None:
            return plain_record(kind, content, version)
        parts = [content[i : i + self._record_bytes] for i in range(0, len(content), self._record_bytes)] or [b""]
        return b"".join(self.writing.seal(kind, part) for part in parts)

    async def _read_raw(self) -> bytes:
        try:
            return await self.endpoint.read()
        except TcpError as error:
            raise PeerGone(error.reason) from None

    # --- the application's side ------------------------------------------------------------------------------------

    async def receive(self) -> Received | None:
        """Application octets; None at close_notify or FIN."""
        if not self.secure:
            data = await self._read_raw()
            return Received(data, now_ns()) if data else None
        if self.before_reading is not None:
            rest, self.before_reading = self.before_reading, None
            await rest()
        while (record := await self.read_record()) is not None:
            kind, content = record
            if kind == APPLICATION_DATA and content:
                return Received(content, now_ns())
            if kind == ALERT:
                return None
            if kind == HANDSHAKE:
                await self._after_handshake(content)
        return None

    async def _after_handshake(self, content: bytes) -> None:
        self._messages += content
        while len(self._messages) >= 4:
            size = 4 + int.from_bytes(self._messages[1:4], "big")
            if len(self._messages) < size:
                return
            whole = bytes(self._messages[:size])
            del self._messages[:size]
            if whole[0] == NEW_SESSION_TICKET:
                self.new_tickets.append(whole[4:])
            if whole[0] == END_OF_EARLY_DATA and self.end_of_early_data is not None:
                await self.end_of_early_data(whole)

    async def send(self, data: bytes) -> Sent:
        """Application octets, in one write."""
        return await self.send_raw(self.sealed(data))

    async def send_raw(self, data: bytes) -> Sent:
        """Octets as they are; waits while the send buffer is full."""
        at = now_ns()
        try:
            offset = self.endpoint.write(data)
            await self.endpoint.drain(self.buffer_bytes)
        except TcpError as error:
            raise PeerGone(error.reason) from None
        self.last_sent = Sent(at, now_ns(), len(data), offset)
        return self.last_sent

    def sealed(self, data: bytes) -> bytes:
        """As records of application data, or as it is in clear text."""
        return self.record(APPLICATION_DATA, data) if self.secure else data

    def end(self, *, notify: bool = True) -> int:
        """close_notify and FIN."""
        at = now_ns()
        if self.endpoint.state == "established":
            if self.secure and notify:
                self.endpoint.write(self.record(ALERT, CLOSE_NOTIFY))
            self.endpoint.end()
        return at

    def reset(self) -> int:
        """RST."""
        at = now_ns()
        if self.endpoint.state != "ended":
            self.endpoint.abort()
        return at

    async def linger(self, seconds: float = 1.0) -> None:
        """Virtual time is free: nothing to wait for."""

    def tcp_facts(self) -> dict[str, int]:
        """From the model: octets not acknowledged and the congestion window, in segments as the kernel counts."""
        sender = self.endpoint.sender
        return {
            "unacked": -(-(sender.nxt - sender.una) // sender.mss),
            "rtt_ns": sender.rtt.smoothed_ns or 0,
            "cwnd": sender.congestion_window // sender.mss,
            "retransmits": sender.sent_again,
        }

    def take_tickets(self) -> list[Ticket]:
        """Turn the tickets that have come into something to resume with."""
        out = []
        for body in self.new_tickets:
            identity, nonce, age_add = read_ticket(body, is_tls13=self.is_tls13)
            assert self.resumption is not None
            secret = self.resumption(nonce)
            out.append(Ticket(identity, secret, self.suite_name, self.is_tls13, age_add, now_ns(), self.alpn))
        self.new_tickets.clear()
        return out


@dataclass(slots=True)
class Transcript:
    """Octets of all handshake messages so far."""

    octets: bytearray = field(default_factory=bytearray)

    def add(self, *messages: bytes) -> bytes:
        """Append; returns the transcript."""
        for one in messages:
            self.octets += one
        return bytes(self.octets)


def alert(level: int, description: int) -> bytes:
    """The content of an alert record."""
    return struct.pack("!BB", level, description)
