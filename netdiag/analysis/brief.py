"""Exchanges of regular HTTP connections in brief: the instants that statistics and rankings ask for, as columns.

No turn, no mark and no record is made of them. Who asks for one gets it from its connection, heard then as any other is; the rules here are
those of ``exchanges``, for the cases that need nothing but arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from netdiag.analysis.exchange_columns import CODES as OUTCOME_CODES
from netdiag.analysis.exchange_columns import MarkTable, arm_of
from netdiag.analysis.exchanges import AT_ONCE_NS
from netdiag.analysis.marks import Milestone
from netdiag.analysis.outcomes import by_status
from netdiag.analysis.phase_columns import ABSENT
from netdiag.plain import plain
from netdiag.protocols import proxy_protocol, sniff
from netdiag.protocols.brief_turn import Brief, BriefTurn, Octets
from netdiag.wire.distinct import distinct
from netdiag.wire.measure import Openings
from netdiag.wire.tables import NONE, Int64, Table

M = Milestone
PROTOCOLS = (*(f"http/1.{minor}" for minor in range(10)), "h2")
CODES = {protocol: code for code, protocol in enumerate(PROTOCOLS)}


def told(client: Octets, server: Octets) -> Brief | None:
    """The turns of a connection from all of its octets; None where it is not regular, or speaks something else."""
    prefixes = client.data[: sniff.PREFIX_BYTES], server.data[: sniff.PREFIX_BYTES]
    kind = None if proxy_protocol.begins(prefixes[0]) else sniff.identify(*prefixes)
    if kind == "http/1":
        from netdiag.protocols.http1_regular import turns as http1

        return http1(client, server)
    if kind == "h2":
        from netdiag.protocols.http2.in_brief import turns as http2

        return http2(client, server)
    return None


class Instants(NamedTuple):
    """When segments or records came, and in which packets they began."""

    first_seen_at: Sequence[int]
    last_seen_at: Sequence[int]
    deliverable_at: Sequence[int]
    packet: Sequence[int]


class Chunks(NamedTuple):
    """The chunks of one direction of a connection, by their rows."""

    rows: Sequence[int]
    at: Instants

    def begins_before(self, chunk: int, other: Chunks, its: int) -> bool:
        """Whether a chunk was surely first: by the capture's clock, and by the order of packets."""
        row, its_row = self.rows[chunk], other.rows[its]
        return (
            self.at.packet[row] < other.at.packet[its_row]
            and self.at.first_seen_at[row] < other.at.first_seen_at[its_row]
        )

    def latest_to(self, chunk: int) -> int:
        """When the last one up to this chunk began."""
        return max(self.at.first_seen_at[row] for row in self.rows[: chunk + 1])


@plain(frozen=True, slots=True, kw_only=True)
class BriefTurns(Table):
    """One row per exchange that was answered in full, by connection and order inside. Instants; NONE where there is none."""

    connection: Int64
    """Number, as in ``Openings``."""
    ordinal: Int64
    protocol: Int64
    """Index into ``PROTOCOLS``."""
    status: Int64
    marked: Int64
    """1: the request may tell which attempt of a call it is."""
    request_first_at: Int64
    request_last_at: Int64
    response_first_at: Int64
    response_last_at: Int64
    first_event_at: Int64
    first_token_at: Int64
    first_visible_at: Int64
    client_hello_at: Int64
    """Of the connection, as all that follows."""
    finished_at: Int64
    settings_at: Int64
    """The server's first SETTINGS were deliverable."""

    @classmethod
    def of(cls, rows: Iterable[tuple[int, ...]]) -> BriefTurns:
        """From the values of each row."""
        names = cls.__dataclass_fields__
        columns = np.array(list(rows), np.int64).reshape(-1, len(names)).T
        return cls(**dict(zip(names, columns, strict=True)))


def rows_of(
    connection: int, said: Brief, client: Chunks, server: Chunks, set_up: tuple[int, int]
) -> list[tuple[int, ...]]:
    """The rows of one connection, for ``BriefTurns.of``. None where an answer came before its request: it answers another one.

    ``set_up``: when its ClientHello was sent, and its handshake was over.
    """
    settings_at = NONE if said.settings == NONE else server.at.deliverable_at[server.rows[said.settings]]
    rows: list[tuple[int, ...]] = []
    for ordinal, turn in enumerate(said.turns):
        if _comes_too_soon(turn, client, server):
            return []
        sent_at = client.at.first_seen_at[client.rows[turn.request_first]]
        sent_to = client.at.last_seen_at[client.rows[turn.request_last]]
        deliverable_at, answers = server.at.deliverable_at, server.rows
        moments = [NONE if chunk == NONE else deliverable_at[answers[chunk]] for chunk in turn.answer]
        said_of_it = CODES[turn.protocol], turn.status, int(turn.marked)
        rows.append((connection, ordinal, *said_of_it, sent_at, sent_to, *moments, *set_up, settings_at))
    return rows


