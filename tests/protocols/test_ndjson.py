"""JSON, a value a line."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.ndjson import JsonLines
from netdiag.protocols.sse import LineSplitter

STREAM = b'{"a": 1}\n\n\x1e{"b": 2}\r\n  {"c": 3}\t\nno end yet'


def values(*pieces: bytes) -> list[bytes | None]:
    lines = JsonLines()
    return [value for piece in pieces for value, _ in lines.feed(piece)]


def test_values_without_line_ends_blanks_and_record_separators() -> None:
    """RFC 7464 puts a record separator before each; an empty line is a keep-alive."""
    assert values(STREAM) == [b'{"a": 1}', b"", b'{"b": 2}', b'{"c": 3}']


@given(st.lists(st.integers(0, len(STREAM)), max_size=8).map(sorted))
def test_cutting_the_stream_differently_gives_the_same_values(cuts: list[int]) -> None:
    edges = [0, *cuts, len(STREAM)]
    pieces = [STREAM[low:high] for low, high in itertools.pairwise(edges)]
    assert values(*pieces) == values(STREAM)


@given(st.lists(st.binary(max_size=30), max_size=6))
def test_octets_are_counted_with_their_line_ends(pieces: list[bytes]) -> None:
    lines, plain = JsonLines(), LineSplitter()
    for piece in pieces:
        assert [size for _, size in lines.feed(piece)] == [size for _, size in plain.feed(piece)]
