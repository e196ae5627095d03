"""The probe against the lab: milestones, arms, outcomes, secrets. No capture here."""

from __future__ import annotations

import os
import stat
import threading
import time

import pytest

from netdiag.errors import UsageError
from netdiag.lab import Behaviour
from netdiag.probe.plan import ProbeConfig
from netdiag.probe.run import run
from netdiag.probe.tls import KeyLog, client_context
from netdiag.records.exchange import Outcome
from tests.support.lab import StartLab
from tests.support.probing import NS_PER_MS, connection_of, foreign_threads, open_descriptors, probe_lab, settles


def test_both_arms_cold(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=40))
    recording = probe_lab(server, trials=2)
    assert [r.arm for r in recording.requests].count("h2") == 3
    assert sorted({r.trial for r in recording.requests}) == [0, 1, 2]
    for request in recording.requests:
        connection = connection_of(recording, request)
        assert request.outcome is Outcome.OK
        assert not request.reused
        assert request.protocol == ("h2" if request.arm == "h2" else "http/1.1")
        assert connection.alpn == request.protocol
        assert connection.tls_version == "TLSv1.3"
        assert request.stream_id == (1 if request.arm == "h2" else None)
    assert len(recording.connections) == 6


def test_milestones_are_in_order_and_the_wait_is_the_servers(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=60, body_bytes=50_000, body_ms=30, body_pieces=4))
    recording = probe_lab(server, trials=3)
    served = {e.client: e for e in server.log.exchanges()}
    for request in recording.requests:
        connection = connection_of(recording, request)
        assert connection.tcp is not None
        assert connection.tls is not None
        moments = [
            request.submitted_at,
            request.assigned_at,
            connection.tcp.started_at,
            connection.tcp.ended_at,
            connection.tls.started_at,
            connection.tls.ended_at,
            request.first_write_at,
            request.last_write_at,
            request.headers_at,
            request.last_read_at,
        ]
        assert None not in moments
        assert moments == sorted(moments)  # type: ignore[type-var]
        truth = served[str(connection.client)].wait_ns
        assert truth is not None
        wait_ns = request.headers_at - request.last_write_at  # type: ignore[operator]
        # both run in one process here, so the server may begin before our write returns
        assert -10 * NS_PER_MS < wait_ns - truth < 20 * NS_PER_MS
        assert request.response_bytes == 50_000
        assert sum(size for _, size in request.body_reads) == 50_000


def test_the_undisturbed_wait_is_within_a_millisecond(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=30))
    recording = probe_lab(server, trials=7, arms=("h1",))
    served = {e.client: e.wait_ns for e in server.log.exchanges()}
    errors = sorted(
        r.headers_at - r.last_write_at - served[str(connection_of(recording, r).client)]  # type: ignore[operator]
        for r in recording.requests
    )
    assert errors[len(errors) // 4] < 1 * NS_PER_MS, errors


def test_kernel_stamps_frame_the_application_stamps(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(wait_ms=5)))
    for connection in recording.connections:
        assert connection.operations
        for operation in connection.operations:
            assert operation.kernel_at is not None
            late_ns = operation.kernel_at - operation.application_at
            if operation.direction == 0:
                assert -50_000 < late_ns < 20 * NS_PER_MS  # written before it left
            else:
                assert -50 * NS_PER_MS < late_ns < 50_000  # arrived before it was read
        assert connection.tcp_info is not None
        assert connection.tcp_info.min_rtt_ns


def test_recorded_octets_are_whole_tls_records(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(), arms=("h1",))
    for direction in (0, 1):
        octets = b"".join(o.data for o in recording.connections[0].operations if o.direction == direction)
        while octets:
            assert octets[0] in (20, 21, 22, 23)
            octets = octets[5 + int.from_bytes(octets[3:5], "big") :]


def test_warm_arms_keep_one_connection_each(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(wait_ms=60)), trials=3, warm=True)
    assert len(recording.connections) == 2
    for request in recording.requests:
        assert request.reused == (request.trial > 0)


def test_late_session_tickets_do_not_end_a_kept_connection(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(), tickets=2)
    recording = probe_lab(server, trials=4, warm=True, idle_s=0.08, arms=("h1",))
    assert len(recording.connections) == 1


def test_resumed_arm_resumes(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(Behaviour(wait_ms=60)), trials=2, arms=("h1+resumed", "h2+resumed"))
    for request in recording.requests:
        assert connection_of(recording, request).resumed == (request.trial > 0)


