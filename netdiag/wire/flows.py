"""TCP packets by connection and direction: the table that everything else of ``wire`` about TCP is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netdiag.wire.client_side import KnownBy
from netdiag.wire.kept import kept
from netdiag.wire.sequence import SequenceSpace, sequence_space
from netdiag.wire.tables import Buffer, Int32, Int64, Packets, UInt8


@dataclass(frozen=True, kw_only=True)
class Flows:
    """TCP packets, sorted by (connection, side, file order). Connections are numbered in the order of their first packet in the file."""

    packets: Packets
    buffer: Buffer
    """What the packets' offsets point into."""
    connection: Int32
    """Of each row."""
    side: UInt8
    """Of each row: 0 sent by the client, 1 by the server."""
    starts: Int64
    """``[2n + 1]``: the rows of side ``s`` of connection ``c`` are ``starts[2c + s]:starts[2c + s + 1]``."""
    client_known_by: UInt8
    """Of each connection: a ``KnownBy``."""
    peer_row: Int64
    """Of each row: the last row of the same connection's other side that was captured before it; NONE when there is none."""
    last_at: int | None = None
    """Latest time of the whole capture where these are only some of its connections."""
    copied: bool | None = None
    """Whether so much of the whole capture was captured twice that repeated acknowledgements are copies too; None: these packets tell."""

    @property
    def count(self) -> int:
        """How many connections."""
        return (len(self.starts) - 1) // 2

    def rows(self, connection: int, side: int) -> slice:
        """The rows of one direction."""
        return slice(int(self.starts[2 * connection + side]), int(self.starts[2 * connection + side + 1]))

    def known_by(self, connection: int) -> str:
        """How the client was told, in the words of ``records.Connection.client_known_by``."""
        return KnownBy(int(self.client_known_by[connection])).text

    @kept
    def stream(self) -> Int64:
        """Of each row: ``2 × connection + side``."""
        return self.connection.astype(np.int64) * 2 + self.side

    @kept
    def sequence(self) -> SequenceSpace:
        """Sequence and acknowledgement numbers without wrap; computed once, used by segments and measurements."""
        return sequence_space(self.packets, self.starts)
