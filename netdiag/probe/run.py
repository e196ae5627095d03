"""Carry a plan out: every trial, its arms in random order, and what the client saw of it as one ``Recording``."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpcore

from netdiag.probe import kernel, pauses
from netdiag.probe.attempts import asked_pause, policy_named
from netdiag.probe.call import Caller, CallResult, numbered
from netdiag.probe.client import ArmClient, Finished
from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import Recorder
from netdiag.probe.failures import ProtocolNotOffered, reason_of
from netdiag.probe.plan import MAX_PER_SECOND, MAX_READ_BYTES, MAX_REQUESTS, Arm, ProbeConfig, Trial
from netdiag.probe.resolver import Resolver
from netdiag.probe.tls import KeyLog
from netdiag.records.exchange import Outcome
from netdiag.records.recording import Recording, UnsupportedArm
from netdiag.units import NS_PER_S

_FEW_REFUSALS, _REFUSED_SHARE = 5, 0.1
_REFUSALS = frozenset({429, 503, 529})

Progress = Callable[[int, int], None]
"""Called with (requests done, requests planned)."""


def run(config: ProbeConfig, *, progress: Progress | None = None, stop: threading.Event | None = None) -> Recording:
    """Make all requests of the plan and close all connections. ``stop`` ends it between two requests.

    Raises ``UsageError`` for what cannot be tried at all (an unreadable ``cacert``); what the network or the server does is in the records.
    """
    with kernel.stamping(), contextlib.closing(KeyLog()) as keylog:
        return _Run(config, keylog, progress, stop or threading.Event()).carry_out()


class _Run:
    def __init__(self, config: ProbeConfig, keylog: KeyLog, progress: Progress | None, stop: threading.Event) -> None:
        self._config = config
        self._keylog = keylog
        self._progress = progress
        self._stop = stop
        self._clock = ProbeClock()
        self._recorder = Recorder(self._clock)
        self._resolver = Resolver(self._clock, config.resolve)
        self._arms = config.arm_list()
        self._results: list[tuple[Arm, CallResult]] = []
        self._made = 0
        """Requests, those of withdrawn arms left out."""
        self._read_bytes = 0
        self._unsupported: dict[str, UnsupportedArm] = {}
        self._next_start_s = 0.0
        self._caller = Caller(config, policy_named(config.policy), random.Random(config.seed), stop)
        self._refusals = 0
        self._broken_rounds = 0
        self._last_round = config.rounds[-1]
        self._gap_s: float | None = config.idle_s
        self._ended_early: str | None = None

    def carry_out(self) -> Recording:
        with contextlib.ExitStack() as stack:
            clients = {
                arm.name: [stack.enter_context(self._client(arm)) for _ in _clients_of(arm)] for arm in self._arms
            }
            for _, trials in itertools.groupby(self._config.order(), key=lambda trial: trial.number):
                self._round(clients, list(trials))
        if self._stop.is_set():
            self._end(f"stopped after {self._made} of {self._config.request_count()} requests")
        return self._recording()

    def _round(self, clients: Mapping[str, Sequence[ArmClient]], trials: list[Trial]) -> None:
        """All arms once. Where the server refuses one of them with a 429 or 503 the pair is broken, and the round is made again under a new
        number (retries section 3): all arms have waited as long as the server asked.
        """
        while self._breaks(clients, trials):
            self._broken_rounds += 1
            if self._broken_rounds > self._config.most_broken_rounds:
                self._end(f"rate-limited: {self._broken_rounds} rounds met an answer of 429 or 503")
                return
            self._last_round += 1
            trials = [dataclasses.replace(trial, number=self._last_round) for trial in trials]

    def _breaks(self, clients: Mapping[str, Sequence[ArmClient]], trials: list[Trial]) -> bool:
        """Make the calls of one round; says whether it is to be made again."""
        already = len(self._results)
        for trial in self._pending(trials):
            if trial.arm.warms_up and trial.number:
                self._make(clients[trial.arm.name], dataclasses.replace(trial, number=0))
            self._make(clients[trial.arm.name], trial, idle_s=trial.arm.idle_s)
        if not self._config.repeats_broken_rounds or trials[0].number == 0 or self._stop.is_set():
            return False
        return any(result.last.record.status in _REFUSALS for _, result in self._results[already:])

    def _client(self, arm: Arm) -> ArmClient:
        return ArmClient(arm, self._config, self._recorder, self._resolver, self._keylog)

    def _pending(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        for trial in trials:
            if self._stop.is_set() or self._ended_early is not None:
                return
            if trial.arm.name not in self._unsupported:
                yield trial

    def _make(self, clients: Sequence[ArmClient], trial: Trial, *, idle_s: float | None = None) -> None:
        self._pause(self._usual_gap_s() if idle_s is None else idle_s, trial.arm.concurrency)
        if self._stop.is_set():
            return
        results = self._batch(clients, trial)
        if trial.arm.warmth != "warm":
            for client in clients:
                client.renew()
        finished = [one for result in results for one in result.attempts]
        reason = next(filter(None, (_unsupported(trial.arm, one) for one in finished)), None)
        if reason is not None and not self._spoke(trial.arm):
            self._unsupported[trial.arm.name] = UnsupportedArm(arm=trial.arm.name, reason=reason)
        else:
            self._results.extend((trial.arm, result) for result in results)
            self._made += len(finished)
            self._read_bytes += sum(one.record.response_bytes or 0 for one in finished)
        self._mind_the_server(finished)
        if self._progress is not None:
            self._progress(self._made, self._config.request_count())

    def _batch(self, clients: Sequence[ArmClient], trial: Trial) -> list[CallResult]:
        """As many calls at once as the arm says, on its one client or each on its own."""
        count = trial.arm.concurrency
        budget = max(1, (MAX_REQUESTS - self._made) // count)
        if count == 1:
            return [self._caller.call(clients[0], trial, budget)]
        each = [clients[i % len(clients)] for i in range(count)]
        with ThreadPoolExecutor(count, thread_name_prefix="netdiag-call") as pool:
            return list(pool.map(lambda client: self._caller.call(client, trial, budget), each))

    def _mind_the_server(self, finished: list[Finished]) -> None:
        """A 429 or 503 makes every arm wait as long as it asks, and a little longer by chance; too many of them end the run."""
        refused = [one for one in finished if one.record.status in _REFUSALS]
        self._refusals += len(refused)
        for one in refused:
            headers = {} if one.headers is None else {k.lower(): v for k, v in one.headers.items()}
            asked = asked_pause(headers, wall_ns=time.time_ns())
            if asked is not None and asked.ns > pauses.LONGEST_ASKED_S * NS_PER_S:
                self._end(f"rate-limited: the server asks to wait {asked.ns / NS_PER_S:.0f} s")
            jitter = self._caller.chance.random()
            pause_s = pauses.UNASKED_PAUSE_S * (1 + jitter) if asked is None else asked.ns / NS_PER_S + jitter
            self._next_start_s = max(self._next_start_s, time.monotonic() + pause_s)
        if self._refusals > max(_FEW_REFUSALS, self._made * _REFUSED_SHARE):
            self._end(f"rate-limited: {self._refusals} answers of 429 or 503")
        if self._made >= MAX_REQUESTS:
            self._end(f"{MAX_REQUESTS} requests, the limit, have been made")
        if self._read_bytes > MAX_READ_BYTES:
            self._end(f"{MAX_READ_BYTES >> 20} MiB, the limit, have been read")

    def _end(self, reason: str) -> None:
        self._ended_early = self._ended_early or reason

    def _pause(self, idle_s: float, count: int) -> None:
        """Keep the rate below the ceiling, wait as a server asked, and idle as the plan or the arm says."""
        wait_s = self._next_start_s - time.monotonic()
        if self._made:
            wait_s = max(wait_s, idle_s)
        if wait_s > 0:
            self._stop.wait(wait_s)
        self._next_start_s = time.monotonic() + count / MAX_PER_SECOND

    def _usual_gap_s(self) -> float:
        """Between two calls, the same for the whole run: as planned, else by the round trip of the first connection."""
        if self._gap_s is None:
            first = next((log.tcp for log in self._recorder.connections if log.tcp is not None), None)
            if first is None:
                return pauses.GAP_S
            round_trip_s = (first.ended_at - first.started_at) / NS_PER_S
            self._gap_s = max(pauses.GAP_S, pauses.GAP_ROUND_TRIPS * round_trip_s)
        return self._gap_s

    def _spoke(self, arm: Arm) -> bool:
        """Whether an earlier request of the arm got an answer: then the protocol is not the reason."""
        return any(
            one.record.status is not None for made, result in self._results if made == arm for one in result.attempts
        )

    def _withdraw_unspoken(self) -> None:
        """HTTP/1.1 needs no ALPN, so a server that hangs up on it is known for one that does not speak it only by its taking h2 elsewhere."""
        takes_h2 = {c.sni for c in self._recorder.connections if c.alpn == "h2"}
        for arm in self._arms:
            attempts = [one for made, result in self._results if made == arm for one in result.attempts]
            if attempts and not self._spoke(arm) and all(self._hung_up(arm, one, takes_h2) for one in attempts):
                reason = "the server chose no protocol and closed the connection without an answer"
                self._unsupported[arm.name] = UnsupportedArm(arm=arm.name, reason=reason)
                self._results = [(made, result) for made, result in self._results if made != arm]

    def _hung_up(self, arm: Arm, one: Finished, takes_h2: set[str | None]) -> bool:
        number = one.record.connection_id
        if arm.protocol != "h1" or number is None or one.record.outcome is not Outcome.CLOSED_EARLY:
            return False
        connection = self._recorder.connections[number]
        return connection.tls is not None and connection.alpn is None and connection.sni in takes_h2

    def _recording(self) -> Recording:
        self._withdraw_unspoken()
        connections = self._recorder.records()
        requests, calls = numbered([result for _, result in self._results], connections, self._caller.policy.name)
        return Recording(
            connections=connections,
            requests=requests,
            calls=calls,
            ended_early=self._ended_early,
            broken_rounds=self._broken_rounds,
            arms=tuple(arm.name for arm in self._arms),
            unsupported=tuple(self._unsupported.values()),
            keylog=self._keylog.read(),
            verification="off (--insecure)" if self._config.insecure else "on",
            clock_step_ns=self._clock.step_ns(),
        )


def _clients_of(arm: Arm) -> range:
    return range(arm.concurrency if arm.separate else 1)


def _unsupported(arm: Arm, finished: Finished) -> str | None:
    """Why the server does not speak the arm's protocol; None when it does, or when something else went wrong."""
    error: BaseException | None = finished.failure
    while error is not None:
        if isinstance(error, ProtocolNotOffered):
            return reason_of(error)
        if isinstance(error, httpcore.RemoteProtocolError) and _speaks_another(arm, error):
            return f"the answer is no {'HTTP/2' if arm.protocol == 'h2' else 'HTTP/1.1'}: {reason_of(error)}"
        error = error.__cause__
    return None


def _speaks_another(arm: Arm, error: httpcore.RemoteProtocolError) -> bool:
    """HTTP/2 in clear text is tried with prior knowledge (RFC 9113 section 3.3); an HTTP/1.1 peer answers in its own way or hangs up."""
    if arm.protocol == "h2":
        return arm.url.startswith("http://")
    return "status line" in str(error)
