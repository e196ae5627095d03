"""Duplicate SACKs: retransmissions that were not needed."""

from __future__ import annotations

import struct

from tests.support.conversation import CLIENT, SERVER, Conversation


def sack(talk: Conversation, side: int, *blocks: tuple[int, int]) -> bytes:
    """A SACK option of ``side`` about its peer's octets."""
    base = talk.isns[1 - side] + 1
    edges = b"".join(struct.pack(">II", base + low, base + high) for low, high in blocks)
    return b"\1\1" + bytes([5, 2 + len(edges)]) + edges


def test_a_duplicate_sack_proves_a_retransmission_spurious() -> None:
    talk = Conversation().opens(rtt_ms=20)
    sent = talk.client(b"request")
    talk.after(230).again(sent)
    talk.after(5).acks(SERVER, 7)
    talk.after(10).acks(SERVER, 7, options=sack(talk, SERVER, (0, 7)))
    assert talk.wire().kinds(CLIENT) == ["NEW", "SPURIOUS"]
