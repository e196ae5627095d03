"""A step behind a header: where the packet goes on, and how far it reaches."""

from __future__ import annotations

import numpy as np

from netdiag.wire.cursor import UNBOUND, Cursor, le16, le32, start, u8, u16, u32
from netdiag.wire.octets import Octets
from netdiag.wire.tables import NONE


def at_start(*lengths: tuple[int, int]) -> Cursor:
    """Packets (captured, original octets) one after the other, all of code 7."""
    captured, original = (np.array(column, np.int64) for column in zip(*lengths, strict=True))
    rows = np.arange(len(lengths))
    return start(rows, np.cumsum(captured) - captured, captured, original, np.full(len(lengths), 7, np.int64))


def test_a_cut_packet_reaches_further_on_the_wire_than_in_the_file() -> None:
    cursor = at_start((60, 1500), (60, 60), (60, 40))
    assert (cursor.end - cursor.at).tolist() == [60, 60, 60]
    assert (cursor.wire_end - cursor.at).tolist() == [1500, 60, 60]
    assert set(cursor.bound.tolist()) == {UNBOUND}
    assert set(cursor.network.tolist()) == {NONE}


def test_a_step_moves_and_names_what_comes_next() -> None:
    cursor = at_start((60, 60), (60, 60)).step(9, np.array([14, 18]))
    assert cursor.at.tolist() == [14, 78]
    assert cursor.code.tolist() == [9, 9]
    assert at_start((60, 60)).step(np.array([11]), 4).code.tolist() == [11]


def test_a_length_field_ends_the_packet_but_never_beyond_what_was_captured() -> None:
    cursor = at_start((60, 60)).step(9, 14, wire_end=np.array([50]))
    assert (cursor.end.tolist(), cursor.wire_end.tolist()) == ([50], [50])
    cut = at_start((60, 1500)).step(9, 14, wire_end=np.array([1400]))
    assert (cut.end.tolist(), cut.wire_end.tolist()) == ([60], [1400])


def test_only_binding_lengths_hold_for_ip() -> None:
    loose, tight = (at_start((60, 60)).step(9, 14, wire_end=np.array([50]), binding=b) for b in (False, True))
    assert loose.bound.tolist() == [UNBOUND]
    assert tight.bound.tolist() == [50]
    assert tight.step(9, 4, wire_end=np.array([55]), binding=True).bound.tolist() == [50]


def test_the_network_header_is_noted_where_it_stands() -> None:
    assert at_start((60, 60)).step(9, 14).at_network().step(9, 20).network.tolist() == [14]


def test_fields_in_both_byte_orders() -> None:
    octets, cursor = Octets(bytes(range(1, 17))), at_start((8, 8), (8, 8))
    assert u8(octets, cursor, 1).tolist() == [2, 10]
    assert u16(octets, cursor, 0).tolist() == [0x0102, 0x090A]
    assert u32(octets, cursor, 4).tolist() == [0x05060708, 0x0D0E0F10]
    assert le16(octets, cursor, 0).tolist() == [0x0201, 0x0A09]
    assert le32(octets, cursor, 4).tolist() == [0x08070605, 0x100F0E0D]
