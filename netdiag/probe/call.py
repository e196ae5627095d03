"""One call: its attempts one after the other, with redirects followed and pauses kept, as its plan says."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from netdiag.probe.attempts import MAX_REDIRECTS, Pause, RetryPolicy, next_pause
from netdiag.probe.client import ArmClient, Finished, Target
from netdiag.probe.client_request import Place
from netdiag.probe.plan import ProbeConfig, Trial
from netdiag.records.call import Backoff, Call
from netdiag.records.exchange import Outcome
from netdiag.records.recording import ClientConnection, ClientRequest

REDIRECT = Backoff(ns=0, cause="redirect", planned_ns=0)
RECONNECT = Backoff(ns=0, cause="reconnect", planned_ns=0)
_REWRITTEN_TO_GET = {301: ("POST",), 302: ("POST",), 303: ("POST", "PUT", "PATCH", "DELETE")}
"""RFC 9110 section 15.4: what browsers and curl do, not what the first texts said."""


@dataclass(slots=True)
class CallResult:
    """Attempts in order, and what lay between each two of them."""

    attempts: list[Finished] = field(default_factory=list)
    between: list[Backoff] = field(default_factory=list)

    @property
    def last(self) -> Finished:
        """The attempt that decided."""
        return self.attempts[-1]


@dataclass(frozen=True, slots=True)
class Caller:
    """Makes calls. ``budget`` is what is left of the run's requests; ``stop`` ends a pause at once."""

    config: ProbeConfig
    policy: RetryPolicy
    chance: random.Random
    stop: threading.Event

    def call(self, client: ArmClient, trial: Trial, budget: int) -> CallResult:
        """Make one call; at most ``budget`` attempts (but one in any case)."""
        result, retries, hops = CallResult(), 0, 0
        body = self.config.body_for(trial.arm)
        target = Target(trial.arm.url, self.config.effective_method, body, with_credentials=True)
        while True:
            place = Place(attempt=len(result.attempts), arm=trial.arm.name, trial=trial.number)
            finished = client.request(place, target)
            for lost in finished.abandoned:
                result.attempts.append(Finished(lost, None, None, None))
                result.between.append(RECONNECT)
            result.attempts.append(finished)
            if len(result.attempts) >= budget or self.stop.is_set():
                return result
            following = self._next_hop(result.last, target) if hops < MAX_REDIRECTS else None
            if following is not None:
                target, hops = following, hops + 1
                result.between.append(REDIRECT)
                continue
            pause = self._pause_after(result.last, retries)
            if pause is None:
                return result
            retries += 1
            result.between.append(self._sleep(pause))

    def _next_hop(self, finished: Finished, target: Target) -> Target | None:
        """Where a redirect leads; credentials stay behind when the origin changes."""
        if not self.config.follow_redirects or finished.next_url is None or finished.record.outcome is not Outcome.OK:
            return None
        becomes_get = target.method in _REWRITTEN_TO_GET.get(finished.record.status or 0, ())
        same = _origin(finished.next_url) == _origin(target.url)
        return Target(
            finished.next_url,
            "GET" if becomes_get else target.method,
            None if becomes_get else target.body,
            with_credentials=target.with_credentials and same,
        )

    def _pause_after(self, finished: Finished, retries: int) -> Pause | None:
        headers = {} if finished.headers is None else {k.lower(): v for k, v in finished.headers.items()}
        return next_pause(
            self.policy, retries, finished.record, headers, wall_ns=time.time_ns(), chance=self.chance.random()
        )

    def _sleep(self, pause: Pause) -> Backoff:
        began_ns = time.monotonic_ns()
        self.stop.wait(pause.ns / 1e9)
        return Backoff(ns=time.monotonic_ns() - began_ns, cause=pause.cause, planned_ns=pause.ns)


def numbered(
    results: Sequence[CallResult], connections: Sequence[ClientConnection], policy: str
) -> tuple[tuple[ClientRequest, ...], tuple[Call, ...]]:
    """Requests and calls in the order in which the calls were made, numbered by place."""
    requests: list[ClientRequest] = []
    calls: list[Call] = []
    for result in results:
        rows = [
            dataclasses.replace(one.record, id=len(requests) + place, call_id=len(calls))
            for place, one in enumerate(result.attempts)
        ]
        requests += rows
        calls.append(_call(len(calls), rows, result, connections, policy))
    return tuple(requests), tuple(calls)


def _call(
    number: int,
    rows: list[ClientRequest],
    result: CallResult,
    connections: Sequence[ClientConnection],
    policy: str,
) -> Call:
    opened = dict.fromkeys(r.connection_id for r in rows if r.connection_id is not None and not r.reused)
    return Call(
        id=number,
        url=rows[0].url,
        attempts=tuple(row.id for row in rows),
        backoff=tuple(result.between),
        total_ns=rows[-1].ended_at - rows[0].submitted_at,
        outcome=str(rows[-1].outcome),
        policy=policy,
        addresses=tuple(attempt for place in opened for attempt in connections[place].attempts),
    )


def _origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host, port (RFC 6454 section 4)."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
