"""Many trials as one table: n, median, min–max per phase and arm; quantiles only where n allows; comparisons with their verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from netdiag.export.terminal.blocks import digits_for
from netdiag.export.terminal.calls import calls_of_several_attempts
from netdiag.export.terminal.page import BAD, MUTED, STRONG, Page, Piece, column
from netdiag.plain import plain
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Outcome
from netdiag.records.labels import UNREAD_ARM, arm_name, outcome_words
from netdiag.records.statistics import Comparison, Distribution, Statistics, Throughput
from netdiag.records.timing import PhaseName
from netdiag.records.verdict_words import VERDICTS
from netdiag.sanitise import one_line
from netdiag.stats.distribution import FIRST_ROUND, NEEDED
from netdiag.units import format_bytes, format_ms_readably

_FIRSTS = {"first_event": "1st event", "first_token": "1st token"}
_CALLS = {"call": "call", "call_first_token": "call 1st"}
_ORDER = (*(str(name) for name in PhaseName), "unattributed", "total", *_FIRSTS, *_CALLS)
_QUANTILES = (("P90", "p90", 90), ("P95", "p95", 95), ("P99", "p99", 99))
_UNIT = "   (ms, median; below: min–max)"
_UNREAD = str(Outcome.UNKNOWN)
_GIVEN_UP = str(Outcome.SUPERSEDED)
_BEFORE_REQUESTS = frozenset(
    map(
        str,
        (
            *(Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.TIMEOUT_CONNECT, Outcome.DNS_FAIL, Outcome.TLS_FAIL),
            Outcome.SUPERSEDED,
        ),
    )
)
_ENOUGH_FOR_SHARES = 10
_AT_ONCE = re.compile(r"\bk\d+\b")
_TITLES = {"unattributed": "unattr.", **_FIRSTS, **_CALLS}


@plain(frozen=True, slots=True)
class _Line:
    """One line of the table: a heading and a cell for each column."""

    name: str
    n: str
    cells: tuple[str, ...]
    style: str = ""
    tail: str = ""


def summary(page: Page, analysis: Analysis) -> None:
    """The table of arms, then what it cannot say."""
    # Trials come in random order; the table does not.
    every = sorted(analysis.statistics, key=lambda s: s.arm)
    arms = [s for s in every if s.n]
    if not arms or (len(arms) == len(every) == 1 and arms[0].n == 1):  # one request is no distribution
        _only_outcomes(page, every if len(analysis.exchanges) > 1 else [])
        calls_of_several_attempts(page, analysis)
        return
    phases = _phases(arms)
    digits = _digits(arms)
    lines = [line for statistics in arms for line in _arm_lines(statistics, phases, digits)]
    lines += list(_comparison_lines(analysis.comparisons, phases))
    _table(page, phases, lines)
    _definitions(page, phases)
    _verdicts(page, analysis.comparisons)
    _failures_compared(page, [s.throughput for s in every], [s.arm for s in every])
    for statistics in every:
        _outcomes(page, statistics)
    calls_of_several_attempts(page, analysis)
    _first_rounds(page, every)
    _withheld_quantiles(page, arms)


def _only_outcomes(page: Page, arms: Sequence[Statistics]) -> None:
    """Where nothing succeeded there is no table, but there is something to say."""
    for statistics in arms:
        if not statistics.n:
            _outcomes(page, statistics)


def _phases(arms: Sequence[Statistics]) -> list[str]:
    """The columns: phases that any arm has, in the order in which they come; unattributed time only where there is some."""
    present = {name for statistics in arms for name, spread in statistics.phases.items() if spread.n and name in _ORDER}
    if all(s.phases["unattributed"].max in (0, None) for s in arms if "unattributed" in s.phases):
        present.discard("unattributed")
    return [name for name in _ORDER if name in present]


def _arm_lines(statistics: Statistics, phases: Sequence[str], digits: int) -> list[_Line]:
    spreads = [statistics.phases.get(name) for name in phases]
    medians = tuple(format_ms_readably(s.p50 if s else None, digits=digits) for s in spreads)
    lines = [_Line(arm_name(statistics.arm), str(statistics.n), medians, STRONG)]
    if statistics.n > 1:
        lines.append(_Line("", "", tuple(_range(s, digits) for s in spreads), MUTED))
    for label, field, _ in _QUANTILES:
        values = [getattr(s, field) if s else None for s in spreads]
        if any(value is not None for value in values):
            lines.append(_Line(f"  {label}", "", tuple(format_ms_readably(value, digits=digits) for value in values)))
    return lines


def _digits(arms: Sequence[Statistics]) -> int:
    """One number of decimals for the whole table, so that columns can be compared."""
    totals = [s.phases["total"].p50 or 0 for s in arms if "total" in s.phases]
    return digits_for(max(totals, default=0))


def _range(spread: Distribution | None, digits: int) -> str:
    if spread is None or spread.min is None or spread.max is None:
        return "–"
    coarse = 0 if spread.max >= 10_000_000 else digits
    low, high = format_ms_readably(spread.min, digits=coarse), format_ms_readably(spread.max, digits=coarse)
    return low if low == high else f"{low}–{high}"


def _comparison_lines(comparisons: Sequence[Comparison], phases: Sequence[str]) -> Iterator[_Line]:
    """One line for each pair of arms, under the phases' columns."""
    pairs = dict.fromkeys((c.arm_a, c.arm_b) for c in comparisons)
    for arm_a, arm_b in pairs:
        by_phase = {c.quantity: c for c in comparisons if (c.arm_a, c.arm_b) == (arm_a, arm_b)}
        cells = tuple(_signed(by_phase[name].estimate_ns if name in by_phase else None) for name in phases)
        yield _Line(_difference_of(arm_a, arm_b), "", cells)


