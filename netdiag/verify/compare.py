"""Two witnesses side by side. Each difference comes with the reason, where the kind of difference is a known one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
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


_HANDSHAKE = ("syn_packet", "syn_ack_packet", "ack_packet")
_HELLOS = ("client_hello_packet", "server_hello_packet", "sni", "alpn_offered", "tls_version")


def verify(ours: CaptureFacts, theirs: CaptureFacts, *, witness: str) -> Verification:
    """Compare field by field; connections are paired by their endpoints, in order. ``witness`` is the other's name."""
    result = _Sheet()
    beyond = "netdiag goes on after damage where tshark stops" if ours.packets > theirs.packets else None
    _note(result, "packets", "the file", ours.packets, theirs.packets, beyond)
    _note(result, "connections", "the file", len(ours.connections), len(theirs.connections), beyond)
    mine, other = _by_pair(ours), _by_pair(theirs)
    for pair in sorted({*mine, *other}):
        where = " – ".join(pair)
        _note(result, "incarnations", where, len(mine[pair]), len(other[pair]), beyond)
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
        _note(result, "syn_at", where, a.syn_at, a.syn_at if near else b.syn_at, None)
    if b.client_hello_packet or b.server_hello_packet:
        for name in _HELLOS:
            if getattr(b, name) is not None:
                _note(
                    result, name, where, _plain(getattr(a, name)), _plain(getattr(b, name)), _hello_reason(name, a, b)
                )
    for name, reason in (("requests", _request_reason), ("statuses", _status_reason)):
        for key, mine, other in _counts(getattr(a, name), getattr(b, name)):
            label = " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
            _note(result, name, f"{where} {label}", mine, other, reason(a, b))


def _dns(result: _Sheet, ours: CaptureFacts, theirs: CaptureFacts) -> None:
    for (name, frame), mine, other in _counts(ours.names, theirs.names):
        if other:
            damaged = None if name.isascii() and name.isprintable() and name else "a damaged or empty question"
            _note(result, "dns", f"frame {frame} {name}", mine, other, damaged)


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


def _handshake_reason(name: str, a: ConnectionFacts) -> str | None:
    if name == "ack_packet" and a.ack_packet is None:
        return "the client's first ACK does not acknowledge the SYN-ACK, so it completes no handshake"
    return None


def _hello_reason(name: str, a: ConnectionFacts, b: ConnectionFacts) -> str | None:
    if name.endswith("_packet") and getattr(a, name) is not None and getattr(a, name) > getattr(b, name):
        return "octets before the hello's last were missing until netdiag's frame"
    return None


def _request_reason(a: ConnectionFacts, b: ConnectionFacts) -> str | None:
    if any(MARKER in target for _, target in a.requests):
        return "netdiag replaces values of secret-looking query parameters"
    return _message_reason(sum(a.requests.values()), sum(b.requests.values()), set(a.requests) == set(b.requests))


def _status_reason(a: ConnectionFacts, b: ConnectionFacts) -> str | None:
    return _message_reason(sum(a.statuses.values()), sum(b.statuses.values()), set(a.statuses) == set(b.statuses))


def _message_reason(mine: int, other: int, same_kinds: bool) -> str | None:
    if mine and not other:
        return "tshark chooses the dissector by port, netdiag by content"
    if mine > other:
        return "tshark lists only what its reassembly completes; netdiag also lists what a gap or the capture's end cut"
    if mine < other and same_kinds:
        return "tshark lists a message again whose octets were captured twice or sent again"
    return None
