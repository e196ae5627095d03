"""What servers say about themselves: fields as the providers document them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.server_reports import read_body_times, read_headers
from netdiag.records.server_report import ServerTime

MS = 1_000_000


def named(*fields: tuple[str, str]) -> dict[str, int]:
    return {t.name: t.ns for t in read_headers(fields).times}


def test_openai() -> None:
    report = read_headers(
        (
            ("openai-processing-ms", "812"),
            ("x-request-id", "req_1"),
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-tokens", "29000"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("cf-ray", "8a1b2c3d4e5f6a7b-FRA"),
        )
    )
    assert report.times == (ServerTime("processing", 812 * MS, "openai-processing-ms"),)
    assert (report.request_id, report.edge) == ("req_1", "FRA")
    assert {(r.budget, r.limit, r.remaining, r.reset_ns) for r in report.rate_limits} == {
        ("requests", 500, 499, 120 * MS),
        ("tokens", 30_000, 29_000, 360_000 * MS),
    }


def test_anthropic_resets_are_instants() -> None:
    report = read_headers(
        (
            ("request-id", "req_2"),
            ("anthropic-ratelimit-output-tokens-remaining", "8000"),
            ("anthropic-ratelimit-output-tokens-reset", "2026-01-01T00:00:00Z"),
            ("x-should-retry", "true"),
        )
    )
    assert report.times == ()
    assert report.should_retry is True
    assert [(r.budget, r.remaining, r.reset_ns) for r in report.rate_limits] == [("output-tokens", 8000, None)]


def test_the_edge_of_cloudflare_shows_its_tcp_view_in_microseconds() -> None:
    view = "?proto=TCP&rtt=10234&min_rtt=9800&rtt_var=120&sent=8&recv=9&lost=1&retrans=2&cwnd=254&unsent_bytes=0&cid=ab&ts=8"
    value = f'cfExtPri, cfL4;desc="{view}"'
    edge = read_headers((("server-timing", value),)).edge_tcp
    assert edge is not None
    assert (edge.rtt_ns, edge.min_rtt_ns, edge.rtt_var_ns) == (10_234_000, 9_800_000, 120_000)
    assert (edge.lost, edge.retransmitted, edge.congestion_window, edge.unsent_bytes) == (1, 2, 254, 0)
    assert edge.delivery_rate is None


def test_server_timing_metrics() -> None:
    assert named(("server-timing", 'gfet4t7; dur=153, db;dur=53.2;desc="a, b", miss, cache;desc="x"')) == {
        "timing:gfet4t7": 153 * MS,
        "timing:db": 53_200_000,
    }


@pytest.mark.parametrize(
    ("field", "value", "name", "ns"),
    [
        ("x-envoy-upstream-service-time", "17", "upstream", 17 * MS),
        ("fireworks-server-time-to-first-token", "0.215", "first-token", 215 * MS),
        ("x-queue-time", "3", "queue", 3 * MS),
        ("x-kong-proxy-latency", "300007", "gateway", 300_007 * MS),
        ("x-runtime", "0.012", "processing", 12 * MS),
        ("x-litellm-overhead-duration-ms", "1.5", "gateway", 1_500_000),
    ],
)
def test_units_are_those_of_the_makers(field: str, value: str, name: str, ns: int) -> None:
    assert named((field, value)) == {name: ns}


@pytest.mark.parametrize("value", ["", "abc", "-1", "nan", "inf", "1e300", "12 34"])
def test_what_is_no_duration_is_left_out(value: str) -> None:
    assert named(("openai-processing-ms", value)) == {}


def test_times_in_bodies() -> None:
    groq = read_body_times(
        {"queue_time": 0.018, "prompt_time": 0.006, "completion_time": 0.5, "total_tokens": 9}, "usage"
    )
    assert [(t.name, t.ns, t.source) for t in groq] == [
        ("queue", 18 * MS, "usage.queue_time"),
        ("prefill", 6 * MS, "usage.prompt_time"),
        ("generation", 500 * MS, "usage.completion_time"),
    ]
    assert read_body_times({"load_duration": 5_000_000, "eval_duration": True}, "body")[0].ns == 5 * MS


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["server-timing", "x-ratelimit-reset-tokens", "cf-ray", "x-vercel-id", "x-should-retry"]),
            st.text(max_size=60),
        ),
        max_size=4,
    )
)
def test_any_value_is_accepted(fields: list[tuple[str, str]]) -> None:
    assert all(time.ns >= 0 for time in read_headers(fields).times)


@pytest.mark.parametrize("piece", ["a;", 'a;b="', "a;b=c", ", ", "cfL4;desc=", ";dur=1", " "])
def test_values_made_to_be_slow_are_not(piece: str) -> None:
    started = time.process_time()
    read_headers((("server-timing", piece * 16_000),))
    assert time.process_time() - started < 1
