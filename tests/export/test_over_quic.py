"""What the report says of connections over QUIC."""

from __future__ import annotations

import io

import pytest

from netdiag import api
from netdiag.export.terminal.over_quic import over_quic
from netdiag.export.terminal.page import Page
from netdiag.records.analysis import Analysis
from tests.captures.kinds import quic
from tests.captures.kinds.kind import in_clear
from tests.support.fabricated import analysis, connection, session
from tests.support.packets import Timed, pcap


def said(whole: Analysis) -> list[str]:
    page = Page(200)
    over_quic(page, whole)
    return [line.plain for line in page.lines]


def captured(frames: list[Timed]) -> Analysis:
    return api.analyze(io.BytesIO(pcap(frames)))


def test_nothing_without_quic() -> None:
    assert said(captured(in_clear((0, b"GET / HTTP/1.1\r\n\r\n")))) == []


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (list(quic.handshake(1)), "api.example.com (handshake 20.1 ms)"),
        (list(quic.retried()), "api.example.com (ServerHello after 40.0 ms)"),
        (list(quic.large_hello())[:2], "api.example.com (no answer)"),
    ],
)
def test_one(frames: list[Timed], expected: str) -> None:
    assert said(captured(frames)) == [f"1 connection over QUIC, whose requests are not read: {expected}"]


def test_beside_tcp_the_first_few_are_named() -> None:
    names = ("a.example", None, "\x1b[31mred", "d.example")
    over_udp = [
        connection(i + 1, transport="quic", tls=session(sni=name, client_hello_at=None)) for i, name in enumerate(names)
    ]
    (line,) = said(analysis(connections=(connection(0), *over_udp)))
    begun = "begun before the capture"
    assert line.startswith(
        f"4 connections over QUIC, whose requests are not read: a.example ({begun}), 203.0.113.7:443 ("
    )
    assert line.endswith(f"red ({begun}) and 1 more")
    assert "\x1b" not in line
