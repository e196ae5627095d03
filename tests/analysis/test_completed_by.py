"""Messages whose segments were captured out of order belong to the packet that completed them, as their times do, and as tshark shows them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import netdiag
from netdiag.records.timing import PhaseName
from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.h2_bytes import PREFACE, REQUEST, RESPONSE, SETTINGS_ACK, Headers, settings
from tests.support.packets import pcap
from tests.support.tools import needs_tshark

REQUEST_PIECES = (b"POST /a HTTP/1.1\r\nHost: e", b"xample.com\r\nContent-Length: 4\r\n\r\n", b"body")
ANSWER_PIECES = (b"HTTP/1.1 200 OK\r\n", b"Content-Length: 2\r\n\r\nhi")


def swapped(talk: Conversation, first: int) -> None:
    """Frames ``first`` and the next (counted from 1) were captured the other way round."""
    (at, one), (then, other) = talk.frames[first - 1 : first + 1]
    talk.frames[first - 1 : first + 1] = [(at, other), (then, one)]


def http1(tmp_path: Path) -> Path:
    """Request in frames 4 to 6 (the last two swapped), answer in 8 and 9 (swapped)."""
    talk = Conversation(server=("10.0.0.2", 80)).opens()
    for piece in REQUEST_PIECES:
        talk.client(piece)
    talk.acks(SERVER)
    for piece in ANSWER_PIECES:
        talk.server(piece)
    talk.acks(CLIENT)
    swapped(talk, 5)
    swapped(talk, 8)
    return written(talk, tmp_path)


def http2(tmp_path: Path) -> Path:
    """With prior knowledge: SETTINGS acknowledged in frame 6, HEADERS in frame 7 (swapped), answered in 8 and 9 (swapped)."""
    talk = Conversation(server=("10.0.0.2", 80)).opens()
    talk.client(PREFACE + settings())
    talk.server(settings())
    talk.client(SETTINGS_ACK)
    talk.client(Headers().frame(1, REQUEST, end_stream=True))
    talk.server(SETTINGS_ACK)
    talk.server(Headers().frame(1, RESPONSE, end_stream=True))
    swapped(talk, 6)
    swapped(talk, 8)
    return written(talk, tmp_path)


def written(talk: Conversation, tmp_path: Path) -> Path:
    path = tmp_path / "swapped.pcap"
    path.write_bytes(pcap(talk.frames))
    return path


@pytest.mark.parametrize(("capture", "request_packet", "response_packet"), [(http1, 6, 9), (http2, 7, 9)])
def test_the_packet_that_completes_a_message_is_its_packet(
    capture: Callable[[Path], Path], request_packet: int, response_packet: int, tmp_path: Path
) -> None:
    (exchange,) = netdiag.analyze(capture(tmp_path)).exchanges
    assert (exchange.request_packet, exchange.response_packet) == (request_packet, response_packet)
    waits = [phase for phase in exchange.phases if phase.name is PhaseName.WAIT]
    assert [(wait.last_packet, wait.started_at + wait.duration_ns) for wait in waits] == [
        (response_packet, captured_at(capture(tmp_path), response_packet))
    ]


def captured_at(path: Path, number: int) -> int:
    with netdiag.open_capture(path) as capture:
        (window,) = capture.windows()
        return int(window.packets.captured_at[number - 1])


@needs_tshark
@pytest.mark.parametrize(("capture", "field"), [(http1, "http.request"), (http2, "http2.headers.method")])
def test_tshark_shows_the_request_in_the_same_frame(
    capture: Callable[[Path], Path], field: str, tmp_path: Path
) -> None:
    path = capture(tmp_path)
    (exchange,) = netdiag.analyze(path).exchanges
    command = ["tshark", "-n", "-r", str(path), "-o", "tcp.reassemble_out_of_order:TRUE", "-Y", field]
    command += ["-d", "tcp.port==80,http" + ("2" if capture is http2 else "")]
    shown = subprocess.run([*command, "-T", "fields", "-e", "frame.number"], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == [str(exchange.request_packet)]
