"""The terminal report of an analysis: one glance says which phase is the long one, on which evidence.

A file with many requests is never a thousand lines: the slowest ten as bars, the summary, and how to see the rest.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from rich.text import Text

from netdiag.export.terminal.bars import stacked
from netdiag.export.terminal.blocks import Blocks, digits_for
from netdiag.export.terminal.findings import findings
from netdiag.export.terminal.header import header, hosts
from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, Piece, column
from netdiag.export.terminal.summary import summary
from netdiag.palette import PHASE_HUES
from netdiag.plain import plain
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.records.exchange_table import slowest
from netdiag.records.labels import connection_of, exchange_of, host_of, request_label, result_label
from netdiag.stats.medoid import medoid
from netdiag.units import format_ms

MOST_BLOCKS = 6
"""Requests that are shown phase by phase without being asked for."""
SLOWEST = 10
"""Rows of the list of slowest requests."""
_FILLS = {"wait": "█", "transfer": "▓", "deliver": "▓", "unattributed": "╌"}
_SETUP_FILL = "▒"


@plain(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which requests to show."""

    top: int | None = None
    """The slowest so many, phase by phase; 0 for all, in order; None lets the report choose."""
    exchange_id: int | None = None
    """Only this request."""


def report(
    analysis: Analysis, *, width: int, ascii_only: bool = False, selection: Selection | None = None
) -> list[Text]:
    """The report as lines, none wider than ``width`` cells."""
    page = Page(width, ascii_only=ascii_only)
    chosen = selection or Selection()
    names = hosts(analysis)
    header(page, analysis, names)
    page.blank()
    _requests(page, analysis, chosen, with_host=len(names) > 1)
    if chosen.exchange_id is None:
        page.blank()
        summary(page, analysis)
    page.blank()
    findings(page, analysis)
    while page.lines and not page.lines[-1].plain:
        page.lines.pop()
    return page.lines


def _requests(page: Page, analysis: Analysis, selection: Selection, *, with_host: bool) -> None:
    count = len(analysis.exchanges)
    if not count:
        many = len(analysis.connections)
        page.line(("no request found", STRONG), (f" in {many:,} connection{'' if many == 1 else 's'}", MUTED))
        return
    if (
        selection.exchange_id is None
        and selection.top is None
        and count > MOST_BLOCKS
        and analysis.source.kind == "file"
    ):
        _slowest(page, analysis, with_host=with_host)
        return
    _blocks(page, analysis, _chosen(analysis, selection), with_host=with_host)


def _chosen(analysis: Analysis, selection: Selection) -> list[Exchange]:
    """The requests to show phase by phase."""
    if selection.exchange_id is not None:
        found = exchange_of(analysis, selection.exchange_id)
        return [] if found is None else [found]
    if selection.top == 0:
        return list(analysis.exchanges)
    if selection.top is not None:
        return slowest(analysis.exchanges, selection.top)
    if len(analysis.exchanges) <= MOST_BLOCKS:
        return list(analysis.exchanges) if analysis.source.kind == "file" else _once(analysis.exchanges)
    uncounted = {e.exchange_id for statistics in analysis.statistics for e in statistics.excluded}
    return _examples(analysis.exchanges, uncounted)


def _examples(exchanges: Sequence[Exchange], uncounted: Set[int]) -> list[Exchange]:
    """The typical trial of each arm and one failure of each kind: never an averaged timeline, which would show a call that did not
    happen."""
    arms: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        if exchange.id not in uncounted:
            arms.setdefault(exchange.arm or exchange.protocol or "", []).append(exchange)
    shown = [typical for group in arms.values() if (typical := medoid(group)) is not None]
    bad = [exchange for exchange in _once(exchanges) if exchange.failed][: max(1, MOST_BLOCKS - len(shown))]
    return sorted({e.id: e for e in [*shown, *bad]}.values(), key=lambda e: e.id)


