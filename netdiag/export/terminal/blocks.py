"""One request as rows of phases on its own time axis; one call as the rows of its attempts and back-offs on one axis."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from netdiag.export.terminal.addresses import addresses_block
from netdiag.export.terminal.bars import Axis, bar, gaps_bar, ticks
from netdiag.export.terminal.notes import Notes, unattributed
from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, Piece, column
from netdiag.export.terminal.stream import server_block, stream_block
from netdiag.palette import HATCHED, PHASE_HUES
from netdiag.plain import plain
from netdiag.records.analysis import Analysis
from netdiag.records.call import Backoff, Call
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.gaps import gaps
from netdiag.records.labels import (
    arm_name,
    connection_of,
    exchange_of,
    host_of,
    outcome_words,
    protocol_name,
    request_label,
    result_label,
)
from netdiag.records.stream import EventKind
from netdiag.records.timing import Method, Phase, PhaseName
from netdiag.sanitise import one_line
from netdiag.units import format_bytes, format_duration, format_ms_readably

_INDENT = 2
_NAME = 12
_SMALLEST_BAR = 14
_MOST_MEASURED = 500
_SHORTEST_LABEL = 16
_FAIR_OUTCOMES = frozenset({Outcome.OK, Outcome.UNKNOWN, Outcome.INCOMPLETE, Outcome.HTTP_ERROR})
_AFTER_SETUP = frozenset({PhaseName.SEND, PhaseName.WAIT, PhaseName.TRANSFER})
_ENDED_IN = {
    Outcome.DNS_FAIL: "dns",
    Outcome.REFUSED: "tcp",
    Outcome.UNREACHABLE: "tcp",
    Outcome.TIMEOUT_CONNECT: "tcp",
    Outcome.TLS_FAIL: "tls",
    Outcome.TIMEOUT_WRITE: "send",
    Outcome.TIMEOUT_READ: "wait",
    Outcome.TIMEOUT_POOL: "queue",
}


@plain(frozen=True, slots=True)
class _Row:
    name: str
    value: str
    bar: str
    hue: str
    frames: str
    note: str
    bad: bool = False


@plain(frozen=True, slots=True)
class Grid:
    """Column widths shared by the rows of all blocks, so that the eye can go down a column."""

    value: int
    bar: int
    frames: int
    note: int


def digits_for(duration_ns: int) -> int:
    """Decimals of a millisecond that make the parts of this duration readable."""
    return 3 if duration_ns < 10_000_000 else 2 if duration_ns < 100_000_000 else 1


_WHOLE = (Outcome.OK, Outcome.HTTP_ERROR)


class Blocks:
    """Writes requests and calls of one analysis onto a page, all in the same columns."""

    def __init__(self, page: Page, analysis: Analysis, shown: Sequence[Exchange], *, with_host: bool) -> None:
        """``shown`` are the exchanges that will be written; the columns are made to fit them."""
        self._page = page
        self._analysis = analysis
        self._notes = Notes(analysis)
        self._with_host = with_host
        self._grid = self._fitting_grid(shown)

    def exchange(self, exchange: Exchange) -> None:
        """A heading and one row per phase."""
        self._attempt(exchange, Axis(exchange.started_at, exchange.ended_at, self._grid.bar))

    def call(self, call: Call) -> None:
        """All attempts of a call on the call's own clock, with the back-off between them."""
        attempts = [found for number in call.attempts if (found := exchange_of(self._analysis, number)) is not None]
        if not attempts:
            return
        _call_heading(self._page, call)
        started_at = min(attempt.started_at for attempt in attempts)
        ended_at = max(started_at + call.total_ns, *(attempt.ended_at for attempt in attempts))
        axis = Axis(started_at, ended_at, self._grid.bar)
        for position, attempt in enumerate(attempts):
            self._attempt(attempt, axis)
            if position + 1 < len(attempts) and position < len(call.backoff):
                _write(self._page, _backoff_row(call.backoff[position], attempt.ended_at, axis), self._grid)

    def _attempt(self, exchange: Exchange, axis: Axis) -> None:
        _heading(self._page, self._analysis, exchange, self._with_host)
        for row in _exchange_rows(exchange, self._notes, axis):
            _write(self._page, row, self._grid)
        _unseen(self._page, exchange)
        addresses_block(self._page, self._analysis, exchange)
        stream_block(self._page, exchange)
        server_block(self._page, exchange)

    def _fitting_grid(self, shown: Sequence[Exchange]) -> Grid:
        measured = shown[:_MOST_MEASURED]
        rows = [row for e in measured for row in _exchange_rows(e, self._notes, Axis(e.started_at, e.ended_at, 1))]
        return _grid(self._page, rows)


