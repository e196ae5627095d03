"""One row per counted call, from an analysis or from the JSON document of one: what comparisons are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from netdiag.analysis.exchange_columns import ExchangeRows
from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.statistics import Statistics
from netdiag.stats.calls import call_quantities_ns
from netdiag.stats.distribution import arm_of
from netdiag.stats.durations import durations_ns


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
    """The calls that ``statistics`` counts, one row for each trial of an arm: see ``_by_trial``."""
    uncounted = {row.exchange_id for s in statistics for row in s.excluded}
    exchanges, calls = _with_calls(exchanges)
    found: list[_Timed] = []
    for exchange in exchanges:
        if exchange.id in uncounted:
            continue
        connection = None if exchange.connection_id is None or not connections else connections[exchange.connection_id]
        sample = _sample(exchange, connection, calls.get(exchange.id, {}))
        found.append(_Timed(exchange.started_at, exchange.ended_at, exchange.call_id, sample))
    return _by_trial(found)


def _with_calls(exchanges: Iterable[Exchange]) -> tuple[Iterable[Exchange], dict[int, dict[str, int]]]:
    """And by exchange what its call took, where calls are known: in a probe. (A file's rows are made anew whenever they are asked for.)"""
    if isinstance(exchanges, ExchangeRows):
        return exchanges, {}
    rows = list(exchanges)
    return rows, call_quantities_ns(rows)


@dataclass(frozen=True, slots=True)
class _Timed:
    """A row before its trial is put together."""

    started_at: int
    ended_at: int
    call_id: int | None
    sample: Sample


def _by_trial(rows: Iterable[_Timed]) -> list[Sample]:
    """Rows without a trial as they are; of each trial of an arm one row, in the order in which they first appear.

    Of a call with several attempts the one that answered counts, and ``call`` is what all of them took. Calls made at once are one batch: its quantities are
    the median over them, and ``batch`` (``batch_first_event``) is the time from the first submission until the last one was done (or spoke).
    """
    trials: dict[tuple[str, int | None, int], dict[int | None, _Timed]] = {}
    for place, row in enumerate(rows):
        trial = row.sample.trial
        key = (row.sample.arm, trial, place if trial is None else 0)
        trials.setdefault(key, {}).setdefault(row.call_id, row)
    return [_batch(list(calls.values())) for calls in trials.values()]


def _batch(rows: Sequence[_Timed]) -> Sample:
    first = rows[0].sample
    if len(rows) == 1:
        return first
    names = dict.fromkeys(name for row in rows for name in row.sample.durations_ns)
    together = {n: round(median(r.sample.durations_ns[n] for r in rows if n in r.sample.durations_ns)) for n in names}
    began = min(row.started_at for row in rows)
    together["batch"] = max(row.ended_at for row in rows) - began
    spoke = [
        row.started_at + row.sample.durations_ns["first_event"]
        for row in rows
        if "first_event" in row.sample.durations_ns
    ]
    if len(spoke) == len(rows):
        together["batch_first_event"] = max(spoke) - began
    return replace(first, durations_ns=together)


def _sample(exchange: Exchange, connection: Connection | None, call_ns: Mapping[str, int]) -> Sample:
    rtt_ns = None if connection is None else connection.handshake_rtt_ns or connection.min_rtt_ns
    tls = None if connection is None or connection.tls is None else connection.tls.round_trips
    secure = connection is not None and connection.tls is not None
    return Sample(
        arm=arm_of(exchange),
        trial=exchange.trial,
        durations_ns={**durations_ns(exchange), **call_ns},
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
    calls = _calls_of_document(document)
    return _by_trial(
        _Timed(
            row["started_at"],
            row["started_at"] + row["total_ns"],
            row.get("call_id"),
            _sample_of_row(row, connections.get(row["connection_id"]), calls.get(row["id"])),
        )
        for row in document["exchanges"]
        if row["id"] not in uncounted
    )


def samples_of_lines(rows: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """The same from JSON lines, one exchange each: those that succeeded, first rounds left out. Their connections are not in them, so
    nothing is said of round trips. Rows that are not as the schema says raise ``KeyError`` or ``TypeError``."""
    return _by_trial(
        _Timed(
            row["started_at"],
            row["started_at"] + row["total_ns"],
            row["id"],
            replace(_sample_of_row(row, None, None), rtt_ns=None, round_trips=None),
        )
        for row in rows
        if row["outcome"] in _SUCCEEDED and row.get("trial") != 0
    )


_SUCCEEDED = (str(Outcome.OK), str(Outcome.UNKNOWN))


def _calls_of_document(document: Mapping[str, Any]) -> dict[int, tuple[int, int]]:
    """By the id of the deciding exchange: when its call began, and its total. Empty where every call has one attempt."""
    calls, began = document["calls"], {row["id"]: row["started_at"] for row in document["exchanges"]}
    if all(len(call["attempts"]) == 1 for call in calls):
        return {}
    return {call["attempts"][-1]: (began[call["attempts"][0]], call["total_ns"]) for call in calls}


def _sample_of_row(
    row: Mapping[str, Any], connection: Mapping[str, Any] | None, call: tuple[int, int] | None
) -> Sample:
    durations: dict[str, int] = defaultdict(int)
    for phase in row["phases"]:
        durations[phase["name"]] += phase["duration_ns"]
    durations["total"], durations["unattributed"] = row["total_ns"], row["unattributed_ns"]
    stream, sent = row.get("stream"), next((p["started_at"] for p in row["phases"] if p["name"] == "send"), None)
    for name in ("first_event", "first_token", "first_visible"):
        if stream and sent is not None and stream.get(f"{name}_ns") is not None:
            durations[name] = sent - row["started_at"] + stream[f"{name}_ns"]
            if call is not None:
                durations[f"call_{name}"] = row["started_at"] - call[0] + durations[name]
    if call is not None:
        durations["call"] = call[1]
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
