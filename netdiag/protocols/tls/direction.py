"""One direction's records, read one at a time and only as far as somebody asks: in clear, then under the keys of each epoch.

A record that cannot be opened is a gap in the plaintext, never an exception. ``RecordOpener`` has the keys and the record numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from netdiag.protocols.anomalies import AnomalyLog
from netdiag.protocols.tls.assembler import Assembler
from netdiag.protocols.tls.epochs import Epoch, EpochKind
from netdiag.protocols.tls.names import ContentType
from netdiag.protocols.tls.observer import Observer
from netdiag.protocols.tls.plaintext import Plaintext
from netdiag.protocols.tls.record_opener import Found, Opened, RecordOpener
from netdiag.wire.chunk import Chunk
from netdiag.wire.record_view import TlsRecordView
from netdiag.wire.tables import NONE

if TYPE_CHECKING:
    from netdiag.protocols.tls.protection import Protection

_APPLICATION_DATA = int(ContentType.APPLICATION_DATA)
_HEADER_BYTES = 5
_TOLD = 3
"""Unreadable records in a row that get a line each."""


class Stage(Enum):
    """How a direction's records are read."""

    CLEAR = 0
    PROTECTED = 1
    OPAQUE = 2
    """Encrypted, and without keys."""


class Direction:
    """Reader of one direction."""

    def __init__(self, records: Sequence[TlsRecordView], name: str, observer: Observer[Direction]) -> None:
        self.records = records
        self.name = name
        """``client`` or ``server``: who sent the records."""
        self.index = 0
        """Next record to read."""
        self.stage = Stage.CLEAR
        self.changes = 0
        """ChangeCipherSpecs that changed keys (TLS 1.2 and before)."""
        self.finished: TlsRecordView | None = None
        """Record that completes the first Finished."""
        self.first_application: int | None = None
        """Index of the first record of application data after the handshake (0-RTT data apart)."""
        self.first_early: int | None = None
        """Index of the first record of 0-RTT data."""
        self.missing_labels: list[str] = []
        """Labels of secrets that records of this direction would have needed."""
        self.unread = 0
        """Protected records that were not, although there were keys."""
        self.busy = False
        self.plaintext = Plaintext()
        self.anomalies = AnomalyLog("tls")
        self._observer = observer
        self._assembler: Assembler[TlsRecordView] = Assembler()
        self._opener = RecordOpener()
        self._next_offset: int | None = None
        self._awaiting_finished = False

    # -- reading ---------------------------------------------------------------------------------------------------------------------

    def read(self) -> bool:
        """Reads the next record; False at the end (or when this direction is being read further up the stack)."""
        if self.busy or self.index >= len(self.records):
            return False
        self.busy = True
        record = self.records[self.index]
        self.index += 1
        self._note_gap(record)
        if self.stage is Stage.CLEAR:
            self._read_clear(record)
        elif self.stage is Stage.PROTECTED:
            self._read_protected(record)
        else:
            self._read_opaque(record)
        self.busy = False
        return True

    def chunks(self) -> Iterator[Chunk]:
        """Application data from the first octet on. Can be iterated once."""
        ready = self.plaintext.ready
        while True:
            while ready:
                yield ready.popleft()
            yield from self._straight_on()
            if not self.read():
                return

    def _straight_on(self) -> Iterator[Chunk]:
        """Records of application data for as long as each opens as the next under the keys in use: what ``read`` does for those, in fewer
        steps. The first that is anything else is left to it."""
        records, protection = getattr(self.records, "plain", None), self._straight_protection()
        if records is None or protection is None or not self.plaintext.whole:
            return
        opener, passed = self._opener, self.plaintext.passed
        for index, row in enumerate(records.rows(self.index), self.index):
            kind, version, length, offset, seen_at, last_seen_at, deliverable_at, packet, last_packet, missing, _ = row
            if kind != _APPLICATION_DATA or missing or deliverable_at == NONE or offset != self._next_offset:
                return
            if index != self.index:  # somebody has read on meanwhile
                return
            opened = protection.open(opener.sequence, kind, version, records.content(row))
            if opened is None or opened[0] != _APPLICATION_DATA:
                return
            opener.confirm()
            self.index += 1
            self._next_offset = offset + _HEADER_BYTES + length
            content = opened[1]
            if content:
                yield Chunk(
                    content,
                    passed(len(content)),
                    seen_at,
                    last_seen_at,
                    deliverable_at,
                    None if packet == NONE else packet,
                    None if last_packet == NONE else last_packet,
                )

    def _straight_protection(self) -> Protection | None:
        """What opens record after record from here on; None where more than that has to be thought of."""
        epoch = self._opener.epoch
        if epoch is None or self.first_application is None or self.stage is not Stage.PROTECTED or self.busy:
            return None
        if epoch.kind not in (EpochKind.APPLICATION, EpochKind.CONNECTION) or epoch.deflates:
            return None
        protection = epoch.protection
        return protection if protection is not None and protection.stands_alone else None

    @property
    def epoch(self) -> Epoch | None:
        """Keys in use; None in clear."""
        return self._opener.epoch

    @property
    def opened(self) -> int:
        """Records that were decrypted."""
        return self._opener.opened

    @property
    def message_began(self) -> TlsRecordView | None:
        """The record with the first octet of the handshake message being reported; None where it is the reported record itself."""
        return self._assembler.started

    @property
    def settled(self) -> bool:
        """Whether the handshake is over for this direction, as far as that can be told: reading on would only yield application data."""
        if self.first_application is not None:
            return True
        return self.stage is Stage.OPAQUE and not self.changes

    # -- key changes, called by the observer -----------------------------------------------------------------------------------------

    def protect(self, epochs: list[Epoch], *, changed: bool = False) -> None:
        """From the next record on these epochs, in this order; ``changed``: by a ChangeCipherSpec, so a Finished follows."""
        self.stage = Stage.PROTECTED
        self._opener.begin(epochs)
        if changed:
            self.changes += 1
            self._awaiting_finished = True
            self._opener.gap_bytes = 0

    def close_eyes(self, *, changed: bool = False) -> None:
        """From the next record on nothing can be read."""
        self.stage = Stage.OPAQUE
        if changed:
            self.changes += 1
            self._awaiting_finished = True

    def next_epoch(self) -> None:
        """Finished and EndOfEarlyData end an epoch (RFC 8446 sections 4.4.4 and 4.5)."""
        self._opener.next_epoch()

    def update_keys(self) -> None:
        """KeyUpdate (RFC 8446 section 4.6.3)."""
        self._opener.update_keys()

    # -- one record ------------------------------------------------------------------------------------------------------------------

    def _note_gap(self, record: TlsRecordView) -> None:
        expected = self._next_offset
        if expected is not None and record.stream_offset > expected:
            self._opener.gap_bytes += record.stream_offset - expected
            self._assembler.reset()
        header = 2 if record.content_type == ContentType.SSL2_HELLO else 5
        self._next_offset = record.stream_offset + header + record.length

    def _read_clear(self, record: TlsRecordView) -> None:
        kind = record.content_type
        if kind == ContentType.HANDSHAKE or kind == ContentType.SSL2_HELLO:
            self._read_clear_handshake(record)
        elif kind == ContentType.CHANGE_CIPHER_SPEC:
            self._observer.change_cipher_spec(self)
        elif kind == ContentType.ALERT:
            self._read_alerts(record.fragment(), record)
        elif kind == ContentType.APPLICATION_DATA:
            self._observer.first_protected(self, record)
            if self.stage is Stage.PROTECTED:
                self._read_protected(record)
            else:
                self._read_opaque(record)

    def _read_clear_handshake(self, record: TlsRecordView) -> None:
        if record.missing_bytes:
            self.anomalies.add(
                f"handshake record of the {self.name} lacks {record.missing_bytes} octets",
                packet=record.first_packet,
                offset=record.stream_offset,
            )
            # What is there may hold whole messages; what comes after the hole does not continue them.
            self._read_messages(record.fragment(), record)
            self._assembler.reset()
        elif record.content_type == ContentType.SSL2_HELLO:
            self._observer.message(self, ContentType.SSL2_HELLO, record.fragment(), record)
        else:
            self._read_messages(record.fragment(), record)

    def _read_messages(self, content: bytes, record: TlsRecordView) -> None:
        assembler = self._assembler
        for kind, body in assembler.feed(content, record):
            self._observer.message(self, kind, body, record)
        if assembler.damage:
            self.anomalies.add(assembler.damage, packet=record.first_packet, offset=record.stream_offset)
            assembler.reset()
            if self.stage is Stage.CLEAR:
                self.close_eyes()

    def _read_alerts(self, content: bytes, record: TlsRecordView) -> None:
        for at in range(0, len(content) - 1, 2):
            self._observer.alert(self, content[at], content[at + 1], record)

    def _read_opaque(self, record: TlsRecordView) -> None:
        kind = record.content_type
        if kind == ContentType.APPLICATION_DATA:
            if self.first_application is None:
                self.first_application = self.index - 1
        elif kind == ContentType.HANDSHAKE and self._awaiting_finished:
            self._note_finished(record)

    def _note_finished(self, record: TlsRecordView) -> None:
        self._awaiting_finished = False
        if self.finished is None:
            self.finished = record

    def _read_protected(self, record: TlsRecordView) -> None:
        epoch = self._opener.current
        if epoch.kind is not EpochKind.CONNECTION and record.content_type != ContentType.APPLICATION_DATA:
            self._read_beside(record)
            return
        if self._awaiting_finished and record.content_type == ContentType.HANDSHAKE:
            self._note_finished(record)
        opened = self._open(record)
        if opened is None:
            return
        epoch = self._opener.current
        kind, content = opened
        inflated = epoch.inflated(content)
        if inflated is None:
            self._lose_content(record, "does not decompress")
        elif kind == ContentType.APPLICATION_DATA:
            self._application(record, inflated, epoch)
        elif kind == ContentType.HANDSHAKE:
            self._read_messages(inflated, record)
        elif kind == ContentType.ALERT:
            self._read_alerts(inflated, record)
        elif kind == ContentType.CHANGE_CIPHER_SPEC:
            self._observer.change_cipher_spec(self)

    def _read_beside(self, record: TlsRecordView) -> None:
        """Records in clear among protected ones of TLS 1.3: middlebox ChangeCipherSpec (appendix D.4), a second ClientHello after 0-RTT data,
        an alert of a peer that has no keys yet."""
        if record.content_type == ContentType.HANDSHAKE:
            self._read_clear_handshake(record)
        elif record.content_type == ContentType.ALERT and record.length == 2:
            self._read_alerts(record.fragment(), record)

    def _application(self, record: TlsRecordView, content: bytes, epoch: Epoch) -> None:
        if epoch.kind is EpochKind.EARLY:
            if self.first_early is None:
                self.first_early = self.index - 1
            if self._observer.discards_early_data():
                return
        elif self.first_application is None and content:
            self.first_application = self.index - 1
        self.plaintext.add(record, content)

    # -- opening ---------------------------------------------------------------------------------------------------------------------

    def _open(self, record: TlsRecordView) -> Opened | None:
        """None: then the loss has been noted."""
        if record.missing_bytes:
            self._lose(record, b"")
            return None
        fragment = record.fragment()
        opened = self._opener.open(record, fragment)
        if opened is not None:
            return opened
        found = self._opener.search(record, fragment)
        if found is None:
            self._lose(record, fragment)
            return None
        self._account(found)
        return found.opened

    def _account(self, found: Found) -> None:
        """For the records that are missing between where we were and where we are."""
        left = found.left
        unread_early = found.entered is not left and left.kind is EpochKind.EARLY and not left.has_secret
        # One unread record may be the EndOfEarlyData alone; more of them were data.
        if unread_early and found.unread > 1 and not self._observer.discards_early_data():
            self.plaintext.lose(None)
        if found.gap_bytes and found.skipped and found.entered.kind is not EpochKind.HANDSHAKE:
            self.plaintext.lose(_lost_content(found))

    def _lose(self, record: TlsRecordView, fragment: bytes) -> None:
        """A protected record that could not be opened."""
        opener = self._opener
        epoch = opener.current
        opener.failures += 1
        if epoch.protection is None:
            self._note_missing(epoch)
            if self.finished is not None and self.first_application is None:
                self.first_application = self.index - 1
        elif epoch.proven or not opener.skips_early:
            self.unread += 1
            self._lose_content(record, _why(record, epoch))
            opener.skip(record, fragment)
        if opener.hopeless:
            self._give_up()

    def _lose_content(self, record: TlsRecordView, why: str) -> None:
        if self._opener.failures <= _TOLD or record.missing_bytes:
            self.anomalies.add(
                f"record {self.index} of the {self.name} {why}", packet=record.first_packet, offset=record.stream_offset
            )
        epoch = self._opener.current
        if epoch.kind is EpochKind.HANDSHAKE or (
            epoch.kind is EpochKind.CONNECTION and record.content_type != ContentType.APPLICATION_DATA
        ):
            self._assembler.reset()
            return
        if self.first_application is None and epoch.kind is not EpochKind.EARLY:
            self.first_application = self.index - 1
        self.plaintext.lose(epoch.content_bytes(record.length))

    def _note_missing(self, epoch: Epoch) -> None:
        if epoch.label not in self.missing_labels and not epoch.has_secret:
            self.missing_labels.append(epoch.label)

    def _give_up(self) -> None:
        for left in self._opener.left:
            self._note_missing(left)
        self.close_eyes()


def _why(record: TlsRecordView, epoch: Epoch) -> str:
    if record.missing_bytes:
        return f"lacks {record.missing_bytes} of {record.length} octets"
    return f"does not authenticate under {epoch.label}"


def _lost_content(found: Found) -> int | None:
    """Octets of plaintext in the records of a gap; None when the cipher suite does not tell."""
    epoch, records = found.entered, found.skipped
    size = epoch.content_bytes(found.gap_bytes - 5 * records)
    if size is not None and records == 1:
        return size
    overhead = epoch.content_bytes(1 << 20)
    return None if overhead is None else found.gap_bytes - records * (5 + (1 << 20) - overhead)
