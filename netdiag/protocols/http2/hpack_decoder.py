"""HPACK for an observer (RFC 7541): decodes field blocks, and keeps going where the beginning of the connection was not captured.

A decoder at an endpoint must fail on an index it does not know. An observer may lack history; then an entry is *unknown*, what the static
table and later insertions say still holds, and the block is marked incomplete. Insertions push from the front, so every entry inserted
since the loss has its right index.

Header fields repeat from request to request. Each finished field is made once, when it enters the table, and a block that consists of the
same octets while the table is unchanged gives the same fields again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from netdiag.protocols.http2.hpack_huffman import HuffmanDecoder, HuffmanError

F = TypeVar("F")
B = TypeVar("B")

STATIC_FIELDS: tuple[tuple[bytes, bytes], ...] = (
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
)
"""RFC 7541 appendix A, index 1 first."""

_STATIC_COUNT = len(STATIC_FIELDS)
_ENTRY_OVERHEAD = 32  # RFC 7541 section 4.1
_MAX_INTEGER = 1 << 32
_CACHED_BLOCKS = 512
_CACHED_BLOCK_BYTES = 1024
# What a SETTINGS_HEADER_TABLE_SIZE may ask us to keep. Peers in the field announce 4 KiB to 64 KiB.
_MAX_TABLE_BYTES = 1 << 20

_HUFFMAN = HuffmanDecoder()


class HpackError(ValueError):
    """The block cannot be decoded; the dynamic table is no longer known."""


@dataclass(frozen=True, slots=True)
class FieldBlock(Generic[F]):
    """The fields of one header or trailer section."""

    fields: tuple[F, ...]
    incomplete: bool = False
    """Some fields are unknown: history was missing."""
    over_limit: bool = False
    """The section was larger than the limits; the rest of its fields is left out."""


@lru_cache(maxsize=4)
def _static_entries(make: Callable[[bytes, bytes], Any]) -> list[tuple[bytes | None, Any, int]]:
    """(name, field, size) of the static table; the same list for all decoders that make fields alike."""
    return [(name, make(name, value), len(name) + len(value) + _ENTRY_OVERHEAD) for name, value in STATIC_FIELDS]


class HpackDecoder(Generic[F, B]):
    """One direction's context. ``make`` turns the octets of a name and a value into the field that is kept, ``assemble`` a decoded block
    into what ``decode`` returns; both are called once where blocks and fields repeat.

    ``history_complete`` is False from the start when the beginning of the connection was not captured.
    """

    def __init__(
        self,
        make: Callable[[bytes, bytes], F],
        assemble: Callable[[FieldBlock[F]], B],
        *,
        history_complete: bool = True,
        max_fields: int = 1000,
        max_list_bytes: int = 64 << 10,
    ) -> None:
        self._make = make
        self._assemble = assemble
        self._static: list[tuple[bytes | None, F | None, int]] = _static_entries(make)
        # Newest last; an unknown name is None, and so is the field then. Entries before _oldest are evicted already: removing them one by
        # one from the front would cost the whole table each time.
        self._dynamic: list[tuple[bytes | None, F | None, int]] = []
        self._oldest = 0
        self._size = 0
        self._max_size = 4096
        self._history_complete = history_complete
        self._max_fields = max_fields
        self._max_list_bytes = max_list_bytes
        self._blocks: dict[bytes, B] = {}
        self.changes = 0
        """Blocks that changed the dynamic table, so that the same octets may say something else after them."""

    def lose_history(self) -> None:
        """Blocks were missed: no dynamic entry can be trusted any more."""
        self._dynamic.clear()
        self._oldest = self._size = 0
        self._blocks.clear()
        self._history_complete = False

    def decode(self, block: bytes) -> B:
        """What ``assemble`` makes of one complete block. Raises ``HpackError``; the history is lost then."""
        known = self._blocks.get(block)
        if known is not None:
            return known
        try:
            fields, changed = self._decode(block)
        except (IndexError, HuffmanError, HpackError) as error:
            self.lose_history()
            raise HpackError(str(error) if not isinstance(error, IndexError) else "field block ends early") from error
        decoded = self._assemble(fields)
        if changed:
            self.changes += 1
            self._blocks.clear()
        elif len(block) <= _CACHED_BLOCK_BYTES:
            if len(self._blocks) >= _CACHED_BLOCKS:
                self._blocks.clear()
            self._blocks[block] = decoded
        return decoded

    def decode_all(self, blocks: Iterable[bytes]) -> list[B]:
        """What ``decode`` says to each, in order; raises as it does."""
        known = self._blocks.get
        return [found if (found := known(block)) is not None else self.decode(block) for block in blocks]

    def _decode(self, block: bytes) -> tuple[FieldBlock[F], bool]:
        fields: list[F] = []
        changed = incomplete = over_limit = False
        room, places = self._max_list_bytes, self._max_fields
        static, entry = self._static, self._entry
        pos, end = 0, len(block)
        while pos < end:
            octet = block[pos]
            if octet > 0x80 and octet <= 0x80 + _STATIC_COUNT:  # 6.1 indexed field of the static table, the commonest
                _, field, size = static[octet - 0x81]
                pos += 1
            elif octet & 0x80:  # 6.1 indexed field
                index, pos = (octet & 0x7F, pos + 1) if octet != 0xFF else _integer(block, pos, 7)
                _, field, size = entry(index)
            elif octet & 0xE0 == 0x20:  # 6.3 table size update
                limit, pos = _integer(block, pos, 5)
                self._resize(limit)
                changed = True
                continue
            else:  # 6.2 literal, with (01) or without indexing (0000, 0001)
                name, value, pos = self._literal(block, pos, 6 if octet & 0x40 else 4)
                field = None if name is None else self._make(name, value)
                size = len(name or b"") + len(value) + _ENTRY_OVERHEAD
                if octet & 0x40:
                    self._insert(name, field, size)
                    changed = True
            room -= size
            if field is None:
                incomplete = True
            elif room >= 0 and places:
                fields.append(field)
                places -= 1
            else:
                over_limit = True
        return FieldBlock(tuple(fields), incomplete, over_limit), changed

    def _entry(self, index: int) -> tuple[bytes | None, F | None, int]:
        if 0 < index <= _STATIC_COUNT:
            return self._static[index - 1]
        place = index - _STATIC_COUNT
        if 0 < place <= len(self._dynamic) - self._oldest:
            return self._dynamic[-place]
        if index == 0 or self._history_complete:
            raise HpackError(f"index {index} is not in the table")
        return None, None, _ENTRY_OVERHEAD

    def _literal(self, block: bytes, pos: int, prefix_bits: int) -> tuple[bytes | None, bytes, int]:
        mask = (1 << prefix_bits) - 1
        index = block[pos] & mask
        index, pos = (index, pos + 1) if index != mask else _integer(block, pos, prefix_bits)
        name: bytes | None
        if index:
            name = self._entry(index)[0]
        else:
            name, pos = _string(block, pos)
        value, pos = _string(block, pos)
        return name, value, pos

    def _insert(self, name: bytes | None, field: F | None, size: int) -> None:
        self._dynamic.append((name, field, size))
        self._size += size
        if self._size > self._max_size:
            self._evict()

    def _resize(self, limit: int) -> None:
        if limit > _MAX_TABLE_BYTES:
            raise HpackError(f"table size {limit} is above {_MAX_TABLE_BYTES}")
        self._max_size = limit
        self._evict()

    def _evict(self) -> None:
        while self._size > self._max_size:
            self._size -= self._dynamic[self._oldest][2]
            self._oldest += 1
        if self._oldest > 64 and self._oldest * 2 > len(self._dynamic):
            del self._dynamic[: self._oldest]
            self._oldest = 0


def _integer(block: bytes, pos: int, prefix_bits: int) -> tuple[int, int]:
    """RFC 7541 section 5.1."""
    mask = (1 << prefix_bits) - 1
    value = block[pos] & mask
    pos += 1
    if value != mask:
        return value, pos
    shift = 0
    while True:
        octet = block[pos]
        pos += 1
        value += (octet & 0x7F) << shift
        if not octet & 0x80:
            return value, pos
        shift += 7
        if value > _MAX_INTEGER or shift > 35:
            raise HpackError("integer is too large")


def _string(block: bytes, pos: int) -> tuple[bytes, int]:
    """RFC 7541 section 5.2."""
    first = block[pos]
    length = first & 0x7F
    length, pos = (length, pos + 1) if length != 0x7F else _integer(block, pos, 7)
    end = pos + length
    octets = block[pos:end]
    if len(octets) != length:
        raise HpackError("string is longer than its block")
    return (_HUFFMAN.decode(octets) if first & 0x80 else octets), end
