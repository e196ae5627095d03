"""Resources of the lab server: a request goes in, an answer with its schedule comes out. No I/O, no clock."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

from netdiag.errors import UsageError
from netdiag.lab import schedule
from netdiag.lab.behaviour import Behaviour, from_query, from_text
from netdiag.lab.clock import ns
from netdiag.lab.coding import packer
from netdiag.lab.events import MODELS, EventShape, whole_answer
from netdiag.lab.schedule import Piece

KNOB_HEADER = "x-lab"
"""Request header with knobs: ``x-lab: wait_ms=50; events=3``."""
KNOB_PREFIX = "/lab/"
"""Path prefix with knobs, for clients that can only set a base URL: ``/lab/wait_ms=50,events=3/v1/chat/completions``."""
LARGEST_BODY = 1 << 30
_NO_BODY = {204, 304}

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRequest:
    """A request as either protocol delivers it. Header names are lower case."""

    method: str
    target: str
    headers: Headers
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """First value of a field, or None."""
        return next((v for n, v in self.headers if n == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interim:
    """A 1xx response and when it is due, counted from the last request octet."""

    due_ns: int
    status: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Everything that is to happen for one request, decided beforehand."""

    status: int
    headers: Headers
    pieces: list[Piece]
    head_due_ns: int
    framing: str
    """``length``, ``chunked``, ``close``, or ``none`` (HTTP/2 needs none)."""
    behaviour: Behaviour
    interim: list[Interim] = field(default_factory=list)
    trailers: Headers = field(default_factory=list)

    @property
    def body_bytes(self) -> int:
        """Octets of all pieces."""
        return sum(len(p.data) for p in self.pieces)


class Application:
    """Answers requests. Counts per path what ``fail_first`` needs; randomness comes from the seed and the request's number alone."""

    def __init__(self, default: Behaviour, seed: int) -> None:
        """``default`` is what a request gets that asks for nothing."""
        self._default = default
        self._seed = seed
        self._seen: Counter[str] = Counter()
        self._served = 0

    def behaviour(self, request: LabRequest) -> tuple[Behaviour, str]:
        """The knobs in force for a request (defaults, then path prefix, query, header) and the path that remains."""
        parts = urlsplit(request.target)
        behaviour, path = self._default, parts.path or "/"
        if path.startswith(KNOB_PREFIX):
            text, _, rest = path.removeprefix(KNOB_PREFIX).partition("/")
            behaviour, path = from_text(behaviour, unquote(text), where="path"), "/" + rest
        if parts.query:
            behaviour = from_query(behaviour, parts.query)
        if header := request.header(KNOB_HEADER):
            behaviour = from_text(behaviour, header, where=KNOB_HEADER)
        return behaviour, path

    def behaviour_or_default(self, request: LabRequest) -> Behaviour:
        """As ``behaviour``, with the defaults where the request's knobs cannot be set (``answer`` then says so)."""
        try:
            return self.behaviour(request)[0]
        except UsageError:
            return self._default

    def answer(self, request: LabRequest) -> Answer:
        """The answer; a knob that cannot be set is answered with 400 and the reason."""
        try:
            behaviour, path = self.behaviour(request)
            behaviour = self._failing(behaviour, path)
            rng = random.Random(f"{self._seed}/{self._served}")
            self._served += 1
            return _finished(request, self._route(request, path, behaviour, rng))
        except UsageError as error:
            return _document(400, {"error": {"message": str(error), "type": "invalid_request_error"}}, Behaviour())

    def _failing(self, behaviour: Behaviour, path: str) -> Behaviour:
        self._seen[path] += 1
        if self._seen[path] <= behaviour.fail_first:
            return replace(behaviour, status=behaviour.fail_status)
        return behaviour

    def _route(self, request: LabRequest, path: str, behaviour: Behaviour, rng: random.Random) -> Answer:
        for pattern, handler in _ROUTES:
            if match := re.fullmatch(pattern, path):
                return handler(request, behaviour, rng, *match.groups())
        return _document(404, {"error": {"message": f"no resource {path}"}}, behaviour)


# --- resources -----------------------------------------------------------------------------------------------------


def _llm(api: str) -> Callable[..., Answer]:
    def handler(request: LabRequest, behaviour: Behaviour, rng: random.Random) -> Answer:
        if behaviour.status >= 400:
            return _failure(api, behaviour)
        wants_stream = behaviour.stream if behaviour.stream is not None else bool(_json(request.body).get("stream"))
        if wants_stream:
            return _stream(api, behaviour, rng)
        return _plain(200, whole_answer(api, behaviour.events), "application/json", behaviour)

    return handler


