"""All public captures: connections, handshakes, octets, first and last payload, retransmissions and windows, stream by stream, as tshark says.

A difference is in ``tcp_differences.toml`` with its reason, or a failure; so is a row there that is no difference any more.
"""

from __future__ import annotations

import functools
import ipaddress
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netdiag.capture.source import open_capture
from netdiag.records.connection import Connection, Side
from netdiag.wire.acks import keep_alives
from netdiag.wire.decode import decode
from netdiag.wire.tables import Packets, SegmentKind
from netdiag.wire.transmissions import transmissions
from tests.support.conversation import Wire
from tests.support.packets import SYN
from tests.support.tools import needs_public_captures, public_captures, public_truth

DIFFERENCES = Path(__file__).with_name("tcp_differences.toml")
CAPTURES = public_truth()
LEAST_AGREEMENT = 0.995
"""Of the rows of any one field; named differences count as neither."""
LEAST_WITH_NAMED = 0.99
"""The same with named differences counted as disagreement: their table must not swallow a field."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One disagreement."""

    capture: str
    stream: int
    field: str
    tshark: Any
    netdiag: Any


def decoded(path: Path) -> Wire | None:
    """The tables of one capture file; None when it has no TCP packets."""
    with open_capture(path) as capture:
        parts = [decode(window).packets for window in capture.windows()]
        parts = [part for part in parts if len(part)]
        if not parts:
            return None
        return Wire(Packets.concat(parts), bytes(capture.buffer))


def ours(wire: Wire, i: int, start_ns: int) -> Fields:
    """One connection in the fields of the truth."""
    record = wire.connection(i)
    ends = [f"{e.address} {e.port}" for e in (record.client, record.server)]
    found = _sides(record) | {
        "endpoints": sorted(ends),
        "frames": record.sides.client.packets + record.sides.server.packets,
        "first time": _seconds(record.first_at, start_ns),
        "from before the edge": _from_before_the_edge(wire, i),
    }
    if record.client_known_by == "syn":
        found["client"] = ends[0]
    for name in ("syn", "syn_ack", "ack"):
        found[f"{name} frame"] = getattr(record, f"{name}_packet")
        found[f"{name} time"] = _seconds(getattr(record, f"{name}_at"), start_ns)
    return found


def _sides(record: Connection) -> Fields:
    sides: tuple[Side, Side] = (record.sides.client, record.sides.server)
    found: Fields = {
        "duplicate ACKs": sum(s.duplicate_acks for s in sides),
        "zero windows": sum(s.zero_windows for s in sides),
        "keep-alives": sum(s.keep_alives for s in sides),
    }
    for name, side in zip(("client", "server"), sides, strict=True):
        found[f"{name} octets"] = side.payload_bytes
        found[f"{name} first payload frame"] = side.first_payload_packet
        found[f"{name} last payload frame"] = side.last_payload_packet
        found[f"{name} fin frame"] = side.fin_packet
        found[f"{name} rst frame"] = side.rst_packet
    return found


def _from_before_the_edge(wire: Wire, i: int) -> int:
    """What tshark calls retransmission or out of order: any kind of either, and captured copies of packets with data, SYN or FIN."""
    flows, record = wire.flows, wire.connection(i)
    resent, copies = transmissions(flows).resent, transmissions(flows).copies
    kinds = resent.kinds[(flows.connection[resent.rows] == i) & ~copies[resent.rows]]
    count = np.count_nonzero((kinds != SegmentKind.NEW) & (kinds != SegmentKind.KEEP_ALIVE))
    loaded = (flows.sequence.occupies | ((flows.packets.flags & SYN) != 0)) & ~keep_alives(flows)
    syns = np.count_nonzero(((flows.packets.flags & SYN) != 0) & (flows.connection == i) & ~copies)
    first = (record.syn_packet is not None) + (record.syn_ack_packet is not None)
    return int(count + np.count_nonzero(copies & loaded & (flows.connection == i)) + max(0, syns - first))


def theirs(stream: Fields) -> Fields:
    """One stream of the truth."""
    counts = stream["counts"]
    found: Fields = {
        "endpoints": sorted(
            f"{ipaddress.ip_address(e[0]).compressed} {e[1]}" for e in (stream["client"], stream["server"])
        ),
        "frames": stream["frames"],
        "first time": _nanoseconds(stream["first_t"]),
        "from before the edge": counts.get("retransmission", 0) + counts.get("out_of_order", 0),
        "duplicate ACKs": counts.get("duplicate_ack", 0),
        "zero windows": counts.get("zero_window", 0),
        "keep-alives": counts.get("keep_alive", 0),
        "client octets": stream["client_bytes"],
        "server octets": stream["server_bytes"],
    }
    if stream["client_by"] == "syn":
        found["client"] = f"{ipaddress.ip_address(stream['client'][0]).compressed} {stream['client'][1]}"
    for name in ("syn", "syn_ack", "ack"):
        if name in stream:
            found[f"{name} frame"] = stream[name]["frame"]
            found[f"{name} time"] = _nanoseconds(stream[name]["t"])
    for name, key in (("first payload", "first_byte"), ("last payload", "last_byte"), ("fin", "fin"), ("rst", "rst")):
        for side in ("client", "server"):
            if f"{side}_{key}" in stream:
                found[f"{side} {name} frame"] = stream[f"{side}_{key}"]["frame"]
    return found


