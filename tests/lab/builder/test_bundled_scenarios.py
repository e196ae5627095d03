"""Every bundled scenario builds, and its truth is a truth: disjoint phases, in order, as the cause would have them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from netdiag.lab.builder.output import Recorded, record
from netdiag.lab.builder.truth import TrueExchange
from netdiag.lab.scenario import bundled, bundled_names

_BUILT: dict[str, Recorded] = {}


def built(name: str) -> Recorded:
    """Each scenario once."""
    if name not in _BUILT:
        _BUILT[name] = record(bundled(name))
    return _BUILT[name]


def exchanges(name: str) -> list[TrueExchange]:
    return built(name).truth.exchanges


def ms(exchange: TrueExchange, phase: str) -> float:
    duration = exchange.phase_ns(phase)
    assert duration is not None, f"no {phase}: {exchange.phases}"
    return duration / 1e6


@pytest.mark.parametrize("name", bundled_names())
def test_phases_are_disjoint_and_in_order(name: str) -> None:
    for exchange in exchanges(name):
        for before, after in pairwise(exchange.phases):
            assert before.ended_at <= after.started_at or name == "clock-step"
        assert exchange.total_ns is not None
        assert sum(p.duration_ns for p in exchange.phases) <= exchange.total_ns


@pytest.mark.parametrize("name", ["clean-h2-stream", "reordered", "tls12"])
def test_the_same_octets_each_time(name: str) -> None:
    assert record(bundled(name)).capture == built(name).capture


def test_a_new_connection_pays_for_each_round_trip() -> None:
    (exchange,) = exchanges("clean-h1")
    assert [p.name for p in exchange.phases] == ["dns", "tcp", "tls", "send", "wait", "transfer"]
    assert ms(exchange, "dns") == pytest.approx(10, abs=0.1)
    assert ms(exchange, "tcp") == pytest.approx(40, abs=0.001)
    assert ms(exchange, "tls") == pytest.approx(40 + 1, abs=0.1), "one round trip and the client's own 1 ms"
    assert ms(exchange, "wait") == pytest.approx(50 + 40, abs=0.1)
    assert exchange.server_wait_ns == 50_000_000


def test_a_reused_connection_has_no_set_up() -> None:
    first, second, third = exchanges("reused-connection")
    assert first.phase_ns("tls") is not None
    for later in (second, third):
        assert later.reused
        assert later.phase_ns("dns") is later.phase_ns("tcp") is later.phase_ns("tls") is None


@pytest.mark.parametrize(
    ("name", "round_trips"), [("tls-retry", 2), ("tls-resumed", 1), ("tls12", 2), ("tls-large-chain", 2)]
)
def test_handshakes_take_their_round_trips(name: str, round_trips: int) -> None:
    rtt_ms = 60 if name == "tls-large-chain" else 50
    assert ms(exchanges(name)[0], "tls") == pytest.approx(round_trips * rtt_ms, abs=1.5)


@pytest.mark.parametrize("name", ["tls-resumed", "tls12"])
def test_the_second_connection_resumes(name: str) -> None:
    first, second = (c.tls for c in built(name).truth.connections)
    assert first is not None
    assert second is not None
    assert (first["resumed"], second["resumed"]) == (False, True)
    assert ms(exchanges(name)[1], "tls") == pytest.approx(50, abs=1.5)


def test_a_lost_syn_costs_a_second() -> None:
    assert ms(exchanges("syn-lost")[0], "tcp") == pytest.approx(1040, abs=0.01)


@pytest.mark.parametrize(
    ("name", "side", "kind"),
    [
        ("loss-fast", "server", "fast"),
        ("loss-in-stream", "server", "fast"),
        ("loss-timeout", "client", "rto"),
        ("loss-tail", "server", "tlp"),
        ("syn-lost", "client", "rto"),
    ],
)
def test_what_was_lost_is_sent_again_once(name: str, side: str, kind: str) -> None:
    (connection,) = built(name).truth.connections
    assert connection.lost[side] == 1
    assert connection.sent_again[side] == {kind: 1}


@pytest.mark.parametrize("name", ["reordered", "duplicated", "lost-by-capture", "zero-window", "keep-alive"])
def test_what_was_not_lost_is_not_sent_again(name: str) -> None:
    for connection in built(name).truth.connections:
        assert connection.sent_again == {"client": {}, "server": {}}


def test_events_behind_a_hole_become_usable_together() -> None:
    (exchange,) = exchanges("loss-in-stream")
    waiting = [e for e in exchange.events if e.deliverable_at != e.seen_at]
    assert len(waiting) >= 3
    assert len({e.deliverable_at for e in waiting}) == 1


def test_interim_responses_never_end_a_wait() -> None:
    (exchange,) = exchanges("early-hints")
    assert ms(exchange, "wait") == pytest.approx(240, abs=0.1)
    (hint,) = exchange.interim_at
    wait = next(p for p in exchange.phases if p.name == "wait")
    assert wait.started_at < hint < wait.ended_at


def test_continue_is_a_phase_between_two_parts_of_send() -> None:
    (exchange,) = exchanges("continue")
    assert [p.name for p in exchange.phases][2:] == ["send", "continue", "send", "wait", "transfer"]
    assert ms(exchange, "continue") == pytest.approx(80 + 40, abs=0.1)


def test_a_buffering_hop_turns_transfer_into_wait() -> None:
    (exchange,) = exchanges("buffering-hop")
    assert ms(exchange, "wait") == pytest.approx(50 + 19 * 20 + 40, abs=0.1)
    assert ms(exchange, "transfer") < 1


def test_a_stream_limit_delays_the_request_not_the_answer() -> None:
    waits = [ms(e, "wait") for e in exchanges("stream-limit")]
    assert waits == pytest.approx([180] * 4, abs=0.1)
    starts = [e.phases[-3].started_at for e in exchanges("stream-limit")]
    assert starts[2] - starts[1] > 149e6


def test_reading_pause_closes_the_window_for_its_time() -> None:
    (exchange,) = exchanges("zero-window")
    assert ms(exchange, "transfer") > 400


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("refused", ["refused"]),
        ("reset-in-body", ["reset"]),
        ("truncated-body", ["closed_early"]),
        ("rate-limited", ["http_error", "ok"]),
        ("goaway", ["ok", "ok", "ok"]),
    ],
)
def test_outcomes(name: str, outcomes: list[str]) -> None:
    assert [e.outcome for e in exchanges(name)] == outcomes


def test_merged_frames_are_larger_than_the_mtu_and_change_no_phase_but_by_their_span() -> None:
    assert built("merged-frames").truth.frames < 120
    (exchange,) = exchanges("merged-frames")
    assert ms(exchange, "wait") == pytest.approx(30, abs=0.3)
