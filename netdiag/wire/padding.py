"""Frame padding that some middlebox counted into the IP length: a few zero octets that no sender put into its stream.

Short frames are padded to 60 octets (46 after the Ethernet header, 42 behind a tag). A device that rewrites the IP length to the padded one
turns a bare acknowledgement (40 octets of IPv4 and TCP without options) into a segment of six or two zero octets, which would then stand
first in the stream. It is told by the sender's next payload, whose sequence number did not move.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from netdiag.wire.octets import Octets
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Packets
from netdiag.wire.tcp_flags import FIN, PSH, SYN

PADDING_BYTES = (2, 6)
BARE_HEADER_BYTES = 20


def without_padding(packets: Packets, direction: Int64, buffer: Buffer) -> Packets:
    """Sorted packets (``direction``: of each row) with such octets taken off their payload length."""
    size = packets.payload_bytes
    suspects = np.flatnonzero(((size == PADDING_BYTES[0]) | (size == PADDING_BYTES[1])) & ((packets.flags & PSH) == 0))
    suspects = suspects[(packets.header_bytes[suspects] == BARE_HEADER_BYTES) & (packets.ip_id[suspects] != NONE)]
    if not suspects.size:
        return packets
    suspects = suspects[_all_zero(packets, suspects, buffer)]
    proved = suspects[_uncounted(packets, suspects, direction)]
    if not proved.size:
        return packets
    padded = np.zeros(int(direction.max()) + 1, np.bool_)
    padded[direction[proved]] = True
    rows = suspects[padded[direction[suspects]]]
    payload_bytes, captured = packets.payload_bytes.copy(), packets.captured_payload_bytes.copy()
    payload_bytes[rows], captured[rows] = 0, 0
    return replace(packets, payload_bytes=payload_bytes, captured_payload_bytes=captured)


def _all_zero(packets: Packets, rows: Int64, buffer: Buffer) -> Bool:
    octets = Octets(buffer).rows(packets.payload_offset[rows], np.dtype("V8")).view(np.uint8).reshape(-1, 8)
    counted = np.arange(8) < packets.captured_payload_bytes[rows][:, None]
    return np.asarray(~(octets.astype(np.bool_) & counted).any(axis=1))


def _uncounted(packets: Packets, rows: Int64, direction: Int64) -> Bool:
    """The next real payload of the direction begins as if these octets did not exist."""
    real = np.flatnonzero(packets.payload_bytes > max(PADDING_BYTES))
    if not real.size:
        return np.zeros(len(rows), np.bool_)
    place = np.searchsorted(real, rows)
    following = real[np.minimum(place, len(real) - 1)]
    same = (place < len(real)) & (direction[following] == direction[rows])
    flags = packets.flags[rows]
    own = ((flags & FIN) != 0).astype(np.uint32) + ((flags & SYN) != 0)
    stands = packets.seq[following] == packets.seq[rows] + own.astype(np.uint32)
    return np.asarray(same & stands)
