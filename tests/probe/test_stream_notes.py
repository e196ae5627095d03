"""What a stream notes, without a network: a log, a clock, and a socket pair."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import httpcore
import pytest

from netdiag.probe import tracker
from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import ConnectionLog
from netdiag.probe.failures import ReadTimedOut, TlsFailed, TlsHandshakeTimedOut, TotalTimedOut
from netdiag.probe.recorded_socket import RecordedSocket
from netdiag.probe.stream_notes import LINGER_S, StreamNotes, limit_of
from netdiag.probe.tls import TlsEngine
from netdiag.probe.tracker import RequestTracker


@pytest.fixture
def notes() -> Iterator[StreamNotes]:
    clock = ProbeClock()
    near, far = socket.socketpair()
    with near, far:
        yield StreamNotes(clock, ConnectionLog(id=0, opened_at=clock.now()), RecordedSocket(near, clock), "h1")


def engine() -> TlsEngine:
    return TlsEngine(ssl.create_default_context(), "host.test", protocol=None)


def test_a_failure_is_noted_where_it_happens_and_ends_the_request(notes: StreamNotes) -> None:
    track = RequestTracker(notes.clock)
    token = tracker.current.set(track)
    with pytest.raises(ReadTimedOut), notes.failures():
        raise ReadTimedOut("no answer in time")
    tracker.current.reset(token)
    assert notes.log.error == "no answer in time"
    assert track.ended_at is not None


def test_a_broken_connection_does_not_linger(notes: StreamNotes) -> None:
    assert notes.linger_s == LINGER_S
    notes.log.error = "reset"
    assert notes.linger_s == 0.0


def test_interim_responses_reach_who_listens(notes: StreamNotes) -> None:
    heard: list[int] = []
    notes.log.listeners[None] = lambda status, at: heard.append(status)
    head = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    assert notes.came(head) == head
    assert heard == [103]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TlsFailed("alert"), TlsFailed),
        (TotalTimedOut("over"), TotalTimedOut),
        (ReadTimedOut("no answer in time"), TlsHandshakeTimedOut),
        (httpcore.ReadError("reset"), TlsFailed),
    ],
)
def test_whatever_ends_a_handshake_is_a_failure_of_tls_or_of_time(
    notes: StreamNotes, error: Exception, kind: type[Exception]
) -> None:
    with pytest.raises(kind), notes.handshake(engine(), "host.test"):
        raise error
    assert notes.log.tls is not None
    assert notes.log.tls_error == notes.log.error
    assert str(error) in str(notes.log.error)


def test_an_operation_is_limited_by_its_request_too(notes: StreamNotes) -> None:
    assert limit_of(None).left_s() == float("inf")
    token = tracker.current.set(RequestTracker(notes.clock, total_at_s=0.0))
    limit = limit_of(5.0)
    tracker.current.reset(token)
    assert limit.is_total
    assert limit.left_s() == 0.0


def test_extra_info_has_httpcores_names(notes: StreamNotes) -> None:
    one = engine()
    assert notes.extra_info("ssl_object", None) is None
    assert notes.extra_info("ssl_object", one) is one.object
    assert notes.extra_info("socket", None) is notes.socket.sock
    assert notes.extra_info("connection_log", None) is notes.log
    assert notes.extra_info("colour", None) is None
