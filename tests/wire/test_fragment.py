"""When the fragments of a packet are complete, against sets of octets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from netdiag.wire.fragment import Pending, Piece


def piece(place: int, length: int) -> Piece:
    return Piece(number=1, captured_at=0, interface=0, network=0, at=0, captured=length, place=place, length=length)


@given(st.integers(1, 40), st.data())
def test_complete_when_every_octet_is_there(total: int, data: st.DataObject) -> None:
    begins = st.integers(0, total - 1)
    ranges = data.draw(
        st.lists(begins.flatmap(lambda at: st.tuples(st.just(at), st.integers(1, total - at))), max_size=12)
    )
    pending = Pending(protocol=6, version=4, total=total)
    for place, length in ranges:
        pending.pieces.append(piece(place, length))
        pending.have += length
    covered = {octet for place, length in ranges for octet in range(place, place + length)}
    assert pending.is_complete() == (covered == set(range(total)))


def test_not_complete_before_the_last_fragment_tells_the_length() -> None:
    pending = Pending(protocol=6, version=4, pieces=[piece(0, 8)], have=8)
    assert not pending.is_complete()
