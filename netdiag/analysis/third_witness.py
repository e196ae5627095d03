"""What a server says of its own times, beside what was measured: joined into the exchange, and contradicted where the packets do."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from netdiag.protocols.server_reports import read_headers
from netdiag.protocols.turn import Turn
from netdiag.records.server_report import ServerReport, ServerTime
from netdiag.units import format_duration

ROUNDING_NS = 1_000_000
"""Most servers report whole milliseconds."""
NOTHING = ServerReport()

_told = lru_cache(maxsize=256)(read_headers)
"""Answers of one server often say the same."""


def server_report(turn: Turn) -> ServerReport | None:
    """The report of one answer; None when it says nothing of itself."""
    told = _told((*turn.response_headers, *turn.trailers))
    found = dataclasses.replace(told, times=(*told.times, *turn.reported_times))
    if found == NOTHING:
        return None
    return dataclasses.replace(found, conflicts=tuple(_conflicts(turn, told.times, turn.reported_times)))


def _conflicts(turn: Turn, in_head: Sequence[ServerTime], in_body: Sequence[ServerTime]) -> Iterator[str]:
    """Whatever is claimed in a head was over when that head was sent; what is claimed in the content, when the content ended."""
    asked, head, end = turn.request_first, turn.response_first, turn.response_last
    if asked is not None and head is not None and not turn.trailers:
        yield from _longer(in_head, head.deliverable_at - asked.seen_at, "from the request to the response head")
    if asked is not None and end is not None:
        yield from _longer(in_body, end.deliverable_at - asked.seen_at, "from the request to the end of the answer")


def _longer(claims: Iterable[ServerTime], measured_ns: int, what: str) -> Iterator[str]:
    for claim in claims:
        if claim.ns > measured_ns + ROUNDING_NS:
            yield f"{claim.source} claims {format_duration(claim.ns)}, but {what} only {format_duration(measured_ns)} passed"