def _comes_too_soon(turn: BriefTurn, client: Chunks, server: Chunks) -> bool:
    """Whether the full decoders would meet the answer before the request: they take HTTP/2 by when its octets were seen, and of HTTP/1 what
    surely comes before."""
    if turn.protocol != "h2":
        return server.begins_before(turn.response_first, client, turn.request_first)
    return client.latest_to(turn.request_last) > server.at.first_seen_at[server.rows[turn.response_first]]


def openers(table: BriefTurns, openings: Openings) -> dict[int, int]:
    """Rows of exchanges that waited for the set-up of their connection's first, and that one's row; as ``exchanges`` has it."""
    opens = table.ordinal == 0
    first = np.flatnonzero(opens)
    paid = openings.syn_at[table.connection[first]] != NONE
    horizon = np.where(paid, _horizon(table, first, openings), ABSENT)
    place = np.cumsum(opens) - 1
    waited = np.flatnonzero(~opens & (table.request_first_at <= horizon[place]))
    return dict(zip(waited.tolist(), first[place[waited]].tolist(), strict=True))


def _horizon(table: BriefTurns, first: Int64, openings: Openings) -> Int64:
    """As ``exchanges.waiting_until``."""
    connection = table.connection[first]
    halves = openings.client_rtt_ns[connection], openings.server_rtt_ns[connection]
    least = sum(np.where(half == NONE, 0, half) for half in halves)
    handshake = openings.handshake_rtt_ns[connection]
    rtt_ns = np.where(least == 0, np.where(handshake == NONE, 0, handshake), least)
    settings_at = table.settings_at[first]
    at_once = np.where(settings_at == NONE, ABSENT, settings_at + AT_ONCE_NS)
    return np.minimum(np.maximum(table.request_first_at[first] + rtt_ns, at_once), table.response_first_at[first])


def exchanges(table: BriefTurns, openings: Openings, first_id: int) -> MarkTable:
    """Every row. ``first_id`` is the id of connection 0."""
    opens = table.ordinal == 0
    syn_at = openings.syn_at[table.connection]
    replied = np.where(syn_at == NONE, NONE, openings.syn_ack_at[table.connection])
    set_up = {
        M.SYN: syn_at,
        M.SYN_ACK: replied,
        M.CLIENT_HELLO: table.client_hello_at,
        M.TLS_FINISHED: table.finished_at,
    }
    marks = {milestone: np.where(opens & (at != NONE), at, ABSENT) for milestone, at in set_up.items()}
    marks[M.REQUEST_FIRST], marks[M.REQUEST_LAST] = table.request_first_at, table.request_last_at
    marks[M.RESPONSE_FIRST], marks[M.RESPONSE_LAST] = table.response_first_at, table.response_last_at
    return MarkTable(
        connection=table.connection + first_id,
        position=table.ordinal,
        marks={milestone: at for milestone, at in marks.items() if (at != ABSENT).any()},
        ended=np.full(len(table), ABSENT, np.int64),
        arms=tuple(arm_of(protocol, reused=reused) for protocol in PROTOCOLS for reused in (False, True)),
        arm=2 * table.protocol + ~opens,
        outcome=_outcomes(table.status),
        set_aside=np.zeros(len(table), np.bool_),
        status=table.status,
        marked=table.marked != 0,
        since_request=_since_request(table),
    )


def _outcomes(status: Int64) -> Int64:
    found = np.zeros(len(status), np.int64)
    for one in distinct(status).tolist():
        found[status == one] = OUTCOME_CODES[by_status(one, None)]
    return found


def _since_request(table: BriefTurns) -> dict[str, Int64]:
    firsts = {
        "first_event": table.first_event_at,
        "first_token": table.first_token_at,
        "first_visible": table.first_visible_at,
    }
    return {
        name: np.where(at == NONE, NONE, at - table.request_first_at)
        for name, at in firsts.items()
        if (at != NONE).any()
    }
