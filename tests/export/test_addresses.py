"""A race of addresses is told where there was one, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from netdiag.export.terminal.addresses import describe
from netdiag.export.text import report
from netdiag.records.analysis import Analysis
from netdiag.records.call import AddressAttempt, Call
from netdiag.units import NS_PER_MS
from tests.support.fabricated import analysis, exchange
from tests.support.turns import at


def attempt(address: str, start_ms: float, end_ms: float, outcome: str) -> AddressAttempt:
    return AddressAttempt(address=address, port=443, started_at=at(start_ms), ended_at=at(end_ms), outcome=outcome)


def raced(*attempts: AddressAttempt) -> Analysis:
    row = replace(exchange("tcp 20 | tls 20 | send 1 | wait 60 | transfer 1", at_ms=0), call_id=0, attempt=0)
    whole = analysis(row)
    started = whole.exchanges[0].started_at
    moved = tuple(
        replace(a, started_at=a.started_at - at(0) + started, ended_at=a.ended_at - at(0) + started) for a in attempts
    )
    call = Call(
        id=0, url="https://a/", attempts=(0,), backoff=(), total_ns=1, outcome="ok", policy="none", addresses=moved
    )
    return replace(whole, calls=(call,))


def shown(whole: Analysis) -> str:
    return " ".join("\n".join(line.plain for line in report(whole, width=120)).split())


def test_a_black_hole_is_named_with_its_cost() -> None:
    text = shown(raced(attempt("2001:db8::1", 0, 270, "abandoned"), attempt("192.0.2.1", 0.25, 20, "connected")))
    assert "addresses: 2001:db8::1 abandoned after 270.0 ms, 192.0.2.1 connected after 19.8 ms" in text
    assert "the winner started 250 µs late" in text


def test_a_single_address_is_no_race() -> None:
    assert "addresses:" not in shown(raced(attempt("192.0.2.1", 0, 20, "connected")))
    assert "addresses:" not in shown(raced())


@pytest.mark.parametrize("hostile", ["\x1b[31m", "\x9b2J", "\u202e"])
def test_nothing_of_it_reaches_the_terminal_raw(hostile: str) -> None:
    rows = [attempt("192.0.2.1" + hostile, 0, 1, hostile), attempt("192.0.2.2", 1, 2, "connected")] * 6
    assert hostile not in describe(rows)
    assert "and 4 more" in describe(rows)
    assert f"{1 * NS_PER_MS // NS_PER_MS}.0 ms late" in describe(rows)
