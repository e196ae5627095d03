"""Many header blocks at once: those of the same octets say the same while the dynamic table stays as it is (RFC 7541 section 2.3.2)."""

from __future__ import annotations

import numpy as np

from netdiag.protocols.headers import Field
from netdiag.protocols.http2.hpack_decoder import HpackDecoder
from netdiag.wire.tables import Int64

_WORDS = 2
_WORD = np.dtype(">u8")
_WIDEST = _WORDS * _WORD.itemsize
_LEAST_BLOCKS = 64
_MOST_KINDS = 16
"""Where more than so many different blocks come, one by one is faster."""


def decoded(decoder: HpackDecoder[Field, int], data: bytes, starts: Int64, ends: Int64) -> Int64:
    """What the decoder says to each block in turn; raises as it does."""
    codes = np.full(len(starts), -1, np.int64)
    done = 0
    if len(starts) >= _LEAST_BLOCKS:
        done = _alike(decoder, data, starts, ends, codes)
    blocks = [data[start:end] for start, end in zip(starts[done:].tolist(), ends[done:].tolist(), strict=True)]
    codes[done:] = decoder.decode_all(blocks)
    return codes


def _alike(decoder: HpackDecoder[Field, int], data: bytes, starts: Int64, ends: Int64, codes: Int64) -> int:
    """Decode the first of each kind and give all of its kind that code; returns how many blocks are done, from the first on."""
    keys = _keys(data, starts, ends)
    place = 0
    for _ in range(_MOST_KINDS):
        changes = decoder.changes
        codes[place] = decoder.decode(data[starts[place] : ends[place]])
        if decoder.changes != changes:  # whatever was told of later ones does not hold
            codes[place + 1 :] = -1
        else:
            same = np.logical_and.reduce([key[place:] == key[place] for key in keys])
            codes[place:][same] = codes[place]
        open_ = codes[place:] < 0
        following = int(open_.argmax())
        if not open_[following]:
            return len(codes)
        place += following
    return place


def _keys(data: bytes, starts: Int64, ends: Int64) -> list[Int64]:
    """Columns that are equal where blocks are; a block that is wider than they are equals none."""
    words = np.ndarray((len(data) + 1,), _WORD, data + bytes(_WIDEST), 0, (1,))
    lengths = ends - starts
    keys = [np.where(lengths > _WIDEST, -1 - np.arange(len(lengths)), lengths)]
    for word in range(_WORDS):
        beyond = np.clip(8 * (8 * (word + 1) - lengths), 0, 63).astype(np.uint64)
        # A shift by all 64 bits is none at all: what lies wholly beyond the block is shifted twice.
        value = words[np.minimum(starts + 8 * word, len(data))].astype(np.uint64) >> beyond
        keys.append((value >> (lengths <= 8 * word).astype(np.uint64)).view(np.int64))
    return keys
