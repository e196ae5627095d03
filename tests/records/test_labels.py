"""Short names of records for people, harmless to print."""

from __future__ import annotations

import pytest

from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.labels import (
    arm_name,
    by_id,
    cipher_name,
    connection_of,
    exchange_of,
    host_of,
    outcome_words,
    protocol_name,
    request_label,
    result_label,
    tls_version_name,
)
from tests.support.fabricated import analysis, connection, exchange, session

ESCAPE = "\x1b[2J"


def test_protocols() -> None:
    assert [protocol_name(p) for p in ("h2", "http/1.1", None)] == ["HTTP/2", "HTTP/1.1", "encrypted"]


@pytest.mark.parametrize(
    ("arm", "name"),
    [("h1+warm", "HTTP/1.1 warm"), ("http/1.1, reused", "HTTP/1.1, reused"), ("a.test h2", "a.test HTTP/2")],
)
def test_arms(arm: str, name: str) -> None:
    assert arm_name(arm) == name


def test_versions_and_ciphers() -> None:
    assert tls_version_name("TLSv1.3") == "TLS 1.3"
    assert cipher_name("TLS_AES_128_GCM_SHA256") == "AES-128-GCM"
    assert cipher_name("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384") == "AES-256-CBC"
    assert cipher_name("0x1234") == "0x1234"


@pytest.mark.parametrize("shown", [protocol_name, arm_name, tls_version_name, cipher_name])
def test_names_from_the_wire_cannot_move_the_cursor(shown) -> None:  # type: ignore[no-untyped-def]
    assert "\x1b" not in shown(ESCAPE)


def test_a_host_is_the_name_asked_for_else_sni_else_the_address() -> None:
    unnamed = exchange("wait 1", authority=None, server_name=None)
    assert host_of(exchange("wait 1", authority="a.test")) == "a.test"
    assert host_of(exchange("wait 1", authority=None, server_name="b.test")) == "b.test"
    assert host_of(unnamed, connection(tls=session(sni="c.test"))) == "c.test"
    assert host_of(unnamed, connection(tls=session(sni=None))) == str(connection().server)
    assert host_of(unnamed) == "?"


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({}, "GET /v1/models"),
        ({"path": None}, "GET ?"),
        ({"method": None}, "? /v1/models"),
        ({"method": None, "path": None}, ""),
        ({"method": "CONNECT", "path": None, "authority": "a.test:443"}, "CONNECT a.test:443"),
    ],
)
def test_requests(fields: dict[str, str | None], label: str) -> None:
    assert request_label(exchange("wait 1", **fields)) == label


def test_a_request_with_its_host_and_one_that_cannot_be_read() -> None:
    assert request_label(exchange("wait 1"), host="a.test") == "GET a.test/v1/models"
    assert request_label(exchange("wait 1", method=None, path=None), host="a.test") == "a.test"
    assert len(request_label(exchange("wait 1", path="/" + "x" * 500), most=40)) <= 40


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({}, "200"),
        ({"grpc_status": 14}, "200 grpc 14"),
        ({"status": 503, "outcome": Outcome.HTTP_ERROR}, "503"),
        ({"status": 200, "outcome": Outcome.CLOSED_EARLY}, "200 closed early"),
        ({"status": None, "outcome": Outcome.UNKNOWN}, ""),
        ({"status": None, "outcome": Outcome.TLS_FAIL}, "TLS failure"),
    ],
)
def test_results(fields: dict[str, object], label: str) -> None:
    assert result_label(exchange("wait 1", **fields)) == label


def test_every_outcome_has_words() -> None:
    assert outcome_words("timeout:read") == "read timeout"
    assert all(":" not in outcome_words(outcome) and "_" not in outcome_words(outcome) for outcome in Outcome)


def test_rows_are_found_by_id_also_where_some_were_filtered_out() -> None:
    whole = analysis(*(exchange("wait 1", connection_id=0) for _ in range(5)))
    assert exchange_of(whole, 3) is whole.exchanges[3]
    some: list[Exchange] = [whole.exchanges[1], whole.exchanges[4]]
    assert by_id(some, 4) is some[1]
    assert by_id(some, 2) is None
    assert connection_of(whole, None) is None
    assert connection_of(whole, 0) is whole.connections[0]
    assert exchange_of(whole, 99) is None
