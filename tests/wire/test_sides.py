"""What each side sent."""

from __future__ import annotations

from tests.support.conversation import SERVER, Conversation


def test_a_reset_by_somebody_else_shows_in_the_hop_limit() -> None:
    talk = Conversation().opens()
    talk.resets(SERVER)
    at, frame = talk.frames[-1]
    talk.frames[-1] = (at, frame[:22] + bytes([200]) + frame[23:])
    server = talk.wire().connection().sides.server
    assert (server.hop_limit, server.rst_hop_limit) == (64, 200)
