"""What stands under a streamed answer: when it began in each sense, its pace, who made it stand still, whether somebody collected it."""

from __future__ import annotations

from netdiag.analysis.median import median
from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, Piece, column
from netdiag.records.exchange import Exchange
from netdiag.records.server_report import ServerReport, ServerTime
from netdiag.records.stall_words import cause_word, reason
from netdiag.records.stream import Delivery, StreamStall, StreamTiming
from netdiag.sanitise import one_line
from netdiag.units import NS_PER_S, format_duration, format_ms_readably

_REFUSALS = (429, 503, 529)
_INDENT = 2
_NAME = 10
_MOST_STALLS = 3
_MOST_TIMES = 6
_SEVERAL = 1.5
_DELIVERIES = {Delivery.BUFFERED: "buffered on the way", Delivery.BURSTY: "in bursts"}


def stream_block(page: Page, exchange: Exchange) -> None:
    """At most a line or two each for times, pace, the worst stalls and a verdict that is bad."""
    stream = exchange.stream
    if stream is None or not stream.events or _is_one_message(stream):
        return
    _firsts(page, stream)
    _pace(page, stream)
    for stall in _worst(stream):
        _row(page, "stall", _stall(stall))
    if len(stream.stalls) > _MOST_STALLS:
        _row(page, "", [(f"{len(stream.stalls) - _MOST_STALLS} shorter stalls", MUTED)])
    _delivery(page, stream, dict(exchange.response_headers).get("content-encoding"))


def _is_one_message(stream: StreamTiming) -> bool:
    """A unary call's answer: its phases have told it all."""
    return stream.events == 1 and stream.first_token_ns is None


def _row(page: Page, name: str, pieces: list[Piece]) -> None:
    page.hanging(_INDENT, column(name, _NAME), *pieces)


def _firsts(page: Page, stream: StreamTiming) -> None:
    """Each with the name of its definition."""
    named = (
        ("first byte", stream.first_byte_ns),
        ("first event", stream.first_event_ns),
        ("first token", stream.first_token_ns),
        ("first visible", stream.first_visible_ns),
        ("last content", stream.last_content_ns),
        ("logical end", stream.logical_end_ns),
    )
    times = ", ".join(f"{name} {format_ms_readably(value)}" for name, value in named if value is not None)
    _row(page, "stream", [(f"{times} ms after the first request octet", MUTED)])


def _pace(page: Page, stream: StreamTiming) -> None:
    parts = []
    if stream.gaps_ns:
        worst = max(stream.gaps_ns)
        named = next((f" ({cause_word(s)})" for s in stream.stalls if s.gap_ns == worst), "")
        parts.append(
            f"inter-event median {format_ms_readably(round(median(stream.gaps_ns)))}, worst {format_ms_readably(worst)}{named}"
        )
    if stream.tokens is not None:
        rate = tokens_per_s(stream)
        parts.append(
            f"{stream.tokens} tokens by the server's usage" + (f", {rate:.1f}/s after the first" if rate else "")
        )
    if stream.events_per_record is not None and stream.events_per_record >= _SEVERAL:
        parts.append(f"{stream.events_per_record:.1f} events per record")
    if stream.read_lag_ns is not None and stream.read_lag_ns >= NS_PER_S // 1_000:
        parts.append(f"read {format_ms_readably(stream.read_lag_ns)} late")
    if parts:
        _row(page, "pace", [("; ".join(parts), MUTED)])


def tokens_per_s(stream: StreamTiming) -> float | None:
    """(tokens − 1) ÷ (last content − first token); None without the server's count, and where a hop has changed the times."""
    collected = stream.buffering is not None and stream.buffering.verdict is Delivery.BUFFERED
    if stream.tokens is None or stream.tokens < 2 or collected:
        return None
    if stream.first_token_ns is None or stream.last_content_ns is None:
        return None
    lasted = stream.last_content_ns - stream.first_token_ns
    return (stream.tokens - 1) * NS_PER_S / lasted if lasted > 0 else None


def _worst(stream: StreamTiming) -> list[StreamStall]:
    chosen = sorted(stream.stalls, key=lambda s: -s.excess_ns)[:_MOST_STALLS]
    return sorted(chosen, key=lambda s: s.started_at)


def _stall(stall: StreamStall) -> list[Piece]:
    frames = f", frames {stall.packets[0]} → {stall.packets[1]}" if len(stall.packets) > 1 else ""
    return [
        (f"{format_ms_readably(stall.excess_ns)} ms", STRONG),
        (f" more than usual after event {stall.after_event}: ", MUTED),
        (f"{cause_word(stall)},", STRONG),
        (f" {reason(stall)}{frames}", MUTED),
    ]


def _delivery(page: Page, stream: StreamTiming, coding: str | None) -> None:
    scores = stream.buffering
    if scores is None or scores.verdict not in _DELIVERIES:
        return
    why = scores.reason
    if coding is not None:  # a compressor that is not flushed at each event holds them back like any hop
        why += f"; content-encoding {one_line(coding, most=20)} may be why: try -H 'Accept-Encoding: identity'"
    _row(page, "delivery", [(f"{_DELIVERIES[scores.verdict]}:", BAD), (why, MUTED)])


def server_block(page: Page, exchange: Exchange) -> None:
    """The server's own times beside the measured wait, what the measurement contradicts, and for how long it wants to be left alone."""
    report = exchange.server_report
    asked = _asked_to_wait(exchange)
    if asked:
        _row(page, "server", [(f"asks to wait {asked}", BAD)])
    if report is None:
        return
    if report.times:
        wait = next((p.duration_ns for p in exchange.phases if p.name == "wait"), None)
        beside = f" of {format_ms_readably(wait)} ms waited" if wait is not None else ""
        more = len(report.times) - _MOST_TIMES
        said = ", ".join(_claim(time) for time in report.times[:_MOST_TIMES]) + (
            f" and {more} more" if more > 0 else ""
        )
        _row(page, "server", [(f"says {said}{beside}{_place(report)}", MUTED)])
    for conflict in report.conflicts[:_MOST_TIMES]:
        _row(page, "", [(f"{one_line(conflict, most=200)};", BAD), ("the measurement stands", MUTED)])


def _asked_to_wait(exchange: Exchange) -> str:
    """What a refusal's ``retry-after`` says, in its own words; empty without one."""
    if exchange.status not in _REFUSALS:
        return ""
    fields = dict(exchange.response_headers)
    for name, unit in (("retry-after-ms", " ms"), ("retry-after", " s")):
        if name in fields:
            value = one_line(fields[name], most=40)
            return f"{value}{unit if value.replace('.', '', 1).isdecimal() else ''} ({name})"
    return ""


def _claim(time: ServerTime) -> str:
    return f"{one_line(time.name, most=40)} {format_duration(time.ns)} ({one_line(time.source, most=40)})"


def _place(report: ServerReport) -> str:
    where = report.edge or report.region
    return f", at {one_line(where, most=20)}" if where else ""
