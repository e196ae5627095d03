"""Octets of each connection to what it said, for streams that lie in one buffer: a capture's, or a recording's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from netdiag.analysis.dialogue import Dialogue, listen, listen_tls
from netdiag.analysis.rows import Rows
from netdiag.protocols import proxy_protocol
from netdiag.wire.record_view import RecordRows, TlsRecordView
from netdiag.wire.stream_order import bounds_of, streams_of
from netdiag.wire.streams import RecordViews, chunks, record_views
from netdiag.wire.tables import Bool, Buffer, Int64, Segments, TlsRecords

if TYPE_CHECKING:
    from netdiag.protocols.tls.keylog import KeyLog

CLIENT, SERVER = 0, 1
_FAR = np.iinfo(np.int64).max


class KeptViews(Rows[TlsRecordView]):
    """Each view is made once, and only when asked for: without keys nobody looks beyond the handshake, and with keys mostly at ``plain``."""

    __slots__ = ("plain",)

    def __init__(self, views: RecordViews) -> None:
        super().__init__(len(views), views.__getitem__)
        self.plain: RecordRows = views
        """The same records for whoever keeps none."""


class Ears:
    """Hears one connection at a time, as often as it is asked to. ``records`` are the TLS records of ``segments``."""

    def __init__(
        self,
        buffer: Buffer,
        segments: Segments,
        records: TlsRecords,
        server_port: Callable[[int], int],
        keylog: KeyLog | None,
        *,
        columns: bool = False,
    ) -> None:
        """``columns``: turns that are many may be columns."""
        self._buffer = buffer
        self._segments = segments
        self._records = records
        self._server_port = server_port
        self._keylog = keylog
        self._columns = columns
        count = int(segments.connection.max(initial=-1)) + 1
        self._segment_bounds = bounds_of(segments, count)
        self._record_bounds = bounds_of(records, count)
        self.speaks: Bool = np.diff(self._segment_bounds[::2]) > 0
        """Of each connection id: it carried payload."""
        self.encrypted: Bool = np.diff(self._record_bounds[::2]) > 0
        """Of each connection id: it speaks TLS from its first octet on."""
        self.encrypted &= ~self._turned_to_tls()

    def hear(self, connection: int, *, columns: bool = True) -> Dialogue:
        """What one connection said; its turns may be ``columns`` where that is allowed at all."""
        said = self._hear(connection, columns=self._columns and columns)
        return self._hear(connection, columns=False) if said.unheard else said

    def _hear(self, connection: int, *, columns: bool) -> Dialogue:
        port = self._server_port(connection)
        if not self.encrypted[connection]:
            octets = [
                chunks(self._buffer, self._segments, _rows(self._segment_bounds, connection, side))
                for side in (CLIENT, SERVER)
            ]
            return listen(*octets, keylog=self._keylog, server_port=port, columns=columns)
        client, server = (self._views(_rows(self._record_bounds, connection, side)) for side in (CLIENT, SERVER))
        dialogue = listen_tls(client, server, keylog=self._keylog, server_port=port, columns=columns)
        if client and client[0].stream_offset > 0:
            rows = _rows(self._segment_bounds, connection, CLIENT)
            dialogue.origin, _ = proxy_protocol.strip(chunks(self._buffer, self._segments, rows))
        return dialogue

    def _views(self, rows: slice) -> Sequence[TlsRecordView]:
        return KeptViews(record_views(self._buffer, self._segments, self._records, rows))

    def _turned_to_tls(self) -> Bool:
        """Connections that said something else before their first record: a CONNECT to a proxy, STARTTLS."""
        first_record = _first_offsets(self._records, len(self._record_bounds) - 1)
        first_segment = _first_offsets(self._segments, len(self._segment_bounds) - 1)
        known = (first_record != _FAR) & (first_segment != _FAR)
        begins = known & (first_record <= first_segment)
        # What the server said before its first captured octets is not known: then the client's first octets tell.
        begins[1::2] &= (first_segment[1::2] == 0) | ~known[::2] | begins[::2]
        turned: Bool = known.reshape(-1, 2).any(axis=1) & ~begins.reshape(-1, 2).any(axis=1)
        return turned


def hear_all(
    buffer: Buffer, segments: Segments, records: TlsRecords, server_ports: Mapping[int, int], keylog: KeyLog | None
) -> dict[int, Dialogue]:
    """What each connection said, by id; connections without payload are absent. ``records`` are the TLS records of ``segments``."""
    ears = Ears(buffer, segments, records, server_ports.__getitem__, keylog)
    return {i: ears.hear(i) for i in np.flatnonzero(ears.speaks).tolist()}


def _first_offsets(table: Segments | TlsRecords, streams: int) -> Int64:
    """Lowest stream offset of each stream."""
    first = np.full(streams, _FAR, np.int64)
    np.minimum.at(first, streams_of(table), table.stream_offset)
    return first


def _rows(bounds: Int64, connection: int, side: int) -> slice:
    place = 2 * connection + side
    return slice(int(bounds[place]), int(bounds[place + 1]))
