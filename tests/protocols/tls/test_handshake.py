"""Hello parsers: what is there is read, hostile lengths end a message and nothing else."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.tls.assembler import LARGEST_MESSAGE, Assembler, message_header
from netdiag.protocols.tls.client_hello import ClientHello, client_hello, offered_versions, ssl2_client_hello
from netdiag.protocols.tls.handshake import certificates, encrypted_extensions, key_exchange_group
from netdiag.protocols.tls.server_hello import HELLO_RETRY_RANDOM, draft_hello_retry_request, server_hello
from tests.support.tls_peers import Settings, converse

RANDOM = bytes(range(32))


def vector(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(data)


def sni(name: bytes) -> bytes:
    return extension(0, vector(b"\0" + vector(name)))


def alpn(*names: bytes) -> bytes:
    return extension(16, vector(b"".join(vector(n, 1) for n in names)))


def key_share(*groups: int) -> bytes:
    return extension(51, vector(b"".join(g.to_bytes(2, "big") + vector(bytes(32)) for g in groups)))


def client_octets(*extensions: bytes, version: int = 0x0303, suites: bytes = b"\x13\x01\x13\x02") -> bytes:
    body = version.to_bytes(2, "big") + RANDOM + vector(b"session", 1) + vector(suites) + vector(b"\0", 1)
    return body + (vector(b"".join(extensions)) if extensions else b"")


def server_octets(*extensions: bytes, version: int = 0x0303, random: bytes = RANDOM) -> bytes:
    return version.to_bytes(2, "big") + random + vector(b"id", 1) + b"\x13\x01\0" + vector(b"".join(extensions))


def parsed(body: bytes) -> ClientHello:
    hello = client_hello(body)
    assert hello is not None
    return hello


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


def test_an_extension_that_claims_too_much_does_not_hide_those_before_it() -> None:
    body = client_octets(sni(b"seen.example"), extension(99, b"")[:2] + b"\xff\xff")
    assert parsed(body).server_name == "seen.example"


def test_of_two_equal_extensions_the_first_counts() -> None:
    assert parsed(client_octets(sni(b"first"), sni(b"second"))).server_name == "first"


@pytest.mark.parametrize("name", [b"\x1b]0;x\x07", b"a\0b", "bücher".encode(), b"\xff" * 10])
def test_hostile_names_are_shown_escaped(name: bytes) -> None:
    shown = parsed(client_octets(sni(name), alpn(name))).server_name
    assert shown is not None
    assert shown.isascii()


def test_server_hello_and_hello_retry_request() -> None:
    body = server_octets(
        extension(43, b"\x03\x04"), extension(51, b"\x11\xec" + vector(bytes(32))), extension(41, b"\0\0")
    )
    hello = server_hello(body)
    assert hello is not None
    assert (hello.version, hello.suite, hello.group, hello.selected_psk, hello.retry) == (
        0x0304,
        0x1301,
        0x11EC,
        True,
        False,
    )
    retry = server_hello(server_octets(extension(51, b"\0\x17"), random=HELLO_RETRY_RANDOM))
    assert retry is not None
    assert (retry.retry, retry.group) == (True, 0x17)
    assert HELLO_RETRY_RANDOM.hex().startswith("cf21ad74e59a6111be1d8c021e65b891")


def test_draft_hellos_had_neither_session_id_nor_compression() -> None:
    body = b"\x7f\x13" + RANDOM + b"\x13\x02" + vector(extension(40, b"\0\x1d" + vector(bytes(32))))
    hello = server_hello(body)
    assert hello is not None
    assert (hello.version, hello.suite, hello.group, hello.damage) == (0x7F13, 0x1302, 0x1D, None)
    retry = draft_hello_retry_request(b"\x7f\x13\x13\x01" + vector(extension(40, b"\0\x17")))
    assert retry is not None
    assert (retry.retry, retry.suite, retry.group) == (True, 0x1301, 0x17)
    before19 = draft_hello_retry_request(b"\x7f\x12" + vector(extension(40, b"\0\x17")))
    assert before19 is not None
    assert (before19.suite, before19.group) == (None, 0x17)


def test_an_ssl2_compatible_client_hello() -> None:
    specs = b"\0\x00\x2f\0\x00\x0a\x07\x00\xc0"
    message = b"\x01\x03\x01" + struct.pack(">HHH", len(specs), 0, 16) + specs + bytes(range(16))
    hello = ssl2_client_hello(message)
    assert hello is not None
    assert (hello.legacy_version, hello.suite_numbers) == (0x0301, (0x002F, 0x000A))
    assert hello.random == bytes(16) + bytes(range(16))
    assert ssl2_client_hello(message[:-1]) is None
    assert ssl2_client_hello(b"\x02" + message[1:]) is None


def test_server_key_exchange_groups() -> None:
    assert key_exchange_group(b"\x03\x00\x1drest", "ECDHE_RSA") == 0x1D
    assert key_exchange_group(b"\x01explicit", "ECDHE_RSA") is None
    assert key_exchange_group(vector(b"hint") + b"\x03\x00\x17", "ECDHE_PSK") == 0x17
    assert key_exchange_group(vector(b"\x7f" + bytes(127)), "DHE_RSA") == "dh-1023"
    assert key_exchange_group(vector(b"\x7f" + bytes(127))[:50], "DHE_RSA") is None
    assert key_exchange_group(b"", "RSA") is None


def test_certificates_of_both_kinds() -> None:
    chain = [b"leaf", b"issuer"]
    old = vector(b"".join(vector(c, 3) for c in chain), 3)
    new = vector(b"", 1) + vector(b"".join(vector(c, 3) + vector(b"ext") for c in chain), 3)
    assert certificates(old, version=0x0303) == chain
    assert certificates(new, version=0x0304) == chain
    assert certificates(old[:-1], version=0x0303) == chain[:1]
    assert certificates(b"", version=0x0304) == []


# -- messages out of records ---------------------------------------------------------------------------------------------------------------

HELLOS = [converse(Settings(alpn=(b"h2",))).client[0].fragment(), b"\x0e\0\0\0", b"\x0b\0\1\0" + bytes(256)]


@given(st.lists(st.integers(0, 2_000), max_size=12))
def test_messages_do_not_depend_on_where_records_cut_them(cuts: list[int]) -> None:
    stream = b"".join(HELLOS)
    edges = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    assembler = Assembler()
    found = []
    for start, end in pairwise(edges):
        found += list(assembler.feed(stream[start:end]))
    assert [message_header(kind, body) + body for kind, body in found] == HELLOS
    assert not assembler.partial


def test_a_message_remembers_the_record_it_began_in() -> None:
    assembler = Assembler()
    assert list(assembler.feed(HELLOS[0][:10], "first")) == []
    for _, _ in assembler.feed(HELLOS[0][10:] + HELLOS[1], "second"):
        break
    assert assembler.started == "first"


def test_a_hostile_length_stops_at_once() -> None:
    assembler = Assembler()
    assert list(assembler.feed(b"\x01\xff\xff\xff" + bytes(100))) == []
    assert assembler.damage == "handshake message of type 1 claims 16777215 octets"
    assert list(assembler.feed(HELLOS[0])) == []
    assembler.reset()
    assert len(list(assembler.feed(HELLOS[0]))) == 1


def test_the_largest_message_in_single_octets_takes_linear_time() -> None:
    assembler = Assembler()
    message = message_header(11, bytes(LARGEST_MESSAGE)) + bytes(LARGEST_MESSAGE)
    found = [m for at in range(len(message)) for m in assembler.feed(message[at : at + 1])]
    assert [(kind, len(body)) for kind, body in found] == [(11, LARGEST_MESSAGE)]


# -- mutation ------------------------------------------------------------------------------------------------------------------------------


def _mutated(seed: bytes, edits: list[tuple[int, int]], cut: int) -> bytes:
    data = bytearray(seed)
    for at, octet in edits:
        data[at % len(data)] = octet
    return bytes(data[: len(data) - cut % len(data)] if cut else data)


_EDITS = st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 255)), max_size=6)


@given(_EDITS, st.integers(0, 400))
def test_mutated_client_hellos(edits: list[tuple[int, int]], cut: int) -> None:
    hello = client_hello(_mutated(HELLOS[0][4:], edits, cut))
    if hello is not None:
        facts = (hello.server_name, hello.alpn, hello.versions, hello.groups, hello.key_shares, hello.suite_numbers)
        assert len(facts) == 6
        assert len(hello.random) == 32


@given(st.binary(max_size=300), st.sampled_from([0x0303, 0x0304, 0x7F13]))
def test_any_octets_in_every_other_parser(data: bytes, version: int) -> None:
    for read in (client_hello, server_hello, draft_hello_retry_request, ssl2_client_hello):
        hello = read(version.to_bytes(2, "big") + data)
        assert hello is None or len(hello.random) == 32
    assert all(isinstance(one, bytes) for one in certificates(data, version=version))
    assert isinstance(encrypted_extensions(data), dict)
    for exchange in ("ECDHE_RSA", "DHE_RSA", "ECDHE_PSK", "RSA", ""):
        group = key_exchange_group(data, exchange)
        assert group is None or isinstance(group, int | str)
