"""What held a phase up stands in that phase, under the name of whose doing it is; and the server is not charged with loss."""

from __future__ import annotations

import io
from typing import Any

import pytest

import netdiag
from netdiag.export.terminal.notes import Notes
from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.tls import TlsSession
from tests.support.conversation import CLIENT, MS, SERVER, Conversation
from tests.support.http_bytes import head
from tests.support.packets import ACK, FIN, RST, pcap
from tests.support.scenarios import scenario_of

GET = head("GET /a HTTP/1.1\nHost: api.example")
OK = head("HTTP/1.1 200 OK\nContent-Length: 2") + b"ok"
RTT_MS = 40


def opened() -> Conversation:
    return Conversation(server=("10.0.0.2", 80)).opens(rtt_ms=RTT_MS)


def analysed(talk: Conversation) -> tuple[netdiag.Analysis, Exchange]:
    analysis = netdiag.analyze(io.BytesIO(pcap(talk.frames)))
    return analysis, analysis.exchanges[-1]


def told(exchange: Exchange) -> list[tuple[str, float, float]]:
    """(phase, loss, window) of the phases that were held up, in milliseconds."""
    rows = ((str(p.name), (p.loss_ns or 0) / MS, (p.window_ns or 0) / MS) for p in exchange.phases)
    return [row for row in rows if row[1] or row[2]]


def wait_ms(exchange: Exchange) -> tuple[float | None, float | None, float | None]:
    shares = exchange.wait_path_ns, exchange.wait_loss_ns, exchange.wait_think_ns
    path, loss, think = (None if ns is None else ns / MS for ns in shares)
    return path, loss, think


def notes(analysis: netdiag.Analysis, exchange: Exchange) -> dict[str, str]:
    writer = Notes(analysis)
    return {str(phase.name): writer.of(exchange, phase, 1) for phase in exchange.phases}


def test_a_lost_request_is_no_thinking_of_the_server() -> None:
    talk = opened()
    request = talk.client(GET)
    talk.after(240).again(request)
    talk.after(RTT_MS + 20).server(OK)
    analysis, found = analysed(talk)
    assert wait_ms(found) == (40, 240, 20)
    assert told(found) == [("wait", 240, 0)]
    assert notes(analysis, found)["wait"] == "path 40.0 + loss 240.0 + server ≤ 20.0"
    assert "loss" not in notes(analysis, found)["transfer"]


def test_an_acknowledgement_before_the_answer_proves_that_the_server_had_the_request() -> None:
    talk = opened()
    talk.client(GET)
    talk.after(RTT_MS + 25).acks(SERVER)
    talk.after(300).server(OK)
    analysis, found = analysed(talk)
    assert (found.wait_think_lo_ns, found.wait_think_ns) == (300 * MS, 325 * MS)
    assert notes(analysis, found)["wait"] == "path 40.0 + server 300.0 to 325.0"


def test_an_answer_that_is_the_acknowledgement_proves_nothing() -> None:
    talk = opened()
    talk.client(GET)
    talk.after(RTT_MS + 300).server(OK)
    analysis, found = analysed(talk)
    assert found.wait_think_lo_ns is None
    assert notes(analysis, found)["wait"] == "path 40.0 + server ≤ 300.0"


def test_loss_on_the_way_back_may_be_all_that_came_after_the_acknowledgement() -> None:
    talk = opened()
    talk.client(GET)
    talk.after(RTT_MS).acks(SERVER)
    lost = talk.after(20).server(OK[:10], captured=False)
    talk.after(5).server(OK[10:])
    talk.after(120).again(lost)
    talk.acks_everything(CLIENT)
    _, found = analysed(talk)
    assert found.wait_think_lo_ns is not None
    assert found.wait_think_lo_ns <= 25 * MS


def test_an_answer_sooner_than_a_round_trip_after_a_transmission_is_none_to_it() -> None:
    talk = opened()
    request = talk.client(GET)
    talk.after(240).again(request)
    talk.after(10).server(OK)
    _, found = analysed(talk)
    assert wait_ms(found) == (40, 0, 210)


