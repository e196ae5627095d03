"""Every scenario of the lab, analysed: phases equal the truth, which comes from the hosts and not from the octets, to the nanosecond.

Without keys the same captures give the same phases where records tell, and bounds that enclose the truth where they do not.
"""

from __future__ import annotations

import dataclasses
import io
from functools import lru_cache
from pathlib import Path

import pytest

import netdiag
from netdiag.lab.builder.output import Recorded, record
from netdiag.lab.builder.truth import TrueExchange
from netdiag.lab.scenario import bundled, bundled_names
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.stream import EventKind
from netdiag.records.timing import Method, PhaseName

NAMES = tuple(bundled_names())


@lru_cache(maxsize=4)
def recorded(name: str, secrets: str = "all") -> Recorded:
    scenario = bundled(name)
    return record(dataclasses.replace(scenario, capture=dataclasses.replace(scenario.capture, secrets=secrets)))


def analysed(made: Recorded) -> Analysis:
    return netdiag.analyze(io.BytesIO(made.capture))


def matching(analysis: Analysis, wanted: TrueExchange, taken: set[int]) -> Exchange | None:
    """By connection and stream, or as the next request of the connection."""
    for exchange in analysis.exchanges:
        on = analysis.connections[exchange.connection_id] if exchange.connection_id is not None else None
        same_stream = exchange.stream_id in (wanted.stream_id, None)
        if on is not None and str(on.client) == wanted.client and same_stream and exchange.id not in taken:
            taken.add(exchange.id)
            return exchange
    return None


def spans(exchange: Exchange | TrueExchange) -> list[tuple[str, int, int]]:
    return [(str(p.name), p.started_at, p.ended_at) for p in exchange.phases]


NOT_CAPTURED = {"begins-late": "the capture begins after the handshake and the first request"}
SEEN_FROM_OUTSIDE = {"timeout:total": "reset"}
"""A client that gives up is a client that resets."""
UNREADABLE = {"begins-late", "cut-frames"}
"""Octets are missing, so nothing of HTTP can be read."""


@pytest.mark.parametrize("name", [n for n in NAMES if n not in NOT_CAPTURED])
def test_phases_equal_the_truth(name: str) -> None:
    made = recorded(name)
    analysis, taken = analysed(made), set[int]()
    assert made.truth.exchanges
    for wanted in made.truth.exchanges:
        found = matching(analysis, wanted, taken)
        assert found is not None, f"{wanted.method} {wanted.path} is missing"
        assert spans(found) == spans(wanted)
        assert (found.started_at, found.ended_at) == (wanted.started_at, wanted.ended_at)
        assert sum(p.duration_ns for p in found.phases) + found.unattributed_ns == found.total_ns
        if name not in UNREADABLE:
            assert str(found.outcome) == SEEN_FROM_OUTSIDE.get(wanted.outcome, wanted.outcome)
            assert found.status == wanted.status
            asked = any(p.name == "send" for p in wanted.phases)
            assert (found.method, found.path) == ((wanted.method, wanted.path) if asked else (None, None))


def test_a_capture_that_begins_late_has_the_second_request_whole_and_nothing_invented() -> None:
    made = recorded("begins-late")
    orphan, whole = analysed(made).exchanges
    assert [str(p.name) for p in orphan.phases] == ["transfer"]
    assert spans(whole) == spans(made.truth.exchanges[1])


STREAMED = tuple(n for n in NAMES if "stream" in n and n not in ("several-streams", "stream-limit"))


@pytest.mark.parametrize("name", STREAMED)
def test_every_event_of_a_stream_is_when_its_last_octet_was_deliverable(name: str) -> None:
    made = recorded(name)
    for wanted, found in zip(made.truth.exchanges, analysed(made).exchanges, strict=True):
        true = [e for e in wanted.events if e.kind != "coding-end"]  # octets of the coding, none of an event
        if {e.kind for e in true} <= {"body"}:
            assert found.stream is None
            continue
        assert found.stream is not None
        assert [(e.deliverable_at, e.seen_at) for e in found.stream.timeline] == [
            (e.deliverable_at, e.seen_at) for e in true
        ]
        if any(e.kind is EventKind.TEXT for e in found.stream.timeline):
            assert found.stream.first_event_ns is not None
            assert found.stream.first_token_ns is not None
            assert found.stream.first_event_ns <= found.stream.first_token_ns
            assert len(found.stream.gaps_ns) == found.stream.token_events - 1


MULTIPLEXED = {"several-streams", "stream-limit", "early-hints"}
"""Several requests at once, or an interim response that looks like an answer: bounds are all there is."""


@pytest.mark.parametrize("name", [n for n in NAMES if n not in NOT_CAPTURED and n not in MULTIPLEXED])
def test_without_keys_the_wait_is_the_same(name: str) -> None:
    made = recorded(name, "none")
    analysis, taken = analysed(made), set[int]()
    for wanted in made.truth.exchanges:
        found = matching(analysis, wanted, taken)
        assert found is not None
        # The pause for 100 (Continue) is part of the sending where nothing can be read.
        same = {PhaseName.TLS, PhaseName.WAIT} | ({PhaseName.SEND} if name != "continue" else set())
        for phase in same:
            assert [s for s in spans(found) if s[0] == phase] == [s for s in spans(wanted) if s[0] == phase]


@pytest.mark.parametrize("name", sorted(MULTIPLEXED))
def test_without_keys_what_cannot_be_separated_is_bounded_and_the_bounds_hold(name: str) -> None:
    made = recorded(name, "none")
    waits = [p for e in analysed(made).exchanges for p in e.phases if p.name is PhaseName.WAIT]
    assert waits
    assert all(p.method is Method.BOUNDED for p in waits)
    for wanted in made.truth.exchanges:
        (true_wait,) = [p for p in wanted.phases if p.name == "wait"]
        around = [p for p in waits if p.started_at - p.hi_ns <= true_wait.started_at <= p.ended_at + p.hi_ns]
        assert any(p.lo_ns <= true_wait.duration_ns <= p.hi_ns for p in around)


def test_the_key_log_may_be_a_file_beside_the_capture(tmp_path: Path) -> None:
    made = recorded("clean-h1", "none")
    capture, keys = tmp_path / "a.pcapng", tmp_path / "keys.txt"
    capture.write_bytes(made.capture)
    keys.write_bytes(made.keylog)
    assert netdiag.analyze(capture).source.evidence_level == "L2"
    opened = netdiag.analyze(capture, keylog=keys)
    assert (opened.source.evidence_level, opened.source.secrets.used) == ("L3", 1)
