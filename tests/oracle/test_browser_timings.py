"""What Chrome itself measured for page loads, against the phases of the same requests on the wire.

The captures were taken outside a traffic shaper, so the browser sees 15–20 ms more per round trip, and more where its queue was full. A wire
phase may therefore never be longer than the browser's, and over all requests the difference is about one shaper's round trip.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from functools import lru_cache
from statistics import median
from typing import Any

import netdiag
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.units import NS_PER_MS
from tests.support.public_captures import epoch_ns, folder, keylog_of
from tests.support.tools import needs_public_captures, public_truth

NEAR_MS = (-5, 60)
"""A request is the browser's when it passes the capture point so long after the browser sent it."""
SHAPER_MS = (12, 24)
SLACK_MS = 2.0
ENDS = {
    "tcp": ("connect_start_t", "tls_start_t"),
    "tls": ("tls_start_t", "tls_end_t"),
    "wait": ("send_end_t", "headers_start_t"),
}


@lru_cache(maxsize=4)
def analysed(path: str) -> Analysis:
    return netdiag.analyze(folder() / path, keylog=keylog_of(path))


def timings() -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder() / "browser_timings.jsonl").read_text().splitlines()]
    return [row for row in rows if row["protocol"] in ("h2", "http/1.1")]


@lru_cache(maxsize=1)
def beginnings() -> dict[str, int]:
    """When each capture with timings begins."""
    wanted = {row["path"] for row in timings()}
    return {t["path"]: epoch_ns(t) for t in public_truth() if t["path"] in wanted}


def on_the_wire(row: dict[str, Any], t0: int) -> Exchange | None:
    """The exchange of this row; None when it is not in the capture (or its connection was opened for another request)."""
    _, _, host, path = row["url"].split("/", 3)
    for e in analysed(row["path"]).exchanges:
        sent = next((p.started_at for p in e.phases if p.name == "send"), e.started_at)
        lag_ms = (sent - t0) / NS_PER_MS - row["send_start_t"] * 1e3
        if (e.authority, e.path, e.method) == (host, "/" + path, row["method"]) and NEAR_MS[0] <= lag_ms <= NEAR_MS[1]:
            return e
    return None


def differences_ms() -> dict[str, list[float]]:
    """Browser minus wire by phase."""
    t0 = beginnings()
    found: dict[str, list[float]] = defaultdict(list)
    for row in timings():
        exchange = on_the_wire(row, t0[row["path"]])
        for phase in exchange.phases if exchange else ():
            name = str(phase.name)
            start, end = (row.get(key) for key in ENDS.get(name, ("", "")))
            if start is not None and end is not None and not (name != "wait" and row["reused"]):
                found[name].append((end - start) * 1e3 - phase.duration_ns / NS_PER_MS)
    return found


@needs_public_captures
def test_wire_phases_are_the_browsers_less_the_shaper() -> None:
    found = differences_ms()
    for name in ENDS:
        shown = f"{name}: n={len(found[name])}, median {median(found[name]):.1f} ms, {sorted(round(x, 1) for x in found[name])}"
        sys.stdout.write(f"\n  {shown}")
        assert len(found[name]) >= 5
        assert min(found[name]) >= -SLACK_MS, f"{name}: the wire cannot take longer than the browser saw"
        assert SHAPER_MS[0] <= median(found[name]) <= SHAPER_MS[1] + (10 if name == "wait" else 0)


@needs_public_captures
def test_lookups_of_the_browser_are_found() -> None:
    t0 = beginnings()
    asked = [
        row for row in timings() if not row["reused"] and (row["dns_end_t"] or 0) - (row["dns_start_t"] or 0) > 0.01
    ]
    matched = [(row, e) for row in asked if (e := on_the_wire(row, t0[row["path"]])) is not None]
    assert matched
    for row, exchange in matched:
        (dns,) = [p for p in exchange.phases if p.name == "dns"]
        browser_ms = (row["dns_end_t"] - row["dns_start_t"]) * 1e3
        assert 0 < dns.duration_ns / NS_PER_MS <= browser_ms + SLACK_MS
