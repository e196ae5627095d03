"""What the senders' own packet count proves: losses that leave no hole, and how many packets the capture never saw."""

from __future__ import annotations

from netdiag.wire.stalls import StallKind
from tests.support.conversation import CLIENT, MS, SERVER, Conversation, Wire


def streaming(*, lost_at: int | None, numbered: bool = True, paused_at: int | None = None) -> Wire:
    """Tokens every 50 ms. One is lost and comes back 230 ms later, or the server pauses as long; nothing else is on its way."""
    talk = Conversation(numbered=numbered).opens(rtt_ms=20)
    talk.client(b"tell me")
    talk.after(20).acks(SERVER)
    for i in range(12):
        talk.after(50)
        if i == lost_at:
            lost = talk.server(b"token %d" % i, captured=False)
            talk.after(230).again(lost)
            talk.got[CLIENT] = talk.sent[SERVER]
        else:
            talk.after(280 if i == paused_at else 50).server(b"token %d" % i)
        talk.after(0.1).acks(CLIENT)
    return talk.wire()


def unseen(wire: Wire) -> list[float]:
    stalls = wire.table.stalls
    chosen = stalls.kind == StallKind.UNSEEN_LOSS
    return [(end - start) / MS for start, end in zip(stalls.started_at[chosen], stalls.ended_at[chosen], strict=True)]


def test_a_lost_last_segment_is_told_from_a_pause() -> None:
    assert unseen(streaming(lost_at=6)) == [280.1]
    assert unseen(streaming(lost_at=None, paused_at=6)) == []


def test_the_record_says_so() -> None:
    side = streaming(lost_at=6).connection().sides.server
    assert (side.unseen_packets, side.retransmitted_segments, side.loss_ns) == (1, 0, 0)
    assert side.unseen_loss_ns > 279 * MS


def test_without_a_packet_count_nobody_can_tell() -> None:
    wire = streaming(lost_at=6, numbered=False)
    assert unseen(wire) == []
    assert wire.connection().sides.server.unseen_packets is None


def test_a_bare_acknowledgement_that_was_lost_is_no_lost_data() -> None:
    talk = Conversation().opens(rtt_ms=20)
    for i in range(10):
        talk.after(50).client(b"question %d" % i)
        talk.after(20).packet(SERVER, captured=i != 5)
        talk.after(200).server(b"answer")
        talk.after(0.1).acks(CLIENT)
    wire = talk.wire()
    assert unseen(wire) == []
    assert wire.connection().sides.server.unseen_packets == 1


def test_reordering_is_nothing_unseen() -> None:
    talk = Conversation().opens(rtt_ms=20)
    for _ in range(10):
        talk.server(b"x" * 100)
    early = talk._identification[SERVER] + 1
    late = talk.server(b"late" * 25, captured=False)
    talk.server(b"x" * 100)
    talk.packet(SERVER, late.data, offset=late.offset, flags=late.flags, identification=early)
    talk.acks_everything(CLIENT)
    assert talk.wire().connection().sides.server.unseen_packets == 0
