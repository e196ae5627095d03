"""What one request's answer does: every knob that a configuration, a query, a header or a path prefix may set.

Values are written by people, so times are in milliseconds here (and only here); everything after this file is integer nanoseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from netdiag.errors import UsageError
from netdiag.lab.strict import checked


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Times count from the last request octet unless they say otherwise."""

    # --- the answer
    status: int = 200
    wait_ms: float = 0.0
    """Until the final response head is written."""
    body_bytes: int | None = None
    """Size of a plain body; None leaves it to the resource."""
    body_ms: float = 0.0
    """A plain body is spread evenly over this time after the head, in ``body_pieces``."""
    body_pieces: int = 1
    grpc_status: int = 0
    """Of the gRPC resources ``/llm.Chat/Once`` and ``/llm.Chat/Stream``; other than 0: no message, the status in the head (Trailers-Only)."""
    framing: str = "auto"
    """``length``, ``chunked`` or ``close`` (until-close, HTTP/1 only); auto: chunked for streams, length otherwise."""
    stream: bool | None = None
    """Stream events; None lets the request's own JSON decide."""

    # --- the stream of events
    events: int = 8
    """Text events."""
    gap_ms: float = 20.0
    """Between text events."""
    first_event_ms: float | None = None
    """First text event, counted from the last request octet; None: together with the head."""
    burst: int = 1
    """Text events released together; the mean rate stays."""
    jitter_ms: float = 0.0
    """Uniform, from the seed, added to each text event's time."""
    pause_after: int | None = None
    """After this many text events the stream stops for ``pause_ms``; later events shift by it."""
    pause_ms: float = 0.0
    role_first: bool = True
    """An opening event without text, with the head."""
    reasoning: int = 0
    """Events of the reasoning channel before the text, at the same gap."""
    ping_ms: float | None = None
    """A ping (comment or ``ping`` event) each so often while nothing else is due."""
    usage: bool = True
    """A usage report before the end."""
    done: bool = True
    """The logical end: ``[DONE]``, ``message_stop``, ``response.completed``."""
    event_bytes: int | None = None
    """Pad each text event to this size on the wire."""
    error_after: int | None = None
    """An error event after this many text events ends the stream."""
    schedule: str | None = None
    """Exact: ``0:role,50:text,70:text:100,90:ping,120:done`` (ms after the head: kind: octets); replaces all of the above."""

    # --- between server and client
    buffer_bytes: int | None = None
    """A hop collects this many octets of body before it lets them go."""
    buffer_ms: float | None = None
    """A hop collects for this long."""
    buffer_all: bool = False
    """A hop collects the whole body, and the head with it."""
    coding: str | None = None
    """Content coding of the body: ``gzip``, ``deflate``, ``zstd``, or ``br`` (needs the package brotli)."""
    coding_flush: bool = True
    """Flush the compressor at each event."""

    # --- heads
    early_status: str | None = None
    """Interim responses before the final head: ``103`` or ``100@10,103@25`` (ms after the last request octet)."""
    ignore_expect: bool = False
    """Leave ``Expect: 100-continue`` unanswered."""
    continue_ms: float = 0.0
    """Answer it this late."""
    retry_after: str | None = None
    """Value of Retry-After as it is: ``2``, ``0``, a date, garbage."""
    retry_after_ms: str | None = None
    should_retry: str | None = None
    """``x-should-retry``: true or false."""
    rate_limits: str | None = None
    """``openai``, ``anthropic`` or ``azure``: headers of the rate-limit family with plenty left; ``openai:0`` with nothing left."""
    processing_ms: str | None = None
    """``openai-processing-ms``: ``true`` for the real value, or the text to claim."""
    server_timing: str | None = None
    """``Server-Timing`` as it is."""
    upstream_ms: str | None = None
    """``x-envoy-upstream-service-time`` as it is."""
    redirect: str | None = None
    """Location of the answer; status becomes 307 unless it is a 3xx already."""
    connection_close: bool = False
    """HTTP/1: ``Connection: close`` after this answer."""
    keep_alive_claim: str | None = None
    """Value of a Keep-Alive head field, true or not: ``timeout=60``."""
    fail_first: int = 0
    """The first so many requests to this path get ``fail_status``, then all succeed."""
    fail_status: int = 503

    # --- breaking off
    reset_after_bytes: int | None = None
    """RST (RST_STREAM on HTTP/2) after this many octets of body; 0: instead of the head."""
    truncate_after_bytes: int | None = None
    """FIN after this many octets of body."""
    cut_record: bool = False
    """Break off in the middle of a TLS record or chunk, not at its end."""
    stall_after_bytes: int | None = None
    """Silence after this many octets of body, for ``stall_ms``."""
    stall_ms: float = 0.0
    rst_code: int = 2
    """HTTP/2 error code of RST_STREAM (RFC 9113 section 7): 2 INTERNAL_ERROR, 7 REFUSED_STREAM, 8 CANCEL, 11 ENHANCE_YOUR_CALM."""
    goaway: str | None = None
    """HTTP/2: ``before`` (this stream is refused), ``with`` (sent with the head; the stream completes), ``after``."""
    write_calls: int = 1
    """Each event leaves in this many calls of write."""


DEFAULT = Behaviour()
LONGEST_MS = 3_600_000.0
"""One hour."""
_NAMES = {f.name for f in dataclasses.fields(Behaviour)}
_CHOICES = {
    "framing": ("auto", "length", "chunked", "close"),
    "goaway": ("before", "with", "after"),
    "coding": ("gzip", "deflate", "zstd", "br"),
}
_POSITIVE = ("burst", "body_pieces", "write_calls")


def is_knob(name: str) -> bool:
    """Whether a behaviour can be changed by this name."""
    return name in _NAMES


def changed(base: Behaviour, values: Mapping[str, Any], *, where: str) -> Behaviour:
    """``base`` with knobs set; text is converted. Raises UsageError naming ``where`` and the key that cannot be."""
    values = checked(Behaviour, values, where)
    for name, value in values.items():
        _check_range(name, value, where)
    return dataclasses.replace(base, **values)


def from_query(base: Behaviour, query: str) -> Behaviour:
    """Knobs of a query or an ``x-lab`` header; other parameters belong to the resource and stay unnoticed."""
    pairs = parse_qsl(query.replace(";", "&").replace(" ", ""), keep_blank_values=True)
    return changed(base, {n: v for n, v in pairs if is_knob(n)}, where="query")


def from_text(base: Behaviour, text: str, *, where: str) -> Behaviour:
    """``wait_ms=50,events=3`` (also with ``;`` or ``&`` between): all of it must be knobs."""
    pairs = parse_qsl(text.replace(";", "&").replace(",", "&").replace(" ", ""), keep_blank_values=True)
    return changed(base, dict(pairs), where=where)


def _check_range(name: str, value: Any, where: str) -> None:
    if isinstance(value, float) and value > LONGEST_MS:
        raise UsageError(f"{where}: {name} is more than {LONGEST_MS:.0f} ms")
    if name in _POSITIVE and value < 1:
        raise UsageError(f"{where}: {name} must be at least 1")
    if name in ("status", "fail_status") and not 200 <= value <= 599:
        raise UsageError(f"{where}: {name} must be a final status, 200 to 599, not {value}")
    if name in _CHOICES and value is not None and value not in _CHOICES[name]:
        raise UsageError(f"{where}: {name} must be one of {', '.join(_CHOICES[name])}, not {value!r}")
