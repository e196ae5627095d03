"""Streams that advance by a record at a time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.wire import record_steps
from netdiag.wire.tls_records import chain
from tests.support.conversation import CLIENT, SERVER, Conversation, wire_of
from tests.support.record_streams import HELLO, contents, found, record


def test_an_ssl_2_compatible_hello_comes_first() -> None:
    hello = bytes.fromhex("802e 01 0302") + bytes(43)
    talk = Conversation().opens()
    talk.client(hello + record(20, kind=22))
    talk.server(record(70, kind=22))
    wire = talk.wire()
    assert found(wire, CLIENT) == [(0, 128, 46), (48, 22, 20)]
    assert contents(wire, CLIENT)[0] == hello[2:]


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_lock_step_and_one_by_one_find_the_same(data: st.DataObject) -> None:
    """Many streams of random records in random segments with random losses: both ways of walking agree with each other and, where nothing
    is missing, with the truth."""
    count = data.draw(st.integers(1, 12))
    frames, truth = [], []
    for i in range(count):
        lengths = data.draw(st.lists(st.integers(0, 900), min_size=1, max_size=30))
        lost = data.draw(st.sets(st.integers(0, 40), max_size=2))
        octets = HELLO + b"".join(record(length, seed=i) for length in lengths)
        talk = Conversation(client=("10.0.0.1", 40000 + i)).opens()
        size = data.draw(st.integers(1, 1460)) + 40
        for turn, at in enumerate(range(0, len(octets), size)):
            talk.say(SERVER, octets[at : at + size], captured=turn not in lost)
        talk.acks_everything(CLIENT)
        frames += talk.frames
        truth.append(None if lost else [5, *lengths])
    wire = wire_of(frames)
    step_by_step = chain(wire.buffer, wire.segments)
    few, many = record_steps.FEW, record_steps.MANY_STEPS
    record_steps.FEW, record_steps.MANY_STEPS = 10**9, 0
    try:
        one_by_one = chain(wire.buffer, wire.segments)
    finally:
        record_steps.FEW, record_steps.MANY_STEPS = few, many
    for name in type(step_by_step).__dataclass_fields__:
        assert (getattr(step_by_step, name) == getattr(one_by_one, name)).all(), name
    for i, lengths in enumerate(truth):
        if lengths is not None:
            assert step_by_step.length[step_by_step.connection == i].tolist() == lengths
