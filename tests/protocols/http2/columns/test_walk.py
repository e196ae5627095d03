"""Where frames begin: in lock step and one by one it is the same."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.http2.columns.walk import HEADER_BYTES, frame_starts
from tests.support.h2_bytes import frame

_SIZES = st.lists(st.sampled_from([0, 1, 3, 8, 9, 40, 70_000]), max_size=120)


@given(_SIZES, st.lists(st.integers(1, 4000), max_size=40), st.integers(0, 12))
def test_guessed_entries_change_nothing(sizes: list[int], guesses: list[int], cut: int) -> None:
    frames = [frame(1, 0, number, bytes(size)) for number, size in enumerate(sizes)]
    begins = np.cumsum([0, *map(len, frames)]).tolist()
    data = b"".join(frames)
    data = data[: len(data) - cut] if cut < len(data) else data
    # Some entries are where frames begin, the others are not.
    entries = sorted({place for place in [*guesses, *begins[::2]] if 0 < place < len(data)})
    starts, after = frame_starts(data, 0, np.array(entries, np.int64))
    whole = [begin for begin in begins[:-1] if begin + HEADER_BYTES <= len(data)]
    assert starts.tolist() == whole
    assert after == begins[len(whole)]
