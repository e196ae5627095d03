"""The turns of a regular HTTP/2 connection as columns; a ``Turn`` is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.grpc import status_of
from netdiag.protocols.headers import find
from netdiag.protocols.http2.columns.tables import ChunkTimes
from netdiag.protocols.http2.section import Section
from netdiag.protocols.turn import InterimMoment, Turn, TurnEnd
from netdiag.wire.chunk import Moment
from netdiag.wire.tables import NONE, Bool, Int32, Int64, Table


@plain(frozen=True, slots=True, kw_only=True)
class TurnTable(Table):
    """One row per stream, in the order of their requests. Sections and chunks are rows of their own tables; NONE where there is none."""

    stream_id: Int32
    request: Int32
    """Section."""
    response: Int32
    trailers: Int32
    request_first: Int32
    """Chunk, as all that follow."""
    request_head_last: Int32
    request_body_first: Int32
    request_last: Int32
    response_first: Int32
    response_head_last: Int32
    response_body_first: Int32
    response_last: Int32
    request_bytes: Int64
    request_body_bytes: Int64
    response_bytes: Int64
    response_body_bytes: Int64
    other_data_bytes: Int64
    open_streams: Int32
    answered: Bool
    """The server ended its side."""


class ColumnTurns(Sequence[Turn]):
    """All turns of one connection. Nothing is remembered of those that were made."""

    def __init__(
        self,
        table: TurnTable,
        client: ChunkTimes,
        server: ChunkTimes,
        sections: tuple[Sequence[Section], Sequence[Section]],
    ) -> None:
        self.table = table
        self.client, self.server = client, server
        """When the chunks of each side came."""
        self.requests, self.responses = sections
        """Sections of the client, and of the server."""
        self.interim: dict[int, list[InterimMoment]] = {}
        """By row."""
        self.made: dict[int, Turn] = {}
        """Turns whose content was read."""
        self._count = len(table)
        self._near = _Near(table, client, server)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> Turn: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Turn]: ...
    def __getitem__(self, row: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(row, slice):
            return [self._turn(i) for i in range(*row.indices(len(self)))]
        place = row if row >= 0 else len(self) + row
        if not 0 <= place < self._count:
            raise IndexError(row)
        return self._turn(place)

    def __iter__(self) -> Iterator[Turn]:
        return map(self._turn, range(len(self)))

    def headers(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """The different header sections among all requests and answers."""
        for codes, sections in ((self.table.request, self.requests), (self.table.response, self.responses)):
            for code in _different(codes):
                yield sections[code].fields

    def statuses(self) -> tuple[Int64, Int64]:
        """Status and gRPC status of each answer, NONE where it has none. What was read from contents is not in it."""
        table = self.table
        status = np.array([*(_or_none(section.status) for section in self.responses), NONE])
        reported = np.array([*(_reported(section) for section in self.responses), _NOT_REPORTED])
        in_trailers = reported[table.trailers]
        grpc_status = np.where(in_trailers == _NOT_REPORTED, reported[table.response], in_trailers)
        return status[table.response], np.maximum(grpc_status, NONE)

    def _turn(self, row: int) -> Turn:
        return self.made.get(row) or self.plain_turn(row)

    def plain_turn(self, row: int) -> Turn:
        """Without what its content says."""
        t, client, server = self._near.row(row), self._near.client, self._near.server
        request, response, trailers = self.requests[t.request], self._section(t.response), self._section(t.trailers)
        head_last = client.last(t.request_head_last)
        turn = Turn(
            ordinal=row,
            protocol="h2",
            stream_id=t.stream_id,
            method=request.method,
            scheme=request.scheme,
            authority=request.authority,
            path=request.path,
            status=response.status,
            interim=list(self.interim.get(row, ())),
            request_first=client.first(t.request_first),
            request_head_last=head_last,
            request_body_first=client.first(t.request_body_first),
            request_last=client.last(t.request_last),
            response_first=server.first(t.response_first),
            response_head_last=server.last(t.response_head_last),
            response_body_first=server.first(t.response_body_first),
            response_last=server.last(t.response_last),
            request_packet=None if head_last is None else head_last.delivered_by,
            request_bytes=t.request_bytes,
            response_bytes=t.response_bytes,
            request_body_bytes=t.request_body_bytes,
            response_body_bytes=t.response_body_bytes,
            request_headers=request.fields,
            response_headers=response.fields,
            trailers=trailers.fields,
            expects_continue=request.expects_continue,
            open_streams=t.open_streams,
            other_data_bytes=t.other_data_bytes,
            grpc_status=status_of(trailers.fields, response.fields),
        )
        if t.answered:
            turn.end = TurnEnd.COMPLETE
        return turn

    def _section(self, code: int) -> Section:
        return _NO_SECTION if code < 0 else self.responses[code]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_near"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._near = _Near(self.table, self.client, self.server)


_NO_SECTION = Section()
_BLOCK_ROWS = 64
_MOST_MOMENTS = 1024


class _Row(NamedTuple):
    """One row of ``TurnTable``."""

    stream_id: int
    request: int
    response: int
    trailers: int
    request_first: int
    request_head_last: int
    request_body_first: int
    request_last: int
    response_first: int
    response_head_last: int
    response_body_first: int
    response_last: int
    request_bytes: int
    request_body_bytes: int
    response_bytes: int
    response_body_bytes: int
    other_data_bytes: int
    open_streams: int
    answered: bool


class _Near:
    """Rows near the last one asked for, and their moments: whoever asks for all of them does so in order."""

    def __init__(self, table: TurnTable, client: ChunkTimes, server: ChunkTimes) -> None:
        self._table = table
        self._at = NONE
        self._rows: list[_Row] = []
        self.client, self.server = NearMoments(client), NearMoments(server)

    def row(self, row: int) -> _Row:
        at, inside = divmod(row, _BLOCK_ROWS)
        if at != self._at:
            chosen = slice(at * _BLOCK_ROWS, (at + 1) * _BLOCK_ROWS)
            columns = (getattr(self._table, name)[chosen].tolist() for name in _Row._fields)
            self._rows, self._at = list(map(_Row._make, zip(*columns, strict=True))), at
        return self._rows[inside]


class NearMoments:
    """Several turns begin or end in one chunk."""

    def __init__(self, times: ChunkTimes) -> None:
        self._times = times
        self._first: dict[int, Moment | None] = {NONE: None}
        self._last: dict[int, Moment | None] = {NONE: None}

    def first(self, chunk: int) -> Moment | None:
        """As ``ChunkTimes.first``."""
        if chunk not in self._first:
            self._make_room(self._first)
            self._first[chunk] = self._times.first(chunk)
        return self._first[chunk]

    def last(self, chunk: int) -> Moment | None:
        """As ``ChunkTimes.last``."""
        if chunk not in self._last:
            self._make_room(self._last)
            self._last[chunk] = self._times.last(chunk)
        return self._last[chunk]

    def _make_room(self, moments: dict[int, Moment | None]) -> None:
        if len(moments) > _MOST_MOMENTS:
            moments.clear()
            moments[NONE] = None


_NOT_REPORTED = NONE - 1


def _reported(section: Section) -> int:
    """``grpc-status``; NONE where it is no number."""
    if find(section.fields, "grpc-status") is None:
        return _NOT_REPORTED
    return _or_none(status_of(section.fields))


def _or_none(value: int | None) -> int:
    return NONE if value is None else value


def _different(codes: Int32) -> list[int]:
    present: list[int] = np.flatnonzero(np.bincount(codes[codes >= 0])).tolist()
    return present
