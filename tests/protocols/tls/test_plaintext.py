"""Decrypted content as chunks, with its holes."""

from __future__ import annotations

from netdiag.protocols.tls.plaintext import Plaintext
from netdiag.wire.record_view import TlsRecordView


def record(seen_at: int, *, deliverable_at: int | None = None) -> TlsRecordView:
    return TlsRecordView(
        content_type=23,
        version=0x0303,
        length=5,
        stream_offset=0,
        first_seen_at=seen_at,
        last_seen_at=None,
        deliverable_at=deliverable_at,
        first_packet=1,
        last_packet=2,
        missing_bytes=0,
        read=bytes,
    )


def test_content_follows_content() -> None:
    plain = Plaintext()
    plain.add(record(1, deliverable_at=4), b"abc")
    plain.add(record(5), b"de")
    first, second = plain.ready
    assert (first.offset, second.offset) == (0, 3)
    assert (first.deliverable_at, second.deliverable_at) == (4, 5)
    assert first.missing_before == second.missing_before == 0


def test_what_was_lost_moves_the_offset_and_is_told_once() -> None:
    plain = Plaintext()
    plain.lose(10)
    plain.lose(5)
    plain.add(record(1), b"abc")
    plain.add(record(2), b"d")
    first, second = plain.ready
    assert (first.missing_before, first.offset) == (15, 15)
    assert (second.missing_before, second.offset) == (0, 18)


def test_a_loss_of_unknown_size_is_minus_one() -> None:
    plain = Plaintext()
    plain.lose(None)
    assert not plain.whole
    plain.add(record(1), b"abc")
    assert plain.ready[0].missing_before == -1


def test_a_record_without_content_is_no_chunk() -> None:
    plain = Plaintext()
    plain.add(record(1), b"")
    assert plain.whole
