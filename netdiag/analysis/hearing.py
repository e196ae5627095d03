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
    encrypted = set(np.unique(records.connection).tolist())
    return {
        i: _hear(buffer, segments, records if i in encrypted else None, i, server_ports[i], keylog) for i in speaking
    }


def _hear(
    buffer: Buffer,
    segments: Segments,
    records: TlsRecords | None,
    connection: int,
    server_port: int,
    keylog: KeyLog | None,
) -> Dialogue:
    if records is None:
        client, server = (chunks(buffer, segments, rows_of(segments, connection, side)) for side in (CLIENT, SERVER))
        return listen(client, server, keylog=keylog, server_port=server_port)
    views = (record_views(buffer, segments, records, rows_of(records, connection, side)) for side in (CLIENT, SERVER))
    return listen_tls(*views, keylog=keylog, server_port=server_port)
