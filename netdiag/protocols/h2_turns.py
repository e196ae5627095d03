"""The turns of a regular HTTP/2 connection as columns; a ``Turn`` is made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from netdiag.plain import plain
from netdiag.protocols.grpc import status_of
from netdiag.protocols.h2_direction import ChunkTimes
from netdiag.protocols.h2_section import Section
from netdiag.protocols.headers import find
from netdiag.protocols.turn import InterimMoment, Turn, TurnEnd
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

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, row: int) -> Turn: ...
    @overload
    def __getitem__(self, row: slice) -> Sequence[Turn]: ...
    def __getitem__(self, row: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(row, slice):
            return [self._turn(i) for i in range(*row.indices(len(self)))]
        place = row if row >= 0 else len(self) + row
        if not 0 <= place < len(self):
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
        t, client, server = self.table, self.client, self.server
        request = self.requests[t.request[row]]
        response = self._section(int(t.response[row]))
        trailers = self._section(int(t.trailers[row]))
        status = None if response is None else response.status
        headers = () if response is None else response.fields
        head_last = int(t.request_head_last[row])
        turn = Turn(
            ordinal=row,
            protocol="h2",
            stream_id=int(t.stream_id[row]),
            method=request.method,
            scheme=request.scheme,
            authority=request.authority,
            path=request.path,
            status=status,
            interim=list(self.interim.get(row, ())),
            request_first=client.first(int(t.request_first[row])),
            request_head_last=client.last(head_last),
            request_body_first=client.first(int(t.request_body_first[row])),
            request_last=client.last(int(t.request_last[row])),
            response_first=server.first(int(t.response_first[row])),
            response_head_last=server.last(int(t.response_head_last[row])),
            response_body_first=server.first(int(t.response_body_first[row])),
            response_last=server.last(int(t.response_last[row])),
            request_packet=_known(client.last_packet[head_last]),
            request_bytes=int(t.request_bytes[row]),
            response_bytes=int(t.response_bytes[row]),
            request_body_bytes=int(t.request_body_bytes[row]),
            response_body_bytes=int(t.response_body_bytes[row]),
            request_headers=request.fields,
            response_headers=headers,
            trailers=() if trailers is None else trailers.fields,
            expects_continue=request.expects_continue,
            open_streams=int(t.open_streams[row]),
            other_data_bytes=int(t.other_data_bytes[row]),
        )
        if t.answered[row]:
            turn.end = (
                TurnEnd.TUNNEL if request.method == "CONNECT" and 200 <= (status or 0) < 300 else TurnEnd.COMPLETE
            )
        turn.grpc_status = status_of(turn.trailers, headers)
        return turn

    def _section(self, code: int) -> Section | None:
        return None if code < 0 else self.responses[code]


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


def _known(packet: np.int64) -> int | None:
    return None if packet == NONE else int(packet)
