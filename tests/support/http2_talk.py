"""HTTP/2 connections for tests."""

from __future__ import annotations

from netdiag.protocols.conversation import Conversation
from netdiag.protocols.http2 import frame_by_frame as http2
from tests.support.h2_bytes import Pair
from tests.support.http_bytes import MS


def ms(moment: object) -> float | None:
    return None if moment is None else moment.deliverable_at / MS  # type: ignore[attr-defined]


def observe(pair: Pair) -> Conversation:
    conversation = http2.decode(pair.from_client, pair.from_server)
    assert conversation.anomalies == []
    return conversation


def opened() -> Pair:
    pair = Pair()
    pair.at(0)
    pair.at(1)
    return pair
