"""One connection's TLS session as seen from outside: which message means what, and which keys come next.

Each direction is read on its own; where one needs to know what the other said (the ServerHello before a key change, say) the other is read
ahead until it has said it. So nothing here depends on the times in the capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from netdiag.protocols.tls import handshake as hs
from netdiag.protocols.tls import keys
from netdiag.protocols.tls.direction import Direction, Stage
from netdiag.protocols.tls.epochs import Epoch, EpochKind
from netdiag.protocols.tls.keylog import MASTER, KeyLog
from netdiag.protocols.tls.keys import Negotiation
from netdiag.protocols.tls.names import (
    TLS13,
    ContentType,
    ExtensionType,
    HandshakeType,
    alert_name,
    group_name,
    is_tls13,
)
from netdiag.protocols.tls.suites import Suite, suite_of
from netdiag.records.tls import Alert
from netdiag.wire.record_view import TlsRecordView

_MOST_ALERTS = 32
_MOST_NEGOTIATIONS = 1_000


class Session:
    """What both directions say. Facts are plain attributes, None until they are known."""

    def __init__(self, client: Sequence[TlsRecordView], server: Sequence[TlsRecordView], keylog: KeyLog | None) -> None:
        self.client = Direction(client, "client", self)
        self.server = Direction(server, "server", self)
        self.keylog = keylog
        self.version: int | None = None
        """Version negotiated in the first handshake."""
        self.tls13: bool | None = None
        """Whether that is TLS 1.3 (or a draft of it); None before a ServerHello."""
        self.negotiations: list[Negotiation] = [Negotiation()]
        self.alerts: list[Alert] = []
        self.client_hello_began: TlsRecordView | None = None
        self.client_hello_record: TlsRecordView | None = None
        """Record that completes the first ClientHello."""
        self.last_client_hello_record: TlsRecordView | None = None
        """The same of the second one after a HelloRetryRequest; else the first."""
        self.retry: hs.ServerHello | None = None
        self.retry_record: TlsRecordView | None = None
        self.server_hello_record: TlsRecordView | None = None
        self.server_hello_index: int | None = None
        self.flight_end_index: int | None = None
        """Index of the record that ends the server's first flight: ServerHelloDone or Finished."""
        self.group: str | None = None
        self.alpn: str | None = None
        self.early_accepted: bool | None = None
        """From EncryptedExtensions; None while they cannot be read."""
        self.end_of_early_data = False
        self.certificate_bytes: int | None = None
        self.client_certificate: bool | None = None
        self.key_updates = 0
        self.tickets = 0
        self.abbreviated: bool | None = None
        """Whether the server went straight from its hello to ChangeCipherSpec (TLS 1.2 and before)."""
        self.unsupported: Suite | None = None
        self._keys13: keys.Tls13Keys | None = None

    # -- facts -----------------------------------------------------------------------------------------------------------------------

    @property
    def hello(self) -> hs.ClientHello | None:
        """The first ClientHello (the last one of a retried handshake has the same random)."""
        return self.negotiations[0].client

    @property
    def answer(self) -> hs.ServerHello | None:
        """The real ServerHello of the first handshake."""
        return self.negotiations[0].server

    @property
    def suite(self) -> Suite | None:
        """Cipher suite negotiated; a HelloRetryRequest tells it before the ServerHello does."""
        answer = self.answer or self.retry
        return None if answer is None or answer.suite is None else suite_of(answer.suite)

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
            self._negotiation(side.changes).server_done = True
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
            if secrets and suite.bulk is None:
                self._note_unsupported(suite)
            if secrets:
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

    def discards(self, epoch: Epoch) -> bool:
        """0-RTT data that the server did not take (RFC 8446 section 4.2.10)."""
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
        self._until(self.server, lambda: self._negotiation(number).server is not None)
        self._until(self.client, lambda: self._negotiation(number).client is not None)
        negotiation = self._negotiation(number)
        if negotiation.epochs is None and negotiation.server is not None and negotiation.server.suite is not None:
            master = self._master(negotiation, number)
            suite = suite_of(negotiation.server.suite)
            negotiation.epochs = keys.connection_epochs(negotiation, master)
            if negotiation.epochs is None:
                self._note_closed(negotiation, suite, master)
        return negotiation.epochs

    def _negotiation(self, number: int) -> Negotiation:
        return self.negotiations[number] if number < len(self.negotiations) else Negotiation()

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

    def _note_unsupported(self, suite: Suite) -> None:
        if self.unsupported is None:
            self.unsupported = suite
            self.server.anomalies.add(f"records under {suite.name} cannot be decrypted: the cipher is not available")

    # -- rules: what each message means ----------------------------------------------------------------------------------------------

    def _client_hello(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self._take_client_hello(side, hs.client_hello(body), record)

    def _ssl2_client_hello(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self._take_client_hello(side, hs.ssl2_client_hello(body), record)

    def _take_client_hello(self, side: Direction, hello: hs.ClientHello | None, record: TlsRecordView) -> None:
        if hello is None:
            side.anomalies.add("ClientHello cannot be read", packet=record.first_packet, offset=record.stream_offset)
            return
        if hello.damage:
            side.anomalies.add(f"ClientHello {hello.damage}", packet=record.first_packet, offset=record.stream_offset)
        if side.changes:
            self._begin_again(side.changes).client = hello
        elif self.negotiations[0].client is None:
            self.negotiations[0].client = hello
            self.client_hello_began, self.client_hello_record = side.message_began or record, record
            self.last_client_hello_record = record
        else:
            self.last_client_hello_record = record

    def _begin_again(self, number: int) -> Negotiation:
        """The negotiation after so many key changes, made where it is new."""
        while len(self.negotiations) <= min(number, _MOST_NEGOTIATIONS):
            self.negotiations.append(Negotiation())
        return self.negotiations[-1]

    def _server_hello(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self._take_server_hello(side, hs.server_hello(body), record)

    def _draft_retry(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self._take_server_hello(side, hs.draft_hello_retry_request(body), record)

    def _take_server_hello(self, side: Direction, hello: hs.ServerHello | None, record: TlsRecordView) -> None:
        if hello is None or hello.damage:
            why = hello.damage if hello else "cannot be read"
            side.anomalies.add(f"ServerHello {why}", packet=record.first_packet, offset=record.stream_offset)
        if hello is None:
            return
        if hello.retry:
            self.retry, self.retry_record = hello, record
        elif side.changes:
            self._begin_again(side.changes).server = hello
        elif self.answer is None:
            self._first_answer(side, hello, record)

    def _first_answer(self, side: Direction, hello: hs.ServerHello, record: TlsRecordView) -> None:
        self.negotiations[0].server = hello
        self.version = hello.version
        self.tls13 = is_tls13(hello.version)
        self.server_hello_record, self.server_hello_index = record, side.index - 1
        group = hello.group
        if group is not None and self.tls13:
            self.group = group_name(group)
        self.alpn = hello.alpn

    def _encrypted_extensions(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        extensions = hs.encrypted_extensions(body)
        self.alpn = hs.chosen_protocol(extensions)
        self.early_accepted = ExtensionType.EARLY_DATA in extensions

    def _server_certificate(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        if self.certificate_bytes is None:
            self.certificate_bytes = len(body) + 4
        self.abbreviated = False

    def _server_key_exchange(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self.abbreviated = False
        if self.group is None and self.suite is not None:
            group = hs.key_exchange_group(body, self.suite.exchange)
            self.group = group_name(group) if isinstance(group, int) else group

    def _server_hello_done(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self.abbreviated = False
        self._negotiation(side.changes).server_done = True
        if self.flight_end_index is None:
            self.flight_end_index = side.index - 1

    def _client_certificate(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        version = self.version or 0
        self.client_certificate = bool(hs.certificates(body, version=version)) or bool(self.client_certificate)

    def _client_key_exchange(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self.negotiations[-1].encrypted_premaster = body

    def _next_protocol(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        """NPN (draft-agl-tls-nextprotoneg-04), which SPDY used before ALPN: the client chooses, encrypted."""
        name = body[1 : 1 + body[0]] if body else b""
        self.alpn = self.alpn or name.decode("ascii", "backslashreplace") or None

    def _new_session_ticket(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self.tickets += 1
        if self.tls13 or self.keylog is None or len(body) < 6:
            return
        number = len(self.negotiations) - 1
        master = self._master(self.negotiations[number], number)
        if master is not None:
            self.keylog.remember(body[6:], master)

    def _end_of_early_data(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        self.end_of_early_data = True
        if side.epoch is not None and side.epoch.kind is EpochKind.EARLY:
            side.next_epoch()

    def _finished(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        first = side.finished is None
        if first:
            side.finished = record
        if side is self.server and self.flight_end_index is None:
            self.flight_end_index = side.index - 1
        if side.epoch is not None and side.epoch.kind is EpochKind.HANDSHAKE:
            side.next_epoch()

    def _key_update(self, side: Direction, body: bytes, record: TlsRecordView) -> None:
        if side.epoch is not None and side.epoch.kind is EpochKind.APPLICATION:
            self.key_updates += 1
            side.update_keys()


_Rule = Callable[[Session, Direction, bytes, TlsRecordView], None]
_T = HandshakeType

_RULES: dict[tuple[str, int], _Rule] = {
    ("client", _T.CLIENT_HELLO): Session._client_hello,
    ("client", ContentType.SSL2_HELLO): Session._ssl2_client_hello,
    ("server", _T.SERVER_HELLO): Session._server_hello,
    ("server", _T.HELLO_RETRY_REQUEST_DRAFT): Session._draft_retry,
    ("server", _T.ENCRYPTED_EXTENSIONS): Session._encrypted_extensions,
    ("server", _T.CERTIFICATE): Session._server_certificate,
    ("server", _T.COMPRESSED_CERTIFICATE): Session._server_certificate,
    ("server", _T.SERVER_KEY_EXCHANGE): Session._server_key_exchange,
    ("server", _T.SERVER_HELLO_DONE): Session._server_hello_done,
    ("server", _T.NEW_SESSION_TICKET): Session._new_session_ticket,
    ("client", _T.CERTIFICATE): Session._client_certificate,
    ("client", _T.CLIENT_KEY_EXCHANGE): Session._client_key_exchange,
    ("client", _T.NEXT_PROTOCOL): Session._next_protocol,
    ("client", _T.END_OF_EARLY_DATA): Session._end_of_early_data,
    ("", _T.FINISHED): Session._finished,
    ("", _T.KEY_UPDATE): Session._key_update,
}
"""Who says what; a message that is not listed for its sender (or for both: "") tells netdiag nothing."""
