"""A recording laid over its capture, and alone: whose instants win, who waited for whom, and that nothing is counted twice."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from netdiag.analysis.join import join, without_packets
from netdiag.analysis.request_order import ordinals_of
from netdiag.lab import LabConfig, LabServer
from netdiag.lab.behaviour import Behaviour
from netdiag.records.analysis import Analysis
from netdiag.records.call import AddressAttempt
from netdiag.records.endpoint import Endpoint
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.recording import ClientConnection, ClientRequest, Recording, SocketOperation, Span
from netdiag.records.timing import Clock, PhaseName
from netdiag.units import NS_PER_MS
from tests.support.fabricated import CLIENT, SERVER, analysis, connection, exchange, ns, source
from tests.support.probing import probe_lab
from tests.support.turns import at


def span(start_ms: float, end_ms: float) -> Span:
    return Span(started_at=at(start_ms), ended_at=at(end_ms))


def dialled(id: int = 0, **fields: Any) -> ClientConnection:
    """Resolved, connected and TLS done at 90 ms by the application's clock."""
    defaults: dict[str, Any] = {
        "client": dataclasses.replace(CLIENT, port=CLIENT.port + id),
        "server": SERVER,
        "resolve": span(1, 13),
        "tcp": span(13, 33),
        "tls": span(34, 90),
        "sni": "api.example.com",
        "attempts": (
            AddressAttempt(address=SERVER.address, port=443, started_at=at(13), ended_at=at(33), outcome="connected"),
        ),
    }
    return ClientConnection(id=id, **(defaults | fields))


def asked(id: int = 0, **fields: Any) -> ClientRequest:
    """Submitted at 0, written at 91, answered at 306, read at 312 ms."""
    defaults: dict[str, Any] = {
        "call_id": id,
        "attempt": 0,
        "arm": "h1",
        "trial": 0,
        "connection_id": 0,
        "stream_id": None,
        "method": "GET",
        "url": "https://api.example.com/v1/models",
        "authority": "api.example.com",
        "path": "/v1/models",
        "reused": False,
        "submitted_at": at(0),
        "assigned_at": at(0.5),
        "first_write_at": at(91),
        "last_write_at": at(91.5),
        "headers_at": at(306),
        "last_read_at": at(312),
        "ended_at": at(312),
        "status": 200,
        "outcome": Outcome.OK,
    }
    return ClientRequest(id=id, **(defaults | fields))


WIRE = "dns 12 | tcp 18 | tls 38 | - 1 | send 0.2 | wait 214.9 | transfer 3.1"


def captured(*exchanges: Exchange, **fields: Any) -> Analysis:
    return analysis(*(exchanges or (exchange(WIRE, at_ms=2),)), **fields)


def clocks(e: Exchange) -> dict[str, str]:
    return {str(p.name): str(p.clock) for p in e.phases}


def test_wire_instants_win_and_the_application_is_laid_around_them() -> None:
    (e,) = join(captured(), Recording(connections=(dialled(),), requests=(asked(),))).exchanges
    assert clocks(e) == {
        "queue": "application",
        "dns": "wire",
        "tcp": "wire",
        "tls": "wire",
        "send": "wire",
        "wait": "wire",
        "transfer": "wire",
        "deliver": "application",
    }
    assert (e.started_at, e.ended_at) == (at(0), at(312))
    assert sum(p.duration_ns for p in e.phases) + e.unattributed_ns == e.total_ns == ns(312)
    assert (e.call_id, e.arm, e.trial) == (0, "h1", 0)


def test_what_the_packets_say_of_a_phase_stays_with_it() -> None:
    wire = captured().exchanges[0]
    phases = [dataclasses.replace(p, loss_ns=7, loss_hi_ns=9, window_ns=5) for p in wire.phases]
    held_up = dataclasses.replace(captured(), exchanges=(dataclasses.replace(wire, phases=tuple(phases)),))
    (joined,) = join(held_up, Recording(connections=(dialled(),), requests=(asked(),))).exchanges
    told = {p.name: (p.loss_ns, p.loss_hi_ns, p.window_ns) for p in joined.phases}
    assert {told[p.name] for p in phases} == {(7, 9, 5)}
    assert told[PhaseName.DELIVER] == (None, None, None)


