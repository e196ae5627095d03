"""Whose fault a gap of a stream is: the conservation test and what goes before it, on schedules that are written out and on built captures."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

import netdiag
from netdiag.analysis.stalls import Surroundings, find_stalls, shift_of
from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled, varied
from netdiag.records.stream import EventKind, StallCause, StreamEvent, StreamStall, StreamTiming
from tests.support.fabricated import ns
from tests.support.turns import at

K = EventKind


def steady(count: int = 40, every: float = 30) -> list[float]:
    return [100 + i * every for i in range(count)]


def events(times: list[float], *, reads: list[float] | None = None, pings: tuple[float, ...] = ()) -> list[StreamEvent]:
    told = sorted(
        [(t, K.TEXT, r) for t, r in zip(times, reads or [None] * len(times), strict=True)]
        + [(p, K.PING, None) for p in pings],
        key=lambda row: row[0],
    )
    return [
        StreamEvent(
            index=i,
            kind=kind,
            deliverable_at=at(ms),
            seen_at=at(ms),
            size_bytes=90,
            packet=i + 1,
            read_at=None if read is None else at(read),
        )
        for i, (ms, kind, read) in enumerate(told)
    ]


def paused(place: int, ms: float, times: list[float]) -> list[float]:
    return [t if i <= place else t + ms for i, t in enumerate(times)]


def held_back(place: int, until: float, times: list[float]) -> list[float]:
    """What was to come after ``place`` comes at ``until`` at the earliest."""
    return [t if i <= place else max(t, until) for i, t in enumerate(times)]


def stalls(times: list[float], **around: Any) -> tuple[StreamStall, ...]:
    return find_stalls(events(times), Surroundings(**around))


def test_a_steady_stream_has_no_stall() -> None:
    assert stalls(steady()) == ()


def test_a_pause_of_the_server_shifts_everything_after_it() -> None:
    (stall,) = stalls(paused(12, 250, steady()))
    assert (stall.cause, stall.method) == (StallCause.SERVER, "conservation")
    assert (stall.gap_ns, stall.usual_ns, stall.excess_ns, stall.shift_ns) == (ns(280), ns(30), ns(250), ns(250))
    assert (stall.after_event, stall.started_at, stall.packets) == (12, at(460), (13, 14))
    assert stall.ended_at == at(740)


def test_after_a_stall_of_the_network_the_schedule_is_as_before() -> None:
    (stall,) = stalls(held_back(12, 640, steady()))
    assert (stall.cause, stall.method) == (StallCause.NETWORK, "conservation")
    assert stall.shift_share is not None
    assert abs(stall.shift_share) < 0.05


@pytest.mark.parametrize("every", [10, 30, 100, 400])
@pytest.mark.parametrize("ms", [300, 1_000])
def test_both_at_any_pace(every: float, ms: float) -> None:
    assert [s.cause for s in stalls(paused(20, ms, steady(60, every)))] == [StallCause.SERVER]
    back = stalls(held_back(20, 100 + 21 * every + ms, steady(200, every)))
    assert [s.cause for s in back] == [StallCause.NETWORK]


def test_a_late_token_of_a_slow_stream_is_seen_although_the_gap_is_not_twice_as_long() -> None:
    (stall,) = stalls(held_back(8, 100 + 9 * 400 + 220, steady(20, 400)))
    assert (stall.cause, stall.excess_ns) == (StallCause.NETWORK, ns(220))


def test_the_last_gap_cannot_be_classified() -> None:
    (stall,) = stalls(paused(38, 500, steady()))
    assert (stall.cause, stall.method, stall.shift_ns) == (StallCause.UNDECIDED, "none", None)


def test_a_stream_that_ends_with_its_backlog_bounds_the_shift() -> None:
    (stall,) = stalls(held_back(20, 100 + 39 * 30 + 12, steady()))
    assert stall.cause is StallCause.NETWORK


def test_half_a_shift_is_undecided() -> None:
    times = [t if i <= 12 else max(t + 125, 740) for i, t in enumerate(steady())]
    (stall,) = stalls(times)
    assert (stall.cause, stall.method) == (StallCause.UNDECIDED, "conservation")


def test_a_late_reader_may_look_like_a_late_network_where_only_the_reader_stamps() -> None:
    (stall,) = stalls(held_back(12, 640, steady()), stamped_late=True)
    assert stall.cause is StallCause.UNDECIDED
    (still,) = stalls(paused(12, 250, steady()), stamped_late=True)
    assert still.cause is StallCause.SERVER


def test_a_hop_that_lets_go_at_once_is_no_network_that_catches_up() -> None:
    assert [s.cause for s in stalls(held_back(12, 640, steady()), collected=True)] == [StallCause.UNDECIDED]


def test_pings_prove_that_the_text_had_not_been_sent() -> None:
    told = events(paused(38, 500, steady()), pings=(1_300, 1_450, 1_600, 1_700))
    (stall,) = find_stalls(told, Surroundings())
    assert (stall.cause, stall.method, stall.signs_of_life) == (StallCause.SERVER, "signs-of-life", 4)


def test_the_client_that_reads_late_is_named_and_the_stream_is_not() -> None:
    times = steady()
    told = events(times, reads=[t + 1 if not 460 < t < 700 else 701 for t in times])
    (stall,) = find_stalls(told, Surroundings())
    assert (stall.cause, stall.method, stall.started_at) == (StallCause.CLIENT, "read-lag", at(461))


def test_a_pause_is_no_late_read() -> None:
    times = paused(12, 250, steady())
    assert [s.cause for s in find_stalls(events(times, reads=[t + 1 for t in times]), Surroundings())] == [
        StallCause.SERVER
    ]


def test_a_stall_below_the_round_trip_time_is_none() -> None:
    assert stalls(paused(12, 100, steady()), rtt_ns=ns(200)) == ()


def test_a_pace_that_varies_by_itself_has_few_stalls() -> None:
    chance = random.Random(4)
    found = total = 0
    for _ in range(40):
        times = [100.0]
        for _ in range(200):
            times.append(times[-1] + chance.lognormvariate(3, 0.5))
        found += len(stalls(times))
        total += 200
    assert found / total < 0.005


def test_of_jittery_streams_the_cause_is_still_found() -> None:
    chance = random.Random(9)
    right: dict[StallCause, int] = {StallCause.SERVER: 0, StallCause.NETWORK: 0}
    for _ in range(60):
        made = [t + chance.gauss(0, 4) for t in steady()]
        for cause, times in (
            (StallCause.SERVER, paused(15, 300, made)),
            (StallCause.NETWORK, held_back(15, 100 + 16 * 30 + 300, made)),
        ):
            found = max(stalls(sorted(times)), key=lambda s: s.excess_ns)
            assert found.cause in (cause, StallCause.UNDECIDED), "never the other one"
            right[cause] += found.cause is cause
    assert min(right.values()) >= 54


def test_too_few_events_say_nothing() -> None:
    assert shift_of([0, 1_000], 0) is None
    assert stalls([100, 130, 900]) == ()


# -- built captures: the truth is the scenario's -------------------------------------------------------------------------------------


def streamed(name: str, **changes: Any) -> StreamTiming:
    made = record(varied(bundled(name), {key.replace("__", "."): value for key, value in changes.items()}))
    (exchange,) = netdiag.analyze(io.BytesIO(made.capture)).exchanges
    assert exchange.stream is not None
    return exchange.stream


def test_loss_is_the_network_s_and_without_it_there_is_no_stall() -> None:
    (stall,) = streamed("loss-in-stream").stalls
    assert (stall.cause, stall.method) == (StallCause.NETWORK, "hole")
    assert stall.shift_share is not None
    assert stall.shift_share < 0.3
    assert len(stall.packets) >= 3
    assert streamed("loss-in-stream", path__down={}).stalls == ()


def test_a_pause_is_the_server_s_and_without_it_there_is_no_stall() -> None:
    (stall,) = streamed("stream-stall").stalls
    assert (stall.cause, stall.excess_ns) == (StallCause.SERVER, ns(600))
    assert stall.signs_of_life == 4
    assert streamed("stream-stall", answer__pause_ms=0.0).stalls == ()


def test_a_pause_without_pings_is_told_by_conservation() -> None:
    (stall,) = streamed("stream-stall", answer__ping_ms=None).stalls
    assert (stall.cause, stall.method, stall.signs_of_life) == (StallCause.SERVER, "conservation", 0)


def test_a_clean_stream_has_no_stall() -> None:
    clean = streamed("clean-h2-stream", answer__events=40)
    assert clean.stalls == ()
    assert (clean.events_per_record, clean.burst_factor) == (1.0, 1.0)


@pytest.mark.parametrize("rtt_ms", [10.0, 100.0])
@pytest.mark.parametrize("gap_ms", [30.0, 100.0, 400.0])
def test_the_table_of_the_catalogue(rtt_ms: float, gap_ms: float) -> None:
    common = {"path__rtt_ms": rtt_ms, "answer__gap_ms": gap_ms, "answer__events": 40}
    (lost,) = streamed("loss-in-stream", **common, path__down={"drops": [{"what": "data", "nth": 15}]}).stalls
    assert lost.cause is StallCause.NETWORK
    assert lost.shift_share is not None
    assert lost.shift_share < 0.1
    pause = {"path__down": {}, "answer__pause_after": 10, "answer__pause_ms": 250.0}
    (late,) = streamed("loss-in-stream", **common, **pause).stalls
    assert (late.cause, late.excess_ns) == (StallCause.SERVER, ns(250))
    assert streamed("loss-in-stream", **common, path__down={}).stalls == ()


def test_the_cause_is_the_same_without_the_packets_saying_so() -> None:
    """The conservation test alone, as at the levels that have no packets."""
    for name, cause in (("loss-in-stream", StallCause.NETWORK), ("stream-stall", StallCause.SERVER)):
        told = streamed(name, answer__events=30, answer__ping_ms=None)
        (stall,) = find_stalls(told.timeline, Surroundings())
        assert (stall.cause, stall.method) == (cause, "conservation")


SLOW_READER = {
    "tcp.client.window_bytes": 16_384,
    "answer": {"stream": True, "events": 60, "event_bytes": 2_000, "gap_ms": 10.0},
    "connection": [{"request": [{"read_pause_after": 20_000, "read_pause_ms": 400}]}],
}


def test_a_reader_that_stops_closes_the_window_and_that_is_the_client_s() -> None:
    (exchange,) = netdiag.analyze(io.BytesIO(record(varied(bundled("zero-window"), SLOW_READER)).capture)).exchanges
    assert exchange.stream is not None
    worst = max(exchange.stream.stalls, key=lambda s: s.excess_ns)
    assert (worst.cause, worst.method) == (StallCause.CLIENT, "window")
    keen = varied(bundled("zero-window"), SLOW_READER | {"connection": [{"request": [{}]}]})
    (control,) = netdiag.analyze(io.BytesIO(record(keen).capture)).exchanges
    assert control.stream is not None
    assert control.stream.stalls == ()


def test_octets_that_came_while_nobody_read_are_the_client_s() -> None:
    """Below packets one stamp stands for all that one read found."""
    times = held_back(12, 640, steady())
    (stall,) = stalls(times, absences=((at(461), at(641)),))
    assert (stall.cause, stall.method) == (StallCause.CLIENT, "read-lag")
    (server,) = stalls(paused(12, 250, steady()), absences=((at(461), at(641)),))
    assert server.cause is StallCause.SERVER
    (network,) = stalls(times, absences=((at(100), at(450)),))
    assert network.cause is StallCause.NETWORK


def test_a_reader_that_gives_no_flow_control_window_is_named() -> None:
    slow = SLOW_READER | {
        "tcp.client.window_bytes": 65_535,
        "connection": [
            {"protocol": "h2", "window_bytes": 16_384, "request": [{"read_pause_after": 20_000, "read_pause_ms": 400}]}
        ],
    }
    (exchange,) = netdiag.analyze(io.BytesIO(record(varied(bundled("zero-window"), slow)).capture)).exchanges
    assert exchange.stream is not None
    worst = max(exchange.stream.stalls, key=lambda s: s.excess_ns)
    assert (worst.cause, worst.method) == (StallCause.CLIENT, "flow-control")


def test_a_comment_that_comes_with_the_text_is_no_sign_of_life() -> None:
    """The network may have held up both."""
    told = events(held_back(12, 640, steady()), pings=(639.999,))
    (stall,) = find_stalls(told, Surroundings())
    assert stall.cause is StallCause.NETWORK
