"""Record numbers and epochs found again after a gap, with a cipher that opens a record only under the number it was written with."""

from __future__ import annotations

from netdiag.protocols.tls.epochs import Epoch, EpochKind
from netdiag.protocols.tls.record_opener import RecordOpener
from netdiag.protocols.tls.suites import suite_of
from netdiag.wire.record_view import TlsRecordView

AES_128_GCM = suite_of(0x1301)


class Numbered:
    """Octets name the key and the number; ``tried`` counts attempts."""

    stands_alone = True

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.tried = 0

    def open(self, sequence: int, content_type: int, version: int, fragment: bytes) -> tuple[int, bytes] | None:
        self.tried += 1
        return (content_type, fragment) if fragment == written(self._key, sequence) else None

    def skip(self, length: int, fragment: bytes = b"") -> None:
        pass


def written(key: bytes, number: int) -> bytes:
    return key + number.to_bytes(4, "big")


def record() -> TlsRecordView:
    return TlsRecordView(
        content_type=23,
        version=0x0303,
        length=5,
        stream_offset=0,
        first_seen_at=0,
        last_seen_at=0,
        deliverable_at=0,
        first_packet=1,
        last_packet=1,
        missing_bytes=0,
        read=bytes,
    )


def epoch(kind: EpochKind, key: bytes) -> tuple[Epoch, Numbered]:
    protection = Numbered(key)
    return Epoch(kind, key.decode()).ready(protection, AES_128_GCM, 0x0304, deflated=False), protection


def begun(*kinds: EpochKind) -> tuple[RecordOpener, list[Numbered]]:
    made = [epoch(kind, bytes([ord("a") + i])) for i, kind in enumerate(kinds)]
    opener = RecordOpener()
    opener.begin([one for one, _ in made])
    return opener, [protection for _, protection in made]


def test_records_open_in_the_order_of_their_numbers() -> None:
    opener, _ = begun(EpochKind.APPLICATION)
    assert [opener.open(record(), written(b"a", n)) is not None for n in (0, 1, 1, 2)] == [True, True, False, True]
    assert opener.opened == 3


def test_without_a_gap_no_other_number_is_tried() -> None:
    opener, (protection,) = begun(EpochKind.APPLICATION)
    assert opener.search(record(), written(b"a", 3)) is None
    assert protection.tried == 0


def test_after_a_gap_the_number_is_found_and_what_it_skipped_is_told() -> None:
    opener, _ = begun(EpochKind.APPLICATION)
    opener.gap_bytes = 1_000
    found = opener.search(record(), written(b"a", 3))
    assert found is not None
    assert (found.skipped, found.gap_bytes, found.entered is found.left) == (3, 1_000, True)
    assert opener.gap_bytes == 0
    assert opener.open(record(), written(b"a", 4)) is not None


def test_a_gap_too_small_for_so_many_records_finds_nothing() -> None:
    opener, (protection,) = begun(EpochKind.APPLICATION)
    opener.gap_bytes = 50
    assert opener.search(record(), written(b"a", 3)) is None
    assert protection.tried == 2


def test_the_first_record_of_the_next_epoch_ends_the_one_before() -> None:
    opener, _ = begun(EpochKind.HANDSHAKE, EpochKind.APPLICATION)
    found = opener.search(record(), written(b"b", 0))
    assert found is not None
    assert (found.left.kind, found.entered.kind) == (EpochKind.HANDSHAKE, EpochKind.APPLICATION)
    assert opener.current is found.entered


def test_attempts_are_bounded_over_the_whole_direction() -> None:
    opener, (protection,) = begun(EpochKind.APPLICATION)
    for _ in range(20):
        opener.gap_bytes = 1 << 30
        assert opener.search(record(), b"noise") is None
    assert protection.tried == 20_000


def test_it_gives_up_after_so_many_failures_and_later_where_early_data_may_be_skipped() -> None:
    opener, _ = begun(EpochKind.APPLICATION)
    early, _ = begun(EpochKind.EARLY, EpochKind.HANDSHAKE)
    early.next_epoch()
    opener.failures = early.failures = 16
    assert (opener.hopeless, early.hopeless) == (True, False)
    early.failures = 1_024
    assert early.hopeless


def test_without_any_keys_there_is_no_hope() -> None:
    opener = RecordOpener()
    opener.begin([Epoch(EpochKind.HANDSHAKE, "SERVER_HANDSHAKE_TRAFFIC_SECRET")])
    assert opener.open(record(), b"") is None
    assert opener.hopeless