def test_an_answer_that_lay_behind_a_hole_had_left_the_server_before() -> None:
    talk = opened()
    talk.client(GET)
    lost = talk.after(RTT_MS + 30).server(OK[:10], captured=False)
    talk.after(5).server(OK[10:])
    talk.after(120).again(lost)
    talk.acks_everything(CLIENT)
    _, found = analysed(talk)
    path, loss, think = wait_ms(found)
    assert (path, loss) == (40, 120)
    assert think == pytest.approx(35)


def test_a_request_that_nothing_acknowledged_waited_for_no_server() -> None:
    talk = opened()
    request = talk.client(GET)
    for pause in (240, 480, 960):
        talk.after(pause).again(request)
    _, found = analysed(talk)
    assert found.outcome is Outcome.INCOMPLETE
    assert wait_ms(found) == (0, 1680, 0)


def test_the_windows_owner_is_named_in_the_phase_that_it_stopped() -> None:
    talk = opened()
    talk.client(head("POST /a HTTP/1.1\nHost: api.example\nContent-Length: 4"))
    talk.after(RTT_MS).acks(SERVER)
    talk.client(b"ab")
    talk.window[SERVER] = 0
    talk.after(RTT_MS).acks(SERVER)
    talk.window[SERVER] = 512
    talk.after(700).acks(SERVER)
    talk.client(b"cd")
    talk.after(RTT_MS).server(OK)
    analysis, found = analysed(talk)
    assert told(found) == [("send", 0, 700)]
    assert "server's window full 700.0" in notes(analysis, found)["send"]
    assert "window" not in notes(analysis, found)["transfer"]


def test_lost_syns_are_no_round_trips() -> None:
    talk = Conversation(server=("10.0.0.2", 80))
    talk.packet(CLIENT, flags=2)
    talk.after(1000).packet(CLIENT, flags=2)
    talk.after(RTT_MS).packet(SERVER, flags=2 | ACK)
    talk.acks(CLIENT)
    talk.client(GET)
    talk.after(RTT_MS).server(OK)
    analysis, found = analysed(talk)
    assert notes(analysis, found)["tcp"] == "RTT 40.0, SYN sent 2 times, back-off 1000.0"


def test_an_upload_cut_short_by_its_answer_has_no_wait_to_share() -> None:
    talk = opened()
    talk.client(head("POST /a HTTP/1.1\nHost: api.example\nContent-Length: 9") + b"abc")
    talk.after(60).server(head("HTTP/1.1 413 Content Too Large\nContent-Length: 0"))
    talk.after(30).client(b"defghi")
    talk.say(CLIENT, b"", flags=FIN | ACK)
    analysis, found = analysed(talk)
    assert found.answered_early
    assert (found.wait_path_ns, found.wait_think_ns) == (None, None)
    assert found.unattributed_ns < MS * 2
    assert "answered before its end" in notes(analysis, found)["send"]


def test_a_hello_that_was_lost_is_the_handshakes_loss() -> None:
    document: dict[str, Any] = {"path": {"rtt_ms": 40, "up": {"drops": [{"what": "data", "nth": 1}]}}}
    (found,) = netdiag.analyze(io.BytesIO(record(scenario_of(document)).capture)).exchanges
    assert told(found) == [("tls", pytest.approx(240, abs=1), 0)]


def test_what_only_the_packet_count_shows_is_an_upper_bound_where_it_struck() -> None:
    document: dict[str, Any] = {"path": {"rtt_ms": 40, "down": {"drops": [{"what": "data", "nth": 1}]}}}
    analysis = netdiag.analyze(io.BytesIO(record(scenario_of(document)).capture))
    (found,) = analysis.exchanges
    written = notes(analysis, found)
    assert "loss 0.0 to 240.0" in written["tls"]
    assert "loss" not in written["transfer"]


def scenario(name: str) -> tuple[netdiag.Analysis, Exchange, TlsSession]:
    analysis = netdiag.analyze(io.BytesIO(record(bundled(name)).capture))
    found = analysis.exchanges[0]
    assert found.connection_id is not None
    session = analysis.connections[found.connection_id].tls
    assert session is not None
    return analysis, found, session


