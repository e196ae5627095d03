"""One arm's client, and one request through it, from submit to the last octet."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from netdiag.probe import tracker
from netdiag.probe.backend import RecordingBackend
from netdiag.probe.client_request import Place, abandoned_of, client_request, ending_of
from netdiag.probe.connection_log import Recorder
from netdiag.probe.first_event import FirstEvent
from netdiag.probe.plan import Arm, ProbeConfig
from netdiag.probe.resolver import Resolver
from netdiag.probe.tls import KeyLog, client_context
from netdiag.probe.tls_offer import SessionCache, TlsOffer
from netdiag.probe.tracker import RequestTracker
from netdiag.probe.transport import RecordingTransport
from netdiag.protocols.redact import is_secret_name
from netdiag.records.recording import ClientRequest


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask for; after a redirect it differs from the plan's."""

    url: str
    method: str
    body: bytes | None
    with_credentials: bool
    """False once a redirect has left the origin: secret-looking headers stay behind."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A request's record, and what a caller needs who decides what comes next."""

    record: ClientRequest
    failure: BaseException | None
    headers: httpx.Headers | None
    next_url: str | None
    """Where a redirect leads; None when the response is none."""
    abandoned: tuple[ClientRequest, ...] = ()
    """Attempts that the library itself made before this one (see ``tracker.Abandoned``)."""


class ArmClient:
    """An httpx client whose every system call is recorded. A context manager; ``renew`` makes the next call cold."""

    def __init__(self, arm: Arm, config: ProbeConfig, recorder: Recorder, resolver: Resolver, keylog: KeyLog) -> None:
        self.arm = arm
        self._config = config
        self._recorder = recorder
        self._context = client_context(
            cacert=config.cacert, insecure=config.insecure, version=arm.tls_version, keylog=keylog
        )
        self._proxy = httpx.Proxy(config.proxy) if config.proxy is not None and arm.proxied else None
        self._backend = RecordingBackend(
            recorder,
            resolver,
            self._offer(keylog),
            family=arm.family,
            allow_link_local=config.allow_link_local,
        )
        self._client = self._new_client()

    def _offer(self, keylog: KeyLog) -> TlsOffer:
        config = self._config
        tls_to_proxy = self._proxy is not None and self._proxy.url.scheme == "https"
        return TlsOffer(
            protocol=self.arm.protocol,
            sessions=SessionCache() if self.arm.warmth == "resumed" else None,
            timeout_s=config.tls_timeout_s,
            proxy_context=client_context(cacert=config.cacert, insecure=config.insecure, keylog=keylog)
            if tls_to_proxy
            else None,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all its connections."""
        self._client.close()

    def renew(self) -> None:
        """Close all connections, so that the next call starts cold (or resumed)."""
        self._client.close()
        self._client = self._new_client()

    def request(self, place: Place, target: Target) -> Finished:
        """Make one request and read its whole body. Never raises for what the network or the server does."""
        began_s, first_s = time.monotonic(), self._config.first_event_timeout_s
        track = RequestTracker(
            self._recorder.clock,
            total_at_s=began_s + self._config.timeout_s,
            first_at_s=None if first_s is None else began_s + first_s,
        )
        token = tracker.current.set(track)
        try:
            return self._request(place, track, target)
        finally:
            tracker.current.reset(token)

    def _request(self, place: Place, track: RequestTracker, target: Target) -> Finished:
        request = self._build(target, track)
        response: httpx.Response | None = None
        failure: Exception | None = None
        whole = False
        track.submitted_at = self._recorder.clock.now()
        try:
            response = self._client.send(request, stream=True)
            whole = self._read(response, track)
        except Exception as error:
            failure = error
            track.ended_at = track.ended_at or self._recorder.clock.now()
        finally:
            if response is not None:
                with contextlib.suppress(Exception):  # a connection that breaks now has nothing more to tell
                    response.close()
        return self._finish(place, track, target, request, response, failure, whole)

    def _build(self, target: Target, track: RequestTracker) -> httpx.Request:
        config = self._config
        headers = [
            (name, value)
            for name, value in config.headers_for(self.arm)
            if target.with_credentials or not is_secret_name(name.lower())
        ]
        names = {name.lower() for name, _ in headers}
        if "user-agent" not in names:
            headers.append(("User-Agent", config.user_agent))
        if "accept" not in names:
            headers.append(("Accept", "*/*"))
        request = self._client.build_request(target.method, target.url, headers=headers, content=target.body)
        request.extensions["trace"] = track.trace
        return request

    def _new_client(self) -> httpx.Client:
        config = self._config
        transport = RecordingTransport(
            self._backend, self._context, max_connections=self.arm.concurrency, keep_alive=True, proxy=self._proxy
        )
        client = httpx.Client(
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(
                connect=config.connect_timeout_s, read=config.read_timeout_s, write=config.read_timeout_s, pool=None
            ),
        )
        client.headers.clear()  # what goes out is what the user (or curl) would send, no more
        return client

    def _read(self, response: httpx.Response, track: RequestTracker) -> bool:
        """Read the body as it comes, undecoded. False when it is longer than the plan allows."""
        now, size, first = self._recorder.clock.now, 0, FirstEvent(response.headers)
        for piece in response.iter_raw():
            track.body_reads.append((now(), len(piece)))
            size += len(piece)
            if track.first_at_s is not None and first.is_in(piece):
                track.first_at_s = None
            if size > self._config.max_body_bytes:
                return False
        track.last_read_at = now()
        return True

    def _finish(
        self,
        place: Place,
        track: RequestTracker,
        target: Target,
        request: httpx.Request,
        response: httpx.Response | None,
        failure: Exception | None,
        whole: bool,
    ) -> Finished:
        limit = f"stopped reading after {self._config.max_body_bytes} octets of body, the limit"
        ending = ending_of(response, failure, whole=whole, unfinished=limit)
        record = dataclasses.replace(
            client_request(place, track, request, response, ending),
            request_bytes=len(target.body or b"") if track.last_write_at is not None else None,
        )
        return Finished(
            record,
            failure,
            None if response is None else response.headers,
            _redirect(response),
            abandoned=abandoned_of(record, track),
        )


def _redirect(response: httpx.Response | None) -> str | None:
    """The absolute target of a redirect (RFC 9110 section 15.4); None for anything but http(s)."""
    if response is None or not response.has_redirect_location:
        return None
    target = str(response.request.url.join(response.headers["location"]))
    return target if urlsplit(target).scheme in ("http", "https") else None
