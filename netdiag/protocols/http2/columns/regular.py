"""A regular HTTP/2 connection by columns: streams that ask once and are answered, as nearly all are.

Both directions are read as tables of frames (``direction``), and turns are what sorting those by stream gives. That holds for as long as
nothing happened for which the state of the connection at that instant matters: a stream that was reset, a GOAWAY that concerns one, frames
on streams that nobody opened or that have ended; and for as long as none becomes a tunnel. Such a connection belongs to ``http2.decode``, as
does one that lacks octets. Here the answer is None then; it never is another one than that decoder's.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from netdiag.protocols.conversation import CLIENT, SERVER, Conversation, Http2Facts
from netdiag.protocols.http2 import frames as h2
from netdiag.protocols.http2.columns.direction import read_direction
from netdiag.protocols.http2.columns.paired import Paired, paired, streams_of
from netdiag.protocols.http2.columns.stalls import Initial, stalls_of
from netdiag.protocols.http2.columns.tables import Control, Direction
from netdiag.protocols.http2.columns.turns import ColumnTurns, TurnTable
from netdiag.protocols.http2.facts import FactsKeeper, settings_of
from netdiag.protocols.http2.streams import MAX_LIVE_STREAMS, MOST_GOAWAYS, MOST_INTERIM
from netdiag.protocols.turn import InterimMoment
from netdiag.records.exchange import CONNECT
from netdiag.wire.chunk import Chunk
from netdiag.wire.tables import NONE, Int32, Int64


def decode(client: Iterable[Chunk], server: Iterable[Chunk]) -> Conversation | None:
    """As ``http2.decode``, with ``ColumnTurns`` for turns; None for a connection that is not regular."""
    asked = read_direction(client, is_client=True)
    streams = None if asked is None else streams_of(asked)
    if asked is None or streams is None or _gives_up(asked):
        return None
    answered = read_direction(server, is_client=False, path_of=streams.path_of)
    pair = None if answered is None else paired(asked, answered, streams)
    return None if pair is None else _told(pair)


def _gives_up(asked: Direction) -> bool:
    """Whether the client reset a stream (hardly ever one that had ended), or asked for a tunnel: the answers need not be read to know."""
    resets = any(control.type == h2.FrameType.RST_STREAM for control in asked.controls)
    return resets or any(section.method == CONNECT for section in asked.sections)


def _told(pair: Paired) -> Conversation | None:
    facts = Http2Facts()
    initial = _take_controls(pair, facts)
    if initial is None:
        return None
    facts.stalls = stalls_of(pair, initial)
    return _conversation(pair, facts)


def _take_controls(pair: Paired, facts: Http2Facts) -> tuple[list[Initial], list[Initial]] | None:
    """Fills ``facts``; returns when the windows of each sender's streams were given which initial size. None where a frame has an effect."""
    keeper = FactsKeeper(facts)
    initial: tuple[list[Initial], list[Initial]] = ([], [])
    goaways = 0
    for at, sender, control in _in_order(pair):
        chunk = int(pair.order.last_chunk[sender][control.frame])
        last = pair.sides[sender].times.last(chunk)
        assert last is not None
        if control.type == h2.FrameType.RST_STREAM:
            if _resets(pair, at, control):
                return None
        elif control.type == h2.FrameType.GOAWAY:
            goaways += 1
            said = keeper.goaway(sender, control.payload, last)
            if goaways > MOST_GOAWAYS or (said is not None and _ends_streams(pair, at, sender, said[0])):
                return None
        elif control.flags & h2.Flag.ACK:
            keeper.acknowledged(sender, last)
        else:
            values = settings_of(control.payload)
            keeper.settings(sender, values, last)
            window = values.get(h2.Setting.INITIAL_WINDOW_SIZE)
            if window is not None and window < 1 << 31:
                initial[1 - sender].append(Initial(at, window, last))
    return initial


def _in_order(pair: Paired) -> list[tuple[int, int, Control]]:
    found: list[tuple[int, int, Control]] = []
    for sender in (CLIENT, SERVER):
        controls = pair.sides[sender].controls
        rows = np.array([control.frame for control in controls], np.int64)
        found += [(at, sender, c) for at, c in zip(pair.order.at(sender, rows).tolist(), controls, strict=True)]
    found.sort(key=lambda row: row[0])
    return found


