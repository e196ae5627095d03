"""The header of a load balancer, and the octets after it."""

from __future__ import annotations

import socket

import pytest

from netdiag.protocols.proxy_protocol import strip
from netdiag.protocols.sniff import identify
from netdiag.records.endpoint import Endpoint
from tests.support.http_bytes import octet_by_octet, stream

V1 = b"PROXY TCP4 192.0.2.10 192.0.2.1 56324 443\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n"
IPV4 = socket.inet_aton("192.0.2.10") + socket.inet_aton("192.0.2.1") + b"\xdc\x04\x01\xbb"
IPV6 = socket.inet_pton(socket.AF_INET6, "2001:db8::10") * 2 + b"\xdc\x04\x01\xbb"
INNER = b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (V1, Endpoint("192.0.2.10", 56324)),
        (b"PROXY TCP6 2001:db8::10 2001:db8::1 56324 443\r\n", Endpoint("2001:db8::10", 56324)),
        (b"PROXY UNKNOWN\r\n", None),
        (V2 + b"\x21\x11\0\x0c" + IPV4, Endpoint("192.0.2.10", 56324)),
        (V2 + b"\x21\x21\0\x24" + IPV6, Endpoint("2001:db8::10", 56324)),
        (V2 + b"\x20\0\0\0", None),
        (V2 + b"\x21\x11\0\x10" + IPV4 + b"\x03\0\x01x", Endpoint("192.0.2.10", 56324)),
    ],
)
def test_headers(header: bytes, client: Endpoint | None) -> None:
    for chunks in (stream((0, header + INNER)), octet_by_octet(stream((0, header + INNER)))):
        found, rest = strip(chunks)
        after = list(rest)
        assert found == client
        assert b"".join(c.data for c in after) == INNER
        assert after[0].offset == len(header)
    assert identify(header + INNER, b"") == "proxy-protocol"


@pytest.mark.parametrize("octets", [b"", INNER, b"PROXY", b"PROXY nonsense that never ends", V2, b"\r\n\r\n"])
def test_other_octets_come_back_as_they_were(octets: bytes) -> None:
    chunks = stream((0, octets))
    assert strip(chunks)[0] is None
    assert list(strip(chunks)[1]) == chunks
