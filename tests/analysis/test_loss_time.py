"""Time lost to loss in an exchange: behind a hole, beyond the capture point, and told by the packet count alone; never what only the capture lost."""

from __future__ import annotations

import io

import netdiag
from netdiag.export.terminal.notes import _loss, _wait
from netdiag.records.exchange import Exchange
from tests.support.conversation import CLIENT, MS, SERVER, Conversation
from tests.support.http_bytes import head
from tests.support.packets import pcap

GET = head("GET /a HTTP/1.1\nHost: api.example")
PARTS = [b"%04d" % n * 25 for n in range(12)]
HEAD = head(f"HTTP/1.1 200 OK\nContent-Length: {sum(map(len, PARTS))}")


def exchange(talk: Conversation) -> Exchange:
    (found,) = netdiag.analyze(io.BytesIO(pcap(talk.frames))).exchanges
    return found


def asked(*, numbered: bool = True) -> Conversation:
    talk = Conversation(numbered=numbered).opens(rtt_ms=20)
    talk.client(GET)
    talk.after(20).acks(SERVER)
    talk.server(HEAD)
    talk.acks(CLIENT)
    return talk


def answered(talk: Conversation, parts: list[bytes]) -> Conversation:
    for part in parts:
        talk.after(50).server(part)
        talk.after(0.1).acks(CLIENT)
    return talk


def test_nothing_lost_is_zero_and_not_unknown() -> None:
    found = exchange(answered(asked(), PARTS))
    assert (found.loss_ns, found.loss_hi_ns, found.window_ns) == (0, None, 0)


def test_behind_a_hole() -> None:
    talk = answered(asked(), PARTS[:5])
    lost = talk.server(PARTS[5], captured=False)
    talk.after(10).server(PARTS[6])
    talk.after(120).again(lost)
    talk.got[CLIENT] = talk.sent[SERVER]
    talk.acks(CLIENT)
    found = exchange(answered(talk, PARTS[7:]))
    assert (found.loss_ns, found.loss_hi_ns) == (120 * MS, None)


def test_a_request_lost_beyond_the_capture_point() -> None:
    """Captured at the client: its request is on the wire here and never came there."""
    talk = Conversation().opens(rtt_ms=20)
    request = talk.client(GET)
    talk.after(220).again(request)
    talk.after(20).acks(SERVER)
    talk.server(HEAD)
    talk.acks(CLIENT)
    found = exchange(answered(talk, PARTS))
    assert (found.loss_ns, found.loss_hi_ns) == (220 * MS, None)


def test_a_silence_that_only_the_packet_count_explains_is_an_upper_bound() -> None:
    talk = answered(asked(), PARTS[:6])
    lost = talk.after(50).server(PARTS[6], captured=False)
    talk.after(230).again(lost)
    talk.got[CLIENT] = talk.sent[SERVER]
    talk.after(0.1).acks(CLIENT)
    found = exchange(answered(talk, PARTS[7:]))
    assert (found.loss_ns, found.loss_hi_ns) == (0, 280 * MS + MS // 10)
    assert _loss(found, found.phases[-1], None, 1) == "loss 0.0 to 280.1"


def test_each_phase_has_its_part_of_the_loss() -> None:
    talk = Conversation().opens()
    lost = talk.after(0.1).client(GET)
    talk.after(220).again(lost)
    talk.after(20).server(HEAD)
    found = exchange(answered(talk, PARTS))
    assert {p.name: p.loss_ns for p in found.phases} == {"tcp": 0, "send": 0, "wait": 220 * MS, "transfer": 0}
    said = [_loss(found, phase, None, 1) for phase in found.phases]
    assert said == ["", "", "", ""]
    assert _wait(found, None, 1)[0] == "path 20.0 + loss 220.0 + server ≤ 0.0"


def test_a_pause_is_no_loss() -> None:
    talk = answered(asked(), PARTS[:6])
    found = exchange(answered(talk.after(230), PARTS[6:]))
    assert (found.loss_ns, found.loss_hi_ns) == (0, None)


def test_what_only_the_capture_lost_is_no_loss() -> None:
    talk = answered(asked(), PARTS[:5])
    talk.server(PARTS[5], captured=False)
    talk.after(10).server(PARTS[6])
    talk.acks_everything(CLIENT)
    found = exchange(answered(talk, PARTS[7:]))
    assert (found.loss_ns, found.loss_hi_ns) == (0, None)
