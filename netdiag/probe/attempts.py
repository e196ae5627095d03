"""What happens after an attempt: nothing, a retry after a pause, or the next hop of a redirect. Policies are data; clock and chance are
arguments, so that every decision can be tested exactly.

The presets describe what clients really do (openai-python 3.3.1, anthropic 0.121.0); ``netdiag`` itself retries only when told to, because
each attempt is a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netdiag.errors import UsageError
from netdiag.protocols.retry_after import asked
from netdiag.records.exchange import Outcome
from netdiag.records.recording import ClientRequest
from netdiag.units import NS_PER_S

MAX_REDIRECTS = 10

_CONNECTION_TROUBLE = frozenset(
    {
        Outcome.RESET,
        Outcome.CLOSED_EARLY,
        Outcome.REFUSED,
        Outcome.TIMEOUT_CONNECT,
        Outcome.TIMEOUT_READ,
        Outcome.TIMEOUT_WRITE,
        Outcome.TIMEOUT_POOL,
        Outcome.TIMEOUT_TOTAL,
        Outcome.DNS_FAIL,
        Outcome.TLS_FAIL,
        Outcome.UNREACHABLE,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When to try again, and how long to wait before."""

    name: str
    retries: int
    """Attempts after the first."""
    base_ns: int
    """Wait before the first retry; it doubles with each."""
    cap_ns: int
    jitter_down: float
    """Up to this share is taken off a computed wait, at random."""
    obeyed_up_to_ns: int
    """A Retry-After up to here is obeyed exactly."""
    too_long_ends: bool
    """A longer one: True gives up, False computes a wait as if there were none."""
    reads_milliseconds: bool
    """Whether ``retry-after-ms`` and ``x-should-retry`` mean anything to this client."""


POLICIES = {
    policy.name: policy
    for policy in (
        RetryPolicy(
            name="none",
            retries=0,
            base_ns=0,
            cap_ns=0,
            jitter_down=0.0,
            obeyed_up_to_ns=0,
            too_long_ends=True,
            reads_milliseconds=False,
        ),
        RetryPolicy(
            name="article",
            retries=3,
            base_ns=NS_PER_S,
            cap_ns=10 * NS_PER_S,
            jitter_down=0.0,
            obeyed_up_to_ns=60 * NS_PER_S,
            too_long_ends=True,
            reads_milliseconds=False,
        ),
        RetryPolicy(
            name="openai",
            retries=2,
            base_ns=NS_PER_S // 2,
            cap_ns=8 * NS_PER_S,
            jitter_down=0.25,
            obeyed_up_to_ns=120 * NS_PER_S,
            too_long_ends=True,
            reads_milliseconds=True,
        ),
        RetryPolicy(
            name="anthropic",
            retries=2,
            base_ns=NS_PER_S // 2,
            cap_ns=8 * NS_PER_S,
            jitter_down=0.25,
            obeyed_up_to_ns=60 * NS_PER_S,
            too_long_ends=False,
            reads_milliseconds=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the next attempt."""

    ns: int
    cause: str
    """``retry-after``, ``retry-after-ms`` or ``computed``."""


def policy_named(name: str) -> RetryPolicy:
    """Raises ``UsageError`` for a name that is none."""
    if name not in POLICIES:
        raise UsageError(f"no retry policy {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]


def next_pause(
    policy: RetryPolicy,
    retries_done: int,
    attempt: ClientRequest,
    headers: Mapping[str, str],
    *,
    wall_ns: int,
    chance: float,
) -> Pause | None:
    """The pause before another attempt; None when this one was the last. ``headers`` are lower case; ``chance`` is in [0, 1)."""
    if retries_done >= policy.retries or not _worth_retrying(policy, attempt, headers):
        return None
    asked = asked_pause(headers, wall_ns=wall_ns, milliseconds=policy.reads_milliseconds)
    if asked is not None and 0 < asked.ns <= policy.obeyed_up_to_ns:
        return asked
    if asked is not None and asked.ns > policy.obeyed_up_to_ns and policy.too_long_ends:
        return None
    return Pause(computed_pause_ns(policy, retries_done, chance), "computed")


def computed_pause_ns(policy: RetryPolicy, retries_done: int, chance: float) -> int:
    """Exponential, capped, with the policy's jitter."""
    full = min(policy.base_ns << min(retries_done, 40), policy.cap_ns)
    return round(full * (1 - policy.jitter_down * chance))


def asked_pause(headers: Mapping[str, str], *, wall_ns: int, milliseconds: bool = True) -> Pause | None:
    """What the server asks for; None when it asks for nothing."""
    wish = asked(headers, wall_ns=wall_ns, milliseconds=milliseconds)
    return None if wish is None else Pause(wish.ns, wish.cause)


def worst_case_ns(policy: RetryPolicy, timeout_ns: int) -> int:
    """Longest duration of a call: every attempt times out, every pause is the longest computed one (retries section 4)."""
    pauses = sum(computed_pause_ns(policy, k, 0.0) for k in range(policy.retries))
    return timeout_ns * (policy.retries + 1) + pauses


def worst_case_obeying_ns(policy: RetryPolicy, timeout_ns: int) -> int:
    """The same when every answer also asks for the longest pause that is obeyed."""
    longest = [max(policy.obeyed_up_to_ns, computed_pause_ns(policy, k, 0.0)) for k in range(policy.retries)]
    return timeout_ns * (policy.retries + 1) + sum(longest)


_ALSO_RETRIED = frozenset({408, 409, 429})


def _worth_retrying(policy: RetryPolicy, attempt: ClientRequest, headers: Mapping[str, str]) -> bool:
    if attempt.status is None:
        return attempt.outcome in _CONNECTION_TROUBLE
    if attempt.outcome not in (Outcome.OK, Outcome.HTTP_ERROR):
        return False  # a stream that broke after its head: another attempt would pay, and say everything, twice
    if policy.reads_milliseconds and headers.get("x-should-retry") in ("true", "false"):
        return headers["x-should-retry"] == "true"
    return attempt.status in _ALSO_RETRIED or attempt.status >= 500
