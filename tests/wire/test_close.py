"""How and by whom a connection was ended."""

from __future__ import annotations

from tests.support.conversation import CLIENT, SERVER, Conversation
from tests.support.packets import ACK, RST, SYN


def test_refused() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    talk.packet(SERVER, flags=RST | ACK, offset=-1, ack=-1)
    record = talk.wire().connection()
    assert (record.close_reason, record.closed_by) == ("refused", "server")
    assert record.sides.server.rst_packet == 2


def test_nobody_answered() -> None:
    talk = Conversation()
    for wait_ms in (0, 1000, 2000):
        talk.after(wait_ms).packet(CLIENT, flags=SYN)
    record = talk.wire().connection()
    assert (record.close_reason, record.closed_by, record.closed_at) == ("syn-timeout", None, None)
    assert record.syn_retries == 2


def test_half_open_at_the_end_of_the_capture_is_open() -> None:
    talk = Conversation()
    talk.packet(CLIENT, flags=SYN)
    record = talk.wire().connection()
    assert (record.close_reason, record.syn_ack_at) == (None, None)


def test_reset_by_the_server() -> None:
    talk = Conversation().opens()
    talk.client(b"request")
    talk.resets(SERVER)
    record = talk.wire().connection()
    assert (record.close_reason, record.closed_by) == ("reset", "server")
    assert record.complete
