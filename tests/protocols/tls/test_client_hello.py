"""The ClientHello, whole, damaged and in SSL 2.0 framing."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.tls.client_hello import client_hello, offered_versions, ssl2_client_hello
from tests.support.hello_bytes import RANDOM, alpn, client_octets, extension, key_share, parsed, sni, vector
from tests.support.tls_peers import Settings, converse


def test_everything_a_client_hello_says() -> None:
    hello = parsed(
        client_octets(
            sni(b"www.example.org"),
            alpn(b"h2", b"\x1a\x1a", b"http/1.1"),
            extension(43, vector(bytes.fromhex("0a0a03040303"), 1)),
            extension(10, vector(bytes.fromhex("1a1a11ec001d"))),
            key_share(0x2A2A, 0x11EC, 0x001D),
            extension(0xFE0D, b"ech"),
            extension(42, b""),
            extension(35, b"ticket"),
            extension(41, bytes(40)),
        )
    )
    assert hello.damage is None
    assert (hello.random, hello.session_id) == (RANDOM, b"session")
    assert hello.suite_numbers == (0x1301, 0x1302)
    assert hello.server_name == "www.example.org"
    assert hello.alpn == ("h2", "http/1.1"), "GREASE is dropped"
    assert hello.versions == (0x0304, 0x0303)
    assert hello.groups == (0x11EC, 0x001D)
    assert hello.key_shares == (0x11EC, 0x001D)
    assert (hello.offers_ech, hello.offers_early_data, hello.offers_psk) == (True, True, True)
    assert hello.ticket == b"ticket"


def test_a_hello_without_extensions() -> None:
    hello = parsed(client_octets(version=0x0300))
    assert hello.damage is None
    assert (hello.server_name, hello.alpn, hello.versions) == (None, (), ())
    assert offered_versions(hello) == (0x0300,)


@pytest.mark.parametrize(
    ("body", "damage"),
    [
        (client_octets()[:36], "session id"),
        (client_octets()[:45], "cipher suites"),
        (client_octets(sni(b"a"))[:-1], "are left"),
        (client_octets(sni(b"a")) + b"x", "claim"),
        (client_octets()[:-1] + b"\0\1", "length of the extensions"),
        (client_octets(sni(b"a") + b"\0\0\0"), "after the last extension"),
    ],
)
def test_a_damaged_hello_keeps_what_comes_before(body: bytes, damage: str) -> None:
    hello = parsed(body)
    assert hello.damage is not None
    assert damage in hello.damage
    assert hello.random == RANDOM


def test_an_ssl2_compatible_client_hello() -> None:
    specs = b"\0\x00\x2f\0\x00\x0a\x07\x00\xc0"
    message = b"\x01\x03\x01" + struct.pack(">HHH", len(specs), 0, 16) + specs + bytes(range(16))
    hello = ssl2_client_hello(message)
    assert hello is not None
    assert (hello.legacy_version, hello.suite_numbers) == (0x0301, (0x002F, 0x000A))
    assert hello.random == bytes(16) + bytes(range(16))
    assert ssl2_client_hello(message[:-1]) is None
    assert ssl2_client_hello(b"\x02" + message[1:]) is None


def _mutated(seed: bytes, edits: list[tuple[int, int]], cut: int) -> bytes:
    data = bytearray(seed)
    for at, octet in edits:
        data[at % len(data)] = octet
    return bytes(data[: len(data) - cut % len(data)] if cut else data)


_EDITS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 255)), max_size=6)
_REAL = converse(Settings(alpn=(b"h2",))).client[0].fragment()[4:]


@given(_EDITS, st.integers(0, 400))
def test_mutated_client_hellos(edits: list[tuple[int, int]], cut: int) -> None:
    hello = client_hello(_mutated(_REAL, edits, cut))
    if hello is not None:
        facts = (hello.server_name, hello.alpn, hello.versions, hello.groups, hello.key_shares, hello.suite_numbers)
        assert len(facts) == 6
        assert len(hello.random) == 32
