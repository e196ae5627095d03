"""Two witnesses side by side. Each difference comes with the reason, where the kind of difference is a known one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from netdiag.protocols.redact import MARKER
from netdiag.records.verification import Difference, Verification
from netdiag.verify.facts import CaptureFacts, ConnectionFacts, Pair

_TIME_SLACK_NS = 1_000
"""Half of the witnesses' files carry microseconds."""


@dataclass(slots=True)
class _Sheet:
    """The comparison while it is made."""

    agreed: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    malformed: set[int] = field(default_factory=set)
    """Frames that the witness calls malformed."""


_HANDSHAKE = ("syn_packet", "syn_ack_packet", "ack_packet")
_HELLOS = ("client_hello_packet", "server_hello_packet", "sni", "alpn_offered", "tls_version")


def verify(ours: CaptureFacts, theirs: CaptureFacts, *, witness: str) -> Verification:
    """Compare field by field; connections are paired by their endpoints, in order. ``witness`` is the other's name."""
    result = _Sheet(malformed=theirs.malformed)
    beyond = _damage(ours, theirs)
    _note(result, "packets", "the file", ours.packets, theirs.packets, beyond)
    mine, other = _by_pair(ours), _by_pair(theirs)
    reasons = {pair: beyond or _only_here(mine[pair], other[pair]) for pair in sorted({*mine, *other})}
    unequal = [reasons[pair] for pair in reasons if len(mine[pair]) != len(other[pair])]
    why = None if None in unequal else next(iter(unequal), None)
    _note(result, "connections", "the file", len(ours.connections), len(theirs.connections), beyond or why)
    for pair, reason in reasons.items():
        where = " – ".join(pair)
        _note(result, "incarnations", where, len(mine[pair]), len(other[pair]), reason)
        for a, b in zip(mine[pair], other[pair], strict=False):
            _connection(result, where, a, b)
    _dns(result, ours, theirs)
    return Verification(witness=witness, agreed=dict(result.agreed), differences=tuple(result.differences))


def _by_pair(facts: CaptureFacts) -> defaultdict[Pair, list[ConnectionFacts]]:
    pairs: defaultdict[Pair, list[ConnectionFacts]] = defaultdict(list)
    for connection in facts.connections:
        pairs[connection.pair].append(connection)
    return pairs


def _connection(result: _Sheet, where: str, a: ConnectionFacts, b: ConnectionFacts) -> None:
    for name in _HANDSHAKE:
        if getattr(b, name) is not None:
            _note(result, name, where, getattr(a, name), getattr(b, name), _handshake_reason(name, a))
    if a.syn_at is not None and b.syn_at is not None:
        near = abs(a.syn_at - b.syn_at) <= _TIME_SLACK_NS
        _note(result, "syn_at", where, a.syn_at, a.syn_at if near else b.syn_at, _time_reason(a.syn_at, b.syn_at))
    if b.client_hello_packet or b.server_hello_packet:
        for name in _HELLOS:
            if getattr(b, name) is not None:
                reason = _hello_reason(name, a, b, result)
                _note(result, name, where, _plain(getattr(a, name)), _plain(getattr(b, name)), reason)
    for name, reason_of in (("requests", _request_reason), ("statuses", _status_reason)):
        for key, mine, other in _counts(getattr(a, name), getattr(b, name)):
            label = " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            _note(result, name, f"{where} {label}", mine, other, reason_of(a, b))


def _dns(result: _Sheet, ours: CaptureFacts, theirs: CaptureFacts) -> None:
    for (name, frame), mine, other in _counts(ours.names, theirs.names):
        if other:
            reason = _MALFORMED if frame in result.malformed else _REPEATED if frame in theirs.repeated else None
            if not _ORDINARY_NAME.fullmatch(name):
                reason = "a damaged or empty question, or octets in it that netdiag escapes (RFC 4343)"
            _note(result, "dns", f"frame {frame} {name}", mine, other, reason)


def _counts(a: Counter[Any], b: Counter[Any]) -> Iterator[tuple[Any, int, int]]:
    for key in sorted({*a, *b}, key=str):
        yield key, a[key], b[key]


def _note(result: _Sheet, name: str, where: str, mine: Any, other: Any, reason: str | None) -> None:
    if mine == other:
        result.agreed[name] += 1
    else:
        result.differences.append(
            Difference(field=name, where=where, netdiag=str(mine), witness=str(other), reason=reason)
        )


