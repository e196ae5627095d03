"""TLS connections that nothing opens and whose handshakes are regular: their requests as columns, told by the grammar.

In a large capture without keys these are nearly all connections, and nobody looks at most of them one by one. So nothing per connection is
made here: what statistics and rankings need are columns, and a record is made, by the same code as any other, when somebody asks for it.
"""

from __future__ import annotations

import numpy as np

from netdiag.analysis.dialogue import Dialogue, Leg
from netdiag.analysis.exchange_columns import CODES, MarkTable, arm_of
from netdiag.analysis.exchanges import handshake_marks
from netdiag.analysis.keyless.drafts import finished_mark
from netdiag.analysis.keyless.handshake import handshake_end
from netdiag.analysis.keyless.tables import Ends, Sessions, Turns
from netdiag.analysis.keyless.turns import turns
from netdiag.analysis.marks import Milestone
from netdiag.analysis.phase_columns import ABSENT
from netdiag.analysis.unopened import UnopenedTurns, sizes_of
from netdiag.plain import plain
from netdiag.protocols.tls.names import TLS13, version_name
from netdiag.protocols.tls.regular import Handshakes, regular_handshakes
from netdiag.protocols.tls.suites import suite_of
from netdiag.records.exchange import Outcome
from netdiag.records.tls import TlsSession
from netdiag.wire.distinct import distinct
from netdiag.wire.measure import Openings
from netdiag.wire.tables import NONE, Bool, Buffer, Int64, Segments
from netdiag.wire.tls_records import ChainedRecords

M = Milestone


@plain(frozen=True, slots=True, kw_only=True)
class Sealed:
    """One row per connection, ascending."""

    handshakes: Handshakes
    ends: Ends
    turns: Turns
    edges: Int64
    """``[n + 1]``: the turns of row ``r`` are ``edges[r]:edges[r + 1]``."""

    @property
    def connection(self) -> Int64:
        """Ids."""
        return self.handshakes.connection

    def told(self, row: int) -> UnopenedTurns:
        """The turns of one connection, for ``requests_of``."""
        rows = range(int(self.edges[row]), int(self.edges[row + 1]))
        return UnopenedTurns(self.turns, rows, finished_mark(self.ends, row))


def sealed(
    buffer: Buffer, segments: Segments, records: ChainedRecords, candidates: Bool, openings: Openings
) -> tuple[Sealed, Bool]:
    """Those of the candidates (by connection id) whose handshakes are regular; and which of them need no record to be measured: their
    last request was answered (or there was none, and nothing failed)."""
    handshakes, own = regular_handshakes(buffer, segments, records, candidates)
    sessions = _sessions(handshakes, openings)
    ends = handshake_end(own, sessions)
    found = turns(own, sessions, ends)
    edges = np.searchsorted(found.session, np.arange(len(handshakes) + 1, dtype=found.session.dtype))
    table = Sealed(handshakes=handshakes, ends=ends, turns=found, edges=edges)
    return table, _ran_to_their_ends(table, openings)


def _sessions(handshakes: Handshakes, openings: Openings) -> Sessions:
    tls13 = handshakes.version == TLS13
    finished, overhead = np.zeros(len(handshakes), np.int32), np.full(len(handshakes), NONE, np.int32)
    parameters = handshakes.version << 16 | handshakes.suite
    for one in distinct(parameters).tolist():
        sizes = sizes_of(version_name(one >> 16), suite_of(one & 0xFFFF).name)
        finished[parameters == one], overhead[parameters == one] = sizes.finished_length, sizes.overhead
    hidden = np.where(tls13 & handshakes.offers_h2, NONE, 0)
    return Sessions(
        connection=handshakes.connection.astype(np.int32),
        tls13=tls13,
        finished_length=finished,
        overhead=overhead,
        h2=np.where(handshakes.chosen_h2 == NONE, hidden, handshakes.chosen_h2).astype(np.int8),
        server_hello_at=handshakes.server_hello_at,
        rtt_ns=_path_rtt_ns(openings)[handshakes.connection],
    )


def _path_rtt_ns(openings: Openings) -> Int64:
    """As ``drafts.path_rtt_ns``; 0 where it is not known."""
    rtt = np.zeros(len(openings), np.int64)
    for known in (openings.client_rtt_ns, openings.handshake_rtt_ns, openings.server_rtt_ns):
        rtt = np.where(known == NONE, rtt, known)
    return rtt


def _ran_to_their_ends(table: Sealed, openings: Openings) -> Bool:
    last = table.edges[1:] - 1
    some = last >= table.edges[:-1]
    response_at = np.append(table.turns.response_first_at, NONE)
    answered = some & (response_at[last] != NONE)
    opened, replied = openings.syn_at[table.connection], openings.syn_ack_at[table.connection]
    silent = (opened != NONE) & (replied == NONE)
    quiet: Bool = np.where(some, answered, silent | (table.handshakes.finished_at != NONE))
    return quiet


def exchanges(table: Sealed, chosen: Bool, openings: Openings) -> MarkTable:
    """Every turn of the chosen connections. Connections are numbered as in ``openings``."""
    found = table.turns
    rows = np.flatnonzero(chosen[found.session])
    session = found.session[rows].astype(np.int64)
    ordinal = rows - table.edges[session]
    connection = table.connection[session]
    asked, answered = found.request_first_at[rows] != NONE, found.response_first_at[rows] != NONE
    first = (ordinal == 0) & asked
    syn_at = openings.syn_at[connection]
    replied = np.where(syn_at == NONE, NONE, openings.syn_ack_at[connection])
    finished_at = np.maximum(table.handshakes.finished_at, table.ends.finished_at)  # as ``requests_of`` has it
    marks = {
        M.SYN: _known(syn_at, first),
        M.SYN_ACK: _known(replied, first),
        M.CLIENT_HELLO: _known(table.handshakes.client_hello_at[session], first),
        M.TLS_FINISHED: _known(finished_at[session], first),
        M.REQUEST_FIRST: _known(found.request_first_at[rows], asked),
        M.REQUEST_HEAD_LAST: _known(found.head_last_at[rows], asked),
        M.CONTINUED: _known(found.continued_at[rows], asked),
        M.REQUEST_BODY_FIRST: _known(found.body_first_at[rows], asked),
        M.REQUEST_LAST: np.where(asked, found.request_last_at[rows], ABSENT),
        M.RESPONSE_FIRST: _known(found.response_first_at[rows], answered),
        M.RESPONSE_LAST: np.where(answered, found.response_last_at[rows], ABSENT),
    }
    return MarkTable(
        connection=connection,
        position=ordinal,
        marks=marks,
        ended=np.full(len(rows), ABSENT, np.int64),
        arms=(arm_of(None, reused=False), arm_of(None, reused=True)),
        arm=np.minimum(ordinal, 1),
        outcome=np.full(len(rows), CODES[Outcome.UNKNOWN], np.int64),
        set_aside=np.zeros(len(rows), np.bool_),
        status=np.full(len(rows), NONE, np.int16),
        marked=np.zeros(len(rows), np.bool_),
        since_request={},
    )


def _known(column: Int64, where: Bool) -> Int64:
    return np.where(where & (column != NONE), column, ABSENT)


def dialogue_of(session: TlsSession | None) -> Dialogue:
    """What a sealed connection said, for ``requests_of``, from its record's session."""
    assert session is not None
    return Dialogue(legs=[Leg(marks=handshake_marks(session), keyless=((), ()))], session=session)
