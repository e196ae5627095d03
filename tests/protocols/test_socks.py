"""SOCKS handshakes and the tunnel after them."""

from __future__ import annotations

import pytest

from netdiag.protocols import socks
from netdiag.protocols.conversation import Tunnel
from netdiag.protocols.turn import TurnEnd
from netdiag.wire.chunk import Chunk
from tests.support.http_bytes import MS, octet_by_octet, stream

INNER = b"\x16\x03\x01hello"


def opened(client: list[Chunk], server: list[Chunk]) -> Tunnel:
    tunnel = socks.decode(client, server)
    assert tunnel is not None
    assert tunnel.turn.end is TurnEnd.TUNNEL
    assert b"".join(c.data for c in tunnel.client) == INNER
    return tunnel


@pytest.mark.parametrize(
    ("address", "target"),
    [
        (b"\1\xc0\0\2\1", "192.0.2.1:443"),
        (b"\3\x0bexample.com", "example.com:443"),
        (b"\4" + bytes.fromhex("20010db8000000000000000000000001"), "[2001:db8::1]:443"),
    ],
)
def test_socks5_without_authentication(address: bytes, target: str) -> None:
    tunnel = opened(
        stream((0, b"\5\1\0"), (20, b"\5\1\0" + address + b"\x01\xbb"), (60, INNER)),
        stream((10, b"\5\0"), (50, b"\5\0\0\1\0\0\0\0\0\0"), (70, b"answer")),
    )
    turn = tunnel.turn
    assert (tunnel.kind, tunnel.target, turn.method) == ("socks5", target, "CONNECT")
    assert turn.request_first is not None
    assert turn.request_last is not None
    assert turn.response_last is not None
    assert [m.deliverable_at / MS for m in (turn.request_first, turn.request_last, turn.response_last)] == [0, 20, 50]
    assert b"".join(c.data for c in tunnel.server) == b"answer"


def test_socks5_user_and_password_are_not_kept() -> None:
    tunnel = opened(
        octet_by_octet(
            stream((0, b"\5\2\0\2"), (20, b"\1\4user\6CANARY"), (40, b"\5\1\0\3\x01h\0\x50"), (60, INNER)),
        ),
        stream((10, b"\5\2"), (30, b"\1\0"), (50, b"\5\0\0\3\x01x\0\0")),
    )
    assert tunnel.target == "h:80"
    assert "CANARY" not in repr(tunnel.turn)


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (b"\4\1\x01\xbb\xc0\0\2\1me\0", "192.0.2.1:443"),
        (b"\4\1\x01\xbb\0\0\0\1me\0example.com\0", "example.com:443"),
        (b"\4\1\x01\xbb\0\0\0\0\0example.com\0", "example.com:443"),
    ],
    ids=["4", "4a", "4a with the address 0.0.0.0"],
)
def test_socks4(asked: bytes, target: str) -> None:
    tunnel = opened(stream((0, asked), (60, INNER)), stream((30, b"\0\x5a\0\0\0\0\0\0answer")))
    assert (tunnel.kind, tunnel.target) == ("socks4", target)
    assert b"".join(c.data for c in tunnel.server) == b"answer"


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (b"\5\1\0", b"\5\xff"),
        (b"\5\1\0" + b"\5\1\0\1\1\2\3\4\0\x50", b"\5\0" + b"\5\5\0\1\0\0\0\0\0\0"),
        (b"\5\1\2" + b"\1\1u\1p", b"\5\2\1\1"),
        (b"\4\1\0\x50\1\2\3\4me\0", b"\0\x5b\0\0\0\0\0\0"),
        (b"\5\1\0", b""),
        (b"\5", b"\5\0"),
        (b"\5\1\0\5\1\0\x09", b"\5\0"),
        (b"\4\1\0\x50\1\2\3\4" + b"u" * 5000, b""),
        (b"GET /", b""),
        (b"", b""),
    ],
)
def test_refusals_and_nonsense_open_nothing(client: bytes, server: bytes) -> None:
    assert socks.decode(stream((0, client)), stream((1, server))) is None


def test_a_gap_in_the_handshake_opens_nothing() -> None:
    assert socks.decode(stream((0, b"\5\1"), (1, 1), (2, b"\5\1\0\1\1\2\3\4\0\x50")), stream((1, b"\5\0"))) is None