def test_concurrent_calls_share_one_h2_connection(start_lab: StartLab) -> None:
    server = start_lab(Behaviour(wait_ms=30))
    recording = probe_lab(server, arms=("h2",), concurrency=4)
    assert sorted(r.stream_id for r in recording.requests if r.stream_id) == [1, 3, 5, 7]
    assert {r.connection_id for r in recording.requests} == {0}
    assert sum(not r.reused for r in recording.requests) == 1


def test_unsupported_arm_is_reported_and_the_other_runs(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(protocols=("http/1.1",)), trials=2)
    assert [u.arm for u in recording.unsupported] == ["h2"]
    assert "h2" in recording.unsupported[0].reason or "protocol" in recording.unsupported[0].reason
    assert {r.arm for r in recording.requests} == {"h1"}
    assert all(r.outcome is Outcome.OK for r in recording.requests)


def test_clear_text_arms(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(tls=False))
    assert {(r.arm, r.protocol) for r in recording.requests} == {("h1", "http/1.1"), ("h2", "h2")}
    assert all(c.tls is None and c.alpn is None for c in recording.connections)


def test_clear_text_h2_that_nobody_speaks(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(tls=False, protocols=("http/1.1",)))
    assert [u.arm for u in recording.unsupported] == ["h2"]
    assert [r.arm for r in recording.requests] == ["h1"]


@pytest.mark.parametrize(
    ("query", "outcome", "status"),
    [
        ("status=503", Outcome.HTTP_ERROR, 503),
        ("reset_after_bytes=0", Outcome.RESET, None),
        ("reset_after_bytes=50&body_bytes=1000", Outcome.RESET, 200),
        ("truncate_after_bytes=100&body_bytes=1000", Outcome.CLOSED_EARLY, 200),
        ("stall_after_bytes=10&stall_ms=3000&body_bytes=100", Outcome.TIMEOUT_TOTAL, 200),
    ],
)
@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_outcomes(start_lab: StartLab, arm: str, query: str, outcome: Outcome, status: int | None) -> None:
    recording = probe_lab(start_lab(Behaviour(wait_ms=5)), f"/v1/models?{query}", arms=(arm,), timeout_s=0.6)
    (request,) = recording.requests
    assert (request.outcome, request.status) == (outcome, status)
    assert (request.error is None) == (outcome is Outcome.HTTP_ERROR)
    assert request.ended_at - request.submitted_at < 900 * NS_PER_MS


def test_read_timeout(start_lab: StartLab) -> None:
    (request,) = probe_lab(start_lab(Behaviour(wait_ms=2000)), arms=("h1",), read_timeout_s=0.2).requests
    assert request.outcome is Outcome.TIMEOUT_READ
    assert request.headers_at is None
    assert 190 * NS_PER_MS < request.ended_at - (request.last_write_at or 0) < 400 * NS_PER_MS


@pytest.mark.parametrize("how", ["close", "reset", "silence"])
def test_handshake_failures(start_lab: StartLab, how: str) -> None:
    recording = probe_lab(start_lab(fail_handshake=how), arms=("h1",), tls_timeout_s=0.3)
    (request,), (connection,) = recording.requests, recording.connections
    assert request.outcome is (Outcome.TIMEOUT_CONNECT if how == "silence" else Outcome.TLS_FAIL)
    assert connection.tls_error
    assert connection.tcp is not None
    assert request.first_write_at is None


def test_untrusted_certificate_is_refused_and_insecure_is_marked(start_lab: StartLab) -> None:
    server = start_lab()
    (request,) = probe_lab(server, arms=("h1",), cacert=None).requests
    assert request.outcome is Outcome.TLS_FAIL
    assert "certificate verify failed" in (request.error or "")
    recording = probe_lab(server, arms=("h1",), cacert=None, insecure=True)
    assert recording.requests[0].outcome is Outcome.OK
    assert recording.verification == "off (--insecure)"


def test_refused_and_unresolvable() -> None:
    refused = run(ProbeConfig(urls=("https://127.0.0.1:1/",), trials=1, arms=("h1",)))
    assert refused.requests[0].outcome is Outcome.REFUSED
    assert refused.connections[0].attempts[0].outcome == "refused"
    assert refused.connections[0].client is None
    lost = run(ProbeConfig(urls=("https://name.invalid/",), trials=1, arms=("h1",)))
    assert lost.requests[0].outcome is Outcome.DNS_FAIL
    assert lost.connections[0].resolve is not None


