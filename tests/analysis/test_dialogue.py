"""Layer by layer down to HTTP: proxies, TLS inside them, upgrades, STARTTLS; and what is no HTTP at all."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.analysis.dialogue import Dialogue, listen, listen_tls
from netdiag.analysis.marks import Milestone
from netdiag.protocols.tls.keylog import parse_keylog
from netdiag.wire.chunk import Chunk
from netdiag.wire.record_view import TlsRecordView
from tests.support import h2_bytes
from tests.support.dns_bytes import answer, message
from tests.support.http_bytes import MS, head, mutate, packet_at, stream
from tests.support.tls_peers import Conversation, Pair, converse

M = Milestone

GET = head("GET /inside HTTP/1.1\nHost: target.example")
OK = head("HTTP/1.1 200 OK\nContent-Length: 2") + b"ok"
CONNECT = head("CONNECT target.example:443 HTTP/1.1\nHost: target.example:443")
ESTABLISHED = head("HTTP/1.1 200 Connection established")


def heard(client: Iterable[Chunk], server: Iterable[Chunk], *, keylog: bytes = b"", port: int = 443) -> Dialogue:
    return listen(client, server, keylog=parse_keylog(keylog) if keylog else None, server_port=port)


def paths(dialogue: Dialogue) -> list[list[tuple[str | None, str | None, int | None]]]:
    return [[(t.method, t.path, t.status) for t in leg.turns] for leg in dialogue.legs]


def octets(records: list[TlsRecordView], from_ms: float) -> list[tuple[float, bytes]]:
    """TLS records as they travel, ten milliseconds apart from each other."""
    return [
        (
            from_ms + 10 * i,
            bytes([r.content_type]) + r.version.to_bytes(2, "big") + r.length.to_bytes(2, "big") + r.fragment(),
        )
        for i, r in enumerate(records)
    ]


def test_plain_http() -> None:
    dialogue = heard(stream((0, GET)), stream((5, OK)), port=80)
    assert paths(dialogue) == [[("GET", "/inside", 200)]]
    assert (dialogue.http_version, dialogue.session, dialogue.proxied) == ("http/1.1", None, None)


def test_a_request_in_clear_inside_a_connect_tunnel() -> None:
    dialogue = heard(stream((0, CONNECT), (20, GET)), stream((10, ESTABLISHED), (30, OK)), port=3128)
    assert paths(dialogue) == [[("CONNECT", None, 200)], [("GET", "/inside", 200)]]
    assert dialogue.proxied == "connect"
    marks = dialogue.legs[1].marks
    assert (marks[M.PROXY_ASKED].at, marks[M.PROXY_READY].at) == (0, 10 * MS)


def test_a_proxy_that_wants_credentials_first_is_asked_from_the_first_connect_on() -> None:
    denied = head("HTTP/1.1 407 Proxy Authentication Required\nContent-Length: 0")
    dialogue = heard(
        stream((0, CONNECT), (20, CONNECT), (60, GET)), stream((10, denied), (50, ESTABLISHED), (70, OK)), port=3128
    )
    assert paths(dialogue) == [[("CONNECT", None, 407), ("CONNECT", None, 200)], [("GET", "/inside", 200)]]
    marks = dialogue.legs[1].marks
    assert (marks[M.PROXY_ASKED].at, marks[M.PROXY_READY].at) == (0, 50 * MS)


def through_a_proxy(talk: Conversation, keylog: bytes) -> Dialogue:
    client = stream((0, CONNECT), *octets(talk.client, 20))
    server = stream((10, ESTABLISHED), *octets(talk.server, 25))
    return heard(client, server, keylog=keylog, port=3128)


def test_tls_inside_a_connect_tunnel_with_keys() -> None:
    talk = converse(bulk_bytes=512)
    dialogue = through_a_proxy(talk, talk.keylog)
    assert [[m for m, *_ in leg] for leg in paths(dialogue)] == [["CONNECT"], ["GET"]]
    assert dialogue.session is not None
    assert dialogue.session.decrypted
    inner = dialogue.legs[1].marks
    assert inner[M.PROXY_READY].at <= inner[M.CLIENT_HELLO].at < inner[M.TLS_FINISHED].at
    assert M.CLIENT_HELLO not in dialogue.legs[0].marks


def test_tls_inside_a_connect_tunnel_without_keys_is_left_to_the_grammar() -> None:
    dialogue = through_a_proxy(converse(bulk_bytes=512), b"")
    assert dialogue.legs[1].keyless is not None
    client, server = dialogue.legs[1].keyless
    assert (client[0].content_type, server[0].content_type) == (22, 22)
    assert dialogue.session is not None
    assert not dialogue.session.decrypted


def test_the_handshake_with_a_proxy_is_part_of_asking_it() -> None:
    pair = Pair().handshake()
    for side, octets_sent in (("client", CONNECT), ("server", ESTABLISHED), ("client", GET), ("server", OK)):
        pair.send(side, octets_sent)
    dialogue = listen_tls(
        pair.from_client.records, pair.from_server.records, keylog=parse_keylog(pair.keylog_text), server_port=3128
    )
    assert paths(dialogue) == [[("CONNECT", None, 200)], [("GET", "/inside", 200)]]
    outside, inside = (leg.marks for leg in dialogue.legs)
    assert inside[M.PROXY_ASKED] == outside[M.CLIENT_HELLO]
    assert inside[M.PROXY_READY].at > outside[M.TLS_FINISHED].at
    assert M.CLIENT_HELLO not in inside


def in_data(stream_id: int, pieces: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    return [(at, h2_bytes.frame(h2_bytes.DATA, 0, stream_id, piece)) for at, piece in pieces]


def asks_for(*targets: str) -> tuple[list[tuple[float, bytes]], list[tuple[float, bytes]]]:
    """CONNECT to each over HTTP/2, 1,000 ms apart, answered after 10."""
    requests, answers = h2_bytes.Headers(), h2_bytes.Headers()
    client, server = [(0.0, h2_bytes.PREFACE + h2_bytes.settings())], [(0.0, h2_bytes.settings())]
    for place, target in enumerate(targets):
        fields = [(":method", "CONNECT"), (":authority", target)]
        client.append((1000 * place + 1, requests.frame(2 * place + 1, fields)))
        server.append((1000 * place + 11, answers.frame(2 * place + 1, [(":status", "200")])))
    return client, server


def test_tls_inside_a_tunnel_of_http2_with_keys() -> None:
    talk = converse(bulk_bytes=512)
    client, server = asks_for("target.example:443")
    client += in_data(1, octets(talk.client, 20))
    server += in_data(1, octets(talk.server, 25))
    dialogue = heard(stream(*client), stream(*server), keylog=talk.keylog, port=3128)
    assert [[m for m, *_ in leg] for leg in paths(dialogue)] == [["CONNECT"], ["GET"]]
    assert (dialogue.proxied, dialogue.legs[1].later) == ("connect", False)
    assert dialogue.session is not None
    assert dialogue.session.decrypted
    inner = dialogue.legs[1].marks
    assert (inner[M.PROXY_ASKED].at, inner[M.PROXY_READY].at) == (1 * MS, 11 * MS)
    assert inner[M.PROXY_READY].at <= inner[M.CLIENT_HELLO].at < inner[M.TLS_FINISHED].at


def test_tunnels_of_one_http2_connection_are_each_a_layer_of_their_own() -> None:
    talk = converse(bulk_bytes=512)
    client, server = asks_for("one.example:443", "target.example:80")
    client += in_data(1, octets(talk.client, 20)) + in_data(3, [(1020, GET)])
    server += in_data(1, octets(talk.server, 25)) + in_data(3, [(1030, OK)])
    client.sort(key=lambda piece: piece[0])
    server.sort(key=lambda piece: piece[0])
    dialogue = heard(stream(*client), stream(*server), port=3128)
    connects, sealed, clear = dialogue.legs
    assert [(t.method, t.authority) for t in connects.turns] == [
        ("CONNECT", "one.example:443"),
        ("CONNECT", "target.example:80"),
    ]
    assert sealed.keyless is not None
    assert [(t.method, t.path, t.status) for t in clear.turns] == [("GET", "/inside", 200)]
    assert [(leg.later, leg.server_name is not None) for leg in (sealed, clear)] == [(False, True), (True, True)]
    assert clear.server_name == "target.example"
    assert clear.marks[M.PROXY_ASKED].at == 1001 * MS
    assert (dialogue.session, dialogue.http_version) == (None, "h2")  # the proxy's: in clear, HTTP/2


def test_http_inside_socks5() -> None:
    greeting, asked = b"\5\1\0", b"\5\1\0\3\x0etarget.example\1\xbb"
    agreed, granted = b"\5\0", b"\5\0\0\1\0\0\0\0\0\0"
    dialogue = heard(stream((0, greeting), (20, asked), (40, GET)), stream((10, agreed), (30, granted), (50, OK)))
    assert paths(dialogue) == [[("GET", "/inside", 200)]]
    assert dialogue.proxied == "socks5"
    marks = dialogue.legs[0].marks
    assert (marks[M.PROXY_ASKED].at, marks[M.PROXY_READY].at) == (0, 30 * MS)


def test_smtp_that_turns_to_tls_is_described_but_has_no_requests() -> None:
    talk = converse(bulk_bytes=512)
    client = stream((10, "EHLO me\r\n"), (30, "STARTTLS\r\n"), *octets(talk.client, 50))
    server = stream(
        (0, "220 mail.example ESMTP\r\n"), (20, "250 STARTTLS\r\n"), (40, "220 go\r\n"), *octets(talk.server, 60)
    )
    dialogue = heard(client, server, port=25)
    assert dialogue.application == "smtp"
    assert dialogue.session is not None
    assert dialogue.session.version == "TLSv1.3"
    assert all(not leg.turns and leg.keyless is None for leg in dialogue.legs)


def test_an_upgrade_to_http2_keeps_both_answers() -> None:
    upgrade = head(
        """
        GET /a HTTP/1.1
        Host: target.example
        Connection: Upgrade, HTTP2-Settings
        Upgrade: h2c
        HTTP2-Settings: AAMAAABkAAQAAP__
        """
    )
    switching = head("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade\nUpgrade: h2c")
    settings_frame = bytes.fromhex("000000040000000000")
    response = bytes.fromhex("000001010500000001") + b"\x88"
    client = stream((0, upgrade), (20, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings_frame))
    dialogue = heard(client, stream((10, switching + settings_frame), (30, response)), port=80)
    assert [(t.stream_id, t.path, t.status) for t in dialogue.legs[0].turns] == [(None, "/a", 101), (1, "/a", 200)]
    assert dialogue.legs[0].upgraded
    assert dialogue.http_version == "h2"


def test_a_websocket_is_named() -> None:
    ask = head(
        "GET /chat HTTP/1.1\nHost: a\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Key: x\nSec-WebSocket-Version: 13"
    )
    agree = head("HTTP/1.1 101 Switching Protocols\nUpgrade: websocket\nConnection: Upgrade")
    dialogue = heard(stream((0, ask), (20, b"\x81\x80abcd")), stream((10, agree), (30, b"\x81\0")), port=80)
    assert paths(dialogue) == [[("GET", "/chat", 101)]]
    assert dialogue.application == "websocket"


def test_names_asked_for_over_tcp() -> None:
    framed = [len(m).to_bytes(2, "big") + m for m in (message("a.example"), answer("a.example"))]
    dialogue = heard(stream((0, framed[0])), stream((5, framed[1])), port=53)
    assert dialogue.application == "dns"
    assert [m.message.response for m in dialogue.dns_messages] == [False, True]


def test_what_nobody_knows_is_unknown() -> None:
    dialogue = heard(stream((0, b"\0\1\2\3 nothing known")), stream((5, b"\xff\xfe")), port=9)
    assert (dialogue.application, dialogue.http_version, dialogue.legs) == (None, None, [])


def test_octets_missing_from_the_capture_are_told_to_the_exchanges() -> None:
    client = stream((0, GET), (10, -1), (20, GET))
    dialogue = heard(client, stream((5, OK)), port=80)
    assert dialogue.legs[0].gaps


def test_records_known_already_are_heard_the_same() -> None:
    talk = converse(bulk_bytes=512)
    dialogue = listen_tls(talk.client, talk.server, keylog=parse_keylog(talk.keylog), server_port=443)
    assert [[m for m, *_ in leg] for leg in paths(dialogue)] == [["GET"]]
    assert packet_at(0) == 1


def test_a_handshake_that_failed_is_kept_although_keys_open_it() -> None:
    talk = converse(bulk_bytes=512)
    alert = [r for r in talk.client if r.content_type == 22][:1]
    dialogue = listen_tls(alert, talk.server[:3], keylog=parse_keylog(talk.keylog), server_port=443)
    (leg,) = dialogue.legs
    assert M.CLIENT_HELLO in leg.marks
    assert M.TLS_FINISHED not in leg.marks


SEEDS = [
    (CONNECT + GET, ESTABLISHED + OK),
    (GET + GET, OK + OK),
    (b"\5\1\0\5\1\0\3\x01a\1\xbb" + GET, b"\5\0\5\0\0\1\0\0\0\0\0\0" + OK),
    (b"EHLO a\r\nSTARTTLS\r\n\x16\3\1\0\5\1\0\0\1\0", b"220 a ESMTP\r\n\x16\3\3\0\5\2\0\0\1\0"),
]


@given(st.sampled_from(SEEDS), st.integers(0, 2**32), st.integers(0, 2**32), st.integers(1, 65_535))
@settings(max_examples=150)
def test_damaged_octets_never_raise(seed: tuple[bytes, bytes], a: int, b: int, port: int) -> None:
    client, server = mutate(seed[0], a), mutate(seed[1], b)
    half = len(server) // 2
    dialogue = heard(stream((0, client)), stream((5, server[:half]), (9, server[half:])), port=port)
    assert isinstance(dialogue.legs, list)


def test_names_asked_for_over_tls() -> None:
    """RFC 7858: told by its port without keys, by what is inside with them."""
    talk = converse(bulk_bytes=512)
    closed = listen_tls(talk.client, talk.server, keylog=None, server_port=853)
    assert closed.application == "dns-over-tls"
    assert listen_tls(talk.client, talk.server, keylog=None, server_port=443).application is None


def test_names_asked_for_over_https_are_told_by_their_media_type() -> None:
    ask = head("POST /dns-query HTTP/1.1\nHost: dns.example\nContent-Type: application/dns-message\nContent-Length: 4")
    agree = head("HTTP/1.1 200 OK\nContent-Type: application/dns-message\nContent-Length: 2") + b"ok"
    assert heard(stream((0, ask + b"abcd")), stream((5, agree))).application == "dns-over-https"
    assert heard(stream((0, GET)), stream((5, OK))).application is None


BALANCED = b"PROXY TCP4 198.51.100.7 203.0.113.5 51000 443\r\n"


def test_a_load_balancer_says_for_whom_it_speaks() -> None:
    dialogue = heard(stream((0, BALANCED + GET)), stream((5, OK)), port=80)
    assert paths(dialogue) == [[("GET", "/inside", 200)]]
    assert str(dialogue.origin) == "198.51.100.7:51000"
    assert heard(stream((0, GET)), stream((5, OK)), port=80).origin is None


def test_tls_behind_a_load_balancers_header() -> None:
    talk = converse(bulk_bytes=512)
    client = stream((0, BALANCED), *octets(talk.client, 1))
    dialogue = heard(client, stream(*octets(talk.server, 2)), keylog=talk.keylog)
    assert str(dialogue.origin) == "198.51.100.7:51000"
    assert dialogue.session is not None
    assert dialogue.session.decrypted
