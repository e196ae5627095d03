"""What each packet was to its connection: found once, consistent with itself."""

from __future__ import annotations

from netdiag.wire.tables import SegmentKind
from netdiag.wire.transmissions import transmissions
from tests.support.conversation import CLIENT, SERVER, Conversation


def wild() -> Conversation:
    """A loss, a needless retransmission, a keep-alive probe and a packet captured twice."""
    talk = Conversation().opens()
    asked = talk.client(b"GET")
    lost = talk.server(b"a" * 100, captured=False)
    talk.server(b"b" * 100)
    talk.acks(CLIENT, 0)
    talk.after(300).again(lost)
    talk.acks_everything(CLIENT)
    talk.after(500).again(asked)
    talk.after(30_000).packet(SERVER, offset=talk.sent[SERVER] - 1)
    talk.frames.append((talk.at_ns, talk.frames[-1][1]))
    return talk


def test_found_once_for_each_flows() -> None:
    flows = wild().wire().flows
    assert transmissions(flows) is transmissions(flows)


def test_no_packet_is_two_things() -> None:
    flows = wild().wire().flows
    found = transmissions(flows)
    assert not (found.copies & found.keep_alives).any()
    assert not (found.copies & found.duplicate_acks).any()
    assert int(found.copies.sum()) == 1
    assert int(found.keep_alives.sum()) == 1


def test_every_late_packet_has_a_kind() -> None:
    flows = wild().wire().flows
    resent = transmissions(flows).resent
    kinds = {
        int(flows.packets.number[row]): SegmentKind(kind) for row, kind in zip(resent.rows, resent.kinds, strict=True)
    }
    assert kinds == {7: SegmentKind.RETRANSMISSION, 9: SegmentKind.SPURIOUS}
    assert list(transmissions(flows).fills.ranges.values()) == [[(0, 100)]]
