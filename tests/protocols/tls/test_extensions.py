"""Extensions of the hellos."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.tls.extensions import (
    chosen_protocol,
    extension_block,
    key_share_groups,
    numbers,
    protocol_names,
    read_block,
    server_name,
)
from tests.support.hello_bytes import alpn, client_octets, extension, parsed, sni, vector


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


@given(st.dictionaries(st.integers(0, 65_535), st.binary(max_size=20), max_size=8))
def test_a_block_is_read_as_it_was_written(extensions: dict[int, bytes]) -> None:
    octets = b"".join(extension(kind, data) for kind, data in extensions.items())
    assert read_block(octets, 0, len(octets)) == (extensions, None)
    assert extension_block(vector(octets), 0) == (extensions, None)


@given(st.lists(st.tuples(st.integers(0, 65_535), st.binary(max_size=20)), min_size=1, max_size=6), st.data())
def test_a_cut_block_yields_the_extensions_before_the_cut(
    extensions: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    octets = b"".join(extension(kind, value) for kind, value in extensions)
    cut = data.draw(st.integers(1, len(octets) - 1))
    found, damage = read_block(octets, 0, cut)
    whole = list(itertools.takewhile(lambda end: end <= cut, itertools.accumulate(4 + len(v) for _, v in extensions)))
    before = extensions[: len(whole)]
    assert found == dict(reversed(before))
    assert (damage is None) == (cut in whole)


@given(st.binary(max_size=80))
def test_any_octets_in_every_reader(data: bytes) -> None:
    """Nothing raises, and names are fit to be shown."""
    shown = (server_name(data) or "", *protocol_names(data))
    assert all(name.isascii() for name in shown)
    read = (*numbers(data, prefix=1), *numbers(data, prefix=2), *key_share_groups(data))
    assert all(0 <= number <= 65_535 for number in read)


def test_vectors_of_numbers_end_with_their_length() -> None:
    assert numbers(b"\x04\x03\x04\x03\x03\xff\xff", prefix=1) == (0x0304, 0x0303)
    assert numbers(b"\x00\x05\x00\x1d\x00\x17\x00", prefix=2) == (29, 23)


def test_grease_is_no_protocol() -> None:
    """RFC 8701 section 4.1."""
    assert protocol_names(vector(b"\x02\x1a\x1a\x02h2")) == ("h2",)
    assert chosen_protocol({16: vector(b"\x02h2")}) == "h2"
    assert chosen_protocol({}) is None
