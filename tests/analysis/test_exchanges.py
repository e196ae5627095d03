"""Turns of a connection to exchanges: who pays for the set-up, how each ended, what waited for whom."""

from __future__ import annotations

from typing import Any

import pytest

from netdiag.analysis.exchanges import drafts_of, set_up_marks
from netdiag.analysis.numbered import numbered
from netdiag.analysis.outcomes import ending_without_a_turn
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.timing import PhaseName
from netdiag.records.tls import Alert
from netdiag.units import NS_PER_MS
from tests.support.fabricated import ns, session
from tests.support.turns import at, connection, moment, turn, whole


def exchanges(turns: list[Turn], on: Connection | None = None, **options: Any) -> list[Exchange]:
    on = on or connection()
    return list(numbered(drafts_of(on, set_up_marks(on), turns, **options)))


def durations_ms(exchange: Exchange) -> dict[str, float]:
    return {str(p.name): p.duration_ns / NS_PER_MS for p in exchange.phases}


def test_the_first_request_pays_for_the_set_up_and_the_next_has_none() -> None:
    first, second = exchanges([whole(0, sent=21), whole(1, sent=200)])
    assert durations_ms(first) == {"tcp": 20, "send": 0, "wait": 50, "transfer": 10}
    assert durations_ms(second) == {"send": 0, "wait": 50, "transfer": 10}
    assert (first.reused, second.reused) == (False, True)
    assert (first.idle_before_ns, second.idle_before_ns) == (None, ns(119))
    assert (first.total_ns, second.total_ns) == (ns(81), ns(60))


def test_a_request_that_overlaps_another_has_no_idle_time() -> None:
    _, second = exchanges([whole(0, sent=21, wait=300), whole(1, sent=100)])
    assert second.idle_before_ns is None


def test_an_octet_of_the_answer_counts_when_it_is_deliverable() -> None:
    late = turn(request_first=0, request_last=0, response_last=90)
    late.response_first = moment(50, late_ms=30)
    (exchange,) = exchanges([late], connection(syn_at=None, syn_ack_at=None))
    assert durations_ms(exchange)["wait"] == 80


def test_the_wait_is_split_into_path_and_server() -> None:
    (exchange,) = exchanges([whole(0, sent=21)])
    assert (exchange.wait_path_ns, exchange.wait_think_ns) == (ns(20), ns(30))


def test_next_to_the_server_hardly_any_of_the_wait_is_path() -> None:
    (exchange,) = exchanges([whole(0, sent=21)], connection(server_rtt_ns=ns(0.1), client_rtt_ns=ns(40)))
    assert (exchange.wait_path_ns, exchange.wait_think_ns) == (ns(0.1), ns(49.9))


def test_requests_sent_in_one_go_waited_for_the_same_set_up() -> None:
    burst = [whole(i, sent=21 + i, wait=100, stream_id=2 * i + 1) for i in range(3)]
    opened = exchanges([*burst, whole(3, sent=80, stream_id=7)])
    assert [e.opener_id for e in opened] == [None, 0, 0, None]


def test_requests_held_back_for_the_servers_settings_waited_for_the_set_up() -> None:
    streams = [whole(0, sent=21, wait=200, stream_id=1), whole(1, sent=63, stream_id=3), whole(2, sent=90, stream_id=5)]
    assert [e.opener_id for e in exchanges(streams)] == [None, None, None]
    assert [e.opener_id for e in exchanges(streams, settings_at=at(62))] == [None, 0, None]


def test_interim_responses_never_end_a_wait() -> None:
    hinted = whole(0, sent=21, interim={103: 40})
    (exchange,) = exchanges([hinted])
    assert durations_ms(exchange)["wait"] == 50
    assert [(i.status, i.at) for i in exchange.interim] == [(103, at(40))]


def test_a_body_held_back_for_100_continue() -> None:
    held = turn(
        request_first=21,
        request_head_last=21,
        request_body_first=62,
        request_last=70,
        response_first=130,
        response_last=130,
        interim={100: 61},
        expects_continue=True,
    )
    (exchange,) = exchanges([held])
    assert [str(p.name) for p in exchange.phases] == ["tcp", "send", "continue", "send", "wait", "transfer"]
    assert durations_ms(exchange)["continue"] == 40
    assert durations_ms(exchange)["wait"] == 60


