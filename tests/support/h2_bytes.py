"""HTTP/2 octets for tests: frames by hand, and a real h2 client and server that talk to each other while every octet is kept."""

from __future__ import annotations

from collections.abc import Sequence

import h2.config
import h2.connection
import hpack

from netdiag.wire.chunk import Chunk
from tests.support.http_bytes import chunk, packet_at

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY_FLAG = 0x1, 0x1, 0x4, 0x8, 0x20


def frame(type_: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return len(payload).to_bytes(3, "big") + bytes((type_, flags)) + stream_id.to_bytes(4, "big") + payload


def settings(**values: int) -> bytes:
    """SETTINGS with ``s1=4096``, ``s3=100`` …: s and the identifier."""
    return frame(
        SETTINGS, 0, 0, b"".join(int(k[1:]).to_bytes(2, "big") + v.to_bytes(4, "big") for k, v in values.items())
    )


SETTINGS_ACK = frame(SETTINGS, ACK, 0)


def window_update(stream_id: int, increment: int) -> bytes:
    """WINDOW_UPDATE."""
    return frame(WINDOW_UPDATE, 0, stream_id, increment.to_bytes(4, "big"))


def goaway(last_stream_id: int, code: int = 0) -> bytes:
    """GOAWAY."""
    return frame(GOAWAY, 0, 0, last_stream_id.to_bytes(4, "big") + code.to_bytes(4, "big"))


def rst(stream_id: int, code: int) -> bytes:
    """RST_STREAM."""
    return frame(RST_STREAM, 0, stream_id, code.to_bytes(4, "big"))


REQUEST = [(":method", "GET"), (":scheme", "https"), (":authority", "example.com"), (":path", "/a")]
RESPONSE = [(":status", "200"), ("content-type", "text/plain")]


class Headers:
    """One direction's HPACK encoder (the hpack library), giving whole HEADERS frames."""

    def __init__(self) -> None:
        self.encoder = hpack.Encoder()

    def block(self, fields: Sequence[tuple[str, str]]) -> bytes:
        """An encoded field block."""
        return self.encoder.encode(list(fields))

    def frame(self, stream_id: int, fields: Sequence[tuple[str, str]], *, end_stream: bool = False) -> bytes:
        """HEADERS with END_HEADERS."""
        return frame(HEADERS, END_HEADERS | (END_STREAM if end_stream else 0), stream_id, self.block(fields))


class Pair:
    """A client and a server of the h2 library; ``at`` says when what they have to send is sent."""

    def __init__(self) -> None:
        self.client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding=None))
        self.server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        self.from_client: list[Chunk] = []
        self.from_server: list[Chunk] = []
        self._sent = [0, 0]
        self.client.initiate_connection()
        self.server.initiate_connection()

    def at(self, at_ms: float) -> None:
        """Both send what they have, the client first."""
        self._flush(0, at_ms)
        self._flush(1, at_ms)

    def _flush(self, side: int, at_ms: float) -> None:
        sender, receiver, chunks = (
            (self.client, self.server, self.from_client) if side == 0 else (self.server, self.client, self.from_server)
        )
        data = sender.data_to_send()
        if data:
            chunks.append(chunk(data, at_ms, offset=self._sent[side], packet=packet_at(at_ms)))
            self._sent[side] += len(data)
            receiver.receive_data(data)
