"""Public captures with keys, analysed without them: the grammar's error against what the keys show. Prints it for every capture."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

import netdiag
from netdiag.analysis.keyless.drafts import NOT_SEPARABLE
from netdiag.records.exchange import Exchange
from netdiag.records.timing import Method, Phase
from netdiag.units import NS_PER_MS
from tests.support.public_captures import folder, keylog_of
from tests.support.tools import needs_public_captures, public_truth

CASES = [t["path"] for t in public_truth() if t["keylog"] and t["keylog"] != "embedded"]
TOLERANCE_NS = 2_000_000
"""Records of one request leave back to back: within this the grammar may take one for another."""


def phase(exchange: Exchange, name: str) -> Phase | None:
    return next((p for p in exchange.phases if p.name == name), None)


@dataclass
class Compared:
    """One capture's requests, told with keys and without."""

    same: int = 0
    bounded: int = 0
    inseparable: int = 0
    wrong: list[str] = field(default_factory=list)


def by_connection(exchanges: list[Exchange]) -> dict[int | None, list[Exchange]]:
    rows: dict[int | None, list[Exchange]] = defaultdict(list)
    for exchange in exchanges:
        rows[exchange.connection_id].append(exchange)
    return rows


def compare(path: str) -> Compared:
    opened = netdiag.analyze(folder() / path, keylog=keylog_of(path))
    told = by_connection(list(netdiag.analyze(folder() / path).exchanges))
    result = Compared()
    for exchange in opened.exchanges:
        connection = opened.connections[exchange.connection_id or 0]
        wait = phase(exchange, "wait")
        if connection.tls is None or not connection.tls.decrypted or wait is None or exchange.pushed:
            continue
        _judge(exchange, wait, told[exchange.connection_id], result)
    return result


def _judge(exchange: Exchange, wait: Phase, told: list[Exchange], result: Compared) -> None:
    around = [e for e in told if e.started_at <= wait.started_at <= e.ended_at]
    exact = [w for e in around if (w := phase(e, "wait")) and abs(w.started_at - wait.started_at) <= TOLERANCE_NS]
    if not around:
        result.wrong.append(f"{exchange.method} {exchange.path}: no turn of records")
    elif not exact or around[0].outcome_detail == NOT_SEPARABLE:
        # A turn that holds several requests must say so.
        doubtful = any(w.method is Method.BOUNDED for e in around if (w := phase(e, "wait")))
        result.inseparable += 1
        if not doubtful:
            result.wrong.append(f"{exchange.method} {exchange.path}: taken for part of another request")
    elif abs(exact[0].duration_ns - wait.duration_ns) <= TOLERANCE_NS:
        result.same += 1
    elif exact[0].method is Method.BOUNDED and exact[0].lo_ns <= wait.duration_ns <= exact[0].hi_ns:
        result.bounded += 1
    else:
        error_ms = (exact[0].duration_ns - wait.duration_ns) / NS_PER_MS
        result.wrong.append(f"{exchange.method} {exchange.path}: {exact[0].method} {error_ms:+.1f} ms")


@needs_public_captures
@pytest.mark.parametrize("path", CASES)
def test_the_wait_without_keys_is_the_same_or_says_its_bounds(path: str) -> None:
    found = compare(path)
    sys.stdout.write(
        f"\n  {path}: {found.same} the same, {found.bounded} within bounds, {found.inseparable} not separable, {len(found.wrong)} wrong"
    )
    assert found.wrong == []


PHASES = ("tls", "send", "wait", "transfer")


CLOSE_NS = 2 * NS_PER_MS
"""A close_notify right before the client's own FIN cannot be told from records: so much later than its bound says such an answer may end."""


def lasts_until_the_close(exchange: Exchange) -> bool:
    """Only the close ends its answer (RFC 9112 section 6.3): without keys that looks like an answer that ended, and a close soon after."""
    fields = dict(exchange.response_headers)
    framed = "content-length" in fields or "transfer-encoding" in fields or exchange.status in (204, 304)
    return exchange.protocol != "h2" and not framed


@needs_public_captures
def test_the_error_of_every_phase_and_its_bounds() -> None:
    """Over all captures with keys, of every request that starts in a turn of records: error, and whether the stated bounds hold."""
    errors: dict[str, list[int]] = defaultdict(list)
    outside: dict[str, list[str]] = defaultdict(list)
    for path in CASES:
        opened = netdiag.analyze(folder() / path, keylog=keylog_of(path))
        told = by_connection(list(netdiag.analyze(folder() / path).exchanges))
        for exchange in opened.exchanges:
            twin = _twin(exchange, told[exchange.connection_id])
            for name in PHASES if twin is not None else ():
                keyed, guessed = phase(exchange, name), phase(twin, name)
                if keyed is None or guessed is None:
                    continue
                errors[name].append(abs(guessed.duration_ns - keyed.duration_ns))
                late_ns = CLOSE_NS if name == "transfer" and lasts_until_the_close(exchange) else 0
                if not guessed.lo_ns <= keyed.duration_ns <= guessed.hi_ns + late_ns:
                    outside[name].append(
                        f"{path} {exchange.path}: {keyed.duration_ns}, {guessed.lo_ns} to {guessed.hi_ns}"
                    )
    for name in PHASES:
        found = sorted(errors[name])
        same = sum(1 for error in found if error <= 1_000) / len(found)
        sys.stdout.write(
            f"\n  key-less {name}: {len(found)} phases, {same:.1%} the same, 95 % within {found[int(len(found) * 0.95)] / NS_PER_MS:.3f} ms, "
            f"largest error {found[-1] / NS_PER_MS:.1f} ms, bounds hold for {1 - len(outside[name]) / len(found):.1%}"
        )
        assert len(found) > 100
        assert len(outside[name]) <= 0.01 * len(found), outside[name]


def _twin(exchange: Exchange, told: list[Exchange]) -> Exchange | None:
    """The same request without keys; of those that begin together the first."""
    wait = phase(exchange, "wait")
    if wait is None or exchange.pushed:
        return None
    waits = ((e, phase(e, "wait")) for e in told)
    return next((e for e, w in waits if w and abs(w.started_at - wait.started_at) <= TOLERANCE_NS), None)


@needs_public_captures
@pytest.mark.parametrize("path", CASES)
def test_the_handshake_without_keys_ends_when_it_ends_with_them(path: str) -> None:
    opened, told = netdiag.analyze(folder() / path, keylog=keylog_of(path)), netdiag.analyze(folder() / path)
    for with_keys, without in zip(opened.connections, told.connections, strict=True):
        if (
            with_keys.tls is None
            or not with_keys.tls.decrypted
            or without.tls is None
            or without.tls.finished_at is None
        ):
            continue
        assert with_keys.tls.finished_at is not None
        assert abs(without.tls.finished_at - with_keys.tls.finished_at) <= 500_000, with_keys.id