def test_each_clock_is_kept_beside() -> None:
    (e,) = join(captured(), Recording(connections=(dialled(),), requests=(asked(),))).exchanges
    assert e.clocks is not None
    assert set(e.clocks) == {"application", "wire"}
    wait = {name: next(p.duration_ns for p in c.phases if p.name is PhaseName.WAIT) for name, c in e.clocks.items()}
    assert wait == {"application": ns(214.5), "wire": ns(214.9)}
    for timeline in e.clocks.values():
        assert sum(p.duration_ns for p in timeline.phases) + timeline.unattributed_ns == timeline.total_ns


def test_a_lookup_that_never_reached_the_wire_is_the_applications() -> None:
    wire = exchange(WIRE.removeprefix("dns 12 | "), at_ms=14)
    (e,) = join(captured(wire), Recording(connections=(dialled(),), requests=(asked(),))).exchanges
    assert (clocks(e)["dns"], clocks(e)["tcp"]) == ("application", "wire")


def test_streams_are_joined_by_their_number_and_requests_by_their_order() -> None:
    streams = [exchange("send 0.1 | wait 50 | transfer 1", stream_id=s, protocol="h2", at_ms=s) for s in (1, 3, 5)]
    requests = [asked(i, stream_id=s, first_write_at=at(90 + i)) for i, s in enumerate((5, 1, 3))]
    joined = join(captured(*streams), Recording(connections=(dialled(),), requests=tuple(requests)))
    assert [e.stream_id for e in joined.exchanges] == [5, 1, 3]

    plain = [exchange("send 0.1 | wait 50 | transfer 1", at_ms=100 * i, ordinal=i, path=f"/{i}") for i in range(3)]
    later = [asked(i, first_write_at=at(90 + 100 * (2 - i)), reused=i < 2) for i in range(3)]
    joined = join(captured(*plain), Recording(connections=(dialled(),), requests=tuple(later)))
    assert [e.path for e in joined.exchanges] == ["/2", "/1", "/0"]


def test_another_programs_exchange_follows_and_an_abandoned_attempt_does_not() -> None:
    mine, others = exchange(WIRE, at_ms=2), exchange("send 0.1 | wait 9 | transfer 1", connection_id=1, at_ms=5)
    lost = exchange("tcp 250", connection_id=2, at_ms=13, outcome=Outcome.INCOMPLETE)
    elsewhere = Endpoint("198.51.100.1", 443)
    tried = Endpoint("203.0.113.99", 443)
    recording = Recording(
        connections=(
            dialled(
                attempts=(
                    AddressAttempt(
                        address=tried.address, port=443, started_at=at(13), ended_at=at(263), outcome="abandoned"
                    ),
                    AddressAttempt(
                        address=SERVER.address, port=443, started_at=at(14), ended_at=at(33), outcome="connected"
                    ),
                )
            ),
        ),
        requests=(asked(),),
    )
    capture = captured(
        mine,
        others,
        lost,
        connections=(connection(0), connection(1, server=elsewhere), connection(2, server=tried, first_at=at(13))),
    )
    joined = join(capture, recording)
    assert [e.connection_id for e in joined.exchanges] == [0, 1]
    assert [a.outcome for a in joined.calls[0].addresses] == ["abandoned", "connected"]
    assert joined.calls[0].attempts == (0,)


def test_requests_that_waited_for_one_set_up_name_the_one_that_paid() -> None:
    requests = (
        asked(0, stream_id=1),
        asked(1, stream_id=3, submitted_at=at(2), assigned_at=at(92), first_write_at=at(93), last_write_at=at(93)),
        asked(2, stream_id=5, submitted_at=at(400), assigned_at=at(400), first_write_at=at(401), last_write_at=at(401),
              headers_at=at(450), last_read_at=at(451), ended_at=at(451), reused=True),
    )  # fmt: skip
    joined = without_packets(Recording(connections=(dialled(),), requests=requests), source())
    assert [e.opener_id for e in joined.exchanges] == [None, 0, None]
    waited = {str(p.name): p.duration_ns / NS_PER_MS for p in joined.exchanges[1].phases}
    assert waited["queue"] == 90
    assert not {"dns", "tcp", "tls"} & set(waited)


