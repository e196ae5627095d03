"""Carry a plan out: every trial, its arms in random order, and what the client saw of it as one ``Recording``."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpcore

from netdiag.probe import kernel
from netdiag.probe.client import ArmClient, Finished, Place
from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import Recorder
from netdiag.probe.failures import ProtocolNotOffered, reason_of
from netdiag.probe.plan import MAX_PER_SECOND, Arm, ProbeConfig, Trial
from netdiag.probe.resolver import Resolver
from netdiag.probe.tls import KeyLog
from netdiag.records.recording import ClientRequest, Recording, UnsupportedArm

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
        self._requests: list[ClientRequest] = []
        self._unsupported: dict[str, UnsupportedArm] = {}
        self._next_start_s = 0.0

    def carry_out(self) -> Recording:
        with contextlib.ExitStack() as stack:
            clients = {arm.name: stack.enter_context(self._client(arm)) for arm in self._arms}
            for trial in self._pending():
                self._make(clients[trial.arm.name], trial)
        return self._recording()

    def _client(self, arm: Arm) -> ArmClient:
        return ArmClient(arm, self._config, self._recorder, self._resolver, self._keylog)

    def _pending(self) -> Iterator[Trial]:
        for trial in self._config.order():
            if self._stop.is_set():
                return
            if trial.arm.name not in self._unsupported:
                yield trial

    def _make(self, client: ArmClient, trial: Trial) -> None:
        self._pause()
        finished = self._batch(client, trial)
        if trial.arm.warmth != "warm":
            client.renew()
        reason = next(filter(None, (_unsupported(trial.arm, one) for one in finished)), None)
        if reason is not None and not self._spoke(trial.arm):
            self._unsupported[trial.arm.name] = UnsupportedArm(arm=trial.arm.name, reason=reason)
        else:
            self._requests.extend(one.record for one in finished)
        if self._progress is not None:
            self._progress(len(self._requests), self._config.request_count())

    def _batch(self, client: ArmClient, trial: Trial) -> list[Finished]:
        """``concurrency`` calls at once on the arm's client."""
        first = len(self._requests)
        places = [
            Place(id=i, call_id=i, attempt=0, arm=trial.arm.name, trial=trial.number)
            for i in range(first, first + self._config.concurrency)
        ]
        if len(places) == 1:
            return [client.request(places[0])]
        with ThreadPoolExecutor(len(places), thread_name_prefix="netdiag-call") as pool:
            return list(pool.map(client.request, places))

    def _pause(self) -> None:
        """Keep the rate below the ceiling, and idle as asked."""
        wait_s = self._next_start_s - time.monotonic()
        if self._requests:
            wait_s = max(wait_s, self._config.idle_s)
        if wait_s > 0:
            self._stop.wait(wait_s)
        self._next_start_s = time.monotonic() + self._config.concurrency / MAX_PER_SECOND

    def _spoke(self, arm: Arm) -> bool:
        """Whether an earlier request of the arm got an answer: then the protocol is not the reason."""
        return any(request.arm == arm.name and request.status is not None for request in self._requests)

    def _recording(self) -> Recording:
        return Recording(
            connections=self._recorder.records(),
            requests=tuple(self._requests),
            arms=tuple(arm.name for arm in self._arms),
            unsupported=tuple(self._unsupported.values()),
            keylog=self._keylog.read(),
            verification="off (--insecure)" if self._config.insecure else "on",
            clock_step_ns=self._clock.step_ns(),
        )


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
