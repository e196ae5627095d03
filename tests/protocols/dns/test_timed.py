"""A message with its endpoints filled in afterwards."""

from __future__ import annotations

import pytest

from netdiag.protocols.dns.message import decode_message
from netdiag.protocols.dns.timed import UNSPECIFIED, TimedMessage
from netdiag.records.endpoint import Endpoint
from tests.support.dns_bytes import answer, message

CLIENT, RESOLVER = Endpoint("192.0.2.10", 40000), Endpoint("192.0.2.53", 53)


@pytest.mark.parametrize(
    ("octets", "expected"),
    [(message("a.test"), (CLIENT, RESOLVER)), (answer("a.test"), (RESOLVER, CLIENT))],
    ids=["query", "answer"],
)
def test_a_query_goes_to_the_resolver_and_an_answer_comes_from_it(
    octets: bytes, expected: tuple[Endpoint, Endpoint]
) -> None:
    decoded = decode_message(octets)
    assert decoded is not None
    told = TimedMessage(decoded, UNSPECIFIED, UNSPECIFIED, 5, 1, "tcp").between(CLIENT, RESOLVER)
    assert (told.source, told.destination) == expected
    assert (told.message, told.at, told.packet, told.transport) == (decoded, 5, 1, "tcp")