_SHORT = 12


def _difference_of(arm_a: str, arm_b: str) -> str:
    """``h2 − h1``; of long names the beginnings, or where these are alike (two hosts, say) the ends."""
    short_a, short_b = one_line(arm_a, most=_SHORT), one_line(arm_b, most=_SHORT)
    if short_a == short_b:
        short_a, short_b = (f"…{one_line(arm[1 - _SHORT :], most=_SHORT)}" for arm in (arm_a, arm_b))
    return f"{short_b} − {short_a}"


def _signed(duration_ns: int | None) -> str:
    return "" if duration_ns is None else f"{duration_ns / 1e6:+.1f}".replace("-", "−")


def _table(page: Page, phases: Sequence[str], lines: Sequence[_Line]) -> None:
    """The table, folded into several below each other where the terminal is too narrow for all columns."""
    name_width = max(cell_len(line.name) for line in lines)
    n_width = max(3, *(len(line.n) for line in lines))
    widths = [
        max(cell_len(_TITLES.get(phase, phase)), *(cell_len(line.cells[i]) for line in lines)) + 2
        for i, phase in enumerate(phases)
    ]
    fits = name_width + n_width + 2 + sum(widths) + cell_len(_UNIT) <= page.width
    for number, columns in enumerate(_folds(widths, page.width - name_width - n_width - 2)):
        titles = "".join(column(_TITLES.get(phases[i], phases[i]), widths[i], right=True) for i in columns)
        heading = column("", name_width) + column("n" if number == 0 else "", n_width + 2, right=True) + titles
        page.line(heading, (_UNIT if number == 0 and fits else "", MUTED))
        for line in lines:
            cells = "".join(column(line.cells[i], widths[i], right=True) for i in columns)
            n = line.n if number == 0 else ""
            pieces: list[Piece] = [(column(line.name, name_width), STRONG if line.style == STRONG else "")]
            page.line(*pieces, column(n, n_width + 2, right=True), (cells, MUTED if line.style == MUTED else ""))
    if not fits:
        page.line((_UNIT.strip(), MUTED))


def _definitions(page: Page, phases: Sequence[str]) -> None:
    """From where the columns count that tools define in different ways (the lines under a stream count from its first octet sent)."""
    firsts = [title for name, title in _FIRSTS.items() if name in phases]
    if firsts:
        page.wrapped(0, (f"{', '.join(firsts)}: from the beginning of the request, set-up and queue included", MUTED))
    if "call" in phases:
        token = " (call 1st: to its first token)" if "call_first_token" in phases else ""
        page.wrapped(
            0, (f"call: all attempts and the pauses between{token}; the rest: the attempt that answered", MUTED)
        )


