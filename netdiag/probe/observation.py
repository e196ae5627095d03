"""What an instrumented client did: requests as they end, and one request on its way through a transport."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from netdiag.probe import tracker
from netdiag.probe.client_request import Place, abandoned_of, client_request, ending_of
from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import Recorder
from netdiag.probe.tls import KeyLog
from netdiag.probe.tracker import RequestTracker
from netdiag.records.recording import ClientRequest, Recording

ARM = "observed"


class Observation:
    """What has been recorded so far; ``recording`` may be asked for at any time."""

    def __init__(self, keylog: KeyLog) -> None:
        self.clock = ProbeClock()
        self.recorder = Recorder(self.clock)
        self.keylog = keylog
        self.requests: list[ClientRequest] = []
        self.unopened = 0
        """TLS contexts that would not log their keys."""

    def add(self, last: ClientRequest, before: tuple[ClientRequest, ...]) -> None:
        """A request that is over, and the attempts that its library made before."""
        number = len(self.requests)
        rows = (dataclasses.replace(row, id=number + i, call_id=number) for i, row in enumerate((*before, last)))
        self.requests.extend(rows)

    def recording(self) -> Recording:
        """Every finished request, and every connection."""
        return Recording(
            connections=self.recorder.records(),
            requests=tuple(self.requests),
            arms=(ARM,),
            keylog=self.keylog.read(),
            clock_step_ns=self.clock.step_ns(),
        )


class Watch:
    """One request on its way through a transport."""

    def __init__(self, observation: Observation, request: Any) -> None:
        self._observation = observation
        self._request = request
        self._track = RequestTracker(observation.clock)
        self._theirs = request.extensions.get("trace")
        self._response: Any = None
        self._over = False

    def begin(self, *, is_async: bool) -> None:
        """Take the trace extension, passing on to the application's own."""
        trace = self._trace_async if is_async else self._trace
        self._request.extensions = {**self._request.extensions, "trace": trace}
        self._track.submitted_at = self._observation.clock.now()

    def _trace(self, name: str, info: dict[str, Any]) -> None:
        self._track.trace(name, info)
        if self._theirs is not None:
            self._theirs(name, info)

    async def _trace_async(self, name: str, info: dict[str, Any]) -> None:
        self._track.trace(name, info)
        if self._theirs is not None:
            await self._theirs(name, info)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The library works on this request inside the block; what it raises there ends the request."""
        token = tracker.current.set(self._track)
        try:
            yield
        except BaseException as error:
            self.end(error, whole=False)
            raise
        finally:
            with contextlib.suppress(ValueError):  # an asynchronous body may be resumed in another context
                tracker.current.reset(token)

    def answered(self, response: Any) -> None:
        """The head is there."""
        self._response = response

    def piece(self, data: bytes) -> None:
        """A piece of body for the application."""
        self._track.body_reads.append((self._observation.clock.now(), len(data)))

    def end(self, failure: BaseException | None = None, *, whole: bool) -> None:
        """Make the request's row: at the end of the body, at its close, or when something went wrong, whichever comes first."""
        if self._over:
            return
        self._over = True
        now, track = self._observation.clock.now(), self._track
        if failure is not None:
            track.ended_at = track.ended_at or now
        elif whole:
            track.last_read_at = now
        ending = ending_of(self._response, failure, whole=whole, unfinished="the application stopped reading")
        last = client_request(Place(0, ARM, 1), track, self._request, self._response, ending)
        self._observation.add(last, abandoned_of(last, track))
