"""First octets to names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.sniff import identify, peek
from tests.support import h2_bytes as h2
from tests.support.http_bytes import stream

TLS = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@pytest.mark.parametrize(
    ("client", "server", "name"),
    [
        (TLS, b"", "tls"),
        (b"", b"\x16\x03\x03\x00\x5a\x02", "tls"),
        (b"\x17\x03\x03\x01\x00abc", b"", "tls"),
        (b"\x80\x2e\x01\x03\x01\x00\x15", b"", "tls"),
        (b"GET / HTTP/1.1\r\n", b"", "http/1"),
        (b"\r\nPOST /v1 HTTP/1.0\r\n", b"", "http/1"),
        (b"PROPFIND /dav HTTP/1.1\r\n", b"", "http/1"),
        (b"CONNECT api.example.com:443 HTTP/1.1\r\n", b"", "http/1"),
        (b"", b"HTTP/1.1 200 OK\r\n", "http/1"),
        (b"middle of an upload", b"HTTP/1.1 200 OK\r\n", "http/1"),
        (h2.PREFACE + h2.settings(), b"", "h2"),
        (b"PRI *", b"", "h2"),
        (b"", h2.settings(s3=100), "h2"),
        (h2.window_update(0, 100), h2.frame(h2.DATA, 0, 5, b"x" * 100), "h2"),
        (b"\x05\x01\x00", b"\x05\x00", "socks5"),
        (b"\x05\x02\x00\x02", b"", "socks5"),
        (b"\x05\x02\0\1" + b"\5\1\0\1\xc6\x33\x64\2\1\xbb", b"\5\0" + b"\5\0\0\1\x7f\0\0\1\4\x38", "socks5"),
        (b"CONNECT example.com:443 HTTP/1.1\r\n\r\n", b"\x16\3\3\0\x55\2\0\0\x51\3\3", "http/1"),
        (b"\x04\x01\x01\xbb\x7f\0\0\1user\0", b"\0\x5a", "socks4"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", "ssh"),
        (b"EHLO me\r\n", b"220 mail.example.com ESMTP Postfix\r\n", "smtp"),
        (b"USER anonymous\r\n", b"220 Welcome\r\n", "ftp"),
        (b"", b"+OK POP3 ready\r\n", "pop3"),
        (b"a1 CAPABILITY\r\n", b"* OK IMAP4rev1\r\n", "imap"),
        (b"\x13BitTorrent protocol", b"", "bittorrent"),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", b"", "proxy-protocol"),
        (b"OPTIONS rtsp://h/ RTSP/1.0\r\n", b"", "rtsp"),
        (b"REGISTER sip:example.com SIP/2.0\r\n", b"", "sip"),
        (b"", b"SIP/2.0 200 OK\r\n", "sip"),
        (b"GET / HTTP/1.1\r\n", b"SIP/2.0 200 OK\r\n", "http/1"),
        (b"\0\0\0\x08\x04\xd2\x16\x2f", b"", "postgresql"),
        (b"", b"\x4a\0\0\0\x0a8.0.33\0abcdefgh", "mysql"),
        (b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n", "redis"),
        (b"\x10\x0c\0\x04MQTT\x04", b"", "mqtt"),
        (b"\0\x1d\x12\x34\x01\0\0\1\0\0\0\0\0\0\3www", b"", "dns"),
        (b"\3\0\0\x13\x0e\xe0\0\0", b"", "rdp"),
        (b"\0\0\0\x85\xffSMB", b"", "smb"),
        (b"", b"", None),
        (b"\0" * 64, b"\0" * 64, None),
        (b"hello world, this is text\n", b"so is this\n", None),
        (b"GETAWAY now please", b"", None),
        (b'CONNECT {"verbose":false}\r\n', b'INFO {"server_id":"x"}\r\n', "nats"),
        (b"\0\x3a\0\0\1\0\0\0\1" + b"TNS" * 10, b"", None),
    ],
)
def test_protocols(client: bytes, server: bytes, name: str | None) -> None:
    assert identify(client, server) == name


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_any_octets_are_accepted(client: bytes, server: bytes) -> None:
    assert identify(client, server) is None or isinstance(identify(client, server), str)


def test_peeking_takes_nothing_away() -> None:
    chunks = stream((0, b"ab"), (1, b"cd"), (2, b"ef"))
    prefix, again = peek(iter(chunks), 3)
    assert prefix == b"abc"
    assert list(again) == chunks


def test_peeking_stops_at_a_gap() -> None:
    chunks = stream((0, b"ab"), (1, 5), (2, b"ef"))
    prefix, again = peek(iter(chunks), 10)
    assert prefix == b"ab"
    assert list(again) == chunks
    assert peek(iter(stream((0, -1), (1, b"late"))), 10)[0] == b"late"
