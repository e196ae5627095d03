from __future__ import annotations

from pathlib import Path

import pytest

import netdiag
from netdiag.errors import UsageError
from netdiag.records.lanes import ExchangeLanes, LaneKind

CAPTURES = Path(__file__).parents[2] / "captures"


def lanes(name: str, exchange_id: int = 0) -> ExchangeLanes:
    return netdiag.lanes(CAPTURES / f"{name}.pcapng", exchange_id)


@pytest.mark.parametrize("name", ["h1", "h2", "h2-stream", "built-dns-h1", "tls12-h1", "clear-text-h2"])
def test_everything_lies_within_the_exchange_and_in_order(name: str) -> None:
    shown = lanes(name)
    e = shown.exchange
    assert shown.packets
    assert [p.number for p in shown.packets] == sorted(p.number for p in shown.packets)
    assert all(e.started_at <= p.at <= e.ended_at for p in shown.packets)
    assert {p.side for p in shown.packets} == {"client", "server"}
    assert [m.seen_at for m in shown.messages] == sorted(m.seen_at for m in shown.messages)


def test_phases_begin_and_end_in_packets_that_are_shown() -> None:
    shown = lanes("h1")
    numbers = {p.number for p in shown.packets}
    for phase in shown.exchange.phases:
        assert {phase.first_packet, phase.last_packet} <= {*numbers, None}


def test_records_have_the_names_of_their_messages() -> None:
    labels = [record.label for record in lanes("h1").records]
    assert labels[0] == "ClientHello"
    assert "ServerHello" in labels
    assert "handshake, encrypted" in labels
    assert "application data" in labels


def test_tickets_do_not_belong_to_the_exchange() -> None:
    shown = lanes("built-dns-h1")
    strangers = [r for r in shown.records if r.side == "server" and not r.of_this_exchange]
    assert strangers
    assert all(r.deliverable_at is not None and r.deliverable_at < shown.exchange.ended_at for r in strangers)


def test_clear_text_has_no_records() -> None:
    assert lanes("clear-text-h2").records == ()


def test_a_lost_segment_is_a_hole_and_a_retransmission() -> None:
    shown = lanes("built-h2-loss")
    assert [p.side for p in shown.packets if p.kind is LaneKind.RETRANSMISSION] == ["server"]
    (hole,) = shown.holes
    assert hole.side == "server"
    assert hole.until_at is not None
    assert hole.until_at - hole.from_at == shown.exchange.loss_ns
    waiting = [r for r in shown.records if r.deliverable_at == hole.until_at and r.seen_at < hole.until_at]
    assert len(waiting) >= 5


def test_other_streams_are_shown_as_others() -> None:
    others = [m.label for m in lanes("h2-several-streams", 1).messages if not m.of_this_exchange]
    assert "#2 request" in others
    assert "#4 404 response" in others


def test_a_request_in_two_parts_around_100_continue() -> None:
    labels = [m.label for m in lanes("built-continue").messages]
    assert labels == ["request head", "100", "request body", "200 response"]


def test_reused_connections_show_no_handshake() -> None:
    shown = lanes("h1-reused", 1)
    assert LaneKind.SYN not in {p.kind for p in shown.packets}
    assert "ClientHello" not in {r.label for r in shown.records}


def test_what_cannot_be_shown_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="there is no request 7"):
        lanes("h1", 7)
    with pytest.raises(UsageError, match="standard input"):
        netdiag.lanes("-", 0)
