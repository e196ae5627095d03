"""The first octets of a stream, looked at and left for the decoder."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netdiag.analysis.peek import Peeked
from tests.support.http_bytes import octet_by_octet, stream

TEXT = bytes(range(200))


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.integers(1, 80))
def test_nothing_is_taken_and_the_prefix_is_the_beginning(pieces: list[bytes], enough: int) -> None:
    chunks = stream(*enumerate(pieces))
    peeked = Peeked(chunks, enough)
    assert peeked.prefix == b"".join(pieces)[:enough]
    assert list(peeked) == chunks


def test_only_as_much_is_read_as_it_takes() -> None:
    rest = iter(octet_by_octet(stream((0, TEXT))))
    assert Peeked(rest, 10).prefix == TEXT[:10]
    assert next(rest).data == TEXT[10:11]


def test_a_prefix_does_not_reach_over_a_gap() -> None:
    peeked = Peeked(stream((0, b"abc"), (1, 5), (2, b"def")))
    assert peeked.prefix == b"abc"
    assert not peeked.gaps
    assert b"".join(chunk.data for chunk in peeked) == b"abcdef"
    assert peeked.gaps


def test_a_capture_that_began_late_has_no_gap_for_that() -> None:
    peeked = Peeked(stream((0, 5), (1, b"abc")))
    assert (peeked.late, peeked.prefix) == (True, b"abc")
    assert len(list(peeked)) == 1
    assert not peeked.gaps


def test_a_silent_direction() -> None:
    peeked = Peeked([])
    assert (peeked.prefix, peeked.first, peeked.late) == (b"", None, False)
