"""Arms by every factor, against a real server: what the arm's name says is what happens, and each limit ends the call that it is for."""

from __future__ import annotations

import gzip

import pytest

from netdiag import probe
from netdiag.errors import UsageError
from netdiag.lab import Behaviour
from netdiag.probe.first_event import FirstEvent
from netdiag.probe.plan import ProbeConfig, parse_arm
from netdiag.records.exchange import Outcome
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, config_for, connection_of, probe_lab

STREAM = "/v1/chat/completions?stream=true"


def test_words_of_concurrency_clients_and_idleness() -> None:
    arm = parse_arm("h2+k8+separate", "https://a/")
    assert (arm.concurrency, arm.separate, arm.idle_s) == (8, True, None)
    arm = parse_arm("h1+warm+idle500ms", "https://a/", concurrency=3)
    assert (arm.concurrency, arm.separate, arm.idle_s, arm.warms_up) == (3, False, 0.5, True)
    assert parse_arm("h1", "https://a/").idle_s is None


@pytest.mark.parametrize(
    ("arms", "why"),
    [
        (("h1+k0",), "concurrency"),
        (("h1+k21",), "concurrency"),
        (("h1+k2+k3",), "exclude"),
        (("h1+shared+separate",), "exclude"),
        (("h1+idle6s",), "kept connection"),
        (("h1+warm+idle9999999s",), "none of"),
        (("h1+warm+idle6",), "none of"),
        (("h1+warm+idle7200s",), "3600"),
    ],
)
def test_words_that_cannot_be(arms: tuple[str, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        ProbeConfig(urls=("https://a/",), arms=arms)


def test_every_request_of_a_plan_is_counted_beforehand() -> None:
    config = ProbeConfig(urls=("https://a/",), arms=("h2+k8", "h1", "h1+warm+idle1s"), trials=3)
    assert config.request_count() == 4 * (8 + 1 + 2)
    with pytest.raises(UsageError, match="1000"):
        ProbeConfig(urls=("https://a/",), arms=("h2+k20",), trials=60)


def test_shared_and_separate_clients(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(wait_ms=30)), arms=("h2+k3", "h2+k3+separate", "h2"))
    used = {arm: [r.connection_id for r in recording.requests if r.arm == arm] for arm in recording.arms}
    assert [len(v) for v in used.values()] == [3, 3, 1]
    assert len(set(used["h2+k3"])) == 1
    assert len(set(used["h2+k3+separate"])) == 3


def test_the_calls_of_a_batch_are_under_way_at_once(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(wait_ms=200)), arms=("h1+k4+separate",))
    starts = [r.submitted_at for r in recording.requests]
    assert max(starts) < min(r.ended_at for r in recording.requests)


@pytest.mark.xdist_group("timing")
def test_idleness_as_a_factor(start_lab: StartLab) -> None:
    """Both arms keep their connection; only one lets it rest before the call that counts."""
    server = start_lab(Behaviour(wait_ms=5))
    analysis = probe(config_for(server, arms=("h1+warm+idle0s", "h1+warm+idle600ms"), trials=3))
    counted = [e for e in analysis.exchanges if e.trial]
    assert len(counted) == 6
    for exchange in counted:
        assert exchange.reused
        assert exchange.idle_before_ns is not None
        rested = exchange.idle_before_ns > 500 * NS_PER_MS
        assert rested is (exchange.arm == "h1+warm+idle600ms"), (exchange.arm, exchange.idle_before_ns)
    assert {s.arm: s.n for s in analysis.statistics} == {"h1+warm+idle0s": 3, "h1+warm+idle600ms": 3}


def test_tls_versions_and_families(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(), arms=("h1+tls1.2", "h1+tls1.3", "h1+ipv4"))
    versions = {r.arm: connection_of(recording, r).tls_version for r in recording.requests}
    assert (versions["h1+tls1.2"], versions["h1+tls1.3"]) == ("TLSv1.2", "TLSv1.3")
    server = next(connection_of(recording, r).server for r in recording.requests if r.arm == "h1+ipv4")
    assert server is not None
    assert ":" not in server.address


def test_several_urls_are_arms_against_each_other(start_lab: StartLab) -> None:
    near, far = start_lab(Behaviour(wait_ms=10)), start_lab(Behaviour(wait_ms=90))
    urls = (near.url + "/v1/models", far.url + "/v1/models")
    analysis = probe(ProbeConfig(urls=urls, arms=("h1",), trials=6, capture="none", insecure=True, seed=2))
    assert {s.n for s in analysis.statistics} == {6}
    total = next(c for c in analysis.comparisons if c.quantity == "total")
    sign = 1 if str(far.port) in total.arm_b else -1
    assert total.estimate_ns is not None
    assert 40 * NS_PER_MS < sign * total.estimate_ns < 140 * NS_PER_MS
    assert total.verdict == ("slower" if sign > 0 else "faster")


def test_the_first_events_limit(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=5, first_event_ms=900, ping_ms=50, role_first=False, events=2))
    late = probe_lab(server, STREAM, arms=("h1", "h2"), first_event_timeout_s=0.3).requests
    assert [r.outcome for r in late] == [Outcome.TIMEOUT_READ] * 2
    assert all("no first event" in (r.error or "") for r in late)
    assert all(280 * NS_PER_MS < r.ended_at - r.submitted_at < 700 * NS_PER_MS for r in late)
    in_time = probe_lab(server, STREAM, arms=("h1", "h2"), first_event_timeout_s=5.0).requests
    assert [r.outcome for r in in_time] == [Outcome.OK] * 2


def test_the_limit_between_events(start_lab: StartLab) -> None:
    paused = start_lab(Behaviour(events=4, gap_ms=10, pause_after=2, pause_ms=900))
    assert probe_lab(paused, STREAM, arms=("h1",), read_timeout_s=0.3).requests[0].outcome is Outcome.TIMEOUT_READ
    alive = start_lab(Behaviour(events=4, gap_ms=10, pause_after=2, pause_ms=900, ping_ms=100))
    assert probe_lab(alive, STREAM, arms=("h1",), read_timeout_s=0.3).requests[0].outcome is Outcome.OK


def test_what_counts_as_a_first_event() -> None:
    stream = FirstEvent({"content-type": "text/event-stream; charset=utf-8"})
    assert not stream.is_in(b": queued\n\n")
    assert not stream.is_in(b'event: ping\ndata: {"type": "ping"}\n\n')
    assert not stream.is_in(b"data: half an ev")
    assert stream.is_in(b"ent\n\n")
    assert FirstEvent({"content-type": "application/json"}).is_in(b"{")
    packed = gzip.compress(b": queued\n\ndata: x\n\n")
    behind = FirstEvent({"content-type": "text/event-stream", "content-encoding": "gzip"})
    assert not behind.is_in(packed[:12])
    assert behind.is_in(packed[12:])
    assert FirstEvent({"content-type": "text/event-stream", "content-encoding": "gzip"}).is_in(b"no gzip")
    assert FirstEvent({"content-type": "text/event-stream", "content-encoding": "compress"}).is_in(b"\x1f\x9d")
    assert not FirstEvent({}).is_in(b"")