def _plain(value: Any) -> Any:
    return tuple(sorted(value)) if isinstance(value, tuple) else value


# --- known kinds of difference -----------------------------------------------------------------------------------------


_MALFORMED = "tshark itself calls the packet malformed"
_REPEATED = "an answer that tshark itself calls a repetition: the name was resolved by the first"
_ORDINARY_NAME = re.compile(r"[a-z0-9._-]+")


def _damage(ours: CaptureFacts, theirs: CaptureFacts) -> str | None:
    if ours.packets > theirs.packets:
        return "netdiag goes on after damage where tshark stops"
    return "the file is damaged, and each reads it in its own way" if ours.damaged else None


def _only_here(mine: list[ConnectionFacts], other: list[ConnectionFacts]) -> str | None:
    if mine and not other and all(one.jumbo for one in mine):
        return "a packet above 64 KiB: tshark before 4.4 does not take IP length 0 for one"
    again = sum(one.closed and following.syn_packet is not None for one, following in pairwise(mine))
    if other and 0 < len(mine) - len(other) <= again:
        return "a SYN with the number of one before it, whose connection was closed: the same connection for tshark"
    return None


def _time_reason(mine: int, other: int) -> str | None:
    if (mine - other) % (1 << 32) == 0:
        return "a fraction of several seconds: tshark reckons it in 32 bits"
    return None


def _handshake_reason(name: str, a: ConnectionFacts) -> str | None:
    if name == "ack_packet" and a.ack_packet is None:
        return "the client's first ACK does not acknowledge the SYN-ACK, so it completes no handshake"
    if name == "syn_ack_packet" and a.syn_ack_packet is None:
        return "a SYN-ACK from the side that began, or one with RST or FIN, is no answer to a SYN"
    return None


def _hello_reason(name: str, a: ConnectionFacts, b: ConnectionFacts, result: _Sheet) -> str | None:
    if b.inside is not None and a.client_hello_packet is None and a.server_hello_packet is None:
        return f"TLS in packets of {b.inside}, which netdiag does not open"
    if name.endswith("_packet") and getattr(a, name) is not None and getattr(a, name) > getattr(b, name):
        return "octets before the hello's last were missing until netdiag's frame"
    if name.endswith("_packet") and _same_time(a, b, name.removesuffix("packet") + "at"):
        return "the packet was captured twice, and each names another copy"
    if name == "server_hello_packet" and a.server_hello_packet is None and b.tls_version is None:
        return "a ServerHello of no version of TLS"
    frame = b.client_hello_packet if name.startswith(("client", "sni", "alpn")) else b.server_hello_packet
    if getattr(a, name) is None and frame in result.malformed:
        return _MALFORMED
    return None


def _same_time(a: ConnectionFacts, b: ConnectionFacts, name: str) -> bool:
    mine, other = getattr(a, name), getattr(b, name)
    return mine is not None and other is not None and abs(mine - other) <= _TIME_SLACK_NS


def _request_reason(a: ConnectionFacts, b: ConnectionFacts) -> str | None:
    if any(MARKER in target for _, target in a.requests):
        return "netdiag replaces values of secret-looking query parameters"
    if any(" " in target for _, target in a.requests):
        return "a target with blanks in it: tshark ends it at the first"
    if any(target.startswith("HTTP/") for _, target in b.requests):
        return "a request line without a target: tshark takes the version for it"
    return _message_reason(a, sum(a.requests.values()), sum(b.requests.values()), set(a.requests) == set(b.requests))


def _status_reason(a: ConnectionFacts, b: ConnectionFacts) -> str | None:
    return _message_reason(a, sum(a.statuses.values()), sum(b.statuses.values()), set(a.statuses) == set(b.statuses))


_HTTP_PORTS = frozenset({"80", "443", "591", "3128", "3132", "5985", "8080", "8088", "11371"})
"""Where tshark takes any octets for HTTP."""


def _message_reason(a: ConnectionFacts, mine: int, other: int, same_kinds: bool) -> str | None:
    if mine and not other and _HTTP_PORTS.isdisjoint(end.rpartition(":")[2] for end in a.pair):
        return "tshark chooses the dissector by port, netdiag by content"
    if mine > other and a.tunnels:
        return "inside a tunnel on a stream of HTTP/2, where tshark does not look"
    if mine > other:
        return "tshark lists only what its reassembly completes; netdiag also lists what a gap or the capture's end cut"
    if mine < other and same_kinds:
        return "tshark lists a message again whose octets were captured twice or sent again"
    return None
