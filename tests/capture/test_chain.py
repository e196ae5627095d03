"""Record offsets: lanes give exactly what walking one by one gives, whatever the payloads look like."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture import chain
from netdiag.capture.chain import Layout, Stop, walk
from netdiag.wire.octets import Octets

LITTLE = Layout(header_bytes=8, length_at=4, overhead=8, shortest=0, longest=5000, order="<")
BIG = Layout(header_bytes=8, length_at=4, overhead=8, shortest=0, longest=5000, order=">")
BLOCKS = Layout(header_bytes=8, length_at=4, overhead=0, shortest=8, longest=5000, order="<", align=4)


def records(lengths: list[int], layout: Layout) -> bytes:
    """Records of so many octets of content, full of octets that look like heads."""
    out = []
    for length in lengths:
        said = length if layout.overhead else length + 8
        content = (b"MARK" + struct.pack(layout.order + "I", 40)) * (length // 8 + 1)
        out.append(b"MARK" + struct.pack(layout.order + "I", said) + content[:length] + bytes(-length % layout.align))
    return b"".join(out)


def liar(raw: bytes):  # type: ignore[no-untyped-def]
    """A synchroniser that believes every mark, wherever it is."""

    def synchronise(start: int, end: int) -> int | None:
        at = raw.find(b"MARK", start, end)
        return at if at >= 0 else None

    return synchronise


@pytest.fixture(autouse=True)
def _small_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "LANE_BYTES", 256)
    monkeypatch.setattr(chain, "FEW_LANES", 3)


@pytest.mark.parametrize("layout", [LITTLE, BIG, BLOCKS], ids=["little", "big", "aligned"])
@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(0, 700), max_size=120), cut=st.integers(0, 600), limit=st.integers(1, 100_000))
def test_lanes_equal_one_by_one(layout: Layout, lengths: list[int], cut: int, limit: int) -> None:
    raw = records(lengths, layout)
    raw = raw[: max(0, len(raw) - cut)]
    octets = Octets(raw)
    limit = min(limit, len(raw))
    singly = walk(octets, layout, 0, limit)
    lanes = walk(octets, layout, 0, limit, liar(raw))
    assert lanes.offsets.tolist() == singly.offsets.tolist()
    assert (lanes.end, lanes.stop) == (singly.end, singly.stop)


@pytest.mark.parametrize("damage", [0, 1, 57, 119])
def test_damage_stops_lanes_where_it_stops_one_by_one(damage: int) -> None:
    generator = random.Random(5)
    lengths = [generator.randint(0, 400) for _ in range(120)]
    raw = bytearray(records(lengths, LITTLE))
    place = int(np.cumsum([0] + [8 + n for n in lengths])[damage])
    struct.pack_into("<I", raw, place + 4, 9_999_999)
    found = walk(Octets(bytes(raw)), LITTLE, 0, len(raw), liar(bytes(raw)))
    assert (found.end, found.stop, len(found.offsets)) == (place, Stop.DAMAGED, damage)


@pytest.mark.parametrize(
    ("raw", "stop"), [(b"", Stop.LIMIT), (b"MARK\0\0\0", Stop.END), (b"MARK\x08\0\0\0abc", Stop.CUT)]
)
def test_why_it_stops(raw: bytes, stop: Stop) -> None:
    found = walk(Octets(raw), LITTLE, 0, len(raw))
    assert (len(found.offsets), found.end, found.stop) == (0, 0, stop)