def _folds(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    fold: list[int] = []
    for index, width in enumerate(widths):
        if fold and sum(widths[i] for i in fold) + width > room:
            yield fold
            fold = []
        fold.append(index)
    if fold:
        yield fold


def _verdicts(page: Page, comparisons: Sequence[Comparison]) -> None:
    for c in comparisons:
        if not (c.primary or c.quantity in ("total", "call", "batch")):
            continue
        interval = f" [{_signed(c.lo_ns)}, {_signed(c.hi_ns)}]" if c.lo_ns is not None and c.hi_ns is not None else ""
        needed = c.pairs_needed if c.verdict == "cannot-tell" else None
        more = f"; about {needed} more pair{'s' if needed > 1 else ''} would tell" if needed else ""
        predicted = f"; predicted {_signed(c.predicted_ns)}" if c.predicted_ns is not None else ""
        verdict = VERDICTS.get(c.verdict, c.verdict)
        text = f"{one_line(c.quantity, most=30)}: {arm_name(c.arm_b)} against {arm_name(c.arm_a)} {_signed(c.estimate_ns)}{interval} ms,"
        page.wrapped(
            0,
            text,
            (verdict, STRONG),
            (f"(margin ± {format_ms_readably(c.margin_ns, digits=0)} ms, {c.pairs} pairs{more}{predicted})", MUTED),
        )


def _failures_compared(page: Page, told: Sequence[Throughput | None], names: Sequence[str]) -> None:
    """Whether one arm fails more often than the first, where any failed: medians are of those that succeeded."""
    arms = [(name, t) for name, t in zip(names, told, strict=True) if t is not None]
    if len(arms) < 2 or not any(t.failed for _, t in arms):
        return
    from netdiag.stats.proportion import newcombe  # scipy: only where something failed

    (first, base), *others = arms
    for name, other in others:
        lo, hi = newcombe(base.failed, base.requests, other.failed, other.requests)
        verdict = "more often" if lo > 0 else "less often" if hi < 0 else "cannot tell"
        text = f"failures: {arm_name(name)} {other.failed} of {other.requests}, {arm_name(first)} {base.failed} of {base.requests},"
        share = f"{lo * 100:+.0f} to {hi * 100:+.0f} %".replace("-", "−")
        page.wrapped(0, text, (verdict, STRONG), (f"(95 % of the difference: {share})", MUTED))


def _heading(statistics: Statistics) -> str:
    """The arm; an arm of requests that nobody could read may be one of connections on which none was ever made."""
    never_asked = statistics.arm == UNREAD_ARM and not statistics.n and _BEFORE_REQUESTS.issuperset(statistics.outcomes)
    return "no request" if never_asked else arm_name(statistics.arm)


def _outcomes(page: Page, statistics: Statistics) -> None:
    bad = {name: count for name, count in statistics.outcomes.items() if name not in ("ok", _UNREAD, _GIVEN_UP)}
    unread, heading = statistics.outcomes.get(_UNREAD, 0), _heading(statistics)
    if unread:
        page.wrapped(0, (f"{heading}: the status of {unread:,} cannot be read", MUTED))
    if bad:
        listed = ", ".join(_failures(statistics, name, count) for name, count in bad.items())
        ok = statistics.outcomes.get("ok", 0)
        known = f"{ok:,} ok, " if ok or not unread else ""  # where no status can be read, none is known to be ok
        page.wrapped(0, (f"{heading}: {known}{listed}", BAD))
    if statistics.throughput is not None and _tells(statistics.throughput, statistics.arm):
        page.wrapped(0, f"{heading}: {_throughput(statistics.throughput)}")
    # Failures are counted above, first rounds and redirects below; what else is left out although it succeeded needs its reason.
    explained = {*bad, _GIVEN_UP, FIRST_ROUND.partition(" ")[0], "redirect"}
    unexplained = [e for e in statistics.excluded if e.reason.partition(" ")[0] not in explained]
    if unexplained:
        reasons = "; ".join(f"#{e.exchange_id} {one_line(e.reason, most=60)}" for e in unexplained[:5])
        more = f"; and {len(unexplained) - 5} more" if len(unexplained) > 5 else ""
        page.wrapped(0, (f"{heading}: {len(unexplained)} not counted: {reasons}{more}", MUTED))


def _failures(statistics: Statistics, name: str, count: int) -> str:
    """``2 HTTP error (429)``: the statuses of those that are counted, where they say anything about the failure."""
    told = (e.reason.partition(" ") for e in statistics.excluded)
    statuses = sorted({status for outcome, _, status in told if outcome == name and status[:1] > "3"})
    named = f" ({', '.join(statuses[:5])})" if statuses else ""
    return f"{count:,} {outcome_words(one_line(name, most=30))}{named}"


def _first_rounds(page: Page, arms: Sequence[Statistics]) -> None:
    """Once for all arms."""
    rows = sorted(e.exchange_id for s in arms for e in s.excluded if e.reason == FIRST_ROUND)
    if rows:
        more = f" and {len(rows) - 10} more" if len(rows) > 10 else ""
        page.wrapped(0, (f"first round, not counted: {' '.join(f'#{row}' for row in rows[:10])}{more}", MUTED))


def _tells(t: Throughput, arm: str) -> bool:
    """Whether rates say more than the table: something failed, calls ran at once, or there are enough to bound the share of failures."""
    return t.requests > 1 and (t.failed > 0 or t.requests >= _ENOUGH_FOR_SHARES or _AT_ONCE.search(arm) is not None)


def _throughput(t: Throughput) -> str:
    """``3.8 requests/s, 10.3 kB/s while in flight; 0 of 3 failed (95 %: at most 71 %)``."""
    parts = [f"{t.requests_per_s:.3g} requests/s" if t.requests_per_s is not None else ""]
    parts.append(f"{format_bytes(round(t.bytes_per_s))}/s" if t.bytes_per_s is not None else "")
    rates = ", ".join(part for part in parts if part) if t.failed < t.requests else ""
    lo, hi = t.failed_share_lo * 100, t.failed_share_hi * 100
    interval = f"at most {hi:.3g} %" if t.failed == 0 else f"{lo:.2g} to {hi:.3g} %"
    return f"{rates}{' while in flight; ' if rates else ''}{t.failed} of {t.requests} failed (95 %: {interval})"


def _withheld_quantiles(page: Page, arms: Sequence[Statistics]) -> None:
    shown = {
        field
        for s in arms
        for spread in s.phases.values()
        for _, field, _ in _QUANTILES
        if getattr(spread, field) is not None
    }
    withheld = [f"{label} {NEEDED[q]}" for label, field, q in _QUANTILES if field not in shown and field != "p90"]
    if withheld and max(s.n for s in arms) > 1:
        listed = ", ".join(withheld).replace(" ", " needs ", 1).replace(",", " trials,", 1)
        page.line((f"{listed}{' trials' if len(withheld) == 1 else ''}: not shown", MUTED))
