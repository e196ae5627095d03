"""Where the octets of TLS records lie, for those who read fields of many records at once."""

from __future__ import annotations

import numpy as np

from netdiag.plain import plain
from netdiag.wire.distinct import distinct
from netdiag.wire.octets import Octets
from netdiag.wire.pieces import pieces_of
from netdiag.wire.record_header import HEADER_BYTES
from netdiag.wire.stream_order import streams_of
from netdiag.wire.tables import NONE, Buffer, Int64, Segments
from netdiag.wire.tls_records import ChainedRecords


@plain(frozen=True, slots=True)
class Contents:
    """Contents of some records, each in one piece. ``at:end`` bounds those of ``rows`` in ``octets``."""

    octets: Octets
    rows: Int64
    """Rows of the records' table, as given."""
    at: Int64
    end: Int64


def contents_of(buffer: Buffer, segments: Segments, records: ChainedRecords, rows: Int64) -> list[Contents]:
    """The contents of the chosen records (none of which lacks octets): those within one segment where they are, the others put together."""
    at = records.content_offset[rows]
    whole = at != NONE
    here = Contents(Octets(buffer), rows[whole], at[whole], at[whole] + records.length[rows[whole]])
    return [here] if whole.all() else [here, _put_together(buffer, segments, records, rows[~whole])]


def _put_together(buffer: Buffer, segments: Segments, records: ChainedRecords, rows: Int64) -> Contents:
    pieces = pieces_of(buffer, segments, distinct(records.connection[rows]).astype(np.int64))
    keys = streams_of(records.take(rows)) * pieces.span + records.stream_offset[rows] + HEADER_BYTES
    length = records.length[rows]
    first = pieces.at_or_before(keys)
    parts = [pieces.read(*place) for place in zip(first.tolist(), keys.tolist(), length.tolist(), strict=True)]
    end = np.cumsum([len(part) for part in parts])
    return Contents(Octets(b"".join(parts)), rows, end - [len(part) for part in parts], end)
