"""Exchanges told in brief against the drafts of the same connections heard one by one: every column must be equal."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netdiag.analysis import keyed
from netdiag.analysis.exchange_columns import OUTCOMES, MarkTable, marks_of_drafts
from netdiag.analysis.part import Context, Part
from netdiag.analysis.pipeline import analyse
from netdiag.capture.source import open_capture
from netdiag.errors import NetdiagError
from netdiag.export.json import plain
from netdiag.protocols.tls.keylog import KeyLog, parse_keylog
from netdiag.records.exchange import Outcome
from tests.analysis.test_sealed import CAPTURES, answers
from tests.benchmarks.big_captures import SHORT, clear_text, repeat, secrets_of, template
from tests.captures.kinds.http1 import broken_off, events
from tests.protocols.test_http_properties import EXCHANGES, Spoken, write_http1
from tests.support.conversation import Conversation, wire_of
from tests.support.http_bytes import head
from tests.support.public_captures import folder, index, keylog_of
from tests.support.tools import needs_public_captures

GET = head("GET /a HTTP/1.1\nHost: api.example")
OK = head("HTTP/1.1 200 OK\nContent-Length: 2") + b"ok"
CONTEXT = Context(keylog=None, capture_ends_at=1 << 62, addresses=frozenset(), refusals={})


def part_of(talk: Conversation) -> Part:
    return Part(talk.wire().flows, 0, CONTEXT)


def said(table: MarkTable) -> dict[str, list[object]]:
    """Columns as values; those with nothing in them count for nothing."""
    marks = {str(name): column.tolist() for name, column in table.marks.items()}
    since = {name: column.tolist() for name, column in table.since_request.items()}
    return {
        "place": list(zip(table.connection.tolist(), table.position.tolist(), strict=True)),
        "arm": [table.arms[arm] for arm in table.arm.tolist()],
        "rest": [getattr(table, name).tolist() for name in ("ended", "outcome", "set_aside", "status", "marked")],
        "marks": sorted(marks.items()),
        "since": sorted(since.items()),
    }


def assert_told_as_heard(part: Part) -> None:
    told = part.facts().exchanges
    places = zip(told.connection.tolist(), told.position.tolist(), strict=True)
    assert said(told) == said(marks_of_drafts([part.draft(*place) for place in places]))


def test_nothing_is_told_where_everything_is_going_to_be_asked_for() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.client(GET)
    talk.after(50).server(OK)
    flows = talk.closes().wire().flows
    told, heard = (Part(flows, 0, replace(CONTEXT, in_full=in_full)) for in_full in (False, True))
    assert (is_told(told), is_told(heard)) == (True, False)
    assert said(told.facts().exchanges) == said(heard.facts().exchanges)


def is_told(part: Part) -> bool:
    """Whether any connection was told in brief."""
    return bool(part._told.any())


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    exchanges=st.lists(EXCHANGES, min_size=1, max_size=4),
    cuts=st.lists(st.integers(1, 400), max_size=6),
    lost=st.sets(st.integers(0, 12), max_size=2),
    opened=st.booleans(),
    pause_ms=st.sampled_from([0.1, 5, 60]),
)
def test_told_as_heard(exchanges: list[Spoken], cuts: list[int], lost: set[int], opened: bool, pause_ms: float) -> None:
    talk = Conversation()
    if opened:
        talk.opens(rtt_ms=20)
    number = 0
    for messages in zip(*write_http1(exchanges), strict=False):
        for side, message in enumerate(messages):
            edges = sorted({0, *(cut for cut in cuts if cut < len(message.data)), len(message.data)})
            for begin, end in pairwise(edges):
                sent = talk.after(pause_ms).say(side, message.data[begin:end], captured=number not in lost)
                if number in lost:
                    talk.after(250).again(sent)
                number += 1
    assert_told_as_heard(part_of(talk.closes()))


def test_two_requests() -> None:
    talk = Conversation().opens(rtt_ms=20)
    for _ in range(2):
        talk.after(50).client(GET)
        talk.after(50).server(OK)
    part = part_of(talk.closes())
    assert is_told(part)
    assert_told_as_heard(part)
    assert part.connections[0].http_version == "http/1.1"


def test_a_request_sent_before_any_answer_could_cause_it_waited_for_the_same_set_up() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.client(GET)
    talk.after(1).client(GET)
    talk.after(50).server(OK)
    talk.server(OK)
    part = part_of(talk.closes())
    assert is_told(part)
    assert part.facts().openers == {1: 0}
    assert_told_as_heard(part)


def test_an_answer_before_its_request_is_heard() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.after(50).server(OK)
    talk.after(50).client(GET)
    assert not is_told(part_of(talk.closes()))


def test_a_connection_whose_beginning_was_not_captured_is_told() -> None:
    talk = Conversation()
    talk.client(GET)
    talk.after(50).server(OK)
    part = part_of(talk)
    assert is_told(part)
    assert_told_as_heard(part)


def everything(path: Path, keylog: bytes = b"", *, in_full: bool = False) -> tuple[object, ...]:
    with open_capture(str(path)) as capture:
        keys = partial(_keys, keylog, capture.secrets)
        found = analyse(capture.windows(), keylog=keys, in_full=in_full)
        return plain(list(found.exchanges)), plain(list(found.connections)), found.opened, *answers(found)


def _keys(given: bytes, embedded: list[bytes]) -> KeyLog:
    return parse_keylog(b"\n".join([given, *embedded]))


def assert_as_heard(path: Path, keylog: bytes = b"") -> None:
    assert everything(path, keylog, in_full=True) == everything(path, keylog)


def test_many_are_as_they_are_heard(tmp_path: Path) -> None:
    """Event streams and plain answers over many connections: the whole analysis, and its statistics."""
    path = tmp_path / "clear.pcap"
    repeat([clear_text()], 40, path, spread_s=1)
    assert_as_heard(path)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_own_captures_are_as_they_are_heard(path: Path) -> None:
    assert_as_heard(path)


def test_many_with_keys_are_as_they_are_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keyed.pcap"
    repeat([template(one) for one in CAPTURES if one.stem in SHORT], 60, path, spread_s=1)
    keylog = b"\n".join(secrets_of(one) for one in CAPTURES)
    assert_as_heard(path, keylog)
    told = everything(path, keylog)
    for name, size in (("BATCH_BYTES", 3_000), ("MOST_BYTES", 6_000)):
        with monkeypatch.context() as patch:
            patch.setattr(keyed, name, size)
            assert everything(path, keylog) == told


@needs_public_captures
@pytest.mark.slow
def test_public_captures_are_as_they_are_heard() -> None:
    compared = 0
    for name in index():
        keys = keylog_of(name)
        try:
            assert_as_heard(folder() / name, b"" if keys is None else keys.read_bytes())
            compared += 1
        except NetdiagError:
            continue
    assert compared > 100


def test_a_stream_that_tells_of_an_error_is_heard_and_failed() -> None:
    """Wherever it comes, and however it is cut."""
    whole, broken = (wire_of(frames) for frames in (events(), broken_off()))
    told = [Part(wire.flows, 0, CONTEXT) for wire in (whole, broken)]
    assert [bool(part._told.any()) for part in told] == [True, False]
    assert [OUTCOMES[code] for part in told for code in part.facts().exchanges.outcome] == [
        Outcome.OK,
        Outcome.STREAM_ERROR,
    ]
    for part in told:
        assert_told_as_heard(part)