@pytest.mark.parametrize(
    ("one", "request_fields", "last"),
    [
        (
            {"client": None, "server": None, "tcp": None, "tls": None, "attempts": (), "addresses": ()},
            {"outcome": Outcome.DNS_FAIL, "ended_at": at(40)},
            PhaseName.DNS,
        ),
        (
            {"client": None, "server": None, "tcp": None, "tls": None},
            {"outcome": Outcome.REFUSED, "ended_at": at(40)},
            PhaseName.TCP,
        ),
        ({"tls_error": "certificate verify failed"}, {"outcome": Outcome.TLS_FAIL, "ended_at": at(120)}, PhaseName.TLS),
        ({}, {"outcome": Outcome.TIMEOUT_READ, "ended_at": at(900)}, PhaseName.WAIT),
    ],
)
def test_a_request_that_failed_stops_in_the_phase_it_was_in(
    one: dict[str, Any], request_fields: dict[str, Any], last: PhaseName
) -> None:
    never = {"headers_at": None, "last_read_at": None, "status": None, "error": "why"}
    if last is not PhaseName.WAIT:
        never |= {"first_write_at": None, "last_write_at": None}
    recording = Recording(connections=(dialled(**one),), requests=(asked(**(never | request_fields)),))
    (e,) = without_packets(recording, source()).exchanges
    assert (e.outcome, e.outcome_detail) == (request_fields["outcome"], "why")
    assert (e.phases[-1].name, e.phases[-1].ended_at) == (last, request_fields["ended_at"])
    assert e.ended_at == request_fields["ended_at"]


def test_kernel_stamps_give_the_phases_where_there_are_no_packets() -> None:
    get = b"GET /v1/models HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    operations = (
        SocketOperation(direction=0, data=get, application_at=at(91), kernel_at=at(91.1)),
        SocketOperation(direction=1, data=answer, application_at=at(306), kernel_at=at(300)),
    )
    recording = Recording(connections=(dialled(tls=None, sni=None, operations=operations),), requests=(asked(),))
    joined = without_packets(recording, source())
    (e,) = joined.exchanges
    assert (clocks(e)["tcp"], clocks(e)["wait"], clocks(e)["deliver"]) == ("application", "kernel", "application")
    wait = next(p for p in e.phases if p.name is PhaseName.WAIT)
    deliver = next(p for p in e.phases if p.name is PhaseName.DELIVER)
    assert (wait.duration_ns, deliver.duration_ns) == (ns(208.9), ns(12))
    assert e.clocks is not None
    assert set(e.clocks) == {"application", "kernel"}
    assert joined.connections[0].sides.client.payload_bytes == len(get)


def test_without_kernel_stamps_the_applications_instants_stand_in() -> None:
    operations = (
        SocketOperation(direction=0, data=b"GET / HTTP/1.1\r\n\r\n", application_at=at(91), kernel_at=None),
        SocketOperation(direction=1, data=b"HTTP/1.1 204 No Content\r\n\r\n", application_at=at(306), kernel_at=None),
    )
    recording = Recording(connections=(dialled(tls=None, operations=operations),), requests=(asked(),))
    (e,) = without_packets(recording, source()).exchanges
    assert set(clocks(e).values()) == {"application"}
    assert e.clocks is not None
    assert set(e.clocks) == {"application"}


def test_requests_are_numbered_in_the_order_in_which_they_were_sent() -> None:
    requests = [
        asked(0, first_write_at=at(9)),
        asked(1, first_write_at=at(5)),
        asked(2, connection_id=None),
        asked(3, first_write_at=None),
    ]
    assert ordinals_of(requests) == {0: 1, 1: 0, 2: 0, 3: 2}


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_a_real_probe_without_capture(arm: str) -> None:
    """The lab's server waits 30 ms; kernel and application must both say so, and the sum must be the total."""
    with LabServer(LabConfig(behaviour=Behaviour(wait_ms=30))) as server:
        recording = probe_lab(server, "/v1/chat/completions", arms=(arm,))
    joined = without_packets(recording, source(kind="probe"))
    assert joined.exchanges
    for e in joined.exchanges:
        assert e.outcome is Outcome.OK
        assert sum(p.duration_ns for p in e.phases) + e.unattributed_ns == e.total_ns
        wait = next(p for p in e.phases if p.name is PhaseName.WAIT)
        assert ns(29) < wait.duration_ns < ns(60)
        assert wait.clock is not Clock.WIRE
        assert (e.method, e.path, e.status) == ("GET", "/v1/chat/completions", 200)
        assert joined.connections[e.connection_id or 0].tls is not None
