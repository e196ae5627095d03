"""Octets with their times: the one shape in which streams reach the protocol decoders."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass

    def value(*, frozen, slots):
        """As ``dataclass``, but only the type checker holds that it is frozen: there is one for each segment, record or frame, and to be made
        frozen takes four times as long as to be made."""
        return dataclass(slots=slots, unsafe_hash=True)


@value(frozen=True, slots=True)
class Chunk:
    """Octets of one direction that became usable together: the new octets of one TCP segment, or the content of one TLS record.

    Chunks of a direction are contiguous and in stream order. Where octets are missing (capture gap, snap length, a record that could not
    be decrypted) a chunk has ``missing_before`` > 0 and its ``offset`` has skipped them.
    """

    data: bytes
    offset: int
    """Of ``data[0]`` in this direction's stream (plaintext stream where decrypted)."""
    first_seen_at: int
    """First transmission of the first octet (of the TLS record's first octet where decrypted)."""
    last_seen_at: int
    """First transmission of the last octet."""
    deliverable_at: int
    """When a perfect client could use these octets."""
    first_packet: int | None
    last_packet: int | None
    missing_before: int = 0
    """Octets missing just before; negative when their number is not known."""


@value(frozen=True, slots=True)
class Moment:
    """When something happened at one octet of a stream: first transmission, delivery, and the packet that witnesses it."""

    seen_at: int
    deliverable_at: int
    packet: int | None
    chunk_offset: int = field(default=-1, compare=False)
    """Stream offset of the chunk with the octet: names the TLS record (in clear text the segment). How a stream is cut into chunks is no
    part of what happened when, so it does not count for equality. -1 where it is not known."""
    chunk_bytes: int = field(default=0, compare=False)
    """Size of that chunk."""