def _unseen(page: Page, exchange: Exchange) -> None:
    """The wire has the whole answer of which the client took nothing."""
    application = exchange.clocks.get("application") if exchange.clocks else None
    if application is None or exchange.outcome not in _WHOLE or exchange.outcome_detail is None:
        return
    if not any(phase.name is PhaseName.TRANSFER for phase in application.phases):
        detail = one_line(exchange.outcome_detail, most=120)
        page.hanging(_INDENT, column("client", _NAME + 1), (f"took none of it: {detail}", BAD))


def _call_heading(page: Page, call: Call) -> None:
    """What became of it on a line; its address, which gives way, with its total on the next."""
    slept = sum(backoff.ns for backoff in call.backoff)
    by = f"by the policy {one_line(call.policy, most=30)}" if call.policy != "none" else ""
    if call.inferred:
        by = "by the client itself, as its requests say (inferred)"
    page.wrapped(
        0,
        (f"call {call.id}:", STRONG),
        f"{len(call.attempts)} attempts, back-off {format_duration(slept)}, {outcome_words(call.outcome)}{',' if by else ''}",
        (by, MUTED),
    )
    page.spread(
        [(f"  {one_line(call.url, most=200)}", MUTED)],
        [(f"total {format_ms_readably(call.total_ns)} ms", STRONG)],
    )


def _heading(page: Page, analysis: Analysis, exchange: Exchange, with_host: bool) -> None:
    """Protocol, request, result, size and place on the left, the total on the right. The request gives way first, then the place."""
    connection = connection_of(analysis, exchange.connection_id)
    digits = digits_for(exchange.total_ns)
    right: list[Piece] = ["total ", (f"{format_ms_readably(exchange.total_ns, digits=digits)} ms", STRONG)]
    before: list[Piece] = [
        (f"#{exchange.id} ", MUTED),
        (_way(exchange), STRONG),
        f"  trial {exchange.trial}" if exchange.trial is not None else "",
    ]
    result = result_label(exchange)
    after: list[Piece] = [
        (f"  {result}" if result else "", BAD if exchange.failed else STRONG),
        f"  {format_bytes(exchange.response_bytes)}" if exchange.response_bytes is not None else "",
    ]
    taken = sum(page.text(pieces).cell_len for pieces in (before, after, right))
    host = host_of(exchange, connection) if with_host else None
    label = request_label(exchange, host=host, most=max(_SHORTEST_LABEL, page.width - taken - 4))
    left: list[Piece] = [*before, f"  {label}" if label else "", *after]
    room = page.width - page.text([*left, *right]).cell_len - 2
    page.spread([*left, (_place(exchange) if room >= _SHORTEST_LABEL else "", MUTED)], right)


def _way(exchange: Exchange) -> str:
    """What spoke: the protocol, and the arm where it says more."""
    arm = arm_name(exchange.arm) if exchange.arm else ""
    spoke = exchange.protocol is not None or any(phase.name in _AFTER_SETUP for phase in exchange.phases)
    if not spoke:
        return arm or "no request"
    protocol = protocol_name(exchange.protocol)
    return protocol if arm in ("", protocol) else arm if arm.startswith(protocol) else f"{protocol}  {arm}"


def _place(exchange: Exchange) -> str:
    parts = []
    if exchange.stream_id is not None:
        parts.append(f"stream {exchange.stream_id}")
    if exchange.reused:
        parts.append(f"reused connection {exchange.connection_id}, request {exchange.ordinal + 1}")
    if exchange.idle_before_ns is not None:
        parts.append(f"idle {format_duration(exchange.idle_before_ns)} before")
    if exchange.pushed:
        parts.append("pushed")
    return "  " + ", ".join(parts) if parts else ""


def _exchange_rows(exchange: Exchange, notes: Notes, axis: Axis) -> list[_Row]:
    digits = digits_for(exchange.total_ns)
    rows = [_phase_row(exchange, phase, notes, axis, digits) for phase in exchange.phases]
    if exchange.outcome not in _FAIR_OUTCOMES:
        rows = _with_failure(exchange, rows)
    if exchange.stream is not None and exchange.stream.timeline:
        rows.append(_events_row(exchange, axis))
    if exchange.unattributed_ns > 0:
        rows.append(
            _Row(
                "unattributed",
                format_ms_readably(exchange.unattributed_ns, digits=digits),
                gaps_bar(axis, gaps(exchange)),
                "",
                "",
                unattributed(exchange),
            )
        )
    return rows


