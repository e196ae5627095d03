"""Name resolutions of every public capture against what tshark said. Prints the agreement per field; differences are named below."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from netdiag.api import analyze
from netdiag.protocols.dns.numbers import RCODE_NAMES, type_name
from netdiag.records.dns import NameResolution
from tests.support.agreement import Field, check_agreement
from tests.support.public_captures import epoch_ns, folder, keylog_of
from tests.support.tools import needs_public_captures, public_truth

_CLOSE_NS = 1_000

Row = dict[str, Any]

KNOWN: dict[tuple[str, str], str] = {
    ("ntop+nDPI/fuzz-2006-06-26-2594.pcap", "*"): (
        "octets were changed at random: tshark pairs by id and ports alone and shows names that cannot be, netdiag pairs by the question too"
    ),
    ("ntop+nDPI/badpackets.pcap", "found"): "three first fragments that end inside the DNS header",
    ("ntop+nDPI/dns_fragmented.pcap", "*"): (
        "answers in IP fragments: netdiag reassembles them, tshark does where it knows both; a query is repeated at once on another path"
    ),
    ("ntop+nDPI/doq.pcapng", "found"): "DNS over QUIC: content of QUIC is not read",
    (
        "OISF+suricata-verify/dns-over-http2__dns_over_https.pcap",
        "found",
    ): "DNS over HTTP/2: shown as requests, not as resolutions",
    (
        "arkime+arkime/arkime_synthetic.pcap",
        "found",
    ): "a datagram to port 53 that holds twelve zero octets: no question, no answer",
    (
        "arkime+arkime/arkime_synthetic.pcap",
        "rcode",
    ): "BADVERS (16) is in the OPT record (RFC 6891 section 6.1.3); tshark gives the four bits of the header",
    ("chrissanders+packets/nowebaccess1.pcapng", "*"): (
        "one id asked of two resolvers from one port, again and again: tshark begins a new row in the middle, netdiag counts attempts per resolver"
    ),
    ("pocc+tshark.dev/randpkt_all.pcap", "found"): "random octets",
    (
        "seladb+PcapPlusPlus/dns_stack_overflow.pcap",
        "found",
    ): "the question's name is pointers without end: no message for netdiag",
    ("zeek+zeek/quic__vector-max-size-crash.pcap", "found"): "QUIC that tshark takes for DNS",
    (
        "zeek+zeek/tunnels__gre-sample.pcap",
        "*",
    ): "a repeated query (frames 33 and 35) is one resolution with two attempts",
}
"""(capture, field or * for all) -> why netdiag says something else than tshark."""


def _fields(ours: NameResolution, row: Row, t0: int) -> Iterator[tuple[str, Any, Any]]:
    yield "query frame", ours.query_packet, row["query_frame"]
    yield "response frame", ours.response_packet, row["response_frame"]
    yield "rcode", ours.rcode, None if row["rcode"] is None else RCODE_NAMES.get(row["rcode"], f"RCODE{row['rcode']}")
    yield "attempts", ours.attempts, 1 + len(row.get("repeats", []))
    if "query_t" in row:
        yield "query time", ours.query_at, t0 + round(row["query_t"] * 1e9)
    if "response_t" in row:
        yield "response time", ours.response_at, t0 + round(row["response_t"] * 1e9)
        yield "truncated", ours.truncated, row["truncated"]
    if row["dns_time"] is not None:
        yield "duration", ours.duration_ns, round(row["dns_time"] * 1e9)


def _agrees(found: Any, expected: Any, name: str) -> bool:
    if name in ("query time", "response time", "duration"):
        return found is not None and abs(found - expected) < _CLOSE_NS
    return bool(found == expected)


_NAMES = {None: "", "<Root>": "."}


def _match(rows: list[NameResolution], row: Row, used: set[int]) -> NameResolution | None:
    """The resolution with this question between these endpoints, by frame where there are several."""
    ends = tuple(row["client"]), tuple(row["server"])
    alike = [
        (i, r)
        for i, r in enumerate(rows)
        if i not in used
        and ((r.client.address, r.client.port), (r.resolver.address, r.resolver.port)) == ends
        and r.name.lower() == _NAMES.get(row["name"], str(row["name"]).lower())
        and (row["rtype"] is None or r.type == type_name(row["rtype"]))
    ]
    exact = [
        (i, r) for i, r in alike if (r.query_packet, r.response_packet) == (row["query_frame"], row["response_frame"])
    ]
    for i, r in exact or alike:
        used.add(i)
        return r
    return None


@pytest.fixture(scope="module")
def agreement() -> dict[str, Field]:
    fields: dict[str, Field] = defaultdict(Field)
    for truth in public_truth():
        if not truth["dns"]:
            continue
        path = truth["path"]
        rows = list(analyze(folder() / path, keylog=keylog_of(path)).resolutions)
        used: set[int] = set()
        for row in truth["dns"]:
            ours = _match(rows, row, used)
            compared = [("found", ours is not None, True)]
            if ours is not None:
                compared += _fields(ours, row, epoch_ns(truth))
            for name, found, expected in compared:
                if _agrees(found, expected, name):
                    fields[name].same += 1
                elif {(path, name), (path, "*")} & KNOWN.keys():
                    fields[name].named += 1
                else:
                    fields[name].different.append(
                        f"{path} {row['name']} {row['rtype']} id {row['id']} {row['transport']} {row['client']} {row['server']}: {found!r}, tshark {expected!r}"
                    )
    return fields


@needs_public_captures
def test_agreement_per_field(agreement: dict[str, Field], capsys: pytest.CaptureFixture[str]) -> None:
    check_agreement("dns", agreement, capsys)
    assert agreement["found"].same > 550
