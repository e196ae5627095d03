"""What a server says about itself: its own times, who answered where, what is left of rate limits. A third witness, never a measurement of ours.

Tables of header fields and body members, one row each, with the unit that their makers document. Absent is not zero: many gateways strip
all of it on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from netdiag.protocols.headers import Field, find
from netdiag.records.server_report import EdgeTcp, RateLimit, ServerReport, ServerTime

_NS = 1
_MS = 1_000_000
_S = 1_000_000_000


# Header → (name, unit). Sources: the providers' API references, listed with their caveats in the findings catalogue.
_TIMES: dict[str, tuple[str, int]] = {
    "openai-processing-ms": ("processing", _MS),
    "x-envoy-upstream-service-time": ("upstream", _MS),
    "cmp-upstream-response-duration": ("upstream", _MS),
    "x-amzn-bedrock-invocation-latency": ("processing", _MS),
    "fireworks-server-processing-time": ("processing", _S),
    "fireworks-server-time-to-first-token": ("first-token", _S),
    "fireworks-tokenizer-queue-duration": ("queue", _S),
    "fireworks-prefill-queue-duration": ("queue", _S),
    "fireworks-prefill-duration": ("prefill", _S),
    "fireworks-generation-queue-duration": ("queue", _S),
    "x-queue-time": ("queue", _MS),
    "x-validation-time": ("validation", _MS),
    "x-inference-time": ("processing", _MS),
    "x-total-time": ("total", _MS),
    "x-litellm-response-duration-ms": ("total", _MS),
    "x-litellm-overhead-duration-ms": ("gateway", _MS),
    "x-litellm-callback-duration-ms": ("gateway", _MS),
    "x-kong-upstream-latency": ("upstream", _MS),
    "x-kong-proxy-latency": ("gateway", _MS),
    "x-apig-latency": ("total", _MS),
    "x-apig-upstream-latency": ("upstream", _MS),
    "x-runtime": ("processing", _S),
}
# Member of a body's usage (or of the last event) → (name, unit).
_BODY_TIMES: dict[str, tuple[str, int]] = {
    "queue_time": ("queue", _S),
    "prompt_time": ("prefill", _S),
    "completion_time": ("generation", _S),
    "total_time": ("total", _S),
    "load_duration": ("load", _NS),
    "prompt_eval_duration": ("prefill", _NS),
    "eval_duration": ("generation", _NS),
    "total_duration": ("total", _NS),
    "prompt_ms": ("prefill", _MS),
    "predicted_ms": ("generation", _MS),
    "invocationLatency": ("total", _MS),
    "firstByteLatency": ("first-token", _MS),
    "latencyMs": ("total", _MS),
}
_REQUEST_IDS = (
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-amzn-requestid",
    "x-ms-client-request-id",
    "x-correlation-id",
)
_BACKENDS = ("azureml-model-session", "x-ms-region", "x-served-by", "x-backend", "x-upstream")
_LIMIT = re.compile(
    r"(?:x|anthropic)-ratelimit-(?:(limit|remaining|reset)-([a-z\-]+)|([a-z\-]+)-(limit|remaining|reset))\Z"
)
_METRIC = re.compile(
    r'\s*([!#$%&\'*+\-.^_`|~0-9A-Za-z]+)((?:\s*;\s*[A-Za-z]+\s*=\s*(?:"[^"]*"|[^;,"\s]*))*)\s*(?:,|\Z)'
)
_PARAMETER = re.compile(r';\s*([A-Za-z]+)\s*=\s*(?:"([^"]*)"|([^;,"\s]*))')
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNITS = {"ms": _MS, "s": _S, "m": 60 * _S, "h": 3600 * _S, "d": 86_400 * _S}
_CF_L4 = {
    "rtt": ("rtt_ns", 1000),
    "min_rtt": ("min_rtt_ns", 1000),
    "rtt_var": ("rtt_var_ns", 1000),
    "sent": ("sent", 1),
    "recv": ("received", 1),
    "lost": ("lost", 1),
    "retrans": ("retransmitted", 1),
    "delivery_rate": ("delivery_rate", 1),
    "cwnd": ("congestion_window", 1),
    "unsent_bytes": ("unsent_bytes", 1),
}
_MOST_METRICS = 64


def read_headers(fields: Sequence[Field]) -> ServerReport:
    """The report in the head (or trailers) of one answer. Values that cannot be read are left out."""
    times: list[ServerTime] = []
    edge_tcp = None
    for name, value in fields:
        known = _TIMES.get(name)
        if known is not None:
            times += _time(known, value, name)
        elif name == "server-timing":
            metrics, edge = _server_timing(value)
            times += metrics
            edge_tcp = edge or edge_tcp
    return ServerReport(
        times=tuple(times),
        edge_tcp=edge_tcp,
        request_id=_first(fields, _REQUEST_IDS),
        edge=_edge(fields),
        region=find(fields, "x-ms-region"),
        rate_limits=_rate_limits(fields),
        should_retry=_boolean(find(fields, "x-should-retry")),
        backend=_first(fields, _BACKENDS),
    )


def read_body_times(members: dict[str, Any], where: str) -> tuple[ServerTime, ...]:
    """Times among the members of a usage object or of a last event; ``where`` says which, for ``ServerTime.source``."""
    found: list[ServerTime] = []
    for member, known in _BODY_TIMES.items():
        value = members.get(member)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            found += _time(known, str(value), f"{where}.{member}")
    return tuple(found)


def _time(known: tuple[str, int], value: str, source: str) -> Iterable[ServerTime]:
    ns = _scaled(value, known[1])
    return () if ns is None else (ServerTime(known[0], ns, source),)


def _scaled(value: str, unit: int) -> int | None:
    """A number in a unit as nanoseconds; None for what is no sensible duration (up to a day)."""
    try:
        number = float(value.strip().removesuffix("ms").removesuffix("s"))
    except ValueError:
        return None
    return round(number * unit) if 0 <= number * unit <= 86_400 * _S else None


def _server_timing(value: str) -> tuple[list[ServerTime], EdgeTcp | None]:
    """W3C Server Timing: ``name;dur=12.3;desc="…"``, separated by commas."""
    times: list[ServerTime] = []
    edge = None
    pos = 0
    for _ in range(_MOST_METRICS):
        metric = _METRIC.match(value, pos)
        if metric is None:
            break
        pos = metric.end()
        parameters = {k.lower(): quoted or plain for k, quoted, plain in _PARAMETER.findall(metric.group(2))}
        if metric.group(1) == "cfL4":
            edge = _edge_tcp(parameters.get("desc", ""))
        elif (ns := _scaled(parameters.get("dur", ""), _MS)) is not None:
            times.append(ServerTime(f"timing:{metric.group(1)}", ns, "server-timing"))
        if pos >= len(value):
            break
    return times, edge


def _edge_tcp(description: str) -> EdgeTcp:
    found: dict[str, int] = {}
    for part in description.lstrip("?").split("&")[:64]:
        name, _, value = part.partition("=")
        if name in _CF_L4 and value.isascii() and value.isdigit() and len(value) < 16:
            key, factor = _CF_L4[name]
            found[key] = int(value) * factor
    return EdgeTcp(**found)


def _edge(fields: Sequence[Field]) -> str | None:
    """The place in ``cf-ray`` (after its dash), ``x-amz-cf-pop`` or ``x-vercel-id``."""
    ray = find(fields, "cf-ray")
    if ray is not None and "-" in ray:
        return ray.rpartition("-")[2] or None
    pop = find(fields, "x-amz-cf-pop")
    if pop is not None:
        return pop
    vercel = find(fields, "x-vercel-id")
    return vercel.partition("::")[0] or None if vercel else None


def _rate_limits(fields: Sequence[Field]) -> tuple[RateLimit, ...]:
    found: dict[str, dict[str, str]] = {}
    for name, value in fields:
        match = _LIMIT.match(name) if "ratelimit" in name else None
        if match is not None:
            kind, budget = (match.group(1), match.group(2)) if match.group(1) else (match.group(4), match.group(3))
            found.setdefault(budget, {})[kind] = value
    return tuple(
        RateLimit(budget, _count(kinds.get("limit")), _count(kinds.get("remaining")), _reset(kinds.get("reset")))
        for budget, kinds in found.items()
    )


def _reset(value: str | None) -> int | None:
    """``6m0s``, ``1h2m3.5s``, ``120ms``; an instant (RFC 3339) is none."""
    if value is None or not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d)){1,5}", value):
        return None
    return sum(round(float(number) * _UNITS[unit]) for number, unit in _DURATION.findall(value))


def _count(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 19 else None


def _boolean(value: str | None) -> bool | None:
    return {"true": True, "false": False}.get(value.lower()) if value is not None else None


def _first(fields: Sequence[Field], names: Sequence[str]) -> str | None:
    return next((value for name in names if (value := find(fields, name)) is not None), None)