def _sse(_: LabRequest, behaviour: Behaviour, rng: random.Random) -> Answer:
    return _stream("sse", behaviour, rng)


def _ndjson(_: LabRequest, behaviour: Behaviour, rng: random.Random) -> Answer:
    return _stream("ndjson", replace(behaviour, role_first=False, usage=False), rng)


def _models(_: LabRequest, behaviour: Behaviour, __: random.Random) -> Answer:
    return _plain(behaviour.status, MODELS, "application/json", behaviour)


def _bytes(_: LabRequest, behaviour: Behaviour, __: random.Random, count: str) -> Answer:
    return _plain(behaviour.status, _filler(int(count)), "application/octet-stream", behaviour)


def _status(_: LabRequest, behaviour: Behaviour, __: random.Random, status: str) -> Answer:
    if not 200 <= int(status) <= 599:
        raise UsageError(f"status: {status} is no final status (200 to 599)")
    return _document(int(status), {"status": int(status)}, replace(behaviour, status=int(status)))


def _delay(_: LabRequest, behaviour: Behaviour, __: random.Random, milliseconds: str) -> Answer:
    return _document(
        behaviour.status, {"waited_ms": float(milliseconds)}, replace(behaviour, wait_ms=float(milliseconds))
    )


def _echo(request: LabRequest, behaviour: Behaviour, _: random.Random) -> Answer:
    kind = request.header("content-type") or "application/octet-stream"
    return _plain(behaviour.status, request.body, kind, behaviour)


def _redirect(_: LabRequest, behaviour: Behaviour, __: random.Random, hops: str) -> Answer:
    left = int(hops)
    target = f"/redirect/{left - 1}" if left > 1 else "/"
    return _plain(behaviour.status, b"", "text/plain", replace(behaviour, redirect=target))


def _grpc(request: LabRequest, behaviour: Behaviour, rng: random.Random, method: str) -> Answer:
    """One message, or as many as ``events`` at their times; the status is in the trailers, or in the head when there is no message."""
    status = [("grpc-status", str(behaviour.grpc_status))]
    headers = [("content-type", "application/grpc")]
    if behaviour.grpc_status:
        return Answer(
            status=200,
            headers=[*headers, *status],
            pieces=[],
            head_due_ns=ns(behaviour.wait_ms),
            framing="none",
            behaviour=behaviour,
        )
    if method == "Stream":
        timed = replace(behaviour, role_first=False, usage=False, done=False)
        pieces = [replace(p, data=_grpc_message(p.data)) for p in schedule.events(timed, EventShape("grpc"), rng)]
    else:
        pieces = schedule.plain(_grpc_message(b"hello " + request.body[5:]), behaviour)
    answer = _through_hop(200, headers, pieces, behaviour, natural_framing="none")
    return replace(answer, trailers=status)


