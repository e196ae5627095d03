"""What becomes of a connection after CONNECT, 101, or through a proxy."""

from __future__ import annotations

import pytest

from netdiag.protocols import http1
from netdiag.protocols.turn import TurnEnd
from tests.support.http1_talk import OK_5, ms, one
from tests.support.http_bytes import head, stream


def test_connect_becomes_a_tunnel_with_what_comes_after() -> None:
    conversation = http1.decode(
        stream(
            (0, head("CONNECT api.example.com:443 HTTP/1.1\nHost: api.example.com:443")), (40, b"\x16\x03\x01hello")
        ),
        stream((30, head("HTTP/1.1 200 Connection established") + b"\x16\x03\x03"), (70, b"server hello")),
    )
    turn, tunnel = conversation.turns[0], conversation.tunnels[0]
    assert (tunnel.kind, tunnel.target, tunnel.turn) == ("connect", "api.example.com:443", turn)
    assert (turn.end, ms(turn.response_last)) == (TurnEnd.TUNNEL, 30)
    client, server = list(tunnel.client), list(tunnel.server)
    assert b"".join(c.data for c in client) == b"\x16\x03\x01hello"
    assert [c.data for c in server] == [b"\x16\x03\x03", b"server hello"]
    assert server[1].offset == server[0].offset + 3 == len(head("HTTP/1.1 200 Connection established")) + 3


def test_connect_with_a_path_names_the_host_that_its_field_says() -> None:
    """Not authority-form (RFC 9112 section 3.2.3), so no target of a tunnel."""
    asked = stream((0, head("CONNECT / HTTP/1.1\nHost: www.example.com")))
    (turn,) = http1.decode(asked, stream((9, head("HTTP/1.1 405 No\nContent-Length: 0")))).turns
    assert (turn.path, turn.authority, turn.status) == ("/", "www.example.com", 405)


def test_a_refused_connect_is_an_ordinary_answer() -> None:
    conversation = http1.decode(
        stream(
            (0, head("CONNECT a:443 HTTP/1.1\nHost: a:443")),
            (50, head("CONNECT a:443 HTTP/1.1\nHost: a:443\nProxy-Authorization: Basic Zm9vOmJhcg==")),
        ),
        stream((10, head("HTTP/1.1 407 Auth\nContent-Length: 5") + b"login"), (60, head("HTTP/1.1 200 OK"))),
    )
    assert [(t.status, t.end) for t in conversation.turns] == [(407, TurnEnd.COMPLETE), (200, TurnEnd.TUNNEL)]
    assert "Zm9v" not in str(conversation)
    assert conversation.tunnels


@pytest.mark.parametrize(
    ("upgrade", "kind"),
    [("websocket", "websocket"), ("h2c", "h2c"), ("TLS/1.0", "other")],
)
def test_an_upgrade_becomes_a_tunnel(upgrade: str, kind: str) -> None:
    conversation = http1.decode(
        stream((0, head(f"GET /chat HTTP/1.1\nHost: h\nConnection: Upgrade\nUpgrade: {upgrade}")), (50, b"frames")),
        stream(
            (10, head(f"HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: {upgrade}")), (60, b"answers")
        ),
    )
    assert conversation.tunnels[0].kind == kind
    assert b"".join(c.data for c in conversation.tunnels[0].client) == b"frames"
    assert b"".join(c.data for c in conversation.tunnels[0].server) == b"answers"


def test_a_request_through_a_plain_proxy_has_its_parts() -> None:
    turn = one(
        stream((0, head("GET http://user:pw@example.com:8080/x?y=1 HTTP/1.1\nHost: other"))),
        stream((10, OK_5 + b"hello")),
    )
    assert (turn.scheme, turn.authority, turn.path, turn.absolute_target) == (
        "http",
        "example.com:8080",
        "/x?y=1",
        True,
    )
