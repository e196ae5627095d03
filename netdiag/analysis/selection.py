"""A part of an analysis: some hosts, ports, names, connections, or a stretch of time. Ids stay as they were."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from netdiag.records.analysis import Analysis
from netdiag.records.connection import Connection
from netdiag.records.dns import NameResolution
from netdiag.records.exchange import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """All conditions must hold; an empty one always does. Names may have ``*`` and ``?`` and are compared without case."""

    hosts: tuple[str, ...] = ()
    """Any of these is the authority, the SNI, the server's or the client's address."""
    ports: tuple[int, ...] = ()
    """Any of these is the server's or the client's port."""
    server_names: tuple[str, ...] = ()
    """Any of these is the SNI."""
    connections: tuple[int, ...] = ()
    """Connection ids."""
    from_at: int | None = None
    until_at: int | None = None
    """Whatever overlaps ``from_at`` … ``until_at`` (ns since the epoch) stays."""

    def __bool__(self) -> bool:
        return self != Filter()


def select(analysis: Analysis, chosen: Filter) -> Analysis:
    """The rows that meet the filter and what belongs to them. Statistics, comparisons and calls over all rows are left out: they would no longer be true."""
    if not chosen:
        return analysis
    wanted = [c for c in analysis.connections if _connection_meets(c, chosen)]
    ids = {c.id for c in wanted}
    by_id = {c.id: c for c in analysis.connections}
    exchanges = [e for e in analysis.exchanges if _exchange_meets(e, by_id.get(_key(e)), chosen, ids)]
    ids |= {e.connection_id for e in exchanges if e.connection_id is not None}
    kept = {e.id for e in exchanges}
    subjects = {f"exchange:{number}" for number in kept} | {f"connection:{number}" for number in ids}
    return replace(
        analysis,
        connections=[c for c in analysis.connections if c.id in ids],
        exchanges=exchanges,
        resolutions=[r for r in analysis.resolutions if _resolution_meets(r, chosen, ids)],
        calls=[call for call in analysis.calls if kept.issuperset(call.attempts)],
        statistics=(),
        comparisons=(),
        findings=[f for f in analysis.findings if f.subject in subjects or ":" not in f.subject],
        anomalies=[a for a in analysis.anomalies if a.connection_id is None or a.connection_id in ids],
    )


def _key(exchange: Exchange) -> int:
    return -1 if exchange.connection_id is None else exchange.connection_id


def _connection_meets(connection: Connection, chosen: Filter) -> bool:
    sni = connection.tls.sni if connection.tls else None
    addresses = (sni, connection.server.address, connection.client.address)
    return (
        _ids_meet(connection.id, chosen)
        and _ports_meet(connection, chosen)
        and _any_name(addresses, chosen.hosts)
        and _any_name((sni,), chosen.server_names)
        and _overlaps(connection.first_at, connection.last_at, chosen)
    )


def _exchange_meets(exchange: Exchange, connection: Connection | None, chosen: Filter, connections: set[int]) -> bool:
    if not _overlaps(exchange.started_at, exchange.ended_at, chosen):
        return False
    if connection is not None and connection.id in connections:
        return True
    # One connection may carry several authorities (coalesced HTTP/2), so the host is asked for once more here.
    if connection is None:
        return not (chosen.ports or chosen.connections or chosen.server_names) and _own_host_meets(exchange, chosen)
    return (
        bool(chosen.hosts)
        and _own_host_meets(exchange, chosen)
        and _connection_meets(connection, replace(chosen, hosts=()))
    )


def _own_host_meets(exchange: Exchange, chosen: Filter) -> bool:
    authority = exchange.authority or exchange.server_name or ""
    return _any_name((authority, authority.rpartition(":")[0]), chosen.hosts)


def _resolution_meets(resolution: NameResolution, chosen: Filter, connections: set[int]) -> bool:
    if resolution.connection_id is not None and resolution.connection_id in connections:
        return True
    if chosen.ports or chosen.connections or chosen.server_names:
        return False
    started = resolution.query_at if resolution.query_at is not None else resolution.response_at
    ended = resolution.response_at if resolution.response_at is not None else started
    in_time = started is None or ended is None or _overlaps(started, ended, chosen)
    return in_time and _any_name((resolution.name,), chosen.hosts)


def _ids_meet(connection_id: int, chosen: Filter) -> bool:
    return not chosen.connections or connection_id in chosen.connections


def _ports_meet(connection: Connection, chosen: Filter) -> bool:
    return not chosen.ports or connection.server.port in chosen.ports or connection.client.port in chosen.ports


def _any_name(names: tuple[str | None, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns:
        return True
    return any(fnmatchcase(name.lower(), pattern.lower()) for name in names if name for pattern in patterns)


def _overlaps(started_at: int, ended_at: int, chosen: Filter) -> bool:
    after = chosen.from_at is None or ended_at >= chosen.from_at
    return after and (chosen.until_at is None or started_at <= chosen.until_at)