def _once(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """All but the failures of a kind that its arm has shown: the second refused certificate tells nothing new."""
    kept: list[Exchange] = []
    known: set[tuple[str | None, str, int | None, str | None]] = set()
    for exchange in exchanges:
        kind = (exchange.arm, str(exchange.outcome), exchange.status, exchange.outcome_detail)
        if not (exchange.failed and kind in known):
            kept.append(exchange)
        known.add(kind)
    return kept


def _blocks(page: Page, analysis: Analysis, chosen: Sequence[Exchange], *, with_host: bool) -> None:
    blocks = Blocks(page, analysis, chosen, with_host=with_host)
    calls = {call.id: call for call in analysis.calls if len(call.attempts) > 1}
    done: set[int] = set()
    for exchange in chosen:
        if exchange.id in done:
            continue
        page.blank()
        call = calls.get(exchange.call_id) if exchange.call_id is not None else None
        if call is not None:
            done.update(call.attempts)
            blocks.call(call)
        else:
            blocks.exchange(exchange)
    left_out = len(analysis.exchanges) - len({*done, *(e.id for e in chosen)})
    from_file = analysis.source.kind == "file"
    if left_out > 0 and (len(chosen) > 1 or not from_file):
        page.blank()
        more = "1 more request is" if left_out == 1 else f"{left_out:,} more requests are"
        one = ", --exchange N one" if from_file else ""
        page.wrapped(0, (f"{more} in the summary; --top 0 shows all{one}", MUTED))


def _slowest(page: Page, analysis: Analysis, *, with_host: bool) -> None:
    """The slowest requests, one line each, their phases side by side in one bar on a common scale."""
    rows = slowest(analysis.exchanges, SLOWEST)
    count = len(analysis.exchanges)
    longest = rows[0].total_ns
    digits = digits_for(longest)
    title = (
        f"the slowest {len(rows)} of {count:,} requests"
        if count > len(rows)
        else f"{count} requests, the slowest first"
    )
    page.line(
        (title, STRONG),
        (f"   {_SETUP_FILL} set-up  █ wait  ▓ transfer   (ms)", MUTED),
    )
    identity = max(len(str(e.id)) for e in rows) + 1
    result = max(len(result_label(e)) for e in rows)
    value = max(len(format_ms(e.total_ns, digits=digits)) for e in rows)
    cells = max(10, (page.width - identity - result - value - 8) * 2 // 5)
    room = page.width - identity - result - value - cells - 8
    names = [host_of(e, connection_of(analysis, e.connection_id)) for e in rows]
    with_host = with_host or len(set(names)) > 1
    for exchange, host in zip(rows, names, strict=True):
        label = request_label(exchange, host=host if with_host else None) or host
        name = page.text([label])
        name.truncate(max(8, room), overflow="crop" if page.ascii_only else "ellipsis", pad=True)
        page.line(
            (column(f"#{exchange.id}", identity, right=True), MUTED),
            "  ",
            name.plain,
            "  ",
            (column(result_label(exchange), result), BAD if exchange.failed else ""),
            "  ",
            (column(format_ms(exchange.total_ns, digits=digits), value, right=True), STRONG),
            "  ",
            *_stacked_bar(exchange, longest, cells),
        )
    if count > len(rows):
        page.wrapped(
            0,
            (
                f"{count - len(rows):,} more: --top 0 shows all, --exchange N one, --filter some, --json everything",
                MUTED,
            ),
        )


def _stacked_bar(exchange: Exchange, longest: int, cells: int) -> list[Piece]:
    lengths = [(str(phase.name), phase.duration_ns) for phase in exchange.phases]
    if exchange.unattributed_ns:
        lengths.append(("unattributed", exchange.unattributed_ns))
    sizes = stacked([length for _, length in lengths], longest, cells)
    hue = {**PHASE_HUES, "unattributed": ""}
    return [
        (_FILLS.get(name, _SETUP_FILL) * size, hue[name])
        for (name, _), size in zip(lengths, sizes, strict=True)
        if size
    ]