def test_unreadable_cacert_is_a_usage_error() -> None:
    with pytest.raises(UsageError):
        run(ProbeConfig(urls=("https://127.0.0.1:1/",), cacert="/nonexistent.pem"))


@pytest.mark.parametrize("arm", ["h1", "h2"])
def test_interim_responses_are_seen_and_end_nothing(start_lab: StartLab, arm: str) -> None:
    server = start_lab(Behaviour(wait_ms=60))
    (request,) = probe_lab(server, "/v1/models?early_status=103@20", arms=(arm,)).requests
    assert [interim.status for interim in request.interim] == [103]
    assert request.headers_at is not None
    assert request.headers_at - request.interim[0].at > 30 * NS_PER_MS


def test_upload_is_counted(start_lab: StartLab) -> None:
    (request,) = probe_lab(
        start_lab(), "/v1/chat/completions", arms=("h2",), body=b"{" + b" " * 200_000 + b"}"
    ).requests
    assert request.method == "POST"
    assert request.request_bytes == 200_002


def test_secrets_are_in_no_record(start_lab: StartLab) -> None:
    canary = "sk-canary0123456789abcdef"
    recording = probe_lab(
        start_lab(),
        f"/v1/models?api_key={canary}",
        headers=(("Authorization", f"Bearer {canary}"), ("Cookie", f"session={canary}")),
    )
    assert canary not in repr(recording)
    assert "REDACTED" in recording.requests[0].url
    assert recording.keylog
    assert "CLIENT_" not in repr(recording)


def test_the_request_goes_out_as_curl_would_send_it(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab(tls=False), arms=("h1",), headers=(("X-Mine", "1"),))
    head = recording.connections[0].operations[0].data.decode().lower().split("\r\n")
    names = [line.partition(":")[0] for line in head[1:] if line]
    assert sorted(names) == ["accept", "host", "user-agent", "x-mine"]
    assert any(line.startswith("user-agent: netdiag/") for line in head)


def test_key_log_is_private_and_leaves_nothing() -> None:
    keylog = KeyLog()
    folder = keylog.folder
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    context = client_context(insecure=True, keylog=keylog)
    assert context.keylog_filename
    assert os.listdir(folder) == []  # it has no name any more
    modes = {stat.S_IMODE(os.fstat(descriptor).st_mode) for descriptor in keylog._files}
    assert modes == {0o600}
    keylog.close()
    assert not folder.exists()


def test_key_log_holds_our_sessions(start_lab: StartLab) -> None:
    recording = probe_lab(start_lab())
    lines = [line.split() for line in recording.keylog.decode().splitlines() if line and line[0] != "#"]
    assert sum(line[0] == "CLIENT_TRAFFIC_SECRET_0" for line in lines) == 2


def test_stop_ends_between_two_requests(start_lab: StartLab) -> None:
    server, stop = start_lab(Behaviour(wait_ms=20)), threading.Event()
    config = ProbeConfig(urls=(server.url + "/v1/models",), cacert=server.ca_file, trials=100)
    threading.Timer(0.3, stop.set).start()
    began_s = time.monotonic()
    recording = run(config, stop=stop)
    assert time.monotonic() - began_s < 3
    assert 0 < len(recording.requests) < 100


def test_body_limit(start_lab: StartLab) -> None:
    (request,) = probe_lab(start_lab(), "/v1/models?body_bytes=300000", arms=("h1",), max_body_bytes=100_000).requests
    assert request.outcome is Outcome.INCOMPLETE
    assert "limit" in (request.error or "")


def test_nothing_is_left_behind(start_lab: StartLab) -> None:
    server = start_lab()
    probe_lab(server)
    before = open_descriptors()
    probe_lab(server, trials=3, concurrency=3)
    settles(lambda: open_descriptors() <= before)  # the lab, in this process, closes its side when it comes to it
    assert foreign_threads() == []


def test_progress_is_told(start_lab: StartLab) -> None:
    server, seen = start_lab(), []
    run(
        ProbeConfig(urls=(server.url + "/v1/models",), cacert=server.ca_file, trials=1),
        progress=lambda done, planned: seen.append((done, planned)),
    )
    assert seen == [(1, 2), (2, 2)]
