"""Duplicate acknowledgements and keep-alive probes."""

from __future__ import annotations

import numpy as np

from netdiag.wire.acks import duplicate_acks, keep_alives, runs
from netdiag.wire.connections import track
from netdiag.wire.flows import Flows
from netdiag.wire.tables import Bool
from tests.support.conversation import CLIENT, SERVER, Conversation, Wire


def numbers(flows: Flows, chosen: Bool) -> list[int]:
    """Frame numbers of the chosen rows."""
    return sorted(flows.packets.number[chosen].tolist())


def duplicates(wire: Wire) -> Bool:
    flows = wire.flows
    return duplicate_acks(flows, np.zeros(len(flows.packets), np.bool_), keep_alives(flows))


def lossy() -> Conversation:
    """A segment of the server is lost; the client repeats its acknowledgement (frames 6 and 8) for each that follows."""
    talk = Conversation().opens()
    talk.client(b"GET")
    talk.server(b"a" * 100, captured=False)
    for _ in range(2):
        talk.server(b"b" * 100)
        talk.acks(CLIENT, 0)
    return talk


def test_repeated_acknowledgements_while_octets_are_missing_are_duplicates() -> None:
    talk = lossy()
    talk.acks(CLIENT, 0)
    wire = talk.wire()
    # The first acknowledgement after the request is no repetition of a bare one with the same sequence number and edge.
    assert numbers(wire.flows, duplicates(wire)) == [6, 8, 9]


def test_an_acknowledgement_with_another_window_is_a_window_update() -> None:
    talk = lossy()
    talk.window[CLIENT] = 900
    talk.acks(CLIENT, 0)
    wire = talk.wire()
    assert numbers(wire.flows, duplicates(wire)) == [6, 8]


def test_captured_copies_are_no_duplicates() -> None:
    wire = lossy().wire()
    flows = wire.flows
    copies = flows.packets.number == 8
    assert numbers(flows, duplicate_acks(flows, copies, keep_alives(flows))) == [6]


def test_runs_count_since_the_acknowledgement_moved() -> None:
    talk = lossy()
    talk.acks(CLIENT, 300)
    talk.server(b"c")
    talk.acks(CLIENT, 300)
    flows = talk.wire().flows
    counted = runs(flows, duplicates(talk.wire()))
    client = counted[flows.rows(0, CLIENT)].tolist()
    assert client[-4:] == [1, 2, 0, 1]


def test_a_probe_of_one_octet_before_the_edge_is_a_keep_alive() -> None:
    talk = Conversation().opens()
    talk.client(b"hello")
    talk.acks(SERVER)
    talk.after(30_000).packet(CLIENT, b"\0", offset=4)
    talk.acks(SERVER)
    talk.after(30_000).packet(CLIENT, offset=4)
    flows = talk.wire().flows
    assert numbers(flows, keep_alives(flows)) == [6, 8]


def test_an_unacknowledged_octet_again_is_a_retransmission_unless_the_window_is_closed() -> None:
    for window, expected in ((512, []), (0, [6])):
        talk = Conversation().opens()
        talk.client(b"hello")
        talk.window[SERVER] = window
        talk.acks(SERVER, 4)
        talk.after(300).packet(CLIENT, b"o", offset=4)
        flows = talk.wire().flows
        assert numbers(flows, keep_alives(flows)) == expected


def test_answers_to_keep_alives_are_no_duplicates() -> None:
    talk = Conversation().opens()
    talk.client(b"hello")
    talk.acks(SERVER)
    for _ in range(3):
        talk.after(30_000).packet(CLIENT, offset=4)
        talk.acks(SERVER)
    wire = talk.wire()
    assert numbers(wire.flows, duplicates(wire)) == []


def test_no_packets_no_duplicates() -> None:
    wire = Conversation().opens().wire()
    flows = track(wire.packets.take(slice(0, 0)), wire.buffer)
    assert not len(duplicate_acks(flows, np.empty(0, np.bool_), np.empty(0, np.bool_)))
