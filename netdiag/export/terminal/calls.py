"""What calls of several attempts came to: how many succeeded in the end, and what share of their time the retries took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from netdiag.export.terminal.page import BAD, MUTED, Page
from netdiag.records.analysis import Analysis
from netdiag.records.labels import arm_name, exchange_of
from netdiag.stats.calls import WholeCall, whole_calls
from netdiag.stats.distribution import arm_of


def calls_of_several_attempts(page: Page, analysis: Analysis) -> None:
    """A line for each arm that has any, first rounds left out: ``5 of 6 calls ok, 1.5 attempts each``, and the three shares of their time.

    In a file only the calls that were tried again are known."""
    several = [call for call in analysis.calls if len(call.attempts) > 1]
    if not several:
        return
    if analysis.source.kind == "file":
        found = [[exchange_of(analysis, id) for id in call.attempts] for call in several]
        _line(page, "tried again by the client", [WholeCall(attempts=tuple(filter(None, row))) for row in found])
        return
    arms: dict[str, list[WholeCall]] = defaultdict(list)
    for call in whole_calls(analysis.exchanges):
        if not call.first_round:
            arms[arm_of(call.last)].append(call)
    for arm in sorted(arms):
        if any(len(call.attempts) > 1 for call in arms[arm]):
            _line(page, arm_name(arm), arms[arm])


def _line(page: Page, arm: str, calls: Sequence[WholeCall]) -> None:
    good = sum(not call.last.failed for call in calls)
    attempts = sum(len(call.attempts) for call in calls) / len(calls)
    few = "call" if len(calls) == 1 else "calls"
    page.wrapped(
        0,
        (
            f"{arm}: {good:,} of {len(calls):,} {few} ok, {attempts:.2g} attempts a call;",
            "" if good == len(calls) else BAD,
        ),
        (f"of their time {_shares(calls)}", MUTED),
    )


def _shares(calls: Sequence[WholeCall]) -> str:
    total = sum(call.total_ns for call in calls)
    last = sum(call.last.total_ns for call in calls)
    earlier = sum(attempt.total_ns for call in calls for attempt in call.attempts[:-1])
    parts = (("earlier attempts", earlier), ("pauses", total - last - earlier), ("the last attempts", last))
    return ", ".join(f"{name} {ns * 100 / total if total else 0:.0f} %" for name, ns in parts)
