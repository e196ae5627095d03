"""Header blocks by kind against one after the other."""

from __future__ import annotations

import hpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.headers import make_field
from netdiag.protocols.http2.columns import blocks as h2_blocks
from netdiag.protocols.http2.hpack_decoder import HpackDecoder, HpackError
from netdiag.protocols.http2.section import assemble

_FIELDS = st.lists(
    st.tuples(st.sampled_from(["a", "bb", ":status"]), st.sampled_from(["1", "2", "long value"]), st.booleans()),
    max_size=3,
)


def said_by(decode: object, blocks: list[bytes], gaps: list[int]) -> list[object]:
    sections: list[object] = []

    def code(block: object) -> int:
        sections.append(assemble(block))  # type: ignore[arg-type]
        return len(sections) - 1

    data = b"".join(block + bytes(gap) for block, gap in zip(blocks, gaps, strict=True))
    sizes = np.array([len(block) for block in blocks], np.int64)
    starts = np.cumsum(sizes + np.array(gaps)) - sizes - np.array(gaps)
    codes = decode(HpackDecoder(make_field, code), data, starts, starts + sizes)  # type: ignore[operator]
    return [sections[c] for c in codes]


def one_by_one(decoder: HpackDecoder[object, int], data: bytes, starts: object, ends: object) -> list[int]:
    return [decoder.decode(data[a:b]) for a, b in zip(starts, ends, strict=True)]  # type: ignore[call-overload]


@given(st.lists(_FIELDS, min_size=1, max_size=6), st.lists(st.integers(0, 5), min_size=1, max_size=150), st.data())
def test_as_one_after_the_other(
    kinds: list[list[tuple[str, str, bool]]], order: list[int], data: st.DataObject
) -> None:
    encoder = hpack.Encoder()
    blocks = [
        encoder.encode(
            [hpack.NeverIndexedHeaderTuple(n, v) if never else (n, v) for n, v, never in kinds[i % len(kinds)]]
        )
        for i in order
    ]
    gaps = data.draw(st.lists(st.integers(0, 3), min_size=len(blocks), max_size=len(blocks)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(h2_blocks, "_LEAST_BLOCKS", 1)
        patch.setattr(h2_blocks, "_MOST_KINDS", data.draw(st.sampled_from([1, 3, 16])))
        found = said_by(h2_blocks.decoded, blocks, gaps)
    assert found == said_by(one_by_one, blocks, gaps)


def test_blocks_that_begin_alike_or_differ_by_a_zero_octet_are_different() -> None:
    blocks = [b"\x82", b"\x82\x84", b"\x88" * 16, b"\x88" * 15, b"\x82" * 8, b"\x82" * 9, b""] * 20
    assert said_by(h2_blocks.decoded, blocks, [0] * len(blocks)) == said_by(one_by_one, blocks, [0] * len(blocks))


def test_a_block_that_cannot_be_read_raises() -> None:
    with pytest.raises(HpackError):
        said_by(h2_blocks.decoded, [b"\x82"] * 100 + [b"\xff\xff\xff"], [0] * 101)
