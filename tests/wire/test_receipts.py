"""Which of the client's bursts the server acknowledged, when, and whether without data of its own."""

from __future__ import annotations

from netdiag.wire.receipts import receipts
from tests.support.conversation import MS, SERVER, Conversation


def told(talk: Conversation) -> list[tuple[float, float, bool]]:
    """(sent, acknowledged, bare) in milliseconds since the first packet."""
    rows = receipts(talk.wire().flows).of(0)
    begin = talk.frames[0][0]
    columns = ((rows.sent_at - begin) / MS, (rows.acked_at - begin) / MS, rows.bare)
    return [(round(a), round(b), bool(c)) for a, b, c in zip(*columns, strict=True)]


def test_alone_or_with_the_answer() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.after(10).client(b"one")
    talk.after(20).acks(SERVER)
    talk.after(100).server(b"1")
    talk.after(10).client(b"two")
    talk.after(50).server(b"2")
    assert told(talk) == [(30, 50, True), (160, 210, False)]


def test_an_acknowledgement_of_a_part_is_none_of_the_whole() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.after(10).client(b"head")
    talk.after(0.1).client(b"body")
    talk.after(20).acks(SERVER, 4)
    talk.after(40).acks_everything(SERVER)
    assert told(talk) == [(30, 90, True)]


def test_octets_that_were_sent_again_count_once_and_from_their_first_sending() -> None:
    talk = Conversation().opens(rtt_ms=20)
    request = talk.after(10).client(b"one")
    talk.after(200).again(request)
    talk.after(20).acks(SERVER)
    assert told(talk) == [(30, 250, True)]


def test_what_nobody_acknowledged_has_no_row() -> None:
    talk = Conversation().opens(rtt_ms=20)
    talk.after(10).client(b"one")
    assert told(talk) == []
