"""Whatever the path does within reason, every octet arrives once and in order, the truth adds up, and the same scenario is the same file."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.lab.builder.build import build
from netdiag.lab.builder.capture import frames_at_tap
from netdiag.lab.builder.observe import observe
from netdiag.lab.builder.output import record
from netdiag.lab.scenario import Scenario, from_mapping

DIRECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "loss": st.sampled_from([0.01, 0.05, 0.1]),
        "reorder": st.sampled_from([0.05, 0.3]),
        "reorder_ms": st.sampled_from([0.02, 1.0, 30.0]),
        "duplicate": st.sampled_from([0.05, 0.3]),
        "jitter_ms": st.sampled_from([0.1, 5.0]),
        "rate_mbit": st.sampled_from([1.0, 20.0]),
    },
)
SCENARIOS = st.fixed_dictionaries(
    {
        "seed": st.integers(1, 10_000),
        "path": st.fixed_dictionaries(
            {"rtt_ms": st.sampled_from([0.0, 3.0, 80.0]), "up": DIRECTIONS, "down": DIRECTIONS}
        ),
        "server": st.fixed_dictionaries(
            {
                "tls_maximum": st.sampled_from(["1.2", "1.3"]),
                "tickets": st.integers(0, 3),
                "record_bytes": st.sampled_from([300, 4096, 16384]),
            }
        ),
        "tcp": st.fixed_dictionaries(
            {
                "client": st.fixed_dictionaries(
                    {
                        "mss": st.sampled_from([100, 536, 1460]),
                        "window_bytes": st.sampled_from([3_000, 65_535, 1 << 20]),
                        "window_scale": st.sampled_from(["none", 0, 7]),
                        "sack": st.booleans(),
                        "delayed_ack_ms": st.sampled_from([0.0, 40.0]),
                    }
                ),
                "server": st.fixed_dictionaries({"nagle": st.booleans(), "tail_loss_probe": st.booleans()}),
            }
        ),
        "connection": st.lists(
            st.fixed_dictionaries(
                {
                    "protocol": st.sampled_from(["h2", "http/1.1"]),
                    "request": st.just(
                        [
                            {"answer": {"stream": True, "events": 4, "gap_ms": 7}},
                            {"method": "GET", "path": "/bytes/30000", "body_bytes": 0, "think_ms": 5},
                            {"path": "/echo", "body_bytes": 9000},
                        ]
                    ),
                }
            ),
            min_size=1,
            max_size=2,
        ),
    }
)


def scenario_of(document: dict[str, Any]) -> Scenario:
    return from_mapping(document, name="drawn")


@settings(max_examples=25, deadline=None)
@given(document=SCENARIOS)
def test_every_octet_arrives_once_and_in_order(document: dict[str, Any]) -> None:
    built = build(scenario_of(document))
    assert [m.outcome for m in built.marks] == ["ok"] * len(built.marks)
    assert len(built.marks) == 3 * len(built.runs)
    for run in built.runs:
        assert run.winner is not None
        assert run.server_end is not None
        client, server = run.winner, run.server_end
        assert server.receiver.nxt == len(client.sender.stream) == client.sender.una
        assert client.receiver.nxt == len(server.sender.stream) == server.sender.una
        seen = observe(frames_at_tap(built.sightings, built.scenario.capture), client, server.isn)
        assert seen.client.frontier == len(client.sender.stream)
        assert seen.server.frontier == len(server.sender.stream)


@settings(max_examples=15, deadline=None)
@given(document=SCENARIOS)
def test_the_truth_adds_up_and_repeats(document: dict[str, Any]) -> None:
    once, again = record(scenario_of(document)), record(scenario_of(document))
    assert once.capture == again.capture
    assert once.truth.to_dict() == again.truth.to_dict()
    for exchange in once.truth.exchanges:
        assert exchange.total_ns is not None
        assert 0 <= sum(p.duration_ns for p in exchange.phases) <= exchange.total_ns
        moments = [t for p in exchange.phases for t in (p.started_at, p.ended_at)]
        assert moments == sorted(moments)
        assert len([e for e in exchange.events if e.deliverable_at is None]) == 0
