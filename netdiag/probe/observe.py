"""An instrument for an application's own client: its requests recorded from inside, by the same backend that the probe uses.

Works with ``httpx`` and with its successor ``httpx2``, which share their shape: a client has transports, a transport has a pool of
``httpcore`` (or ``httpcore2``), a pool has a network backend. None of these has a public door, so this file knows their private names; all
of them are here, and tests hold them fast.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from netdiag.errors import UsageError
from netdiag.probe import kernel, tracker
from netdiag.probe.async_backend import AsyncRecordingBackend
from netdiag.probe.backend import RecordingBackend
from netdiag.probe.client import abandoned_of, conclude
from netdiag.probe.clock import ProbeClock
from netdiag.probe.connection_log import Recorder
from netdiag.probe.resolver import Resolver
from netdiag.probe.tls import KeyLog
from netdiag.probe.tracker import RequestTracker
from netdiag.protocols.redact import redact_headers, redact_target, redact_text
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

    def recording(self) -> Recording:
        """Every finished request, and every connection."""
        return Recording(
            connections=self.recorder.records(),
            requests=tuple(self.requests),
            arms=(ARM,),
            keylog=self.keylog.read(),
            clock_step_ns=self.clock.step_ns(),
        )


@contextmanager
def instrumented(client: Any, keylog: KeyLog) -> Iterator[Observation]:
    """Record what the client does inside the block. Connections that it had open before are used as they are, and not recorded.

    ``client`` is an ``httpx.Client``, ``httpx.AsyncClient`` or one of httpx2. Raises ``UsageError`` for anything else.
    """
    observation = Observation(keylog)
    backend = RecordingBackend(observation.recorder, Resolver(observation.clock), protocol=None, allow_link_local=True)
    undo: list[Callable[[], None]] = []
    try:
        with kernel.stamping():
            for holder, name, transport in _transports(client):
                undo += _record_pool(transport, backend, observation)
                _set(holder, name, _watching(transport, observation), undo)
            yield observation
    finally:
        for step in reversed(undo):
            step()
        observation.recorder.stop()


def _transports(client: Any) -> list[tuple[Any, Any, Any]]:
    """(holder, key or attribute, transport) of every way that the client may take."""
    if not hasattr(client, "_transport") or not hasattr(client, "_mounts"):
        raise UsageError(f"{type(client).__name__} is no client of httpx or httpx2")
    found = [(client, "_transport", client._transport)]
    found += [
        (client._mounts, pattern, transport) for pattern, transport in client._mounts.items() if transport is not None
    ]
    usable = [row for row in found if hasattr(row[2], "_pool") and hasattr(row[2]._pool, "_network_backend")]
    if not usable:
        raise UsageError("the client's transport does not go through httpcore, so there is nothing to record")
    return usable


def _record_pool(transport: Any, backend: RecordingBackend, observation: Observation) -> list[Callable[[], None]]:
    pool, undo = transport._pool, list[Callable[[], None]]()
    core = sys.modules[type(pool).__module__.partition(".")[0]]
    is_async = hasattr(pool, "handle_async_request")
    recording = AsyncRecordingBackend(backend) if is_async else backend
    _set(pool, "_network_backend", _translating(recording, core, is_async=is_async), undo)
    try:
        _set(pool._ssl_context, "keylog_filename", pool._ssl_context.keylog_filename, undo)
        observation.keylog.attach(pool._ssl_context)
    except (AttributeError, TypeError):
        observation.unopened += 1
    return undo


def _set(holder: Any, name: Any, value: Any, undo: list[Callable[[], None]]) -> None:
    """Set an attribute or an item, and note how to set it back."""
    if isinstance(holder, dict):
        before = holder[name]
        holder[name] = value
        undo.append(lambda: holder.__setitem__(name, before))
    else:
        before = getattr(holder, name)
        setattr(holder, name, value)
        undo.append(lambda: setattr(holder, name, before))


def _translating(backend: Any, core: ModuleType, *, is_async: bool) -> Any:
    """The application catches its own library's exceptions, so a backend for httpcore2 must raise those of httpcore2."""
    import httpcore

    return backend if core is httpcore else _Translated(backend, core, is_async=is_async)


