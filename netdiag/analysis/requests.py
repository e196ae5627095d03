"""All exchanges of one connection: those that could be read, those told from record lengths, and the one that never came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from netdiag.analysis.dialogue import Dialogue, Leg
from netdiag.analysis.drafts import Draft
from netdiag.analysis.exchanges import drafts_of, set_up_marks
from netdiag.analysis.flow_control import FlowControl
from netdiag.analysis.held_up import HeldUp
from netdiag.analysis.marks import Marks, Milestone
from netdiag.analysis.outcomes import ending_without_a_turn
from netdiag.analysis.pairing import Lookup
from netdiag.protocols.conversation import SERVER
from netdiag.records.connection import Connection
from netdiag.wire.icmp import IcmpError
from netdiag.wire.tables import NONE

if TYPE_CHECKING:
    from netdiag.analysis.unopened import UnopenedTurns

M = Milestone


def requests_of(
    connection: Connection,
    dialogue: Dialogue | None,
    *,
    unopened: Mapping[int, UnopenedTurns],
    lookup: Lookup | None,
    held_up: HeldUp | None,
    capture_ends_at: int,
    refusal: IcmpError | None = None,
) -> list[Draft]:
    """Drafts of one connection in the order of their requests. ``unopened`` has the turns of key-less legs by the leg's place."""
    opening = set_up_marks(connection, lookup)
    drafts: list[Draft] = []
    for place, leg in enumerate(dialogue.legs if dialogue is not None else ()):
        if leg.keyless is not None and place in unopened:
            drafts += _told_by_length(connection, opening, leg, unopened[place])
        else:
            read = drafts_of(
                connection,
                _set_up(opening, leg),
                leg.turns,
                gaps=leg.gaps,
                server_name=_name(connection, leg),
                upgraded=leg.upgraded,
                settings_at=settings_at(leg),
            )
            if leg.http2 is not None:
                flow_control = FlowControl(leg.http2, connection)
                for draft in read:
                    draft.windows = flow_control.of(None if draft.turn is None else draft.turn.stream_id)
            drafts += read
    if not drafts:
        drafts = _never_asked(connection, opening, dialogue, capture_ends_at, refusal)
    for draft in drafts:
        draft.held_up = held_up
    return drafts


def settings_at(leg: Leg) -> int | None:
    """When the server's first SETTINGS was deliverable; None without HTTP/2, or where it was not seen."""
    settings = None if leg.http2 is None else leg.http2.first_settings(SERVER)
    return None if settings is None else settings.moment.deliverable_at


def _set_up(opening: Marks, leg: Leg) -> Marks:
    return leg.marks if leg.later else {**opening, **leg.marks}


def _name(connection: Connection, leg: Leg | None = None) -> str | None:
    if leg is not None and leg.server_name is not None:
        return leg.server_name
    return None if connection.tls is None else connection.tls.sni


def _told_by_length(connection: Connection, opening: Marks, leg: Leg, told: UnopenedTurns) -> list[Draft]:
    from netdiag.analysis.keyless.drafts import keyless_draft

    marks = _set_up(opening, leg)
    if told.finished is not None and (M.TLS_FINISHED not in marks or told.finished.at > marks[M.TLS_FINISHED].at):
        marks[M.TLS_FINISHED] = told.finished
    drafts: list[Draft] = []
    quiet_since: int | None = None
    for ordinal, row in enumerate(told.rows):
        drafts.append(
            keyless_draft(
                connection,
                marks,
                told.turns,
                row,
                ordinal=ordinal,
                last=ordinal == len(told.rows) - 1,
                quiet_since=quiet_since,
                server_name=_name(connection, leg),
            )
        )
        answered_at = int(told.turns.response_last_at[row])
        quiet_since = quiet_since if answered_at == NONE else answered_at
    return drafts


def _never_asked(
    connection: Connection,
    opening: Marks,
    dialogue: Dialogue | None,
    capture_ends_at: int,
    refusal: IcmpError | None,
) -> list[Draft]:
    """A connection that failed before its first request is an exchange that stopped where it stopped."""
    marks = dict(opening)
    for leg in dialogue.legs if dialogue is not None else ():
        marks.update(leg.marks)
    if not marks:
        return []
    ending = ending_without_a_turn(connection, marks, capture_ends_at, refusal)
    if ending is None:
        return []
    return [
        Draft(
            connection=connection,
            marks=marks,
            ended=ending.at,
            outcome=ending.outcome,
            outcome_detail=ending.detail,
            server_name=_name(connection),
        )
    ]
