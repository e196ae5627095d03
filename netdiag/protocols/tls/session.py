"""One connection's TLS session as seen from outside: both directions are read, and which keys come next is told from what they said.

Each direction is read on its own; where one needs to know what the other said (the ServerHello before a key change, say) the other is read
ahead until it has said it. So nothing here depends on the times in the capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from netdiag.protocols.tls import keys
from netdiag.protocols.tls.direction import Direction, Stage
from netdiag.protocols.tls.epochs import Epoch
from netdiag.protocols.tls.keylog import MASTER, KeyLog
from netdiag.protocols.tls.keys import Negotiation
from netdiag.protocols.tls.messages import RULES
from netdiag.protocols.tls.names import (
    TLS13,
    ContentType,
    HandshakeType,
    alert_name,
    is_tls13,
)
from netdiag.protocols.tls.negotiated import Negotiated
from netdiag.protocols.tls.suites import Suite, suite_of
from netdiag.records.tls import Alert
from netdiag.wire.record_view import TlsRecordView

_MOST_ALERTS = 32


class Session(Negotiated):
    """Reads both directions and gives each its keys."""

    def __init__(self, client: Sequence[TlsRecordView], server: Sequence[TlsRecordView], keylog: KeyLog | None) -> None:
        super().__init__()
        self.client = Direction(client, "client", self)
        self.server = Direction(server, "server", self)
        self.keylog = keylog
        self._keys13: keys.Tls13Keys | None = None

    # -- what directions report ------------------------------------------------------------------------------------------------------

    def message(self, side: Direction, kind: int, body: bytes, record: TlsRecordView) -> None:
        """One handshake message. Kinds without an entry in the table change nothing here."""
        rule = _RULES.get((side.name, kind)) or _RULES.get(("", kind))
        if rule:
            rule(self, side, body, record)
        if self.keylog is not None and self.keylog.needs_transcript:
            self.negotiations[-1].keep(from_client=side is self.client, kind=kind, body=body)

    def alert(self, side: Direction, level: int, description: int, record: TlsRecordView) -> None:
        """RFC 8446 section 6."""
        if len(self.alerts) < _MOST_ALERTS:
            at = record.first_seen_at
            if side is self.server:
                at = record.deliverable_at if record.deliverable_at is not None else record.last_seen_at or at
            self.alerts.append(
                Alert(
                    sender=side.name,
                    level=level,
                    description=description,
                    name=alert_name(description),
                    at=at,
                    packet=record.last_packet,
                )
            )

    def change_cipher_spec(self, side: Direction) -> None:
        """TLS 1.2 and before: new keys. TLS 1.3: a dummy for middleboxes (appendix D.4), which may come before the ServerHello is known."""
        if self._follows_tls13(side):
            return
        if side is self.server and self.abbreviated is None and self.answer is not None and side.changes == 0:
            self.abbreviated = True
        if side is self.server:
            self.negotiation(side.changes).server_done = True
        epochs = self._connection_epochs(side)
        if epochs is None:
            side.close_eyes(changed=True)
        else:
            side.protect([epochs[0 if side is self.client else 1]], changed=True)

    def first_protected(self, side: Direction, record: TlsRecordView) -> None:
        """application_data in clear text's place: TLS 1.3 after the hellos, or a capture that begins in the middle."""
        self._until(self.server, lambda: self.answer is not None)
        if side is self.server:
            self._until(self.client, lambda: self.hello is not None)
        tls13 = self._follows_tls13(side)
        found = self._keys13
        if tls13 and found is None:
            found = self._keys13 = self._tls13_keys(side, record)
        if found is None:
            side.close_eyes()
            if tls13:
                side.missing_labels.append(keys.CLIENT_APPLICATION if side is self.client else keys.SERVER_APPLICATION)
        else:
            early = self.hello is not None and self.hello.offers_early_data
            side.protect(found.epochs(from_client=side is self.client, early=early))

    def _tls13_keys(self, side: Direction, record: TlsRecordView) -> keys.Tls13Keys | None:
        hello, suite, version = self.hello, self.suite, self.version or TLS13
        if hello is not None and suite is not None:
            secrets = self.keylog.of(hello.random) if self.keylog is not None else None
            if secrets:
                self._note_if_unsupported(suite)
                return keys.Tls13Keys(secrets, suite, version)
            if not hello.offers_ech:
                return None
        if self.keylog is None:
            return None
        offered = (suite.number,) if suite is not None else hello.suite_numbers if hello is not None else ()
        return keys.by_trial(
            self.keylog,
            record,
            random=None if hello is None or hello.offers_ech else hello.random,
            suites=offered,
            version=version,
            from_client=side is self.client,
        )

    def discards_early_data(self) -> bool:
        """See ``Observer``."""
        self._until(self.server, lambda: self.early_accepted is not None or self.server.finished is not None)
        if self.early_accepted is not None:
            return not self.early_accepted
        return self.retry is not None or (self.answer is not None and not self.answer.selected_psk)

    # -- reading ahead ---------------------------------------------------------------------------------------------------------------

    def _until(self, side: Direction, known: Callable[[], bool]) -> None:
        """Reads a direction on until something is known, it can no longer be read, or it ends."""
        while not known() and side.stage is not Stage.OPAQUE and side.read():
            pass

    def _follows_tls13(self, side: Direction) -> bool:
        if side is self.client and self.tls13 is None:
            self._until(self.server, lambda: self.answer is not None)
        if self.tls13 is not None:
            return self.tls13
        if self.retry is not None:
            return True
        # Only this direction was captured. A client that offers TLS 1.3 goes on with application_data records if it was taken.
        hello = self.hello
        offers = hello is not None and any(is_tls13(v) for v in hello.versions)
        following = side.records[side.index] if side.index < len(side.records) else None
        return (
            offers
            and (following is None or following.content_type != ContentType.HANDSHAKE or side.changes == 0)
            and (self.negotiations[0].encrypted_premaster is None)
        )

    # -- keys ------------------------------------------------------------------------------------------------------------------------

    def _connection_epochs(self, side: Direction) -> tuple[Epoch, Epoch] | None:
        """Client's and server's epoch of the handshake that this direction's ChangeCipherSpec ends; None when nothing can be read."""
        number = side.changes
        self._until(self.server, lambda: self.negotiation(number).server is not None)
        self._until(self.client, lambda: self.negotiation(number).client is not None)
        negotiation = self.negotiation(number)
        if negotiation.epochs is None and negotiation.server is not None and negotiation.server.suite is not None:
            master = self._master(negotiation, number)
            suite = suite_of(negotiation.server.suite)
            negotiation.epochs = keys.connection_epochs(negotiation, master)
            if negotiation.epochs is None:
                self._note_closed(negotiation, suite, master)
        return negotiation.epochs

    def _master(self, negotiation: Negotiation, number: int) -> bytes | None:
        keylog = self.keylog
        if keylog is None or negotiation.server is None:
            return None
        changes = self.client.changes
        if keys.wants_premaster(keylog, negotiation.client):
            self._until(
                self.client, lambda: negotiation.encrypted_premaster is not None or self.client.changes > changes
            )
        self._until(self.server, lambda: negotiation.server_done)
        master = keys.master_of(keylog, negotiation, resumed=number == 0 and bool(self.abbreviated))
        if master is not None:
            keylog.remember(negotiation.server.session_id, master)
        return master

    def _note_closed(self, negotiation: Negotiation, suite: Suite, master: bytes | None) -> None:
        """Why a handshake's records stay closed: no secret, or no cipher."""
        if master is not None:
            self._note_unsupported(suite)
        elif negotiation.client is not None:
            for direction in (self.client, self.server):
                if MASTER not in direction.missing_labels:
                    direction.missing_labels.append(MASTER)

    def _note_if_unsupported(self, suite: Suite) -> None:
        from netdiag.protocols.tls.protection import opens13

        if not opens13(suite):
            self._note_unsupported(suite)

    def _note_unsupported(self, suite: Suite) -> None:
        if self.unsupported is None:
            self.unsupported = suite
            self.server.anomalies.add(f"records under {suite.name} cannot be decrypted: the cipher is not available")

    def _new_session_ticket(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self.tickets += 1
        if self.tls13 or self.keylog is None or len(body) < 6:
            return
        number = len(self.negotiations) - 1
        master = self._master(self.negotiations[number], number)
        if master is not None:
            self.keylog.remember(body[6:], master)


_RULES: dict[tuple[str, int], Callable[[Session, Direction, bytes, TlsRecordView], None]] = {
    **RULES,
    ("server", HandshakeType.NEW_SESSION_TICKET): Session._new_session_ticket,
}
"""The rules of ``messages``, and the one that needs keys."""