def _nanoseconds(seconds: float) -> int:
    return int(Decimal(str(seconds)) * 10**9)


def _seconds(at: int | None, start_ns: int) -> int | None:
    return None if at is None else at - start_ns


def agree(field: str, one: Any, other: Any) -> bool:
    """Times to the microsecond (tshark's relative times are rounded)."""
    if field.endswith("time") and one is not None and other is not None:
        return abs(one - other) <= 1_000
    return bool(one == other)


@functools.cache
def known() -> dict[tuple[str, int | None], list[Fields]]:
    rows = tomllib.loads(DIFFERENCES.read_text())["tcp"]
    found: dict[tuple[str, int | None], list[Fields]] = defaultdict(list)
    for row in rows:
        streams = row.get("streams", [None])
        for stream in streams:
            found[row["capture"], stream].append(row)
    return found


def expected(difference: Difference) -> bool:
    rows = known()[difference.capture, difference.stream] + known()[difference.capture, None]
    return any("*" in row["fields"] or difference.field in row["fields"] for row in rows)


def compared(truth: Fields, wire: Wire | None) -> Iterator[tuple[str, Difference | None]]:
    """(field, difference or None) of every row of the truth."""
    by_pair: dict[tuple[str, ...], list[Fields]] = defaultdict(list)
    start_ns = _start(truth)
    for i in range(len(wire.table) if wire else 0):
        assert wire is not None
        one = ours(wire, i, start_ns)
        by_pair[tuple(one["endpoints"])].append(one)
    for stream in truth["streams"]:
        wanted = theirs(stream)
        rest = by_pair[tuple(wanted["endpoints"])]
        if not rest:
            yield "stream", Difference(truth["path"], stream["stream"], "stream", "there", "missing")
            continue
        found = rest.pop(0)
        yield "stream", None
        for field, value in wanted.items():
            same = agree(field, value, found.get(field))
            yield field, None if same else Difference(truth["path"], stream["stream"], field, value, found.get(field))
    for rest in by_pair.values():
        for one in rest:
            yield "stream", Difference(truth["path"], -1, "stream", "missing", one["endpoints"])


def _start(truth: Fields) -> int:
    try:
        return int(Decimal(truth["t0"]) * 10**9)
    except (ArithmeticError, TypeError):
        return 0


@functools.cache
def differences(path: str) -> tuple[tuple[str, Difference | None], ...]:
    folder = public_captures()
    assert folder is not None
    truth = next(row for row in CAPTURES if row["path"] == path)
    return tuple(compared(truth, decoded(folder / path)))


@needs_public_captures
@pytest.mark.parametrize("path", [row["path"] for row in CAPTURES])
def test_tcp_is_as_tshark_says_or_the_difference_is_named(path: str) -> None:
    unnamed = [d for _, d in differences(path) if d is not None and not expected(d)]
    assert not unnamed, "\n".join(
        f"stream {d.stream} {d.field}: tshark {d.tshark}, netdiag {d.netdiag}" for d in unnamed[:30]
    )


@needs_public_captures
def test_every_named_difference_is_one() -> None:
    seen = {(d.capture, d.stream, d.field) for row in CAPTURES for _, d in differences(row["path"]) if d is not None}
    stale = [
        (capture, stream, row["fields"])
        for (capture, stream), rows in known().items()
        for row in rows
        if not any(
            c == capture and stream in (None, s) and ("*" in row["fields"] or f in row["fields"]) for c, s, f in seen
        )
    ]
    assert not stale


@needs_public_captures
def test_agreement_per_field(capsys: pytest.CaptureFixture[str]) -> None:
    total, same, named = Counter[str](), Counter[str](), Counter[str]()
    for row in CAPTURES:
        for field, difference in differences(row["path"]):
            total[field] += 1
            same[field] += difference is None
            named[field] += difference is not None and expected(difference)
    with capsys.disabled():
        for field in sorted(total):
            rate = same[field] / (total[field] - named[field])
            sys.stdout.write(
                f"  tcp {field:28s} {same[field]:5d} of {total[field]:5d}, {named[field]:3d} named: {rate:8.2%}"
                f" ({same[field] / total[field]:.2%} with them)\n"
            )
    for field in total:
        assert same[field] >= LEAST_AGREEMENT * (total[field] - named[field]), field
        assert same[field] >= LEAST_WITH_NAMED * total[field], field
