"""Knobs of TCP and TLS, by what an independent client (httpx, curl, nghttp) meets, and by what the server says it did."""

from __future__ import annotations

import socket
import ssl
import threading
from itertools import pairwise

import httpx
import pytest

from netdiag.errors import UsageError
from netdiag.lab import Behaviour, LabConfig, LabServer
from tests.support.lab import StartLab, client_for, eventually
from tests.support.lab_clients import CHAT, curl, needs_curl


def test_delays_before_anything_is_read_and_before_the_flight(start_lab: StartLab) -> None:
    server = start_lab(accept_ms=40, tls_ms=50)
    with client_for(server) as client:
        client.get("/v1/models")
    (accept,), (hello,), (flight,) = (server.log.of(k) for k in ("accept", "client-hello", "server-flight"))
    assert flight.at - hello.at >= 50e6
    assert flight.at - accept.at >= 40e6


def handshake(server: LabServer, **settings: object) -> ssl.SSLSocket:
    """A bare TLS client; the caller closes it."""
    context = ssl.create_default_context(cafile=server.ca_file)
    session = settings.pop("session", None)
    for name, value in settings.items():
        setattr(context, name, value)
    raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return context.wrap_socket(raw, server_hostname="localhost", session=session)  # type: ignore[arg-type]


def test_tls_1_2_only(start_lab: StartLab) -> None:
    server = start_lab(tls_maximum="1.2")
    with handshake(server) as tls:
        assert tls.version() == "TLSv1.2"


@needs_curl
@pytest.mark.peers
def test_a_group_that_nobody_guesses_costs_a_hello_retry(start_lab: StartLab) -> None:
    server = start_lab(groups="secp521r1")
    result = curl(server, "/v1/models", "--http1.1", "-v", "-o", "/dev/null")
    assert result.stderr.count("Client hello (1)") == 2
    assert len(server.log.of("server-flight")) == 2


@pytest.mark.parametrize(
    ("settings", "reused"), [({}, True), ({"tickets": 0}, False), ({"refuse_tickets": True}, False)]
)
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_resumption(start_lab: StartLab, version: str, settings: dict[str, object], reused: bool) -> None:
    server = start_lab(tls_maximum=version, **settings)
    context = ssl.create_default_context(cafile=server.ca_file)

    def exchange(session: ssl.SSLSession | None) -> ssl.SSLSocket:
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=10)
        tls = context.wrap_socket(raw, server_hostname="localhost", session=session)
        tls.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert tls.recv(4096).startswith(b"HTTP/1.1 200")
        return tls

    with exchange(None) as first, exchange(first.session) as second:
        assert second.session_reused is reused
    assert [r.facts["resumed"] for r in server.log.of("tls-done")] == [False, reused]


@pytest.mark.parametrize("size", [4000, 12000, 20000])
def test_large_certificate_chains(start_lab: StartLab, size: int) -> None:
    server = start_lab(chain_bytes=size)
    with handshake(server) as tls:
        assert tls.version() == "TLSv1.3"
    eventually(lambda: server.log.of("server-flight"))
    (flight,) = server.log.of("server-flight")
    assert size <= flight.facts["size_bytes"] <= size + 700


@pytest.mark.parametrize("how", ["close", "reset"])
def test_handshakes_that_fail(start_lab: StartLab, how: str) -> None:
    server = start_lab(fail_handshake=how)
    with client_for(server) as client, pytest.raises(httpx.ConnectError):
        client.get("/")
    eventually(lambda: server.log.of("tls-failed"))


def test_small_records(start_lab: StartLab) -> None:
    server = start_lab(record_bytes=512)
    with client_for(server) as client:
        assert len(client.get("/bytes/20000").content) == 20000
    (exchange,) = server.log.settle().exchanges()
    assert exchange.events[0].wire_bytes == 20000 + 40 * 22


def test_refused_connections(start_lab: StartLab) -> None:
    server = start_lab(refuse_first=1)
    with client_for(server) as client:
        with pytest.raises(httpx.ConnectError):
            client.get("/")
        assert client.get("/").status_code == 200


def test_clear_text_both_protocols(start_lab: StartLab, protocol: str) -> None:
    server = start_lab(tls=False)
    with client_for(server, protocol) as client:
        assert client.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"groups": "no-such"}, "no-such"),
        ({"tls_minimum": "1.1"}, "1.1"),
        ({"tls_minimum": "1.3", "tls_maximum": "1.2"}, "above"),
        ({"fail_handshake": "loudly"}, "loudly"),
        ({"host": "no.such.host.invalid"}, "no.such.host.invalid"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], named: str) -> None:
    with pytest.raises(UsageError, match=named), LabServer(LabConfig(**settings)):  # type: ignore[arg-type]
        pass


def test_events_of_different_streams_do_not_delay_each_other(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(events=10, gap_ms=10))
    with client_for(server) as one, client_for(server) as two:
        threads = [threading.Thread(target=lambda c=c: c.post(CHAT, json={"stream": True})) for c in (one, two)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for exchange in server.log.settle().exchanges():
        late = sorted(e.written_at - e.scheduled_at for e in exchange.events)
        assert late[len(late) // 2] < 5e6
        assert all(a.written_at <= b.written_at for a, b in pairwise(exchange.events))
