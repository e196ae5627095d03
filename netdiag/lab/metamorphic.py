"""Changes of a built capture that must change no phase: other times, other addresses, other segments, other company, another file."""

from __future__ import annotations

import io
import ipaddress
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from netdiag.lab.builder.build import Built, build
from netdiag.lab.builder.capture import Frame, frames_at_tap, write_capture
from netdiag.lab.builder.derive import truth_of
from netdiag.lab.builder.dns_client import answer_addresses
from netdiag.lab.builder.segment import Datagram, Segment, parse
from netdiag.lab.builder.tls_session import KeyLog
from netdiag.lab.host_settings import CaptureSettings
from netdiag.lab.name_server import Query
from netdiag.lab.scenario import Scenario, bundled, varied
from netdiag.lab.score import Analyse
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.wire.tcp_flags import FIN, PSH

_V4_SUBNET, _V6_SUBNET = bytes.fromhex("c6336400"), bytes.fromhex("20010db8000300000000000000000000")
_OTHER_TYPE = {1: 28, 28: 1}
"""A and AAAA."""
_GUEST_LATER_NS = 3_000_777
_SHIFT_NS = 86_400_000_000_000 + 123_456_789


@dataclass(frozen=True, slots=True)
class Change:
    """One phase that a change of the capture moved."""

    metamorphosis: str
    exchange: int
    phase: str
    before_ns: int | None
    after_ns: int | None


Files = list[tuple[list[Frame], KeyLog]]
Metamorphosis = Callable[[list[Frame], KeyLog, random.Random], Files]


def _times_shifted(frames: list[Frame], keylog: KeyLog, _: random.Random) -> Files:
    return [([replace(f, at=f.at + _SHIFT_NS) for f in frames], keylog)]


def _ports_renumbered(frames: list[Frame], keylog: KeyLog, rng: random.Random) -> Files:
    ports: dict[int, int] = {}

    def other(port: int) -> int:
        return ports.setdefault(port, rng.randrange(20_000, 30_000)) if port >= 50_000 else port

    def change(frame: Frame) -> Frame:
        item = parse(frame.data)
        assert item is not None
        moved = replace(item, source_port=other(item.source_port), destination_port=other(item.destination_port))
        return replace(frame, data=moved.frame())

    return [([change(f) for f in frames], keylog)]


def _as_ipv6(frames: list[Frame], keylog: KeyLog, _: random.Random) -> Files:
    """Every IPv4 address becomes an IPv6 one; the other way round for frames that are IPv6 already."""

    def other(address: bytes) -> bytes:
        return _V6_SUBNET[:12] + address if len(address) == 4 else _V4_SUBNET[:3] + address[-1:]

    def change(frame: Frame) -> Frame:
        item = parse(frame.data)
        assert item is not None
        moved = replace(item, source=other(item.source), destination=other(item.destination))
        if isinstance(moved, Datagram):
            moved = replace(moved, payload=_translated(moved.payload, other))
        return replace(frame, data=moved.frame())

    return [([change(f) for f in frames], keylog)]


def _translated(message: bytes, other: Callable[[bytes], bytes]) -> bytes:
    """A DNS message that asks for, and gives, the other kind of address."""
    query = Query.parse(message[:2] + bytes([message[2] & 0x7F]) + message[3:])
    if query is None or query.type not in _OTHER_TYPE:
        return message
    kind = struct.pack("!H", _OTHER_TYPE[query.type])
    records = b""
    for address in answer_addresses(message, query.type):
        data = other(ipaddress.ip_address(address).packed)
        records += b"\xc0\x0c" + kind + struct.pack("!HIH", 1, 60, len(data)) + data
    return message[:12] + query.question[:-4] + kind + query.question[-2:] + records


def _resegmented(frames: list[Frame], keylog: KeyLog, rng: random.Random) -> Files:
    """Each data segment in two, at the same instant."""
    out: list[Frame] = []
    for frame in frames:
        item = parse(frame.data)
        if not isinstance(item, Segment) or len(item.payload) < 2:
            out.append(frame)
            continue
        cut = rng.randrange(1, len(item.payload))
        first = replace(item, payload=item.payload[:cut], flags=item.flags & ~(PSH | FIN))
        second = replace(item, payload=item.payload[cut:], seq=(item.seq + cut) & 0xFFFFFFFF)
        out += [replace(frame, data=first.frame()), replace(frame, data=second.frame())]
    return [(out, keylog)]


