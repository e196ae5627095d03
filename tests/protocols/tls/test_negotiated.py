"""What both sides have said so far."""

from __future__ import annotations

from netdiag.protocols.tls import negotiated
from netdiag.protocols.tls.negotiated import Negotiated
from netdiag.protocols.tls.server_hello import HELLO_RETRY_RANDOM, server_hello
from tests.support.hello_bytes import client_octets, parsed, server_octets


def test_a_hello_retry_request_tells_the_suite_before_the_server_hello_does() -> None:
    told = Negotiated()
    assert told.suite is None
    told.retry = server_hello(server_octets(random=HELLO_RETRY_RANDOM))
    assert told.suite is not None
    assert told.answer is None
    told.negotiations[0].server = server_hello(server_octets())
    assert told.answer is not None


def test_the_first_hello_stays_the_first() -> None:
    told = Negotiated()
    told.negotiations[0].client = first = parsed(client_octets())
    told.begin_again(1).client = parsed(client_octets())
    assert told.hello is first


def test_a_negotiation_that_has_not_begun_is_empty() -> None:
    told = Negotiated()
    assert told.negotiation(3).client is None
    assert len(told.negotiations) == 1
    assert told.begin_again(3) is told.negotiation(3)
    assert told.begin_again(3) is told.negotiation(3)


def test_endless_renegotiation_is_bounded(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(negotiated, "_MOST_NEGOTIATIONS", 5)
    told = Negotiated()
    assert told.begin_again(1_000_000) is told.begin_again(2_000_000)
    assert len(told.negotiations) == 6
