"""One row per counted call, from an analysis or from the JSON document of one: what comparisons are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange
from netdiag.records.statistics import Statistics
from netdiag.stats.distribution import arm_of, durations_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call that counts."""

    arm: str
    trial: int | None
    """Number of the round in a probe; None in a file, where nothing pairs."""
    durations_ns: Mapping[str, int]
    """By quantity: phases, ``total``, first-times."""
    rtt_ns: int | None = None
    """Of its connection: the handshake's, or the smallest seen."""
    round_trips: int | None = None
    """That this call had to wait for in turn: TCP, TLS and the request itself; None when the TLS handshake was not captured."""


def samples_of(analysis: Analysis) -> list[Sample]:
    """The counted calls of an analysis."""
    return samples(analysis.exchanges, analysis.statistics, analysis.connections)


def samples(
    exchanges: Iterable[Exchange], statistics: Sequence[Statistics], connections: Sequence[Connection]
) -> list[Sample]:
    """The calls that ``statistics`` counts; with several attempts or calls in one trial of an arm, only the first is a neighbour of
    anything and the others are left out."""
    uncounted = {row.exchange_id for s in statistics for row in s.excluded}
    found: list[Sample] = []
    seen: set[tuple[str, int]] = set()
    for exchange in exchanges:
        arm, trial = arm_of(exchange), exchange.trial
        if exchange.id in uncounted or (trial is not None and (arm, trial) in seen):
            continue
        if trial is not None:
            seen.add((arm, trial))
        connection = None if exchange.connection_id is None or not connections else connections[exchange.connection_id]
        found.append(_sample(exchange, connection))
    return found


def _sample(exchange: Exchange, connection: Connection | None) -> Sample:
    rtt_ns = None if connection is None else connection.handshake_rtt_ns or connection.min_rtt_ns
    tls = None if connection is None or connection.tls is None else connection.tls.round_trips
    secure = connection is not None and connection.tls is not None
    return Sample(
        arm=arm_of(exchange),
        trial=exchange.trial,
        durations_ns=durations_ns(exchange),
        rtt_ns=rtt_ns,
        round_trips=_round_trips(reused=exchange.reused, secure=secure, tls=tls),
    )


def _round_trips(*, reused: bool, secure: bool, tls: int | None) -> int | None:
    if reused:
        return 1
    if not secure:
        return 2
    return None if tls is None else 2 + tls


def samples_of_document(document: Mapping[str, Any]) -> list[Sample]:
    """The same from a JSON document (version 1). Rows that are not as the schema says raise ``KeyError`` or ``TypeError``."""
    uncounted = {row["exchange_id"] for s in document["statistics"] for row in s["excluded"]}
    connections = {c["id"]: c for c in document["connections"]}
    return [
        _sample_of_row(row, connections.get(row["connection_id"]))
        for row in document["exchanges"]
        if row["id"] not in uncounted
    ]


def _sample_of_row(row: Mapping[str, Any], connection: Mapping[str, Any] | None) -> Sample:
    durations: dict[str, int] = defaultdict(int)
    for phase in row["phases"]:
        durations[phase["name"]] += phase["duration_ns"]
    durations["total"], durations["unattributed"] = row["total_ns"], row["unattributed_ns"]
    stream, sent = row.get("stream"), next((p["started_at"] for p in row["phases"] if p["name"] == "send"), None)
    for name in ("first_event", "first_token", "first_visible"):
        if stream and sent is not None and stream.get(f"{name}_ns") is not None:
            durations[name] = sent - row["started_at"] + stream[f"{name}_ns"]
    tls = (connection or {}).get("tls")
    return Sample(
        arm=row.get("arm") or f"{row['protocol'] or 'encrypted'}{', reused' if row['reused'] else ''}",
        trial=row.get("trial"),
        durations_ns=dict(durations),
        rtt_ns=None if connection is None else connection["handshake_rtt_ns"] or connection["min_rtt_ns"],
        round_trips=_round_trips(reused=row["reused"], secure=tls is not None, tls=tls["round_trips"] if tls else None),
    )


def by_arm(rows: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Samples of each arm, arms in the order in which they first appear."""
    arms: dict[str, list[Sample]] = defaultdict(list)
    for row in rows:
        arms[row.arm].append(row)
    return dict(arms)
