"""WebSocket frames, masked or not, of every length form."""

from __future__ import annotations

import pytest

from netdiag.protocols.websocket import Opcode, frames
from tests.support.http_bytes import MS, octet_by_octet, stream


def frame(opcode: int, payload: bytes, *, masked: bool = False, final: bool = True) -> bytes:
    size = len(payload)
    mask = 0x80 if masked else 0
    if size < 126:
        head = bytes((opcode | (0x80 if final else 0), size | mask))
    elif size < 1 << 16:
        head = bytes((opcode | (0x80 if final else 0), 126 | mask)) + size.to_bytes(2, "big")
    else:
        head = bytes((opcode | (0x80 if final else 0), 127 | mask)) + size.to_bytes(8, "big")
    return head + (b"\1\2\3\4" if masked else b"") + payload


@pytest.mark.parametrize("masked", [False, True])
def test_frames_of_every_length_form(masked: bool) -> None:
    sizes = [0, 1, 125, 126, 65_535, 65_536]
    octets = b"".join(frame(Opcode.BINARY, b"x" * n, masked=masked) for n in sizes)
    assert [f.payload_bytes for f in frames(stream((0, octets)))] == sizes
    assert [f.payload_bytes for f in frames(octet_by_octet(stream((0, octets[:400]))))] == sizes[:4]


def test_moments_fragments_and_the_close_code() -> None:
    octets = (
        frame(Opcode.TEXT, b"hel", final=False)
        + frame(Opcode.CONTINUATION, b"lo")
        + frame(Opcode.CLOSE, b"\x03\xe8bye")
    )
    found = list(frames(stream((10, octets[:4]), (20, octets[4:8]), (30, octets[8:]))))
    assert [(f.opcode, f.final, f.close_code) for f in found] == [(1, False, None), (0, True, None), (8, True, 1000)]
    assert [(f.first.deliverable_at / MS, f.last.deliverable_at / MS) for f in found] == [(10, 20), (20, 30), (30, 30)]


def test_octets_missing_inside_a_payload_are_passed_over() -> None:
    octets = frame(Opcode.BINARY, b"x" * 100) + frame(Opcode.PING, b"")
    assert [f.opcode for f in frames(stream((0, octets[:10]), (0, 50), (1, octets[60:])))] == [2, 9]


@pytest.mark.parametrize("octets", [b"", b"\x81", b"\xf1\x00", b"\x82\xff" + b"\xff" * 8, b"\x82\x7e\x01"])
def test_what_is_no_whole_frame_ends_quietly(octets: bytes) -> None:
    assert list(frames(stream((0, octets)))) == []
