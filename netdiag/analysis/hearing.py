"""Octets of each connection to what it said, for streams that lie in one buffer: a capture's, or a recording's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from netdiag.analysis.dialogue import Dialogue, listen, listen_tls
from netdiag.protocols.tls.keylog import KeyLog
from netdiag.wire.streams import chunks, record_views, rows_of
from netdiag.wire.tables import Buffer, Segments, TlsRecords

CLIENT, SERVER = 0, 1


def hear_all(
    buffer: Buffer, segments: Segments, records: TlsRecords, server_ports: Mapping[int, int], keylog: KeyLog | None
) -> dict[int, Dialogue]:
    """What each connection said, by id; connections without payload are absent. ``records`` are the TLS records of ``segments``."""
    speaking = np.unique(segments.connection).tolist()
    encrypted = set(np.unique(records.connection).tolist()) - _turned_to_tls(segments, records)
    return {
        i: _hear(buffer, segments, records if i in encrypted else None, i, server_ports[i], keylog) for i in speaking
    }


def _turned_to_tls(segments: Segments, records: TlsRecords) -> set[int]:
    """Connections that said something else before their first record: a CONNECT to a proxy, STARTTLS."""
    first_record, first_segment = _first_offsets(records), _first_offsets(segments)
    both = sorted(first_record.keys() & first_segment.keys())
    begins = {
        connection
        for connection, direction in both
        if first_record[connection, direction] <= first_segment[connection, direction]
    }
    return {connection for connection, _ in both} - begins


def _first_offsets(table: Segments | TlsRecords) -> dict[tuple[int, int], int]:
    """Lowest stream offset of each (connection, direction)."""
    stream = table.connection.astype(np.int64) * 2 + table.direction
    order = np.lexsort((table.stream_offset, stream))
    first = order[np.r_[True, stream[order][1:] != stream[order][:-1]]] if len(order) else order
    keys = zip(table.connection[first].tolist(), table.direction[first].tolist(), strict=True)
    return dict(zip(keys, table.stream_offset[first].tolist(), strict=True))


def _hear(
    buffer: Buffer,
    segments: Segments,
    records: TlsRecords | None,
    connection: int,
    server_port: int,
    keylog: KeyLog | None,
) -> Dialogue:
    if records is None:
        octets = [chunks(buffer, segments, rows_of(segments, connection, side)) for side in (CLIENT, SERVER)]
        return listen(*octets, keylog=keylog, server_port=server_port)
    client, server = (
        list(record_views(buffer, segments, records, rows_of(records, connection, side))) for side in (CLIENT, SERVER)
    )
    return listen_tls(client, server, keylog=keylog, server_port=server_port)
