"""The decoder of each protocol, loaded with the first connection that speaks it: a capture speaks one or two of them, and each is many modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from netdiag.wire.chunk import Chunk
from netdiag.wire.record_view import TlsRecordView

if TYPE_CHECKING:
    from netdiag.protocols.conversation import Conversation, Tunnel
    from netdiag.protocols.dns.timed import TimedMessage
    from netdiag.protocols.http2.columns.turns import ColumnTurns
    from netdiag.protocols.tls.keylog import KeyLog
    from netdiag.protocols.tls.observe import TlsObservation
    from netdiag.protocols.turn import Turn

Octets = Iterable[Chunk]
"""One direction of a stream."""


def http1(client: Octets, server: Octets) -> Conversation:
    """RFC 9112."""
    from netdiag.protocols.http1 import decode

    return decode(client, server)


def http2(client: Octets, server: Octets, *, upgraded_from: Turn | None = None) -> Conversation:
    """RFC 9113."""
    from netdiag.protocols.http2.frame_by_frame import decode

    return decode(client, server, upgraded_from=upgraded_from)


def http2_by_columns(client: Octets, server: Octets) -> Conversation | None:
    """RFC 9113, with columns for turns where they are regular and many; None where it takes ``http2``, from the first octet on."""
    from netdiag.protocols.http2.either import decode

    return decode(client, server)


def columns_of(said: Conversation) -> ColumnTurns | None:
    """The turns of a conversation, where they are columns (``http2_by_columns`` alone makes them)."""
    if isinstance(said.turns, list):
        return None
    from netdiag.protocols.http2.columns.turns import ColumnTurns

    return said.turns if isinstance(said.turns, ColumnTurns) else None


def socks(client: Octets, server: Octets) -> Tunnel | None:
    """RFC 1928, and version 4."""
    from netdiag.protocols.socks import decode

    return decode(client, server)


def dns(client: Octets, server: Octets) -> list[TimedMessage]:
    """DNS over TCP (RFC 7766)."""
    from netdiag.protocols.dns.over_tcp import tcp_messages

    return tcp_messages(client, server)


def tls(client: Sequence[TlsRecordView], server: Sequence[TlsRecordView], keylog: KeyLog | None) -> TlsObservation:
    """RFC 8446 and its predecessors."""
    from netdiag.protocols.tls.observe import observe

    return observe(client, server, keylog)
