"""TLS on one connection: records of both directions in, session facts, handshake moments and decrypted application data out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from netdiag.protocols.tls import grammar
from netdiag.protocols.tls.direction import Direction, Stage
from netdiag.protocols.tls.facts import session_facts
from netdiag.protocols.tls.keylog import KeyLog
from netdiag.protocols.tls.moments import Handshake
from netdiag.protocols.tls.session import Session
from netdiag.records.anomaly import Anomaly
from netdiag.records.tls import TlsSession
from netdiag.wire.chunk import Chunk, Moment
from netdiag.wire.record_view import TlsRecordView

_HANDSHAKE_RECORDS = 4_096
"""Records of one direction in which the end of the handshake is looked for."""


class TlsObservation:
    """What ``observe`` found. ``client`` and ``server`` can be iterated once each, in any interleaving."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._guess = _by_size(session)
        self._facts: tuple[tuple[int, int], TlsSession] | None = None
        self.handshake = _handshake(session, self._guess)
        self.client: Iterable[Chunk] | None = _chunks(session.client)
        """Decrypted application data of the client; None when not decrypted."""
        self.server: Iterable[Chunk] | None = _chunks(session.server)

    @property
    def session(self) -> TlsSession:
        """What is known so far: complete as to alerts and lost records only after ``client`` and ``server`` have been read to their ends
        (``finish`` does that for whoever does not need the data)."""
        read = (self._session.client.index, self._session.server.index)
        if self._facts is None or self._facts[0] != read:
            self._facts = read, session_facts(self._session, self.handshake, self._guess)
        return self._facts[1]

    @property
    def anomalies(self) -> list[Anomaly]:
        """What should not have been there, so far."""
        return [*self._session.client.anomalies.rows, *self._session.server.anomalies.rows]

    @property
    def key_updates(self) -> int:
        """KeyUpdate messages read so far, of both sides."""
        return self._session.key_updates

    @property
    def tickets(self) -> int:
        """NewSessionTicket messages read so far."""
        return self._session.tickets

    @property
    def renegotiations(self) -> int:
        """Handshakes after the first one on this connection (TLS 1.2 and before), as far as they could be read."""
        return len(self._session.negotiations) - 1

    @property
    def unread_records(self) -> tuple[int, int]:
        """Protected records of client and server that could not be opened although there were keys, so far."""
        return self._session.client.unread, self._session.server.unread

    def finish(self) -> None:
        """Reads what is left of both directions and drops the data."""
        for chunks in (self.client, self.server):
            for _ in chunks or ():
                pass


def observe(
    client: Sequence[TlsRecordView], server: Sequence[TlsRecordView], keylog: KeyLog | None = None
) -> TlsObservation:
    """Reads the handshake of one connection, with keys where the log has them; application data are decrypted when they are asked for."""
    session = Session(client, server, keylog)
    for side in (session.client, session.server):
        _read_handshake(side)
    return TlsObservation(session)


def _read_handshake(side: Direction) -> None:
    """Up to the first record of application data, or to where nothing more can be learnt."""
    for _ in range(_HANDSHAKE_RECORDS):
        if side.settled or not side.read():
            return


def _chunks(side: Direction) -> Iterable[Chunk] | None:
    return side.chunks() if side.stage is Stage.PROTECTED and (side.opened or side.finished is not None) else None


def _by_size(session: Session) -> grammar.FinishedBySize | None:
    """The Finished records of a TLS 1.3 handshake that could not be decrypted."""
    suite, version = session.suite, session.version
    if suite is None or version is None or not session.tls13 or session.client.finished is not None:
        return None
    return grammar.finished_by_size(
        session.client.records,
        session.server.records,
        suite=suite,
        version=version,
        offers_settings=session.hello is not None and session.hello.offers_settings,
    )


def _handshake(session: Session, guess: grammar.FinishedBySize | None) -> Handshake:
    began, last = session.client_hello_began, session.last_client_hello_record
    server_finished, client_finished = session.server.finished, session.client.finished
    first_client, first_server = session.client.first_application, session.server.first_application
    method = "exact" if client_finished or server_finished else None
    if guess is not None:
        method = "grammar"
        client_finished = session.client.records[guess.client_finished]
        if server_finished is None and guess.server_flight_end is not None:
            server_finished = session.server.records[guess.server_flight_end]
        first_client, first_server = _guessed_application(session, guess)
    elif session.tls13 and client_finished is None:
        first_client = first_server = None
    return Handshake(
        client_hello_first=None if began is None else _first_octet(began),
        client_hello_last=None if last is None else _last_octet(last),
        hello_retry_request=None if session.retry_record is None else _last_octet(session.retry_record),
        server_hello=None if session.server_hello_record is None else _last_octet(session.server_hello_record),
        server_finished=None if server_finished is None else _last_octet(server_finished),
        client_finished=None if client_finished is None else _last_octet(client_finished),
        first_application=(first_client, first_server),
        first_early=session.client.first_early,
        method=method,
    )


def _guessed_application(session: Session, guess: grammar.FinishedBySize) -> tuple[int | None, int | None]:
    client = guess.first_client_application
    server = (-1 if guess.server_flight_end is None else guess.server_flight_end) + 1
    return (
        client if client < len(session.client.records) else None,
        server if server < len(session.server.records) else None,
    )


def _first_octet(record: TlsRecordView) -> Moment:
    deliverable = record.deliverable_at if record.deliverable_at is not None else record.first_seen_at
    return Moment(record.first_seen_at, deliverable, record.first_packet)


def _last_octet(record: TlsRecordView) -> Moment:
    seen = record.last_seen_at if record.last_seen_at is not None else record.first_seen_at
    deliverable = record.deliverable_at if record.deliverable_at is not None else seen
    return Moment(seen, deliverable, record.last_packet)
