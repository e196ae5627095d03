"""A graceful GOAWAY before the answer: httpcore and hyper-h2 drop what comes after it, and the wire (or the reads) still tell it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import h2.events
import httpcore
import pytest
from h2.errors import ErrorCodes

from netdiag import api
from netdiag.export.text import report
from netdiag.probe.failures import GAVE_UP, outcome_of, reason_of
from netdiag.records.exchange import Outcome
from tests.support.h2_bytes import DATA, HEADERS, SETTINGS_ACK, frame, goaway, settings


@pytest.fixture
def leaving() -> Iterator[str]:
    """The URL of a server that says GOAWAY and its answer in one write, as nginx does at the last request of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_serve, args=(listener,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        thread.join(5)


def _serve(listener: socket.socket) -> None:
    with listener.accept()[0] as client:
        heard = b""
        while bytes((HEADERS, 5, 0, 0, 0, 1)) not in heard:  # type, END_HEADERS and END_STREAM, stream 1
            heard += client.recv(4096)
        answer = frame(HEADERS, 4, 1, b"\x88") + frame(DATA, 1, 1, b"hello")
        client.sendall(settings() + SETTINGS_ACK + goaway(1) + answer)
        client.recv(4096)


def test_the_answer_is_told_with_what_the_client_did_not_take(leaving: str) -> None:
    found = api.probe(leaving, arms=("h2",), trials=1, capture="none")
    (exchange,) = found.exchanges
    assert (exchange.status, exchange.outcome, exchange.outcome_detail) == (200, Outcome.OK, GAVE_UP)
    assert "transfer" in [phase.name for phase in exchange.phases]
    shown = "\n".join(line.plain for line in report(found, width=100))
    assert f"client       took none of it: {GAVE_UP}" in shown


def reset(code: int) -> h2.events.Event:
    event = h2.events.StreamReset.__new__(h2.events.StreamReset)  # what its constructor asks for depends on the version
    event.stream_id, event.error_code, event.remote_reset = 1, code, True
    return event


def going_away(code: int) -> h2.events.Event:
    event = h2.events.ConnectionTerminated.__new__(h2.events.ConnectionTerminated)
    event.error_code, event.last_stream_id, event.additional_data = code, 1, None
    return event


@pytest.mark.parametrize(
    ("event", "outcome", "reason"),
    [
        (reset(ErrorCodes.REFUSED_STREAM), Outcome.RESET, "RST_STREAM (REFUSED_STREAM) from the server"),
        (going_away(ErrorCodes.ENHANCE_YOUR_CALM), Outcome.RESET, "GOAWAY (ENHANCE_YOUR_CALM) from the server"),
        (going_away(ErrorCodes.NO_ERROR), Outcome.CLOSED_EARLY, GAVE_UP),
        (reset(99), Outcome.RESET, "RST_STREAM (error 99) from the server"),
    ],
)
def test_what_hyper_h2_says_in_words(event: object, outcome: Outcome, reason: str) -> None:
    error = httpcore.RemoteProtocolError(event)
    assert (outcome_of(error), reason_of(error)) == (outcome, reason)
    wrapped = RuntimeError(str(error))
    wrapped.__cause__ = error
    assert (outcome_of(wrapped), reason_of(wrapped)) == (outcome, reason)