def test_a_client_that_gives_up_waiting_for_100() -> None:
    impatient = turn(
        request_first=21,
        request_head_last=21,
        request_body_first=1_021,
        request_last=1_022,
        response_first=1_100,
        response_last=1_100,
        expects_continue=True,
    )
    (exchange,) = exchanges([impatient])
    assert durations_ms(exchange)["continue"] == 1_000


def test_a_final_answer_instead_of_100_is_a_plain_wait() -> None:
    refused = turn(
        request_first=21, request_head_last=21, response_first=61, response_last=61, expects_continue=True, status=417
    )
    (exchange,) = exchanges([refused])
    assert [str(p.name) for p in exchange.phases] == ["tcp", "send", "wait", "transfer"]
    assert exchange.outcome is Outcome.HTTP_ERROR


def test_a_body_sent_at_once_although_100_was_asked_for_is_one_sending() -> None:
    eager = turn(
        request_first=21,
        request_head_last=21,
        request_body_first=21,
        request_last=30,
        response_first=80,
        response_last=80,
        expects_continue=True,
    )
    (exchange,) = exchanges([eager])
    assert [str(p.name) for p in exchange.phases] == ["tcp", "send", "wait", "transfer"]


def test_a_promised_request_waits_from_its_promise() -> None:
    pushed = turn(1, request_first=60, request_last=60, response_first=80, response_last=90, pushed=True, stream_id=2)
    _, promised = exchanges([whole(0, sent=21), pushed])
    assert durations_ms(promised) == {"wait": 20, "transfer": 10}
    assert promised.pushed


def test_an_answer_whose_request_was_not_captured() -> None:
    (exchange,) = exchanges([turn(response_first=50, response_last=60)], connection(syn_at=None, syn_ack_at=None))
    assert durations_ms(exchange) == {"transfer": 10}
    assert exchange.request_bytes is None


def test_stream_1_after_an_upgrade_leaves_the_request_packet_to_the_request() -> None:
    upgraded = whole(1, sent=21, wait=80, stream_id=1, protocol="h2")
    first, second = exchanges([whole(0, sent=21, status=101, end=TurnEnd.TUNNEL), upgraded], upgraded=True)
    assert (first.request_packet, second.request_packet) == (21, None)


WAITING: dict[str, Any] = {"request_first": 21, "request_head_last": 21, "request_last": 21, "status": None}
ANSWERING = WAITING | {"response_first": 70, "status": 200}


@pytest.mark.parametrize(
    ("said", "on", "outcome", "detail", "last_phase"),
    [
        (
            turn(**WAITING, end=TurnEnd.INCOMPLETE),
            connection(close_reason="reset", sides={"server": {"rst_at": at(300), "rst_packet": 9}}),
            Outcome.RESET,
            "RST from server before any answer",
            (PhaseName.WAIT, 279),
        ),
        (
            turn(**WAITING, end=TurnEnd.INCOMPLETE),
            connection(
                close_reason="reset",
                sides={
                    "server": {
                        "fin_at": at(22),
                        "rst_at": at(300),
                        "rst_packet": 9,
                        "hop_limit": 64,
                        "rst_hop_limit": 64,
                    }
                },
            ),
            Outcome.RESET,
            "RST from server before any answer, after its FIN",
            (PhaseName.WAIT, 279),
        ),
        (
            turn(**WAITING, end=TurnEnd.INCOMPLETE),
            connection(
                close_reason="reset",
                sides={"server": {"rst_at": at(300), "rst_packet": 9, "hop_limit": 64, "rst_hop_limit": 57}},
            ),
            Outcome.RESET,
            "RST from server before any answer (TTL 57, not 64: possibly injected)",
            (PhaseName.WAIT, 279),
        ),
        (
            turn(**ANSWERING, end=TurnEnd.INCOMPLETE),
            connection(close_reason="reset", sides={"client": {"rst_at": at(300), "rst_packet": 9}}),
            Outcome.RESET,
            "RST from client in the middle of the answer",
            (PhaseName.TRANSFER, 230),
        ),
        (
            turn(**ANSWERING, end=TurnEnd.INCOMPLETE),
            connection(close_reason="fin", sides={"server": {"fin_at": at(200), "fin_packet": 8}}),
            Outcome.CLOSED_EARLY,
            "closed by server in the middle of the answer",
            (PhaseName.TRANSFER, 130),
        ),
        (
            turn(**WAITING, end=TurnEnd.INCOMPLETE),
            connection(),
            Outcome.INCOMPLETE,
            "the capture ends before the answer does",
            (PhaseName.WAIT, 979),
        ),
        (
            turn(**WAITING, end=TurnEnd.REFUSED, error_code=7, ended=moment(90)),
            connection(),
            Outcome.RESET,
            "REFUSED_STREAM, error code 7",
            (PhaseName.WAIT, 69),
        ),
    ],
)
def test_a_failure_says_who_and_where_and_stops_there(
    said: Turn, on: Connection, outcome: Outcome, detail: str, last_phase: tuple[PhaseName, float]
) -> None:
    (exchange,) = exchanges([said], on)
    assert (exchange.outcome, exchange.outcome_detail) == (outcome, detail)
    assert (exchange.phases[-1].name, exchange.phases[-1].duration_ns / NS_PER_MS) == last_phase