def _resets(pair: Paired, at: int, control: Control) -> bool:
    """Whether RST_STREAM came while its stream was open."""
    if len(control.payload) != 4:
        return False
    place = int(pair.streams.places_of(np.array([control.stream_id]))[0])
    return place != NONE and bool(pair.opened[place] < at < pair.closed[place])


def _ends_streams(pair: Paired, at: int, sender: int, last_stream_id: int) -> bool:
    """Whether GOAWAY came while a stream of its receiver above the last one was open. All are the client's."""
    if sender == CLIENT:
        return False
    above = pair.streams.ids > last_stream_id
    return bool((above & (pair.opened < at) & (at < pair.closed)).any())


def _conversation(pair: Paired, facts: Http2Facts) -> Conversation | None:
    table = _table(pair)
    most = int(table.open_streams.max())
    if most >= MAX_LIVE_STREAMS:
        return None
    asked, answered = pair.sides
    turns = ColumnTurns(table, asked.times, answered.times, (asked.sections, answered.sections))
    _note_interim(pair, turns)
    if not _finish_bodies(pair, turns):
        return None
    facts.preface = asked.times.first(0)
    facts.frames = {**_counts(CLIENT, asked), **_counts(SERVER, answered)}
    facts.max_open_streams = most + 1
    return Conversation(protocol="h2", turns=turns, h2=facts)


def _table(pair: Paired) -> TurnTable:
    asked, answered = pair.sides
    requests, answers = pair.said
    (asked_first, answered_first), (asked_last, answered_last) = pair.order.first_chunk, pair.order.last_chunk
    before = np.searchsorted(np.sort(pair.closed), pair.opened)
    return TurnTable(
        stream_id=pair.streams.ids.astype(np.int32),
        request=_section(asked, requests.head),
        response=_section(answered, answers.head),
        trailers=_section(answered, answers.trailers),
        request_first=_at(asked_first, requests.head),
        request_head_last=_at(asked_last, requests.head),
        request_body_first=_at(asked_first, requests.body_first),
        request_last=_at(asked_last, requests.end),
        response_first=_at(answered_first, answers.head),
        response_head_last=_at(answered_last, answers.head),
        response_body_first=_at(answered_first, answers.body_first),
        response_last=_at(answered_last, answers.last),
        request_bytes=requests.octets,
        request_body_bytes=requests.body_bytes,
        response_bytes=answers.octets,
        response_body_bytes=answers.body_bytes,
        other_data_bytes=answers.other_bytes,
        open_streams=(np.arange(len(before)) - before).astype(np.int32),
        answered=answers.end != NONE,
    )


def _at(column: Int32 | Int64, rows: Int64) -> Int32:
    """NONE where the row is."""
    return np.where(rows == NONE, NONE, column[rows]).astype(np.int32)


def _section(direction: Direction, rows: Int64) -> Int32:
    """Sections of HEADERS frames."""
    if not len(direction.codes):
        return np.full(len(rows), NONE, np.int32)
    number = np.cumsum(direction.frames.type == h2.FrameType.HEADERS) - 1
    return _at(direction.codes, np.where(rows == NONE, NONE, number[rows]))


def _note_interim(pair: Paired, turns: ColumnTurns) -> None:
    answered, rows = pair.sides[SERVER], pair.said[SERVER].interim
    if not len(rows):
        return
    places = pair.streams.places_of(answered.frames.stream[rows])
    codes = _section(answered, rows)
    chunks = pair.order.first_chunk[SERVER][rows]
    for place, code, chunk in zip(places.tolist(), codes.tolist(), chunks.tolist(), strict=True):
        said = turns.interim.setdefault(place, [])
        moment = answered.times.first(chunk)
        if len(said) < MOST_INTERIM and moment is not None:
            said.append(InterimMoment(status=answered.sections[code].status or 0, moment=moment))


def _finish_bodies(pair: Paired, turns: ColumnTurns) -> bool:
    """Turns whose content was read; False where its reader was opened by what turned out to be no head."""
    for stream_id, (row, body) in pair.sides[SERVER].bodies.items():
        place = int(pair.streams.places_of(np.array([stream_id]))[0])
        if pair.said[SERVER].head[place] != row:
            return False
        turn = turns.plain_turn(place)
        turn.grpc_status = None
        body.finish(turn)
        turns.made[place] = turn
    return True


def _counts(side: int, direction: Direction) -> dict[tuple[int, int], int]:
    return {(side, type_): n for type_, n in enumerate(np.bincount(direction.frames.type).tolist()) if n}
