"""How an exchange ended, told from its turn and from what the connection did afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from netdiag.analysis.outcomes import by_status, end_of_body, ending_of, fatal_alert, first_fin, first_reset
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.connection import Connection, Side, Sides
from netdiag.records.exchange import Outcome
from netdiag.records.tls import Alert
from tests.support.fabricated import connection, session
from tests.support.turns import at, turn


def side(**fields: Any) -> Side:
    return Side(packets=5, payload_bytes=500, **fields)


def over(client: Side | None = None, server: Side | None = None, **fields: Any) -> Connection:
    return connection(sides=Sides(client=client or side(), server=server or side()), **fields)


def alert(sender: str, level: int, description: int, ms: float = 70) -> Alert:
    return Alert(sender=sender, level=level, description=description, name="x", at=at(ms), packet=7)


def cut(**fields: Any) -> Turn:
    moments = {"request_first": 0, "request_last": 1, "response_first": 50, "response_head_last": 50} | fields
    return turn(**{k: v for k, v in moments.items() if v is not None}, end=TurnEnd.INCOMPLETE)


@pytest.mark.parametrize(
    ("status", "grpc", "outcome"),
    [
        (200, None, Outcome.OK),
        (200, 0, Outcome.OK),
        (200, 14, Outcome.HTTP_ERROR),
        (399, None, Outcome.OK),
        (400, None, Outcome.HTTP_ERROR),
        (None, None, Outcome.UNKNOWN),
    ],
)
def test_a_whole_answer_says_by_its_status(status: int | None, grpc: int | None, outcome: Outcome) -> None:
    assert by_status(status, grpc) is outcome


def test_a_whole_answer_runs_to_its_last_octet() -> None:
    ending = ending_of(turn(response_first=50, response_last=60, grpc_status=14), over())
    assert (ending.outcome, ending.detail, ending.at) == (Outcome.HTTP_ERROR, "gRPC status 14", None)


@pytest.mark.parametrize(
    ("end", "code", "detail"),
    [
        (TurnEnd.RESET_BY_CLIENT, 8, "RST_STREAM from client, error code 8"),
        (TurnEnd.RESET_BY_SERVER, None, "RST_STREAM from server"),
        (TurnEnd.GOAWAY, 0, "GOAWAY below this stream, error code 0"),
    ],
)
def test_frames_that_end_a_stream(end: TurnEnd, code: int | None, detail: str) -> None:
    ending = ending_of(turn(request_first=0, end=end, error_code=code), over())
    assert (ending.outcome, ending.detail) == (Outcome.RESET, detail)


@pytest.mark.parametrize(
    ("missing", "where"),
    [
        ({}, "in the middle of the answer"),
        ({"response_first": None, "response_head_last": None}, "before any answer"),
        ({"response_first": None, "response_head_last": None, "request_last": None}, "in the middle of the request"),
    ],
)
def test_a_reset_says_who_and_where(missing: dict[str, None], where: str) -> None:
    ending = ending_of(cut(**missing), over(server=side(rst_at=at(55), rst_packet=9)))
    assert (ending.outcome, ending.detail) == (Outcome.RESET, f"RST from server {where}")
    assert ending.at is not None
    assert (ending.at.at, ending.at.packet) == (at(55), 9)


def test_a_reset_from_somewhere_else_and_one_after_a_fin_say_so() -> None:
    injected = side(rst_at=at(55), rst_packet=9, hop_limit=64, rst_hop_limit=57)
    assert ending_of(cut(), over(server=injected)).detail == (
        "RST from server in the middle of the answer (TTL 57, not 64: possibly injected)"
    )
    late = side(rst_at=at(55), rst_packet=9, fin_at=at(40), fin_packet=8)
    assert ending_of(cut(), over(server=late)).detail == "RST from server in the middle of the answer, after its FIN"


def test_a_close_and_an_end_of_the_capture() -> None:
    closed = over(server=side(fin_at=at(55), fin_packet=9), close_reason="fin")
    ending = ending_of(cut(), closed)
    assert (ending.outcome, ending.detail) == (Outcome.CLOSED_EARLY, "closed by server in the middle of the answer")
    still_open = over(close_reason=None)
    assert ending_of(cut(), still_open).outcome is Outcome.INCOMPLETE
    assert ending_of(cut(), still_open).detail == "the capture ends before the answer does"


@pytest.mark.parametrize("server", [side(missing_bytes=10), Side(packets=0, payload_bytes=0)])
def test_where_the_capture_lacks_answers_nothing_is_blamed(server: Side) -> None:
    """The RST is there, but the answer may have been whole."""
    reset = over(client=side(rst_at=at(55), rst_packet=9), server=server)
    ending = ending_of(cut(), reset)
    assert (ending.outcome, ending.detail) == (Outcome.INCOMPLETE, "octets are missing from the capture")
    unanswered = ending_of(cut(response_first=None, response_head_last=None), reset)
    assert unanswered.at is None  # how long that wait was is not known


def test_a_body_until_the_close_is_whole_when_tls_said_so() -> None:
    until_close = turn(response_first=50, response_last=60, end=TurnEnd.UNTIL_CLOSE)
    fin = side(fin_at=at(80), fin_packet=9)
    notified = over(server=fin, tls=session(alerts=(alert("server", 1, 0),)))
    assert ending_of(until_close, notified)[:2] == (Outcome.OK, None)
    silent = ending_of(until_close, over(server=fin))
    assert silent.outcome is Outcome.OK
    assert silent.detail == "the body ends with the connection, so it may have been cut short"
    assert ending_of(until_close, over(close_reason=None)).outcome is Outcome.INCOMPLETE


def test_a_body_until_the_close_ends_when_the_client_learns_of_it() -> None:
    until_close = turn(response_first=50, response_last=60, end=TurnEnd.UNTIL_CLOSE)
    found = end_of_body(until_close, over(server=side(fin_at=at(80), fin_packet=9)))
    assert found is not None
    assert found.at == at(80)
    both = over(server=side(fin_at=at(80), fin_packet=9), tls=session(alerts=(alert("server", 1, 0, ms=75),)))
    first = end_of_body(until_close, both)
    assert first is not None
    assert first.at == at(75)
    reset_before = over(client=side(rst_at=at(70)), server=side(fin_at=at(80)))
    assert end_of_body(until_close, reset_before) is None


def test_the_first_of_two_resets_and_of_two_fins() -> None:
    both = over(
        client=side(rst_at=at(9), rst_packet=3, fin_at=at(5), fin_packet=1),
        server=side(rst_at=at(8), rst_packet=2, fin_at=at(6), fin_packet=4),
    )
    reset, fin = first_reset(both), first_fin(both)
    assert reset is not None
    assert (reset[0], reset[1].packet) == ("server", 2)
    assert fin is not None
    assert (fin[0], fin[1].packet) == ("client", 1)
    assert first_reset(over()) is None


def test_only_fatal_alerts_are_failures() -> None:
    ordinary = session(alerts=(alert("client", 2, 0), alert("client", 2, 90), alert("client", 1, 48)))
    assert fatal_alert(ordinary) is None
    assert fatal_alert(None) is None
    failed = alert("client", 2, 48)
    assert fatal_alert(session(alerts=(alert("server", 1, 0), failed))) is failed
