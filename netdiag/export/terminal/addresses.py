"""The race of addresses behind one request (RFC 8305): every attempt, how it ended, and what the ones that did not win cost."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.export.terminal.page import MUTED, Page
from netdiag.records.analysis import Analysis
from netdiag.records.call import AddressAttempt
from netdiag.records.exchange import Exchange
from netdiag.sanitise import one_line
from netdiag.units import format_duration

_MOST = 8


def addresses_block(page: Page, analysis: Analysis, exchange: Exchange) -> None:
    """One line where more than one address was tried; nothing otherwise."""
    tried = addresses_tried(analysis, exchange)
    if len(tried) > 1:
        page.wrapped(2, (f"addresses: {describe(tried)}", MUTED))


def addresses_tried(analysis: Analysis, exchange: Exchange) -> list[AddressAttempt]:
    """The attempts that this exchange waited for; empty where no client told of any."""
    if exchange.call_id is None or exchange.call_id >= len(analysis.calls):
        return []
    made = analysis.calls[exchange.call_id].addresses
    return [attempt for attempt in made if exchange.started_at <= attempt.started_at <= exchange.ended_at]


def describe(tried: Sequence[AddressAttempt]) -> str:
    """``2001:db8::1 abandoned after 252.1 ms, 192.0.2.1 connected after 20.3 ms; the winner started 250.4 ms late``."""
    listed = [
        f"{one_line(a.address, most=45)} {one_line(a.outcome, most=20)} after {_lasted(a)}" for a in tried[:_MOST]
    ]
    more = [f"and {len(tried) - _MOST} more"] if len(tried) > _MOST else []
    won = next((attempt for attempt in tried if attempt.outcome == "connected"), None)
    penalty_ns = 0 if won is None else won.started_at - min(attempt.started_at for attempt in tried)
    return ", ".join([*listed, *more]) + (
        f"; the winner started {format_duration(penalty_ns)} late" if penalty_ns else ""
    )


def _lasted(attempt: AddressAttempt) -> str:
    return format_duration(attempt.ended_at - attempt.started_at)
