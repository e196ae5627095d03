"""From a session being read to the frozen ``TlsSession`` record."""

from __future__ import annotations

from netdiag.protocols.tls import grammar
from netdiag.protocols.tls.client_hello import ClientHello, offered_versions
from netdiag.protocols.tls.direction import Direction, Stage
from netdiag.protocols.tls.epochs import EpochKind
from netdiag.protocols.tls.keylog import MASTER
from netdiag.protocols.tls.keys import CLIENT_APPLICATION, CLIENT_HANDSHAKE, EARLY, SERVER_APPLICATION, SERVER_HANDSHAKE
from netdiag.protocols.tls.moments import Handshake
from netdiag.protocols.tls.names import version_name
from netdiag.protocols.tls.session import Session
from netdiag.records.tls import EarlyData, TlsSession

_MISSED_MOST = (MASTER, CLIENT_APPLICATION, SERVER_APPLICATION, CLIENT_HANDSHAKE, SERVER_HANDSHAKE, EARLY)
"""Which of several missing secrets is named: the one whose absence hides most."""


def session_facts(session: Session, moments: Handshake, guess: grammar.FinishedBySize | None) -> TlsSession:
    """Everything that the hellos, the records and, with keys, the encrypted messages say."""
    hello, version = session.hello, session.version
    suite = session.suite
    finished_at = _finished_at(session, moments)
    early = _early_data(session, guess)
    resumed, false_start = _resumed(session), _false_start(session, moments)
    server_flight_ns, client_finish_ns = _shares_ns(moments)
    return TlsSession(
        version=None if version is None else version_name(version),
        cipher_suite=None if suite is None else suite.name,
        group=session.group,
        sni=None if hello is None else hello.server_name,
        alpn_offered=() if hello is None else hello.alpn,
        alpn=session.alpn,
        versions_offered=_versions(hello),
        ech="offered" if hello is not None and hello.offers_ech else None,
        client_hello_at=_seen(moments.client_hello_first),
        client_hello_packet=None if session.client_hello_record is None else session.client_hello_record.last_packet,
        server_hello_at=moments.server_hello_deliverable,
        server_hello_packet=None if moments.server_hello is None else moments.server_hello.packet,
        finished_at=finished_at,
        finished_method=None if finished_at is None else moments.method,
        hello_retry_request=session.retry is not None,
        hello_retry_ns=_hello_retry_ns(moments),
        server_flight_ns=server_flight_ns,
        client_finish_ns=client_finish_ns,
        false_start=false_start,
        resumed=resumed,
        early_data=early,
        certificate_bytes=session.certificate_bytes,
        server_flight_bytes=_server_flight_bytes(session, guess),
        round_trips=_round_trips(session, early=early, quick=True if false_start else resumed),
        client_certificate=_client_certificate(session),
        alerts=tuple(sorted(session.alerts, key=lambda alert: alert.at)) if session.alerts else (),
        decrypted=any(side.opened for side in (session.client, session.server)),
        missing_secret=_missing_secret(session, early),
        client_random=None if hello is None else hello.random.hex(),
    )


def _versions(hello: ClientHello | None) -> tuple[str, ...]:
    return () if hello is None else tuple(version_name(number) for number in offered_versions(hello))


def _seen(moment: object) -> int | None:
    return getattr(moment, "seen_at", None)


def _finished_at(session: Session, moments: Handshake) -> int | None:
    """The later of client Finished sent and server Finished deliverable, but never after the first request octet (False Start)."""
    sent, delivered = moments.client_finished_sent, moments.server_finished_deliverable
    if sent is None or (delivered is None and not session.tls13):
        return None
    # A TLS 1.3 client has the server's Finished when it sends its own.
    ended = max(sent, delivered if delivered is not None else sent)
    first = moments.first_application[0]
    if first is not None and first < len(session.client.records):
        ended = min(ended, max(sent, session.client.records[first].first_seen_at))
    return ended


