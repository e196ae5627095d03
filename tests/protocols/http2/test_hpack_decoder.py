"""HPACK against the RFC's examples and the hpack library, and with its history lost."""

from __future__ import annotations

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.http2.hpack_decoder import FieldBlock, HpackDecoder, HpackError

Pair = tuple[bytes, bytes]


def decoder(
    *, history_complete: bool = True, max_fields: int = 1000, max_list_bytes: int = 1 << 16
) -> HpackDecoder[Pair, FieldBlock[Pair]]:
    return HpackDecoder(
        lambda name, value: (name, value),
        lambda block: block,
        history_complete=history_complete,
        max_fields=max_fields,
        max_list_bytes=max_list_bytes,
    )


def test_rfc_7541_appendix_c6_responses_with_huffman_and_eviction() -> None:
    fields = decoder()
    encoder = hpack.Encoder()
    encoder.header_table_size = 256
    sections = [
        [
            (b":status", b"302"),
            (b"cache-control", b"private"),
            (b"date", b"Mon, 21 Oct 2013 20:13:21 GMT"),
            (b"location", b"https://www.example.com"),
        ],
        [
            (b":status", b"307"),
            (b"cache-control", b"private"),
            (b"date", b"Mon, 21 Oct 2013 20:13:21 GMT"),
            (b"location", b"https://www.example.com"),
        ],
        [
            (b":status", b"200"),
            (b"cache-control", b"private"),
            (b"date", b"Mon, 21 Oct 2013 20:13:22 GMT"),
            (b"location", b"https://www.example.com"),
        ],
    ]
    for section in sections:
        assert list(fields.decode(encoder.encode(section)).fields) == section


def test_rfc_7541_appendix_c4_octets() -> None:
    fields = decoder()
    first = bytes.fromhex("828684418cf1e3c2e5f23a6ba0ab90f4ff")
    second = bytes.fromhex("828684be5886a8eb10649cbf")
    assert fields.decode(first).fields == (
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/"),
        (b":authority", b"www.example.com"),
    )
    assert fields.decode(second).fields[-2:] == ((b":authority", b"www.example.com"), (b"cache-control", b"no-cache"))


_names = st.sampled_from([b":path", b"user-agent", b"cookie", b"x-a", b"content-type", b"accept", b"etag"]) | st.binary(
    min_size=1, max_size=12
).map(bytes.lower)
_sections = st.lists(
    st.tuples(_names, st.binary(max_size=40) | st.sampled_from([b"", b"1", b"text/html", b"gzip, deflate"])), max_size=8
)


@given(
    st.lists(st.tuples(_sections, st.booleans(), st.sampled_from([None, None, None, 0, 64, 200, 4096])), max_size=12)
)
def test_every_encoding_of_the_library_decodes_to_the_same_fields(
    steps: list[tuple[list[Pair], bool, int | None]],
) -> None:
    encoder, reference, ours = hpack.Encoder(), hpack.Decoder(), decoder()
    reference.max_allowed_table_size = 4096
    for section, huffman, table_size in steps:
        if table_size is not None:
            encoder.header_table_size = table_size
        block = encoder.encode(section, huffman=huffman)
        expected = tuple((h[0], h[1]) for h in reference.decode(block, raw=True))
        assert ours.decode(block).fields == expected


@given(st.binary(max_size=60), st.booleans())
def test_random_blocks_decode_like_the_library_or_fail_as_hpack_errors(block: bytes, again: bool) -> None:
    ours, reference = decoder(), hpack.Decoder()
    for _ in range(1 + again):
        try:
            expected = tuple((h[0], h[1]) for h in reference.decode(block, raw=True))
        except hpack.HPACKError:
            expected = None
        except Exception:  # the library itself breaks on some octets
            return
        try:
            found = ours.decode(block)
        except HpackError:
            # What the library refuses for its place or its size (a late size update, a table above 4096) may be read, never the reverse.
            assert expected is None
            return
        if expected is not None:
            assert found.fields == expected


def test_what_is_known_of_a_connection_that_began_earlier() -> None:
    encoder = hpack.Encoder()
    encoder.encode([("x-old", "1"), ("authorization", "secret")])  # not captured
    ours = decoder(history_complete=False)
    block = encoder.encode(
        [(":method", "GET"), (":path", "/new"), ("x-old", "1"), ("authorization", "secret"), ("x-new", "2")]
    )
    first = ours.decode(block)
    assert first.incomplete
    assert first.fields == ((b":method", b"GET"), (b":path", b"/new"), (b"x-new", b"2"))
    second = ours.decode(encoder.encode([(":method", "GET"), (":path", "/new"), ("x-new", "2")]))
    assert not second.incomplete
    assert second.fields == ((b":method", b"GET"), (b":path", b"/new"), (b"x-new", b"2"))


def test_a_block_that_was_lost_takes_the_dynamic_table_with_it() -> None:
    encoder, ours = hpack.Encoder(), decoder()
    ours.decode(encoder.encode([("x-a", "1")]))
    encoder.encode([("x-b", "2")])  # lost
    ours.lose_history()
    block = ours.decode(encoder.encode([("x-a", "1"), (":status", "200")]))
    assert block.fields == ((b":status", b"200"),)
    assert block.incomplete


def test_an_unknown_index_fails_only_when_history_is_complete() -> None:
    ours = decoder()
    with pytest.raises(HpackError, match="index 62"):
        ours.decode(b"\xbe")
    assert ours.decode(b"\xbe\x88").fields == ((b":status", b"200"),)


def test_thousands_of_references_to_one_large_entry_stay_within_the_limits() -> None:
    ours = decoder(max_list_bytes=64 << 10)
    large = b"\x40\x01a" + b"\x7f\xa1\x1e" + b"v" * 4000
    block = ours.decode(large + b"\xbe" * 16_000)
    assert block.over_limit
    assert sum(len(n) + len(v) + 32 for n, v in block.fields) <= 64 << 10
    assert ours.decode(b"\xbe").fields[0][1] == b"v" * 4000


def test_empty_fields_are_counted() -> None:
    block = decoder(max_fields=1000).decode(b"\x00\x01a\x00" * 5000)
    assert len(block.fields) == 1000
    assert block.over_limit


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (b"\x80", "index 0"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", "too large"),
        (b"\x40\x05ab", "longer than"),
        (b"\x40", "ends early"),
        (b"\x3f\xff\xff\xff\x7f", "table size"),
    ],
)
def test_broken_blocks_name_what_is_wrong(block: bytes, reason: str) -> None:
    with pytest.raises(HpackError, match=reason):
        decoder().decode(block)
