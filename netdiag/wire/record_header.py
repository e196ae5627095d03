"""What can be the header of a TLS record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netdiag.wire.tables import Bool

HEADER_BYTES = 5
HEADER = np.dtype(
    {"names": ["type", "version", "length"], "formats": ["u1", ">u2", ">u2"], "offsets": [0, 1, 3], "itemsize": 5}
)
MAX_RECORD_BYTES = 16_384 + 2_048
"""RFC 5246 section 6.2.3: TLSCiphertext is at most 2^14 + 2048 octets."""
LEAST_TYPE, MOST_TYPE = 20, 24
HANDSHAKE = 22
SSL2_HELLO = 128
"""Content type given to an SSL 2.0-compatible ClientHello (RFC 5246 appendix E.2), whose header has two octets."""
SSL2_HEADER_BYTES = 2
_CLIENT_HELLO = 1


def valid_headers(heads: NDArray[Any]) -> Bool:
    """Which rows of type ``HEADER`` can be record headers: a known content type, SSL 3.0 to TLS 1.3, a length that is allowed."""
    kind = heads["type"]
    good: Bool = (
        (kind >= LEAST_TYPE) & (kind <= MOST_TYPE) & (heads["version"] >= 0x0300) & (heads["version"] <= 0x0304)
    )
    good &= heads["length"] <= MAX_RECORD_BYTES
    return good


def parse_header(head: bytes) -> tuple[int, int, int] | None:
    """(content type, version, length) of five octets; None when they can be no record header."""
    kind, version, length = head[0], head[1] << 8 | head[2], head[3] << 8 | head[4]
    if LEAST_TYPE <= kind <= MOST_TYPE and 0x0300 <= version <= 0x0304 and length <= MAX_RECORD_BYTES:
        return kind, version, length
    return None


def ssl2_hello(head: bytes) -> tuple[int, int] | None:
    """(version, length after the two-octet header) when five octets begin an SSL 2.0-compatible ClientHello, else None."""
    if len(head) < HEADER_BYTES or not head[0] & 0x80 or head[2] != _CLIENT_HELLO:
        return None
    version = head[3] << 8 | head[4]
    if version != 0x0002 and not 0x0300 <= version <= 0x0304:
        return None
    return version, (head[0] & 0x7F) << 8 | head[1]
