"""Calls of a recording have their attempts and, where nothing was recorded, their time from these."""

from __future__ import annotations

from netdiag.analysis.calls import calls_of
from netdiag.records.call import AddressAttempt, Call
from netdiag.records.recording import ClientConnection, Recording
from tests.support.client_requests import request
from tests.support.fabricated import exchange, ns

ATTEMPT = AddressAttempt(address="192.0.2.1", port=443, started_at=0, ended_at=5, outcome="connected")


def test_a_call_that_the_client_did_not_record_lasts_from_first_to_last() -> None:
    recording = Recording(
        connections=(ClientConnection(id=0, client=None, server=None, resolve=None, attempts=(ATTEMPT,)),),
        requests=(request(0, call_id=7), request(1, call_id=7, reused=True)),
    )
    (call,) = calls_of(recording, [exchange("wait 5", id=0), exchange("wait 5", id=1, at_ms=20)])
    assert (call.id, call.attempts, call.total_ns) == (7, (0, 1), ns(25))
    assert call.addresses == (ATTEMPT,)


def test_a_recorded_call_keeps_what_it_says_and_gets_its_attempts() -> None:
    known = Call(id=3, url="https://host.test/", attempts=(), backoff=(), total_ns=99, outcome="ok", policy="openai")
    recording = Recording(requests=(request(0, call_id=3),), calls=(known,))
    (call,) = calls_of(recording, [exchange("wait 5", id=4)])
    assert (call.attempts, call.total_ns, call.policy) == ((4,), 99, "openai")
