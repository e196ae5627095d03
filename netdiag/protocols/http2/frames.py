"""HTTP/2 frames on the wire (RFC 9113 sections 4 and 6; the drafts from h2-14 on frame alike): names, and what a frame header may say."""

from __future__ import annotations

import struct
from enum import IntEnum

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""RFC 9113 section 3.4."""

FRAME_HEADER = struct.Struct(">HBBBI")
"""Length (16 + 8 bits), type, flags, stream identifier with the reserved bit."""

DEFAULT_MAX_FRAME = 1 << 14
LARGEST_FRAME = (1 << 24) - 1
DEFAULT_WINDOW = 65_535


class FrameType(IntEnum):
    """RFC 9113 section 6. Unknown types are skipped (section 5.5)."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Flag:
    """Frame flags."""

    END_STREAM = 0x1
    ACK = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8
    PRIORITY = 0x20


class Setting(IntEnum):
    """RFC 9113 section 6.5.2."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(IntEnum):
    """RFC 9113 section 7, the ones that mean something here."""

    NO_ERROR = 0
    REFUSED_STREAM = 7
    """The request was not processed: it can be sent again safely."""
    CANCEL = 8


# What each type allows: (flags, length must be, stream must be: 0 zero, 1 not zero, 2 any). None: any length.
_RULES: dict[int, tuple[int, int | None, int]] = {
    FrameType.DATA: (0x09, None, 1),
    FrameType.HEADERS: (0x2D, None, 1),
    FrameType.PRIORITY: (0x00, 5, 1),
    FrameType.RST_STREAM: (0x00, 4, 1),
    FrameType.SETTINGS: (0x01, None, 0),
    FrameType.PUSH_PROMISE: (0x0C, None, 1),
    FrameType.PING: (0x01, 8, 0),
    FrameType.GOAWAY: (0x00, None, 0),
    FrameType.WINDOW_UPDATE: (0x00, 4, 2),
    FrameType.CONTINUATION: (0x04, None, 1),
}


def plausible_header(length: int, type_: int, flags: int, stream_id: int, highest_stream: int) -> bool:
    """Whether this may be a frame header, judged strictly: for finding the way back after octets were lost.

    ``highest_stream`` is the highest identifier known (0: none known).
    """
    rule = _RULES.get(type_)
    if rule is None or length > DEFAULT_MAX_FRAME:
        return False
    allowed, exact, stream = rule
    if flags & ~allowed or (exact is not None and length != exact):
        return False
    if type_ == FrameType.SETTINGS and (length % 6 or (flags & Flag.ACK and length)):
        return False
    if stream < 2 and (stream_id == 0) != (stream == 0):
        return False
    return stream_id <= (highest_stream + 2000 if highest_stream else 1 << 20)


def surely_frames(octets: bytes) -> bool:
    """Whether the beginning of a stream is HTTP/2 beyond doubt: plausible frames, and more than one DATA header among them."""
    if not plausible_chain(octets):
        return False
    length, type_ = int.from_bytes(octets[:3], "big"), octets[3]
    return type_ != FrameType.DATA or len(octets) >= 9 + length + 9


def plausible_chain(octets: bytes, highest_stream: int = 0) -> bool:
    """Whether these octets are frames from their first on: every header in them is plausible."""
    pos, found = 0, False
    while pos + 9 <= len(octets):
        high, low, type_, flags, stream_id = FRAME_HEADER.unpack_from(octets, pos)
        length = high << 8 | low
        if stream_id >> 31 or not plausible_header(length, type_, flags, stream_id, highest_stream):
            return False
        found = True
        pos += 9 + length
    return found
