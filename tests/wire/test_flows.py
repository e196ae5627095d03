"""Packets by connection and direction."""

from __future__ import annotations

import numpy as np

from netdiag.wire.tables import NONE
from tests.support.conversation import CLIENT, SERVER, Conversation, interleaved


def test_rows_of_a_direction_are_contiguous_and_in_file_order() -> None:
    talks = [Conversation(client=("10.0.0.1", 40000 + i), step_ms=0.7 + i / 10).opens() for i in range(5)]
    for talk in talks:
        for _ in range(6):
            talk.client(b"a")
            talk.server(b"b")
    flows = interleaved(*talks).flows
    assert len(flows.starts) == 2 * flows.count + 1
    for connection in range(flows.count):
        for side in (CLIENT, SERVER):
            rows = flows.rows(connection, side)
            assert set(flows.connection[rows].tolist()) == {connection}
            assert set(flows.side[rows].tolist()) == {side}
            assert (np.diff(flows.packets.number[rows]) > 0).all()


def test_peer_row_is_the_other_sides_last_packet_before() -> None:
    talk = Conversation().opens()
    talk.client(b"question")
    talk.server(b"answer")
    talk.client(b"more")
    flows = talk.wire().flows
    number = flows.packets.number
    for row, peer in enumerate(flows.peer_row.tolist()):
        earlier = number[(flows.side != flows.side[row]) & (number < number[row])]
        assert (NONE if peer == NONE else number[peer]) == (earlier.max() if earlier.size else NONE)