def _grpc_message(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def _root(_: LabRequest, behaviour: Behaviour, __: random.Random) -> Answer:
    return _plain(behaviour.status, b"netdiag lab\n", "text/plain", behaviour)


_ROUTES: tuple[tuple[str, Callable[..., Answer]], ...] = (
    (r"/v1/chat/completions", _llm("openai-chat")),
    (r"/v1/responses", _llm("openai-responses")),
    (r"(?:/anthropic)?/v1/messages", _llm("anthropic")),
    (r"/v1/models", _models),
    (r"/sse", _sse),
    (r"/api/chat|/ndjson", _ndjson),
    (r"/bytes/(\d{1,10})", _bytes),
    (r"/status/(\d{3})", _status),
    (r"/delay/(\d{1,7}(?:\.\d+)?)", _delay),
    (r"/redirect/(\d{1,2})", _redirect),
    (r"/echo", _echo),
    (r"/llm\.Chat/(Once|Stream)", _grpc),
    (r"/", _root),
)


# --- putting an answer together ------------------------------------------------------------------------------------


def _stream(api: str, behaviour: Behaviour, rng: random.Random) -> Answer:
    pieces = schedule.events(behaviour, EventShape(api), rng)
    kind = "application/x-ndjson" if api == "ndjson" else "text/event-stream"
    headers = [("content-type", kind), ("cache-control", "no-cache")]
    return _through_hop(behaviour.status, headers, pieces, behaviour, natural_framing="chunked")


def _plain(status: int, body: bytes, kind: str, behaviour: Behaviour) -> Answer:
    if behaviour.body_bytes is not None:
        body = _filler(behaviour.body_bytes)
    return _through_hop(
        status, [("content-type", kind)], schedule.plain(body, behaviour), behaviour, natural_framing="length"
    )


def _document(status: int, document: Any, behaviour: Behaviour) -> Answer:
    return _plain(status, json.dumps(document).encode() + b"\n", "application/json", behaviour)


def _failure(api: str, behaviour: Behaviour) -> Answer:
    reason = HTTPStatus(behaviour.status).phrase if behaviour.status in set(HTTPStatus) else "overloaded"
    error = {"type": reason.lower().replace(" ", "_") + "_error", "message": reason}
    document = {"type": "error", "error": error} if api == "anthropic" else {"error": error}
    return _document(behaviour.status, document, behaviour)


def _through_hop(
    status: int, headers: Headers, pieces: list[Piece], behaviour: Behaviour, *, natural_framing: str
) -> Answer:
    if behaviour.coding is not None:
        pieces = list(schedule.compressed(pieces, packer(behaviour.coding), flush=behaviour.coding_flush))
        headers = [*headers, ("content-encoding", behaviour.coding)]
    pieces = list(schedule.buffered(pieces, behaviour))
    head_due_ns = ns(behaviour.wait_ms)
    if behaviour.buffer_all and pieces:
        head_due_ns = pieces[-1].due_ns
    framing = natural_framing if behaviour.framing == "auto" else behaviour.framing
    return Answer(
        status=status,
        headers=headers,
        pieces=pieces,
        head_due_ns=head_due_ns,
        framing=framing,
        behaviour=behaviour,
        interim=_interim(behaviour),
    )


def _interim(behaviour: Behaviour) -> list[Interim]:
    out = []
    for item in (behaviour.early_status or "").split(","):
        status, _, at = item.strip().partition("@")
        if not status:
            continue
        if not (status.isdigit() and 100 <= int(status) < 200 and int(status) != 101):
            raise UsageError(f"early_status: {item!r} is no interim status (100 to 199 without 101)")
        try:
            out.append(Interim(due_ns=ns(float(at or 0)), status=int(status)))
        except ValueError:
            raise UsageError(f"early_status: {at!r} is no time in ms") from None
    return sorted(out, key=lambda interim: interim.due_ns)


def _finished(request: LabRequest, answer: Answer) -> Answer:
    """The fields that depend on knobs rather than on the resource."""
    behaviour, status = answer.behaviour, answer.status
    headers = [*answer.headers, *_knob_headers(behaviour, answer.head_due_ns)]
    if behaviour.redirect is not None:
        status = status if 300 <= status < 400 else 307
        headers.append(("location", behaviour.redirect))
    pieces = [] if request.method == "HEAD" or status in _NO_BODY else answer.pieces
    if answer.framing == "length" and status not in _NO_BODY:
        headers.append(("content-length", str(answer.body_bytes)))
    return replace(answer, status=status, headers=headers, pieces=pieces)


def _knob_headers(behaviour: Behaviour, processing_ns: int) -> Headers:
    named = {
        "retry-after": behaviour.retry_after,
        "retry-after-ms": behaviour.retry_after_ms,
        "x-should-retry": behaviour.should_retry,
        "server-timing": behaviour.server_timing,
        "x-envoy-upstream-service-time": behaviour.upstream_ms,
        "openai-processing-ms": behaviour.processing_ms,
    }
    if behaviour.processing_ms == "true":
        named["openai-processing-ms"] = str(round(processing_ns / 1e6))
    out = [(name, value) for name, value in named.items() if value is not None]
    return out + (_rate_limits(behaviour.rate_limits) if behaviour.rate_limits else [])


def _rate_limits(text: str) -> Headers:
    dialect, _, left = text.partition(":")
    remaining = left or "9999"
    match dialect:
        case "openai":
            prefix, reset = "x-ratelimit", "1s"
            return [
                (f"{prefix}-limit-requests", "10000"),
                (f"{prefix}-remaining-requests", remaining),
                (f"{prefix}-reset-requests", reset),
            ]
        case "anthropic":
            prefix = "anthropic-ratelimit-requests"
            return [
                (f"{prefix}-limit", "10000"),
                (f"{prefix}-remaining", remaining),
                (f"{prefix}-reset", "2026-01-01T00:00:01Z"),
            ]
        case "azure":
            return [("x-ratelimit-remaining-requests", remaining), ("x-ratelimit-remaining-tokens", remaining)]
    raise UsageError(f"rate_limits: {dialect!r} is none of openai, anthropic, azure")


def _json(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _filler(count: int) -> bytes:
    if count > LARGEST_BODY:
        raise UsageError(f"a body of {count} octets is more than {LARGEST_BODY}")
    line = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.\n"
    return (line * (count // len(line) + 1))[:count]
