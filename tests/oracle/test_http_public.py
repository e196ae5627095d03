"""HTTP of every public capture, in clear and with keys, against what tshark said (truth.jsonl). Prints the agreement per field.

A difference is either a bug of ours or stands in ``known_differences.toml`` with its reason.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from netdiag.errors import UnsupportedFormat
from netdiag.protocols.headers import find
from netdiag.protocols.redact import redact_target
from netdiag.protocols.turn import Turn, TurnEnd
from netdiag.wire.chunk import Moment
from tests.support.agreement import Field, check_agreement
from tests.support.heard import Heard, heard
from tests.support.public_captures import epoch_ns, folder, keylog_of
from tests.support.tools import needs_public_captures, public_truth

_CLOSE_NS = 1_000
_ABSENT = object()

Row = dict[str, Any]


class Known:
    """The committed table of differences."""

    def __init__(self) -> None:
        with (Path(__file__).parent / "known_differences.toml").open("rb") as file:
            self.rows: list[Row] = tomllib.load(file)["http"]
        self.used: set[int] = set()

    def __contains__(self, place: tuple[str, Row, str]) -> bool:
        path, row, name = place
        for number, known in enumerate(self.rows):
            if known["capture"] != path or ("stream" in known and row["stream"] not in _listed(known["stream"])):
                continue
            if "h2_stream" in known and row.get("h2_stream") not in _listed(known["h2_stream"]):
                continue
            if "*" in known["fields"] or name in known["fields"]:
                self.used.add(number)
                return True
        return False


def _listed(value: int | list[int]) -> list[int]:
    return value if isinstance(value, list) else [value]


def _packet(moment: Moment | None) -> int | None:
    return None if moment is None else moment.packet


def _at(moment: Moment | None) -> int | None:
    return None if moment is None else moment.deliverable_at


def _same_path(turn: Turn, expected: str | None) -> bool:
    if expected is None or turn.path is None:
        return expected is None or turn.authority == expected
    whole = redact_target(expected)
    if turn.absolute_target:
        return f"{turn.scheme}://{turn.authority}{turn.path}".lower() == whole.lower()
    return turn.path == whole


def _request_fields(turn: Turn, row: Row, t0: int) -> Iterator[tuple[str, Any, Any]]:
    """(field, ours, tshark's) of the request."""
    if row["method"] is None:
        return
    yield "method", turn.method, row["method"]
    yield "path", "same" if _same_path(turn, row["path"]) else turn.path, "same"
    if "h2_stream" in row:
        yield "host", turn.authority, row["host"]
        yield "request head frame", turn.request_packet, row["request_frame"]
        if "request_end" in row:
            yield "request end frame", _packet(turn.request_last), row["request_end"]["frame"]
            yield "request end time", _at(turn.request_last), t0 + round(row["request_end"]["t"] * 1e9)
        return
    yield "host", find(turn.request_headers, "host"), row["host"]
    yield "request end frame", _packet(turn.request_last), row["request_frame"]
    if "request_t" in row:
        yield "request end time", _at(turn.request_last), t0 + round(row["request_t"] * 1e9)
    if "request_first_frame" in row:
        yield "request first frame", _packet(turn.request_first), row["request_first_frame"]
    if row.get("version", "")[-2:] in (".0", ".1"):  # not "HTTP/1." and the like
        yield "version", turn.protocol.upper(), row["version"]


def _answer_fields(turn: Turn, row: Row, t0: int) -> Iterator[tuple[str, Any, Any]]:
    """(field, ours, tshark's) of the answer."""
    yield "status", turn.status, row["status"]
    if "h2_stream" in row:
        yield from _h2_answer_fields(turn, row, t0)
        return
    if row["status"] is None:
        return
    if "interim" in row:
        yield "interim", [i.status for i in turn.interim], [i["status"] for i in row["interim"]]
    if "response_first_frame" in row:
        yield "response first frame", _packet(turn.response_first), row["response_first_frame"]
    # tshark's end of a body that the connection's end delimits is the FIN; of one that is not whole, where it gave up.
    if row.get("response_whole", True) and turn.end not in (TurnEnd.UNTIL_CLOSE, TurnEnd.TUNNEL):
        yield "response end frame", _packet(turn.response_last), row["response_frame"]
        yield "response end time", _at(turn.response_last), t0 + round(row["response_t"] * 1e9)


def _h2_answer_fields(turn: Turn, row: Row, t0: int) -> Iterator[tuple[str, Any, Any]]:
    yield "response head frame", _packet(turn.response_head_last), row["response_frame"]
    if "response_end" in row:
        yield "response end frame", _packet(turn.response_last), row["response_end"]["frame"]
        yield "response end time", _at(turn.response_last), t0 + round(row["response_end"]["t"] * 1e9)
    if "grpc_status" in row:
        yield "grpc status", str(turn.grpc_status), row["grpc_status"]
    if "reset" in row and turn.end is not TurnEnd.COMPLETE:
        yield "reset frame", _packet(turn.ended), row["reset"]["frame"]


def _agrees(found: Any, expected: Any, name: str) -> bool:
    if name.endswith("time"):
        return found is not None and abs(found - expected) < _CLOSE_NS
    return bool(found == expected)


class Comparison:
    """One capture's rows against our turns."""

    def __init__(self, truth: dict[str, Any], connections: list[Heard]) -> None:
        self._rows: list[Row] = [*truth["http"], *truth["http2"]]
        self._t0 = epoch_ns(truth) if self._rows else 0
        self._ends = {s["stream"]: frozenset((tuple(s["client"]), tuple(s["server"]))) for s in truth["streams"]}
        self._turns: dict[Any, list[Turn]] = defaultdict(list)
        for one in connections:
            c = one.connection
            ends = frozenset(((c.client.address, c.client.port), (c.server.address, c.server.port)))
            self._turns[ends] += one.turns
        self._used: set[int] = set()

    def differences(self) -> Iterator[tuple[Row, str, Any, Any]]:
        """(row, field, ours, tshark's) of every comparison made."""
        pipelined = self._pipelined()
        for row in self._rows:
            turn = self._turn_of(row)
            yield row, "found", turn is not None, True
            if turn is None:
                continue
            self._used.add(id(turn))
            for name, ours, theirs in _request_fields(turn, row, self._t0):
                yield row, name, ours, theirs
            answered = self._answer_of(row) if row["stream"] in pipelined else turn
            if answered is None:
                yield row, "status", None, row["status"]
                continue
            for name, ours, theirs in _answer_fields(answered, row, self._t0):
                yield row, name, ours, theirs

    def _candidates(self, row: Row) -> list[Turn]:
        turns = self._turns[self._ends[row["stream"]]]
        return [t for t in turns if t.stream_id == row.get("h2_stream") and id(t) not in self._used]

    def _turn_of(self, row: Row) -> Turn | None:
        """By frame and target, then by target, then (a row without request) by the answer."""
        turns = self._candidates(row)
        if row["method"] is None:
            return next((t for t in turns if t.status == row["status"]), None)
        alike = [t for t in turns if t.method == row["method"] and _same_path(t, row["path"])]
        by_frame = (t for t in alike if _packet(t.request_last) == row["request_frame"])
        return next(by_frame, None) or next(iter(alike), None)

    def _answer_of(self, row: Row) -> Turn | None:
        """In a pipelined stream tshark gives answers to the wrong requests (a GIF for a page): only whether there is such an answer counts."""
        turns = self._turns[self._ends[row["stream"]]]
        if row["status"] is None:
            return next((t for t in turns if t.status is None), turns[0])
        ended = self._t0 + round(row["response_t"] * 1e9)
        same_end = (t for t in turns if t.status == row["status"] and _agrees(_at(t.response_last), ended, "time"))
        return next(same_end, None)

    def _pipelined(self) -> set[int]:
        """Streams in which a request was sent before the answer to the one before had begun."""
        found = set()
        for stream, ends in self._ends.items():
            turns = [t for t in self._turns[ends] if t.protocol != "h2" and t.request_first is not None]
            for earlier, later in pairwise(turns):
                answered = earlier.response_first
                if (
                    later.request_first is not None
                    and answered is not None
                    and later.request_first.seen_at < answered.seen_at
                ):
                    found.add(stream)
        return found

    def extra(self) -> int:
        """Our turns that tshark has no row for."""
        return sum(1 for turns in self._turns.values() for t in turns if id(t) not in self._used)


@dataclass
class Agreement:
    """Over all captures."""

    fields: dict[str, Field] = field(default_factory=lambda: defaultdict(Field))
    known: Known = field(default_factory=Known)
    extra: dict[str, int] = field(default_factory=dict)


@pytest.fixture(scope="module")
def agreement() -> Agreement:
    found = Agreement()
    for truth in public_truth():
        path = truth["path"]
        try:
            comparison = Comparison(truth, heard(folder() / path, keylog_of(path)))
        except UnsupportedFormat:
            assert not truth["http"]
            continue
        for row, name, ours, theirs in comparison.differences():
            one = found.fields[name]
            if _agrees(ours, theirs, name):
                one.same += 1
            elif (path, row, name) in found.known:
                one.named += 1
            else:
                place = f"stream {row['stream']}" + (f" h2 {row['h2_stream']}" if "h2_stream" in row else "")
                one.different.append(f"{path} {place} {row['method']} {row['path']}: {ours!r}, tshark {theirs!r}"[:300])
        if comparison.extra():
            found.extra[path] = comparison.extra()
    return found


@needs_public_captures
def test_agreement_per_field(agreement: Agreement, capsys: pytest.CaptureFixture[str]) -> None:
    check_agreement("http", agreement.fields, capsys)
    with capsys.disabled():
        sys.stdout.write(f"  turns that tshark has no row for: {agreement.extra}\n")
    assert agreement.fields["found"].same > 2000


@needs_public_captures
def test_every_named_difference_still_is_one(agreement: Agreement) -> None:
    stale = [k for i, k in enumerate(agreement.known.rows) if i not in agreement.known.used]
    assert stale == []
    assert all(len(k["reason"]) > 20 for k in agreement.known.rows)
