"""Policies: every decision with clock and chance given."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.errors import UsageError
from netdiag.probe.attempts import (
    POLICIES,
    Pause,
    asked_pause,
    computed_pause_ns,
    next_pause,
    policy_named,
    worst_case_ns,
    worst_case_obeying_ns,
)
from netdiag.records.exchange import Outcome
from netdiag.records.recording import ClientRequest

S, MS = 1_000_000_000, 1_000_000
WALL_NS = 1_800_000_000 * S


def attempt(status: int | None, outcome: Outcome | None = None, **changes: Any) -> ClientRequest:
    """One finished attempt."""
    known = Outcome.OK if (status or 0) < 400 else Outcome.HTTP_ERROR
    fields: dict[str, Any] = {
        "id": 0,
        "call_id": 0,
        "attempt": 0,
        "arm": "h1",
        "trial": 1,
        "connection_id": 0,
        "stream_id": None,
        "method": "GET",
        "url": "https://x/",
        "authority": "x",
        "path": "/",
        "reused": False,
        "submitted_at": 0,
        "ended_at": 1,
        "status": status,
        "outcome": outcome or known,
    }
    return ClientRequest(**(fields | changes))


def pause(policy: str, done: int, what: ClientRequest, chance: float = 0.0, **headers: str) -> Pause | None:
    """``next_pause`` with header names written with underscores."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return next_pause(POLICIES[policy], done, what, names, wall_ns=WALL_NS, chance=chance)


def test_none_never_retries() -> None:
    assert pause("none", 0, attempt(503)) is None
    assert pause("none", 0, attempt(None, Outcome.TIMEOUT_TOTAL)) is None


def test_article_waits_one_two_four_then_ends() -> None:
    waits = [pause("article", n, attempt(503)) for n in range(4)]
    assert waits == [Pause(1 * S, "computed"), Pause(2 * S, "computed"), Pause(4 * S, "computed"), None]


def test_sdk_backoff_is_jittered_downwards_only() -> None:
    ranges = [(pause("openai", n, attempt(500), chance=c)) for n in range(2) for c in (0.0, 0.999999999)]
    assert [p and round(p.ns / MS) for p in ranges] == [500, 375, 1000, 750]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_statuses_that_are_retried(status: int) -> None:
    assert pause("openai", 0, attempt(status)) is not None


@pytest.mark.parametrize("status", [200, 204, 301, 400, 401, 404, 422])
def test_statuses_that_are_not(status: int) -> None:
    assert pause("openai", 0, attempt(status)) is None


@pytest.mark.parametrize(
    "outcome", [Outcome.REFUSED, Outcome.TIMEOUT_CONNECT, Outcome.RESET, Outcome.DNS_FAIL, Outcome.TLS_FAIL]
)
def test_connection_trouble_is_retried(outcome: Outcome) -> None:
    assert pause("article", 0, attempt(None, outcome)) is not None


def test_a_stream_that_broke_after_its_head_is_not() -> None:
    assert pause("openai", 0, attempt(200, Outcome.RESET)) is None
    assert pause("openai", 0, attempt(200, Outcome.TIMEOUT_TOTAL)) is None


def test_retry_after_is_obeyed_exactly() -> None:
    assert pause("article", 0, attempt(429), retry_after="7") == Pause(7 * S, "retry-after")
    assert pause("openai", 0, attempt(429), 0.9, retry_after="1.5") == Pause(1_500 * MS, "retry-after")
    assert pause("openai", 0, attempt(429), retry_after="9", retry_after_ms="250") == Pause(250 * MS, "retry-after-ms")
    assert pause("article", 0, attempt(429), retry_after_ms="250") == Pause(1 * S, "computed")


def test_retry_after_as_a_date() -> None:
    date = "Fri, 15 Jan 2027 08:00:05 GMT"  # five seconds after WALL_NS
    assert pause("openai", 0, attempt(503), retry_after=date) == Pause(5 * S, "retry-after")


def test_a_too_long_retry_after() -> None:
    assert pause("openai", 0, attempt(429), retry_after="600") is None
    assert pause("anthropic", 0, attempt(429), retry_after="600") == Pause(500 * MS, "computed")
    assert pause("article", 0, attempt(429), retry_after="61") is None


def test_retry_after_zero_and_garbage_are_computed() -> None:
    for text in ("0", "-5", "soon", "nan", "inf", ""):
        assert pause("openai", 0, attempt(429), retry_after=text) == Pause(500 * MS, "computed"), text


def test_should_retry_overrides_both_ways() -> None:
    assert pause("openai", 0, attempt(400), x_should_retry="true") is not None
    assert pause("openai", 0, attempt(503), x_should_retry="false") is None
    assert pause("article", 0, attempt(400), x_should_retry="true") is None


def test_worst_cases_of_the_retry_page() -> None:
    article, openai = POLICIES["article"], POLICIES["openai"]
    assert worst_case_ns(article, 30 * S) == 127 * S
    assert worst_case_obeying_ns(article, 30 * S) == 300 * S
    assert worst_case_ns(openai, 600 * S) == 1_801_500 * MS
    assert worst_case_obeying_ns(openai, 600 * S) == 2_040 * S


def test_the_worst_case_is_said_in_words() -> None:
    from netdiag.probe.measure import worst_case
    from netdiag.probe.plan import ProbeConfig

    said = worst_case(ProbeConfig(urls=("https://example.com/",), policy="article", timeout_s=30))
    assert (
        said
        == "policy article: at most 4 attempts a call, 2 min 07 s in the worst case, 5 min 00 s where Retry-After is obeyed"
    )


def test_unknown_policy() -> None:
    with pytest.raises(UsageError, match="none, article, openai, anthropic"):
        policy_named("lucky")


@settings(max_examples=50)
@given(st.sampled_from(sorted(POLICIES)), st.integers(0, 1000), st.floats(0, 1, exclude_max=True))
def test_computed_pauses_stay_below_the_cap(name: str, done: int, chance: float) -> None:
    policy = POLICIES[name]
    assert 0 <= computed_pause_ns(policy, done, chance) <= policy.cap_ns


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_whatever_a_server_asks_for_is_understood_or_not(text: str) -> None:
    asked = asked_pause({"retry-after": text, "retry-after-ms": text}, wall_ns=WALL_NS)
    assert asked is None or asked.ns >= 0