@pytest.mark.parametrize("name", ["tls-slow-server", "tls-like-go"])
def test_a_handshake_is_shared_by_path_server_and_client(name: str) -> None:
    analysis, found, session = scenario(name)
    assert session.server_flight_ns is not None
    assert session.client_finish_ns == pytest.approx(1 * MS, abs=0.1 * MS)
    tls = next(phase for phase in found.phases if phase.name == "tls")
    assert session.server_flight_ns + session.client_finish_ns == tls.duration_ns
    if name == "tls-slow-server":
        assert "path 30.0 + server ≤ 300.0 + client 1.0" in notes(analysis, found)["tls"]


def test_next_to_the_server_the_path_is_not_the_clients() -> None:
    analysis, found, _ = scenario("at-server")
    assert "path 80.0 + server ≤ 0.0 + client 1.0" in notes(analysis, found)["tls"].replace("0.01", "0.0")


def test_a_hello_retry_request_has_its_time() -> None:
    analysis, found, session = scenario("tls-retry")
    assert session.hello_retry_ns == pytest.approx(50 * MS, abs=0.1 * MS)
    assert "HelloRetryRequest 50.0" in notes(analysis, found)["tls"]


def test_false_start_saves_a_round_trip() -> None:
    _, _, session = scenario("tls12-false-start")
    assert (session.false_start, session.round_trips, session.server_flight_ns) == (True, 1, None)
    _, _, session = scenario("tls12")
    assert (session.false_start, session.round_trips) == (False, 2)


def fallback(**hosts: Any) -> netdiag.Analysis:
    addresses = {"A": ["203.0.113.5"], "AAAA": ["2001:db8:dead::1"]}
    document: dict[str, Any] = {
        "hosts": hosts,
        "path": {"rtt_ms": 30},
        "dns": {"rtt_ms": 20, "names": {"api.example.test": {"addresses": addresses}}},
        "answer": {"stream": False},
        "connection": [{"connect_timeout_ms": 5000, "request": [{}]}],
    }
    return netdiag.analyze(io.BytesIO(record(scenario_of(document)).capture))


@pytest.mark.parametrize(("how", "lost_ms"), [("silent", 5000), ("refusing", 30)])
def test_an_address_that_was_not_reached_costs_the_call_that_had_to_try_another(how: str, lost_ms: float) -> None:
    analysis = fallback(**{how: ["2001:db8:dead::1"]})
    given_up, found = sorted(analysis.exchanges, key=lambda e: e.status is not None)
    assert (given_up.outcome, given_up.failed) == (Outcome.SUPERSEDED, False)
    assert found.fallback_ns == pytest.approx(lost_ms * MS, abs=MS)
    assert found.unattributed_ns == pytest.approx(lost_ms * MS, abs=MS)
    assert f"another address tried {lost_ms:.1f} earlier" in notes(analysis, found)["tcp"]
    assert "resolver" in notes(analysis, found)["dns"]
    assert [(s.n, s.outcomes) for s in analysis.statistics if not s.n] == [(0, {"superseded": 1})]


def test_where_every_address_fails_the_call_failed() -> None:
    analysis = fallback(refusing=["2001:db8:dead::1", "203.0.113.5"])
    assert {e.outcome for e in analysis.exchanges} == {Outcome.REFUSED}


def test_a_client_that_gave_up_before_the_answer_came() -> None:
    talk = opened()
    talk.client(GET)
    talk.after(RTT_MS).acks(SERVER)
    talk.after(10_000).say(CLIENT, b"", flags=FIN | ACK)
    talk.after(RTT_MS).acks(SERVER)
    talk.after(2_000).server(OK)
    talk.after(0.1).packet(CLIENT, flags=RST)
    analysis, found = analysed(talk)
    assert found.outcome is Outcome.CLOSED_EARLY
    assert found.phases[-1].name == "wait"
    (statistics,) = analysis.statistics
    assert (statistics.n, statistics.outcomes) == (0, {"closed_early": 1})