def _phase_row(exchange: Exchange, phase: Phase, notes: Notes, axis: Axis, digits: int) -> _Row:
    mark = "" if phase.method is Method.EXACT else "~"
    name = str(phase.name)
    return _Row(
        name,
        mark + format_ms_readably(phase.duration_ns, digits=digits),
        bar(axis, phase.started_at, phase.ended_at, hatched=name in HATCHED),
        PHASE_HUES[name],
        _frames(phase.first_packet, phase.last_packet),
        notes.of(exchange, phase, digits),
    )


def _frames(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        known = first if first is not None else last
        return "" if known is None else str(known)
    return str(first) if first == last else f"{first} → {last}"


def _with_failure(exchange: Exchange, rows: list[_Row]) -> list[_Row]:
    """The row of the phase in which the request ended says how; a phase that never began gets a row without a bar."""
    detail = one_line(exchange.outcome_detail, most=100) if exchange.outcome_detail else ""
    reason = f"✗ {detail.rstrip('.') or outcome_words(exchange.outcome)}"
    ended_in = _ENDED_IN.get(exchange.outcome)
    if rows and (ended_in in (None, rows[-1].name) or _in_the_answer(exchange, rows[-1])):
        last, lasted = rows[-1], exchange.phases[-1].duration_ns
        reason = f"{reason} after {format_duration(lasted)}"
        return [*rows[:-1], _Row(last.name, last.value, last.bar, last.hue, last.frames, reason, bad=True)]
    return [
        *rows,
        _Row(ended_in or "", "–", "", "", "", f"{reason} after {format_duration(exchange.total_ns)}", bad=True),
    ]


def _in_the_answer(exchange: Exchange, last: _Row) -> bool:
    """A silence ends a wait, or an answer that had begun."""
    return exchange.outcome is Outcome.TIMEOUT_READ and last.name == "transfer"


def _events_row(exchange: Exchange, axis: Axis) -> _Row:
    stream = exchange.stream
    assert stream is not None
    counted = [event.deliverable_at for event in stream.timeline]
    longest = f", longest gap {format_ms_readably(max(stream.gaps_ns))}" if stream.gaps_ns else ""
    pings = sum(event.kind in (EventKind.PING, EventKind.COMMENT) for event in stream.timeline)
    text = f"{stream.token_events} with text" if stream.token_events else ""
    note = f"{text}{longest}" + (f", {pings} ping{'s' if pings > 1 else ''}" if pings else "")
    return _Row("events", str(stream.events), ticks(axis, counted), PHASE_HUES["transfer"], "", note.removeprefix(", "))


def _backoff_row(backoff: Backoff, at: int, axis: Axis) -> _Row:
    drawn = bar(axis, at, at + backoff.ns, hatched=True)
    planned = (
        f", planned {format_ms_readably(backoff.planned_ns)}" if backoff.planned_ns not in (None, backoff.ns) else ""
    )
    return _Row(
        "back-off",
        format_ms_readably(backoff.ns),
        drawn,
        PHASE_HUES["backoff"],
        "",
        one_line(backoff.cause, most=40) + planned,
    )


def _grid(page: Page, rows: Sequence[_Row]) -> Grid:
    value = max((cell_len(row.value) for row in rows), default=0)
    frames = max((cell_len(page.glyphs(row.frames)) for row in rows), default=0)
    note = max((cell_len(page.glyphs(row.note)) for row in rows if not row.bad), default=0)
    left = page.width - _INDENT - _NAME - 1 - max(value, 7) - 2
    if left - frames - 2 < _SMALLEST_BAR:
        frames = 0  # half a number is none
    left -= frames + 2 if frames else 0
    note = max(0, min(note, left - 2 - max(_SMALLEST_BAR, left * 2 // 5)))
    return Grid(max(value, 7), max(_SMALLEST_BAR, left - (note + 2 if note else 0)), frames, note)


def _write(page: Page, row: _Row, grid: Grid) -> None:
    pieces: list[Piece] = [
        " " * _INDENT + column(row.name, _NAME) + " ",
        column(row.value, grid.value, right=True) + "  ",
        (column(row.bar, grid.bar), row.hue),
    ]
    if grid.frames:
        pieces.append(("  " + column(page.glyphs(row.frames), grid.frames), MUTED))
    note = page.glyphs(row.note)
    if note and (row.bad or cell_len(note) <= grid.note):
        pieces.append(("  " + note, BAD if row.bad else ""))
        note = ""
    if row.bad and page.text(pieces).cell_len > page.width:
        pieces.pop()
        note = page.glyphs(row.note)
    page.line(*pieces)
    if note:
        page.wrapped(_INDENT + _NAME + 1 + grid.value + 2, (note, BAD if row.bad else MUTED))
