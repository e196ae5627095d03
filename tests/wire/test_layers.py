"""The loop that takes packets through their layers."""

from __future__ import annotations

import numpy as np

from netdiag.wire import codes
from netdiag.wire.cursor import start
from netdiag.wire.decode import decode
from netdiag.wire.layers import peel
from netdiag.wire.octets import Octets
from tests.support.encapsulations import FOUR
from tests.support.packets import ethernet, ipv4, ipv6, tcp, timed, window_of


def test_endless_nesting_ends() -> None:
    frame = ethernet(b"".join(b"\0\x05\x81\0" for _ in range(200)) + FOUR, ethertype=0x8100)
    decoded = decode(window_of(timed([frame])))
    assert decoded.not_decoded == {"nested too deep": 1}


def test_a_packet_that_ends_inside_a_header_is_cut_in_that_layer() -> None:
    frame = ethernet(ipv4(tcp(b"x")))
    for captured, layer in ((10, "ethernet"), (14 + 19, "ipv4")):
        cursor = start(
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            np.array([captured]),
            np.array([len(frame)]),
            np.array([codes.ETHERNET]),
        )
        peeled = peel(Octets(frame[:captured]), cursor)
        assert (peeled.ended, dict(peeled.cut)) == ({}, {layer: 1})


def test_rows_end_by_what_they_carry_and_keep_their_numbers() -> None:
    frames = [ethernet(ipv4(tcp(b"x"))), ethernet(b"", ethertype=0x0806), ethernet(ipv6(tcp(b"y")))]
    sizes = np.array([len(frame) for frame in frames], np.int64)
    cursor = start(np.arange(3), np.cumsum(sizes) - sizes, sizes, sizes, np.full(3, codes.ETHERNET, np.int64))
    ended = peel(Octets(b"".join(frames)), cursor).ended
    assert {code: sorted(rows.row.tolist()) for code, rows in ended.items()} == {
        codes.TCP: [0, 2],
        codes.ETHERTYPE | 0x0806: [1],
    }


def test_no_rows_no_layers() -> None:
    nothing = np.empty(0, np.int64)
    assert peel(Octets(b""), start(nothing, nothing, nothing, nothing, nothing)).ended == {}
