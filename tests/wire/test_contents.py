"""The octets of many records: where they lie in one piece, and put together where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from netdiag.wire.contents import contents_of
from netdiag.wire.tls_records import chain
from tests.support.conversation import SERVER, Conversation
from tests.support.record_streams import HELLO, record, spread


@pytest.mark.parametrize(("sizes", "parts"), [([10_000], 1), ([7], 2), ([40, 300], 2)])
def test_contents_of_records_however_they_were_sent(sizes: list[int], parts: int) -> None:
    records = [HELLO, record(30, seed=1), record(200, seed=2), record(0), record(64, seed=3)]
    talk = Conversation().opens()
    spread(talk, SERVER, b"".join(records), sizes)
    wire = talk.wire()
    table = chain(wire.buffer, wire.segments)
    found = contents_of(wire.buffer, wire.segments, table, np.arange(len(table)))
    assert len(found) == parts
    read = {
        int(row): part.octets.text(int(at), int(end))
        for part in found
        for row, at, end in zip(part.rows, part.at, part.end, strict=True)
    }
    assert read == {i: one[5:] for i, one in enumerate(records)}