def test_missing_octets_are_the_captures_fault_not_the_servers() -> None:
    on = connection(close_reason="fin", sides={"server": {"fin_at": at(200), "fin_packet": 8}})
    (exchange,) = exchanges([turn(**ANSWERING, end=TurnEnd.INCOMPLETE, response_last=100)], on, gaps=True)
    assert exchange.outcome is Outcome.INCOMPLETE
    assert exchange.ended_at == at(100)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({"status": 200}, Outcome.OK),
        ({"status": 304}, Outcome.OK),
        ({"status": 429}, Outcome.HTTP_ERROR),
        ({"status": 200, "grpc_status": 8}, Outcome.HTTP_ERROR),
        ({"status": 200, "grpc_status": 0}, Outcome.OK),
        ({"status": None}, Outcome.UNKNOWN),
    ],
)
def test_a_whole_answer_is_judged_by_its_status(fields: dict[str, Any], outcome: Outcome) -> None:
    (exchange,) = exchanges([whole(0, sent=21, **fields)])
    assert exchange.outcome is outcome


def test_a_reset_after_the_whole_answer_is_no_failure() -> None:
    on = connection(close_reason="reset", sides={"client": {"rst_at": at(300), "rst_packet": 9}})
    (exchange,) = exchanges([whole(0, sent=21)], on)
    assert exchange.outcome is Outcome.OK
    assert exchange.ended_at == at(81)


@pytest.mark.parametrize("sides", [{"server": {"packets": 0}}, {"server": {"missing_bytes": 81}}])
def test_a_capture_of_one_direction_cannot_say_that_no_answer_came(sides: dict[str, Any]) -> None:
    on = connection(close_reason="fin", sides={**sides, "client": {"fin_at": at(500), "fin_packet": 9}})
    (exchange,) = exchanges([turn(**WAITING, end=TurnEnd.INCOMPLETE)], on)
    assert (exchange.outcome, exchange.outcome_detail) == (Outcome.INCOMPLETE, "octets are missing from the capture")
    assert "wait" not in durations_ms(exchange), "not measured, so not 0"


LATE = whole(0, sent=21, wait=12_000, transfer=100)


@pytest.mark.parametrize(
    ("fin_ms", "detail", "last_phase"),
    [
        (10_021, "closed by client before any answer (it was all there 2.10 s later)", (PhaseName.WAIT, 10_000)),
        (
            12_051,
            "closed by client in the middle of the answer (it was all there 70.0 ms later)",
            (PhaseName.TRANSFER, 30),
        ),
    ],
)
def test_an_answer_that_its_client_did_not_wait_for_is_no_success(
    fin_ms: float, detail: str, last_phase: tuple[PhaseName, float]
) -> None:
    gone = {"fin_at": at(fin_ms), "fin_packet": 7, "rst_at": at(12_121), "rst_packet": 9}
    (exchange,) = exchanges([LATE], connection(close_reason="fin", sides={"client": gone}))
    assert (exchange.outcome, exchange.outcome_detail, exchange.status) == (Outcome.CLOSED_EARLY, detail, 200)
    assert (exchange.phases[-1].name, exchange.phases[-1].duration_ns / NS_PER_MS) == last_phase
    assert exchange.ended_at == at(fin_ms)