def _false_start(session: Session, moments: Handshake) -> bool:
    first, delivered = moments.first_application[0], moments.server_finished_deliverable
    if session.tls13 or first is None or delivered is None or first >= len(session.client.records):
        return False
    return session.client.records[first].first_seen_at < delivered


def _hello_retry_ns(moments: Handshake) -> int | None:
    asked, retry = moments.client_hello_first, moments.hello_retry_request
    return None if asked is None or retry is None else max(0, retry.deliverable_at - asked.seen_at)


def _shares_ns(moments: Handshake) -> tuple[int | None, int | None]:
    """What the path and the server took of the handshake, and what the client took."""
    asked, flight, done = moments.client_hello_last, moments.server_finished_deliverable, moments.client_finished_sent
    if asked is None or flight is None or done is None or not asked.seen_at <= flight <= done:
        return None, None
    return flight - asked.seen_at, done - flight


def _resumed(session: Session) -> bool | None:
    hello, answer = session.hello, session.answer
    if answer is None:
        return None
    if session.tls13:
        return answer.selected_psk
    if session.abbreviated is not None:
        return session.abbreviated
    if hello is None:
        return None
    # What follows the ServerHello was not captured: only an echoed session id is proof (RFC 5246 section 7.4.1.3).
    return True if hello.session_id and hello.session_id == answer.session_id else None


def _early_data(session: Session, guess: grammar.FinishedBySize | None) -> EarlyData | None:
    hello = session.hello
    if hello is None or not hello.offers_early_data:
        return None
    if session.early_accepted is not None:
        return EarlyData.ACCEPTED if session.early_accepted else EarlyData.REJECTED
    if session.retry is not None or (session.answer is not None and not session.answer.selected_psk):
        return EarlyData.REJECTED
    if session.end_of_early_data or (guess is not None and guess.early_data_accepted):
        return EarlyData.ACCEPTED
    if guess is not None:
        return EarlyData.REJECTED
    return EarlyData.OFFERED


def _server_flight_bytes(session: Session, guess: grammar.FinishedBySize | None) -> int | None:
    """Octets of records after the one with the ServerHello, headers included, and what follows the hello in its own record is not counted."""
    begin, end = session.server_hello_index, session.flight_end_index
    if begin is None:
        return None
    if end is None and guess is not None:
        end = guess.server_flight_end
    if end is None and session.server.finished is not None:
        end = next(i for i, r in enumerate(session.server.records) if r is session.server.finished)
    if end is None:
        return None
    return sum(session.server.records[i].length + 5 for i in range(begin + 1, end + 1))


def _round_trips(session: Session, *, early: EarlyData | None, quick: bool | None) -> int | None:
    """Round trips before the client may send its request: 1 in TLS 1.3 (2 with HelloRetryRequest, 0 with accepted 0-RTT data), 2 in TLS 1.2
    (1 when ``quick``: resumed, or with False Start)."""
    if session.answer is None:
        return None
    if session.tls13:
        if early is EarlyData.ACCEPTED:
            return 0
        return 2 if session.retry is not None else 1
    return None if quick is None else 1 if quick else 2


def _client_certificate(session: Session) -> bool | None:
    """None where the client's flight is encrypted and cannot be read."""
    if session.client_certificate is not None:
        return session.client_certificate
    if session.answer is None:
        return None
    if session.tls13:
        return False if session.client.finished is not None else None
    return False if session.client.changes or session.client.finished is not None else None


def _missing_secret(session: Session, early: EarlyData | None) -> str | None:
    missing = {*_missing_of(session.client), *_missing_of(session.server)}
    if early is EarlyData.REJECTED:
        missing.discard(EARLY)
    return next((label for label in _MISSED_MOST if label in missing), None)


def _missing_of(side: Direction) -> list[str]:
    """A missing secret matters only where there are records that need it: a lost handshake secret is no loss once the next one works."""
    epoch = side.epoch
    if side.stage is Stage.PROTECTED and epoch is not None and epoch.proven and epoch.kind is EpochKind.APPLICATION:
        return [label for label in side.missing_labels if label == EARLY]
    return side.missing_labels
