"""Reads at any offset, near the end and beyond it."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.octets import BIG16, BIG32, LITTLE32, OCTET, Octets

PAIR = np.dtype({"names": ["a", "b"], "formats": ["u1", ">u2"], "offsets": [0, 1], "itemsize": 5})


@given(st.binary(max_size=40), st.lists(st.integers(-10, 60), max_size=20))
def test_every_read_is_what_slicing_gives(data: bytes, places: list[int]) -> None:
    """Octets beyond the end are zero; before the beginning nothing is read at all."""
    octets, offsets = Octets(data), np.array(places, np.int64)
    for dtype in (OCTET, BIG16, BIG32, LITTLE32):
        size = dtype.itemsize
        order = "little" if dtype == LITTLE32 else "big"
        expected = [int.from_bytes(data[p : p + size].ljust(size, b"\0"), order) if p >= 0 else 0 for p in places]
        assert octets.column(offsets, dtype).tolist() == expected
    rows = octets.rows(offsets, PAIR)
    padded = [data[p : p + 5].ljust(5, b"\0") if p >= 0 else bytes(5) for p in places]
    assert rows["a"].tolist() == [row[0] for row in padded]
    assert rows["b"].tolist() == [int.from_bytes(row[1:3]) for row in padded]


def test_views_keep_a_map_open(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abcdefgh")
    with path.open("rb") as file:
        map_ = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    view = Octets(map_).view(BIG32)
    with pytest.raises(BufferError):
        map_.close()
    assert view[1] == int.from_bytes(b"bcde")


def test_text_is_cut_at_the_ends() -> None:
    assert Octets(b"abc").text(-5, 99) == b"abc"
    assert Octets(b"abc").text(2, 1) == b""
