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
    """With the first octet."""
    last_packet: int | None
    """The one that made these octets usable: with the last octet, or a later one that filled a hole before it."""
    missing_before: int = 0
    """Octets missing just before; negative when their number is not known."""

    def first_moment(self) -> Moment:
        """Of an octet as the beginning of something: among several segments the earliest bound."""
        return Moment(
            self.first_seen_at,
            self.deliverable_at,
            self.first_packet,
            self.last_packet,
            self.offset,
            len(self.data),
        )

    def last_moment(self) -> Moment:
        """Of an octet as the end of something: among several segments the latest bound."""
        packet = self.first_packet if self.first_seen_at == self.last_seen_at else self.last_packet
        return Moment(self.last_seen_at, self.deliverable_at, packet, self.last_packet, self.offset, len(self.data))


@value(frozen=True, slots=True)
class Moment:
    """When something happened at one octet of a stream: first transmission, delivery, and the packets that witness them."""

    seen_at: int
    deliverable_at: int
    packet: int | None
    """With the octet."""
    completed_by: int | None = None
    """The packet that made it deliverable: another one where the octet had to wait for those before it. None: ``packet``."""
    chunk_offset: int = field(default=-1, compare=False)
    """Stream offset of the chunk with the octet: names the TLS record (in clear text the segment). How a stream is cut into chunks is no
    part of what happened when, so it does not count for equality. -1 where it is not known."""
    chunk_bytes: int = field(default=0, compare=False)
    """Size of that chunk."""

    @property
    def delivered_by(self) -> int | None:
        """The packet of ``deliverable_at``."""
        return self.packet if self.completed_by is None else self.completed_by
