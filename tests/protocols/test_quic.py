"""QUIC handshakes: Initial packets sealed here with the keys that RFC 9001 and RFC 9369 print, opened from the connection id alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.quic import QuicConnection, QuicDatagram, is_quic, observe
from netdiag.protocols.quic_packet import version_name
from netdiag.records.endpoint import Endpoint
from tests.support.http_bytes import MS, mutate
from tests.support.quic_bytes import (
    ID,
    V1,
    V2,
    client_hello,
    crypto,
    derived,
    initial,
    long_packet,
    server_hello,
)

CLIENT, SERVER = Endpoint("192.0.2.10", 50000), Endpoint("192.0.2.1", 443)
# RFC 9001 appendix A.1 and RFC 9369 appendix A.1: key, iv, header protection key, for the connection id above.
KEYS = {
    (V1, 0): ("1f369613dd76d5467730efcbe3b1a22d", "fa044b2f42a3fd3b46fb255c", "9f50449e04a0e810283a1e9933adedd2"),
    (V1, 1): ("cf3a5331653c364c88f0f379b6067e37", "0ac1493ca1905853b0bba03e", "c206b8d9b9f0f37644430b490eeaa314"),
    (V2, 0): ("8b1a0bc121284290a29e0971b5cd045d", "91f73e2351d8fa91660e909f", "45b95e15235d6f45a6b19cbcb0294ba9"),
    (V2, 1): ("82db637861d55e1d011f19ea71d5d2a7", "dd13c276499c0249d3310652", "edf6d05c83121201b436e16877593c3a"),
}


def sent(*datagrams: tuple[float, int, bytes]) -> list[QuicConnection]:
    return observe(
        QuicDatagram(data, *((CLIENT, SERVER) if side == 0 else (SERVER, CLIENT)), int(at_ms * MS), number)
        for number, (at_ms, side, data) in enumerate(datagrams, 1)
    )


@pytest.mark.parametrize(("version", "side"), list(KEYS))
def test_keys_are_those_of_the_rfcs(version: int, side: int) -> None:
    """Those with which the datagrams of these tests are sealed."""
    assert [key.hex() for key in derived(version, side, ID)] == list(KEYS[version, side])


def test_a_hello_in_googles_crypto_frame() -> None:
    frame = b"\x08" + crypto(0, client_hello())[1:]
    (connection,) = observe([QuicDatagram(initial(frame), CLIENT, SERVER, 0, 1)])
    assert connection.session().sni == "api.example.com"


@pytest.mark.parametrize("version", [V1, V2])
def test_names_and_times_of_a_handshake(version: int) -> None:
    (connection,) = sent(
        (0, 0, initial(crypto(0, client_hello()), version=version)),
        (
            30,
            1,
            initial(b"\2\0\0\0\0" + crypto(0, server_hello()), version=version, side=1)
            + long_packet("handshake", version=version),
        ),
        (31, 1, long_packet("handshake", version=version)),
        (33, 0, long_packet("handshake", version=version)),
        (34, 0, b"\x40" + b"s" * 40),
        (60, 1, b"\x40" + b"s" * 40),
    )
    session = connection.session()
    assert (session.sni, session.alpn_offered, session.version) == ("api.example.com", ("h3", "h2"), "TLSv1.3")
    assert (session.cipher_suite, session.group, session.resumed) == ("TLS_AES_128_GCM_SHA256", "x25519", False)
    assert (session.client_hello_at, session.server_hello_at, session.finished_at) == (0, 30 * MS, 33 * MS)
    assert (session.client_hello_packet, session.server_hello_packet, session.finished_method) == (1, 2, "grammar")
    assert connection.one_rtt_at == [34 * MS, 60 * MS]
    record = connection.record(7)
    assert (record.id, record.transport, record.client, record.server) == (7, "quic", CLIENT, SERVER)
    assert (record.client_known_by, record.sides.client.packets, record.sides.server.packets) == ("client-hello", 3, 3)


def test_a_hello_over_several_initials_in_any_order() -> None:
    hello = client_hello(padding=1500)
    parts = [hello[:700], hello[700:1100], hello[1100:]]
    frames = [crypto(0, parts[0]), crypto(700, parts[1]) + b"\1\0\0", crypto(1100, parts[2])]
    (connection,) = sent(*((i, 0, initial(frames[n], number=n)) for i, n in enumerate((2, 0, 1))))
    session = connection.session()
    assert (session.sni, session.client_hello_at, session.client_hello_packet) == ("api.example.com", 0, 3)


def test_the_server_is_known_even_when_it_is_seen_first() -> None:
    (connection,) = sent((0, 1, long_packet("handshake")), (5, 0, long_packet("handshake")))
    assert (connection.client, connection.server, connection.client_known_by) == (CLIENT, SERVER, "port")
    assert connection.session().sni is None
    assert connection.finished_at is None


def test_early_data_and_version_negotiation_are_noted() -> None:
    negotiation = b"\x80\0\0\0\0\4\1\2\3\4\x08" + ID + V2.to_bytes(4, "big")
    (connection,) = sent((0, 0, initial(crypto(0, client_hello())) + long_packet("0-rtt")), (20, 1, negotiation))
    assert connection.zero_rtt_at == 0
    assert connection.versions_refused == (V2,)


@pytest.mark.parametrize(("refused", "taken"), [(V2, V1), (V1, V2)])
def test_the_attempt_after_a_version_negotiation_is_the_one_that_counts(refused: int, taken: int) -> None:
    """It has another destination connection id, hence other keys, and may have another hello."""
    again = bytes.fromhex("00112233445566778899")
    negotiation = b"\x80\0\0\0\0\4\1\2\3\4\x08" + ID + taken.to_bytes(4, "big")
    (connection,) = sent(
        (0, 0, initial(crypto(0, client_hello("first.example")), version=refused)),
        (20, 1, negotiation),
        (21, 0, initial(crypto(0, client_hello("second.example")), version=taken, destination=again)),
        (45, 1, initial(crypto(0, server_hello()), version=taken, side=1, asked=again)),
        (46, 0, long_packet("handshake", version=taken) + b"\x40" + b"s" * 40),
    )
    session = connection.session()
    assert (connection.versions_refused, connection.version) == ((taken,), taken)
    assert (session.sni, session.client_hello_at, session.client_hello_packet) == ("second.example", 0, 3)
    assert (session.server_hello_at, session.finished_at) == (45 * MS, 46 * MS)


def test_a_version_negotiation_after_the_servers_hello_changes_nothing() -> None:
    """Anybody can send one (RFC 9000 section 6.2: a client that has the server's packets ignores it)."""
    negotiation = b"\x80\0\0\0\0\4\1\2\3\4\x08" + ID + V2.to_bytes(4, "big")
    (connection,) = sent(
        (0, 0, initial(crypto(0, client_hello()))),
        (20, 1, initial(crypto(0, server_hello()), side=1)),
        (30, 1, negotiation),
    )
    assert (connection.session().sni, connection.session().client_hello_packet) == ("api.example.com", 1)


def test_a_retry_changes_the_keys() -> None:
    """RFC 9001 section 5.2: they come from the connection id that the Retry names."""
    given = bytes.fromhex("ffeeddccbbaa99887766")
    (connection,) = sent(
        (0, 0, initial(crypto(0, client_hello()))),
        (20, 1, long_packet("retry")),
        (21, 0, initial(crypto(0, client_hello()), number=1, destination=given)),
        (45, 1, initial(crypto(0, server_hello()), side=1, asked=given)),
    )
    session = connection.session()
    assert (session.client_hello_packet, session.server_hello_packet, connection.retry_at) == (1, 4, 20 * MS)


def test_google_names_its_server_in_clear() -> None:
    sni = b"www.example.com"
    chlo = (
        b"CHLO\2\0\0\0"
        b"PAD\0" + (5).to_bytes(4, "little") + b"SNI\0" + (5 + len(sni)).to_bytes(4, "little") + b"-" * 5 + sni
    )
    (connection,) = sent((0, 0, b"\x09" + ID + b"Q043" + b"\1" + b"h" * 12 + b"\xa0\1" + chlo))
    assert (connection.session().sni, version_name(connection.version)) == ("www.example.com", "Q043")


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (initial(b""), True),
        (b"\xc0\xff\0\0\x1d\x08" + b"x" * 30, True),
        (b"\x40" + b"s" * 40, False),
        (b"", False),
        (b"\x12\x34\1\0\0\1\0\0\0\0\0\0\3www\0\0\1\0\1", False),
        (b"\x80\xc8\0\6" + b"r" * 24, False),
    ],
)
def test_is_quic(data: bytes, verdict: bool) -> None:
    assert is_quic(data) is verdict


def test_versions_have_names() -> None:
    assert [version_name(v) for v in (V1, V2, 0xFF00001D, 0x51303530, 0x1A2A3A4A)] == [
        "v1",
        "v2",
        "draft-29",
        "Q050",
        "0x1a2a3a4a",
    ]


@given(st.integers(0, 1 << 30))
def test_mutated_datagrams_raise_nothing(seed: int) -> None:
    hello = initial(crypto(0, client_hello()))
    answer = initial(crypto(0, server_hello()), side=1) + long_packet("handshake")
    datagrams = (hello, mutate(hello, seed)), (mutate(answer, seed), answer[: seed % len(answer)])
    found = sent(*((i, side, data) for side in (0, 1) for i, data in enumerate(datagrams[side], 2 * side)))
    assert 1 <= len(found) <= 4


@given(st.binary(max_size=80))
def test_frames_of_any_content_raise_nothing(frames: bytes) -> None:
    assert len(sent((0, 0, initial(frames)), (1, 1, initial(frames, side=1)))) == 1
