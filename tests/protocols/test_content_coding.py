"""Content codings: octets in any pieces give the same content, soon, and never too much of it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols import content_coding
from netdiag.protocols.content_coding import MAX_RATIO, ContentDecoder, codings_of, obstacle

try:
    import brotli
except ImportError:
    brotli = None
needs_brotli = pytest.mark.skipif(
    obstacle(("br",)) is not None, reason="the package brotli (1.2 or later) is not installed"
)

EVENTS = [b"data: %d %s\n\n" % (i, b"word " * (i % 7)) for i in range(40)]


class Packer:
    """One coding with a flush after each event."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._packer = {
            "gzip": lambda: zlib.compressobj(wbits=31),
            "deflate": lambda: zlib.compressobj(wbits=15),
            "zstd": lambda: zstandard.ZstdCompressor().compressobj(),
            "br": lambda: brotli.Compressor(),
        }[coding]()

    def event(self, text: bytes) -> bytes:
        packer = self._packer
        if self._coding == "br":
            return bytes(packer.process(text) + packer.flush())
        mode = zstandard.COMPRESSOBJ_FLUSH_BLOCK if self._coding == "zstd" else zlib.Z_SYNC_FLUSH
        return bytes(packer.compress(text) + packer.flush(mode))

    def end(self) -> bytes:
        return bytes(self._packer.finish() if self._coding == "br" else self._packer.flush())


every_coding = pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", pytest.param("br", marks=needs_brotli)])


@every_coding
def test_what_is_flushed_comes_out_at_once(coding: str) -> None:
    packer, decoder = Packer(coding), ContentDecoder((coding,))
    for event in EVENTS:
        assert decoder.feed(packer.event(event)) == event
    assert decoder.feed(packer.end()) == b""
    assert decoder.failed is None


@every_coding
def test_octet_by_octet_each_event_comes_with_its_last_octets(coding: str) -> None:
    packer, decoder = Packer(coding), ContentDecoder((coding,))
    for event in EVENTS:
        packed = packer.event(event)
        got = b"".join(decoder.feed(packed[i : i + 1]) for i in range(len(packed)))
        assert got == event


@every_coding
@given(text=st.binary(max_size=3000), sizes=st.lists(st.integers(1, 400), max_size=30))
def test_pieces_do_not_matter(coding: str, text: bytes, sizes: list[int]) -> None:
    packer, decoder = Packer(coding), ContentDecoder((coding,))
    packed = packer.event(text) + packer.end()
    out, start = b"", 0
    for size in [*sizes, len(packed)]:
        out += decoder.feed(packed[start : start + size])
        start += size
    assert out == text


def test_several_members_and_frames_are_one_content() -> None:
    assert ContentDecoder(("gzip",)).feed(gzip.compress(b"a") + gzip.compress(b"b")) == b"ab"
    frame = zstandard.ZstdCompressor().compress
    assert ContentDecoder(("zstd",)).feed(frame(b"a") + frame(b"b")) == b"ab"


def test_what_follows_the_end_is_ignored() -> None:
    assert ContentDecoder(("gzip",)).feed(gzip.compress(b"a") + b"\0\0") == b"a"


def test_two_codings_are_undone_in_reverse() -> None:
    decoder = ContentDecoder(("deflate", "gzip"))
    assert decoder.feed(gzip.compress(zlib.compress(b"hello"))) == b"hello"


def test_a_large_step_loses_nothing() -> None:
    text = bytes(range(256)) * 20_000
    compressed = gzip.compress(text, 1)
    assert len(text) < MAX_RATIO * len(compressed)
    assert ContentDecoder(("gzip",)).feed(compressed) == text


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.ZstdCompressor(level=19).compress,
    "br": lambda text: bytes(brotli.compress(text)),
}


@every_coding
def test_bombs_stop_early(coding: str) -> None:
    decoder = ContentDecoder((coding,))
    packed = PACK[coding](bytes(40 << 20))
    content = [decoder.feed(packed[start : start + 1400]) for start in range(0, len(packed), 1400)]
    assert max(map(len, content)) <= 3 << 20
    assert sum(map(len, content)) <= 4 << 20
    assert "grows more than 200 times" in (decoder.failed or "")
    assert decoder.feed(b"more") == b""


@every_coding
def test_a_large_content_stops_at_the_limit(coding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_coding, "MAX_OUTPUT_BYTES", 100_000)
    monkeypatch.setattr(content_coding, "MAX_RATIO", 1e9)
    decoder = ContentDecoder((coding,))
    decoder.feed(PACK[coding](bytes(1 << 20)))
    assert "larger than 100000 octets" in (decoder.failed or "")


@every_coding
def test_damage_is_said(coding: str) -> None:
    decoder = ContentDecoder((coding,))
    decoder.feed(b"\xff\xff\xff\xffthis is no compressed content at all")
    assert (decoder.failed or "").startswith("content coding is damaged: ")


def test_a_zstd_window_above_eight_megabytes_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    packed = zstandard.ZstdCompressor(compression_params=parameters).compress(bytes(64 << 20))
    decoder = ContentDecoder(("zstd",))
    assert decoder.feed(packed) == b""
    assert "memory" in (decoder.failed or "")


@pytest.mark.parametrize(
    ("value", "codings"),
    [(None, ()), ("", ()), ("identity", ()), ("gzip", ("gzip",)), ("deflate, GZIP", ("deflate", "gzip"))],
)
def test_which_codings_are_named(value: str | None, codings: tuple[str, ...]) -> None:
    assert codings_of(value) == codings
    assert obstacle(codings) is None
