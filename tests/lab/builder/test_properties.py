"""Whatever the path does within reason, every octet arrives once and in order, the truth adds up, and the same scenario is the same file."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from netdiag.lab.builder.build import build
from netdiag.lab.builder.capture import frames_at_tap
from netdiag.lab.builder.observe import observe
from netdiag.lab.builder.output import record
from tests.support.scenarios import AT_LENGTH, QUICK, SCENARIOS, scenario_of


def assert_whole(document: dict[str, Any]) -> None:
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


@QUICK
@given(document=SCENARIOS)
def test_every_octet_arrives_once_and_in_order(document: dict[str, Any]) -> None:
    assert_whole(document)


@pytest.mark.slow
@AT_LENGTH
@given(document=SCENARIOS)
def test_every_octet_of_many_conversations_arrives_once_and_in_order(document: dict[str, Any]) -> None:
    assert_whole(document)


@QUICK
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
