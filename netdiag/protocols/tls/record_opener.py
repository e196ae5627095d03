"""Opens one direction's protected records: which keys and which record number each was written under.

Where records are missing from the capture the number is found again by trying, with a bounded number of attempts (RFC 8446 section 5.3: it
is nowhere in the record). What a find skipped is returned; whoever reads the direction accounts for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from netdiag.protocols.tls.epochs import Epoch, EpochKind
from netdiag.wire.record_view import TlsRecordView

_ATTEMPTS = 20_000
"""Decryptions that one direction may spend on finding its place again."""
_SEARCH = 4_096
"""Record numbers tried after one gap."""
_SMALLEST_RECORD = 5 + 17
_PATIENCE = 16
"""Unreadable records in a row after which an epoch is given up."""
_PATIENCE_SEARCHING = 1_024
"""The same while the keys of an earlier epoch are missing and the first record of the next one is looked for (0-RTT data, mostly)."""

Opened = tuple[int, bytes]
"""Content type and content."""


class Found(NamedTuple):
    """A record that was opened further on than where it was expected."""

    opened: Opened
    left: Epoch
    entered: Epoch
    """The same as ``left`` unless epochs were skipped."""
    skipped: int
    """Record numbers passed over in ``entered``."""
    gap_bytes: int
    """Octets of stream that are missing from the capture before it."""
    unread: int
    """Records in a row, captured, that had not been opened."""


class RecordOpener:
    """The place in the epochs of one direction."""

    def __init__(self) -> None:
        self.opened = 0
        """Records that were decrypted."""
        self.failures = 0
        """Records in a row that were not."""
        self.gap_bytes = 0
        """Octets missing from the capture since the last record that was opened."""
        self._epochs: list[Epoch] = []
        self._at = 0
        self._sequence = 0
        self._attempts = _ATTEMPTS

    def begin(self, epochs: list[Epoch]) -> None:
        """From the next record on these epochs, in this order."""
        self._epochs, self._at, self._sequence = epochs, 0, 0
        self.failures = 0

    @property
    def current(self) -> Epoch:
        """Keys in use. There must have been a ``begin``."""
        return self._epochs[self._at]

    @property
    def epoch(self) -> Epoch | None:
        """Keys in use; None before there are any."""
        return self._epochs[self._at] if self._epochs else None

    @property
    def left(self) -> list[Epoch]:
        """The epoch in use and those after it."""
        return self._epochs[self._at :]

    def next_epoch(self) -> None:
        """Finished and EndOfEarlyData end an epoch (RFC 8446 sections 4.4.4 and 4.5)."""
        if self._at + 1 < len(self._epochs):
            self._at += 1
            self._sequence = 0

    def update_keys(self) -> None:
        """KeyUpdate (RFC 8446 section 4.6.3)."""
        self._epochs = [self.current.updated()]
        self._at = self._sequence = 0

    def open(self, record: TlsRecordView, fragment: bytes) -> Opened | None:
        """Under the number that is due; None when it does not authenticate."""
        protection = self._epochs[self._at].protection
        if protection is None:
            return None
        opened = protection.open(self._sequence, record.content_type, record.version, fragment)
        if opened is not None:
            self.confirm()
        return opened

    @property
    def sequence(self) -> int:
        """The record number that is due."""
        return self._sequence

    def confirm(self) -> None:
        """The record that was due has been opened."""
        self._sequence += 1
        self.failures = 0
        self.gap_bytes = 0
        self.opened += 1
        self._epochs[self._at].proven = True

    def search(self, record: TlsRecordView, fragment: bytes) -> Found | None:
        """Tries the record numbers that a gap may have skipped, then the first ones of the epochs to come."""
        for at, first, last in self._places():
            protection = self._epochs[at].protection
            if protection is None or not protection.stands_alone:
                continue
            for sequence in range(first, last):
                if self._attempts <= 0:
                    return None
                self._attempts -= 1
                opened = protection.open(sequence, record.content_type, record.version, fragment)
                if opened is not None:
                    return self._moved(at, sequence, opened)
        return None

    def _places(self) -> Iterator[tuple[int, int, int]]:
        """(epoch, first record number, record number to stop before)."""
        lost = min(self.gap_bytes // _SMALLEST_RECORD, _SEARCH)
        if lost:
            yield self._at, self._sequence + 1, self._sequence + 1 + lost
        for at in range(self._at + 1, len(self._epochs)):
            yield at, 0, 1 + lost

    def _moved(self, at: int, sequence: int, opened: Opened) -> Found:
        skipped = sequence - (self._sequence if at == self._at else 0)
        found = Found(opened, self.current, self._epochs[at], skipped, self.gap_bytes, self.failures)
        self._at, self._sequence = at, sequence
        self.confirm()
        return found

    def skip(self, record: TlsRecordView, fragment: bytes) -> None:
        """A record of the current epoch that does not open: its number is used up all the same."""
        self._sequence += 1
        protection = self.current.protection
        if protection is not None:
            protection.skip(record.length, fragment)

    @property
    def skips_early(self) -> bool:
        """Before the first handshake record there may be 0-RTT data whose secret is unknown or whose keys the server refused."""
        return self.current.kind is EpochKind.HANDSHAKE and self._at > 0

    @property
    def hopeless(self) -> bool:
        """Whether to give up: there are no keys to try, or too many records in a row did not open."""
        epoch = self.current
        later = any(e.has_secret for e in self._epochs[self._at + 1 :])
        if epoch.protection is None and not later:
            return True
        searching = epoch.protection is None or (not epoch.proven and self.skips_early)
        return self.failures >= (_PATIENCE_SEARCHING if searching else _PATIENCE)
