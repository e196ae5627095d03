"""HPACK's Huffman code against the hpack library."""

from __future__ import annotations

import random
import sys
from concurrent.futures import ThreadPoolExecutor

import hpack
import pytest
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
from hpack.huffman_table import decode_huffman
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.http2.hpack_huffman import HuffmanDecoder, HuffmanError


def test_huffman_rejects_wrong_padding_and_eos() -> None:
    huffman = HuffmanDecoder()
    assert huffman.decode(bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")) == b"www.example.com"
    for bad in ("f1e3c2e5f23a6ba0ab90f4fe", "ff", "ffffffff"):
        with pytest.raises(HuffmanError):
            huffman.decode(bytes.fromhex(bad))
    assert huffman.decode(b"") == b""


def test_huffman_by_several_threads_at_once_says_the_same() -> None:
    rng = random.Random(5)
    texts = [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 60))) for _ in range(300)]
    coded = [(text, HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(text)) for text in texts]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            huffman = HuffmanDecoder()  # its states are numbered while all are reading

            def check(pair: tuple[bytes, bytes], huffman: HuffmanDecoder = huffman) -> bool:
                return huffman.decode(pair[1]) == pair[0]

            with ThreadPoolExecutor(4) as threads:
                assert all(threads.map(check, coded))
    finally:
        sys.setswitchinterval(before)


ENCODER = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


@given(st.binary(max_size=80))
def test_what_the_library_encodes_is_decoded(text: bytes) -> None:
    assert HuffmanDecoder().decode(ENCODER.encode(text)) == text


@given(st.binary(max_size=40))
def test_any_octets_decode_as_the_library_says(octets: bytes) -> None:
    try:
        expected = decode_huffman(octets)
    except hpack.HPACKError:
        expected = None
    try:
        found = HuffmanDecoder().decode(octets)
    except HuffmanError:
        found = None
    # RFC 7541 section 5.2 forbids padding of 8 bits and more, which the library lets pass.
    assert found == expected or (found is None and octets.endswith(b"\xff"))


@pytest.mark.parametrize("size", [1_000, 10_000])
def test_a_long_string_that_comes_back_is_decoded_once(size: int) -> None:
    huffman = HuffmanDecoder()
    octets = ENCODER.encode(b"script-src 'self';" * (size // 18))
    first = huffman.decode(octets)
    assert huffman.decode(bytes(bytearray(octets))) is first
    for other in range(300):  # only few of them are kept
        huffman.decode(ENCODER.encode(b"%d" % other * 400))
    again = huffman.decode(octets)
    assert again == first
    assert again is not first


def test_a_string_too_long_to_keep_is_decoded_all_the_same() -> None:
    huffman = HuffmanDecoder()
    text = b"policy" * 10_000
    octets = ENCODER.encode(text)
    first = huffman.decode(octets)
    assert first == huffman.decode(octets) == text