@pytest.mark.parametrize(
    "client",
    [
        {"fin_at": at(100)},  # half-closed: it takes the answer
        {"fin_at": at(100), "rst_at": at(20_000)},  # took it, and reset much later
        {"fin_at": at(12_200), "rst_at": at(12_201)},  # closed after the answer
        {"rst_at": at(12_122)},
    ],
)
def test_who_takes_the_whole_answer_has_not_given_up(client: dict[str, int]) -> None:
    (exchange,) = exchanges([LATE], connection(close_reason="fin", sides={"client": client}))
    assert (exchange.outcome, exchange.ended_at) == (Outcome.OK, at(12_121))


FIN_300 = {"fin_at": at(300), "fin_packet": 9}
UNTIL_CLOSE = whole(0, sent=21, end=TurnEnd.UNTIL_CLOSE)


def test_a_body_that_only_the_close_delimits_lasts_until_the_close() -> None:
    (exchange,) = exchanges([UNTIL_CLOSE], connection(close_reason="fin", sides={"server": FIN_300}))
    assert durations_ms(exchange)["transfer"] == 229
    assert (exchange.ended_at, exchange.phases[-1].last_packet) == (at(300), 9)
    assert exchange.outcome is Outcome.OK
    assert "may have been cut short" in (exchange.outcome_detail or "")


def test_close_notify_says_that_such_a_body_is_whole() -> None:
    said = Alert(sender="server", level=1, description=0, name="close_notify", at=at(90), packet=8)
    on = connection(close_reason="fin", sides={"server": FIN_300}, tls=session(alerts=(said,), finished_at=at(20)))
    (exchange,) = exchanges([UNTIL_CLOSE], on)
    assert (exchange.ended_at, exchange.outcome, exchange.outcome_detail) == (at(90), Outcome.OK, None)


@pytest.mark.parametrize(
    ("on", "outcome", "ended_ms"),
    [
        (connection(), Outcome.INCOMPLETE, 1_000),
        (connection(close_reason="reset", sides={"server": {"rst_at": at(300), "rst_packet": 9}}), Outcome.RESET, 300),
        (connection(close_reason="fin", sides={"client": FIN_300}), Outcome.CLOSED_EARLY, 300),
        (
            connection(close_reason="reset", sides={"server": FIN_300, "client": {"rst_at": at(200), "rst_packet": 7}}),
            Outcome.RESET,
            200,
        ),
    ],
)
def test_without_the_servers_close_such_a_body_has_no_end(on: Connection, outcome: Outcome, ended_ms: float) -> None:
    (exchange,) = exchanges([UNTIL_CLOSE], on)
    assert (exchange.outcome, exchange.ended_at) == (outcome, at(ended_ms))
    assert (exchange.phases[-1].name, exchange.phases[-1].ended_at) == (PhaseName.TRANSFER, at(ended_ms))


def never(on: Connection, capture_ends_ms: float = 60_000) -> tuple[Outcome, float | None] | None:
    ending = ending_without_a_turn(on, set_up_marks(on), at(capture_ends_ms))
    if ending is None:
        return None
    return ending.outcome, None if ending.at is None else (ending.at.at - at(0)) / NS_PER_MS


SILENT = {"syn_ack_at": None, "syn_ack_packet": None, "sides": {"server": {"packets": 0}}}


def test_connections_that_never_carried_a_request() -> None:
    refused = connection(
        syn_ack_at=None, close_reason="refused", closed_at=at(5), sides={"server": {"rst_at": at(5), "rst_packet": 2}}
    )
    assert never(refused) == (Outcome.REFUSED, 5)
    assert never(connection(**SILENT, last_at=at(7_000), syn_retries=3)) == (Outcome.TIMEOUT_CONNECT, 7_000)
    assert never(connection(**SILENT, last_at=at(0)), capture_ends_ms=100) == (Outcome.INCOMPLETE, 0)
    assert never(connection(close_reason="fin", sides={"client": {"fin_at": at(50), "payload_bytes": 0}})) is None


def test_ids_follow_the_beginnings() -> None:
    late, early = connection(id=0), connection(id=1, syn_at=at(-30))
    drafts = [
        *drafts_of(late, set_up_marks(late), [whole(0, sent=21)]),
        *drafts_of(early, set_up_marks(early), [whole(0, sent=30)]),
    ]
    assert [(e.id, e.connection_id) for e in numbered(drafts)] == [(0, 1), (1, 0)]
