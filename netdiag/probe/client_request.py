"""The row of one request as its client saw it, whoever's client that was: the probe's own or an application's."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, NamedTuple

from netdiag.probe.failures import outcome_of, reason_of
from netdiag.probe.tracker import RequestTracker
from netdiag.protocols.redact import redact_headers, redact_target, redact_text
from netdiag.records.exchange import Outcome
from netdiag.records.recording import ClientRequest


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands in the plan."""

    attempt: int
    arm: str
    trial: int


CANCELLED = "cancelled by the application"


class Ending(NamedTuple):
    """How a request ended and, where it has no whole response, why."""

    outcome: Outcome
    error: str | None


def ending_of(response: Any, failure: BaseException | None, *, whole: bool, unfinished: str) -> Ending:
    """``unfinished`` is the reason for a body that was not read to its end."""
    if failure is not None and not isinstance(
        failure, Exception
    ):  # asyncio's and trio's cancellation, ^C: nobody else failed
        return Ending(Outcome.INCOMPLETE, CANCELLED)
    if failure is not None:
        return Ending(outcome_of(failure), reason_of(failure))
    if response is None:
        return Ending(Outcome.UNKNOWN, None)
    if not whole:
        return Ending(Outcome.INCOMPLETE, unfinished)
    return Ending(Outcome.HTTP_ERROR if response.status_code >= 400 else Outcome.OK, None)


def client_request(place: Place, track: RequestTracker, request: Any, response: Any, ending: Ending) -> ClientRequest:
    """``request`` and ``response`` (None: no head came) are those of ``httpx`` or ``httpx2``. Not numbered yet, and without the size of its
    body; attempts that the library itself made before count."""
    return ClientRequest(
        id=0,
        call_id=0,
        attempt=place.attempt + len(track.abandoned),
        arm=place.arm,
        trial=place.trial,
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
        ended_at=track.ended_at or track.last_read_at or track.clock.now(),
        protocol=None if response is None else _protocol(response),
        status=None if response is None else response.status_code,
        interim=tuple(track.interim),
        response_bytes=None if response is None else sum(size for _, size in track.body_reads),
        outcome=ending.outcome,
        error=None if ending.error is None else redact_text(ending.error),
        body_reads=tuple(track.body_reads),
        response_headers=() if response is None else redact_headers(_header_pairs(response)),
    )


def _protocol(response: Any) -> str | None:
    """As ``records.Exchange.protocol``."""
    version: str = response.extensions.get("http_version", b"").decode("ascii")
    return "h2" if version == "HTTP/2" else version.lower() or None


def _header_pairs(response: Any) -> list[tuple[str, str]]:
    return [(n.decode("latin-1"), v.decode("latin-1")) for n, v in response.headers.raw]


def abandoned_of(record: ClientRequest, track: RequestTracker) -> tuple[ClientRequest, ...]:
    """Rows for what went to connections that were dead, made from the row of the attempt that lived."""
    first = record.attempt - len(track.abandoned)
    return tuple(
        dataclasses.replace(
            record,
            attempt=first + place,
            connection_id=None if one.connection is None else one.connection.id,
            stream_id=one.stream_id,
            reused=one.reused,
            submitted_at=one.submitted_at,
            assigned_at=one.assigned_at,
            first_write_at=one.first_write_at,
            last_write_at=one.last_write_at,
            headers_at=None,
            last_read_at=None,
            ended_at=one.ended_at,
            protocol=None,
            status=None,
            interim=(),
            response_bytes=None,
            outcome=Outcome.CLOSED_EARLY,
            error="the server had given this connection up; sent again on another one",
            body_reads=(),
            response_headers=(),
        )
        for place, one in enumerate(track.abandoned)
    )