class _Translated:
    """Stands before a backend or a stream, and raises the exceptions of another httpcore."""

    def __init__(self, inner: Any, core: ModuleType, *, is_async: bool) -> None:
        self._inner = inner
        self._core = core
        self._is_async = is_async

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in _TRANSLATED:
            return value
        return self._awaited(value) if self._is_async else self._called(value)

    def _called(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self._as_theirs():
                return self._wrapped(method(*arguments, **options))

        return call

    def _awaited(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*arguments: Any, **options: Any) -> Any:
            with self._as_theirs():
                return self._wrapped(await method(*arguments, **options))

        return call

    def _wrapped(self, result: Any) -> Any:
        return _Translated(result, self._core, is_async=self._is_async) if hasattr(result, "start_tls") else result

    @contextmanager
    def _as_theirs(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            for kind in type(error).__mro__:
                if kind.__module__.partition(".")[0] == "httpcore" and hasattr(self._core, kind.__name__):
                    raise getattr(self._core, kind.__name__)(str(error)) from error
            raise


_TRANSLATED = frozenset({"connect_tcp", "start_tls", "read", "write"})


class _Watch:
    """One request on its way through a transport."""

    def __init__(self, observation: Observation, request: Any) -> None:
        self._observation = observation
        self._request = request
        self.track = RequestTracker(observation.clock)
        self._theirs = request.extensions.get("trace")
        self._response: Any = None

    def begin(self, *, is_async: bool) -> None:
        """Take the trace extension, passing on to the application's own."""
        trace = self._trace_async if is_async else self._trace
        self._request.extensions = {**self._request.extensions, "trace": trace}
        self.track.submitted_at = self._observation.clock.now()

    def _trace(self, name: str, info: dict[str, Any]) -> None:
        self.track.trace(name, info)
        if self._theirs is not None:
            self._theirs(name, info)

    async def _trace_async(self, name: str, info: dict[str, Any]) -> None:
        self.track.trace(name, info)
        if self._theirs is not None:
            await self._theirs(name, info)

    def answered(self, response: Any) -> None:
        """The head is there."""
        self._response = response

    def piece(self, data: bytes) -> None:
        """A piece of body for the application."""
        self.track.body_reads.append((self._observation.clock.now(), len(data)))

    def finish(self, failure: BaseException | None, *, whole: bool) -> None:
        """Make the request's row. Called once: at the end of the body, at its close, or when something went wrong."""
        now, track, request, response = self._observation.clock.now(), self.track, self._request, self._response
        if failure is not None:
            track.ended_at = track.ended_at or now
        elif whole:
            track.last_read_at = now
        outcome, error = conclude(response, failure, whole=whole, unfinished="the application stopped reading")
        pairs = (
            [] if response is None else [(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw]
        )
        version = None if response is None else response.extensions.get("http_version", b"").decode("ascii")
        number = len(self._observation.requests)
        last = ClientRequest(
            id=number + len(track.abandoned),
            call_id=number,
            attempt=len(track.abandoned),
            arm=ARM,
            trial=1,
            connection_id=None if track.connection is None else track.connection.id,
            stream_id=track.stream_id,
            method=request.method,
            url=redact_target(str(request.url)),
            authority=request.url.netloc.decode("ascii"),
            path=redact_target(request.url.raw_path.decode("ascii")),
            reused=track.reused,
            submitted_at=track.submitted_at,
            assigned_at=track.assigned_at,
            first_write_at=track.first_write_at,
            last_write_at=track.last_write_at,
            headers_at=track.headers_at,
            last_read_at=track.last_read_at,
            ended_at=track.ended_at or now,
            protocol="h2" if version == "HTTP/2" else (version or "").lower() or None,
            status=None if response is None else response.status_code,
            interim=tuple(track.interim),
            response_bytes=None if response is None else sum(size for _, size in track.body_reads),
            outcome=outcome,
            error=None if error is None else redact_text(error),
            body_reads=tuple(track.body_reads),
            response_headers=redact_headers(pairs),
        )
        before = abandoned_of(last, track)
        rows = [dataclasses.replace(row, id=number + place) for place, row in enumerate(before)]
        self._observation.requests.extend([*rows, last])


def _watching(transport: Any, observation: Observation) -> Any:
    """The transport with every request watched; a subclass of the client library's own base, since it asks for that."""
    library = sys.modules[type(transport).__module__.partition(".")[0]]
    is_async = hasattr(transport, "handle_async_request")
    return (_async_transport if is_async else _sync_transport)(transport, observation, library)


def _sync_transport(inner: Any, observation: Observation, library: Any) -> Any:
    class Body(library.SyncByteStream):  # type: ignore[misc]
        """The response's body, noted as the application takes it."""

        def __init__(self, stream: Any, watch: _Watch) -> None:
            self._stream, self._watch, self._open = stream, watch, True

        def __iter__(self) -> Iterator[bytes]:
            pieces = iter(self._stream)
            while True:
                token = tracker.current.set(self._watch.track)
                try:
                    piece = next(pieces, None)
                except BaseException as error:
                    self._end(error, whole=False)
                    raise
                finally:
                    tracker.current.reset(token)
                if piece is None:
                    self._end(None, whole=True)
                    return
                self._watch.piece(piece)
                yield piece

        def close(self) -> None:
            self._end(None, whole=False)
            self._stream.close()

        def _end(self, failure: BaseException | None, *, whole: bool) -> None:
            if self._open:
                self._open = False
                self._watch.finish(failure, whole=whole)

    class Transport(library.BaseTransport):  # type: ignore[misc]
        """The application's transport, watched."""

        def handle_request(self, request: Any) -> Any:
            watch = _Watch(observation, request)
            watch.begin(is_async=False)
            token = tracker.current.set(watch.track)
            try:
                response = inner.handle_request(request)
            except BaseException as error:
                watch.finish(error, whole=False)
                raise
            finally:
                tracker.current.reset(token)
            watch.answered(response)
            response.stream = Body(response.stream, watch)
            return response

        def close(self) -> None:
            inner.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

    return Transport()


def _async_transport(inner: Any, observation: Observation, library: Any) -> Any:
    class Body(library.AsyncByteStream):  # type: ignore[misc]
        """The response's body, noted as the application takes it."""

        def __init__(self, stream: Any, watch: _Watch) -> None:
            self._stream, self._watch, self._open = stream, watch, True

        async def __aiter__(self) -> AsyncIterator[bytes]:
            pieces = aiter(self._stream)
            while True:
                token = tracker.current.set(self._watch.track)
                try:
                    piece = await anext(pieces, None)
                except BaseException as error:
                    self._end(error, whole=False)
                    raise
                finally:
                    with contextlib.suppress(ValueError):  # resumed in another context
                        tracker.current.reset(token)
                if piece is None:
                    self._end(None, whole=True)
                    return
                self._watch.piece(piece)
                yield piece

        async def aclose(self) -> None:
            self._end(None, whole=False)
            await self._stream.aclose()

        def _end(self, failure: BaseException | None, *, whole: bool) -> None:
            if self._open:
                self._open = False
                self._watch.finish(failure, whole=whole)

    class Transport(library.AsyncBaseTransport):  # type: ignore[misc]
        """The application's transport, watched."""

        async def handle_async_request(self, request: Any) -> Any:
            watch = _Watch(observation, request)
            watch.begin(is_async=True)
            token = tracker.current.set(watch.track)
            try:
                response = await inner.handle_async_request(request)
            except BaseException as error:
                watch.finish(error, whole=False)
                raise
            finally:
                tracker.current.reset(token)
            watch.answered(response)
            response.stream = Body(response.stream, watch)
            return response

        async def aclose(self) -> None:
            await inner.aclose()

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

    return Transport()