def _with_company(frames: list[Frame], keylog: KeyLog, _: random.Random) -> Files:
    """Another conversation, of other hosts with other keys, in the same file."""
    guest = build(
        varied(
            bundled("several-streams"), {"seed": 4711, "hosts.client": "198.51.100.7", "hosts.server": "198.51.100.9"}
        )
    )
    others = [replace(f, at=f.at + _GUEST_LATER_NS) for f in frames_at_tap(guest.sightings, CaptureSettings())]
    mixed = sorted([*frames, *others], key=lambda frame: frame.at)
    return [(mixed, KeyLog([*keylog.lines, *guest.keylog.lines]))]


def _cut_in_two(frames: list[Frame], keylog: KeyLog, _: random.Random) -> Files:
    """Two files, cut where the last open connection has ended and another is still to come; one file where there is no such place."""
    connections = [_connection(frame) for frame in frames]
    last = {key: place for place, key in enumerate(connections) if key is not None}
    open_until = -1
    for place, key in enumerate(connections):
        if key is not None:
            open_until = max(open_until, last[key])
        if key is not None and place == open_until and any(connections[place + 1 :]):
            return [(frames[: place + 1], keylog), (frames[place + 1 :], keylog)]
    return [(frames, keylog)]


def _connection(frame: Frame) -> frozenset[tuple[bytes, int]] | None:
    item = parse(frame.data)
    if not isinstance(item, Segment):
        return None
    return frozenset(((item.source, item.source_port), (item.destination, item.destination_port)))


METAMORPHOSES: dict[str, Metamorphosis] = {
    "times-shifted": _times_shifted,
    "ports-renumbered": _ports_renumbered,
    "other-ip-version": _as_ipv6,
    "resegmented": _resegmented,
    "with-company": _with_company,
    "cut-in-two": _cut_in_two,
}


def changes(scenario: Scenario, analyse: Analyse, *, seed: int = 1) -> Iterator[Change]:
    """Apply every metamorphosis to a scenario's capture; yields each phase that moved (there should be none)."""
    built = build(scenario)
    frames = [f for f in frames_at_tap(built.sightings, scenario.capture) if f.number is not None]
    starts = [e.started_at for e in truth_of(built, frames).exchanges]
    before = _durations([analyse(_file(frames, built.keylog, built))], starts, 0)
    for name, metamorphosis in METAMORPHOSES.items():
        files = metamorphosis(frames, built.keylog, random.Random(f"{name}/{seed}"))
        analyses = [analyse(_file(part, keylog, built)) for part, keylog in files if part]
        after = _durations(analyses, starts, _SHIFT_NS if name == "times-shifted" else 0)
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            moved = [phase for phase in dict.fromkeys((*old, *new)) if old.get(phase) != new.get(phase)]
            yield from (Change(name, index, phase, old.get(phase), new.get(phase)) for phase in moved)


def _file(frames: list[Frame], keylog: KeyLog, built: Built) -> io.BytesIO:
    file = io.BytesIO()
    numbered = [replace(frame, number=number) for number, frame in enumerate(frames, 1)]
    write_capture(file, numbered, replace(built.scenario.capture, comments=False), keylog, {})
    file.seek(0)
    return file


def _durations(analyses: list[Analysis], starts: list[int | None], shift_ns: int) -> list[dict[str, int]]:
    """Phases of the exchanges that begin at the given instants; an exchange that is not there has none."""
    by_start: dict[int, list[Exchange]] = {}
    for analysis in analyses:
        for exchange in analysis.exchanges:
            by_start.setdefault(exchange.started_at - shift_ns, []).append(exchange)
    out: list[dict[str, int]] = []
    for start in starts:
        same = by_start.get(start or 0, [])
        found = same.pop(0) if same else None
        phases: dict[str, int] = {}
        for phase in found.phases if found is not None else ():
            phases[str(phase.name)] = phases.get(str(phase.name), 0) + phase.duration_ns
        out.append(phases)
    return out
