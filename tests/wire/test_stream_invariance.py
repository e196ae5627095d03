"""However a conversation is cut, reordered or doubled on its way, its octets stay the same, and so does every time but that of the octets
that moved."""

from __future__ import annotations

import itertools
import random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.conversation import CLIENT, MS, SERVER, Conversation, Wire, wire_of
from tests.support.packets import Timed

SIDES = (CLIENT, SERVER)


def conversation(
    turns: list[tuple[int, int]], *, cut: int = 1460, isns: tuple[int, int] = (1000, 5000)
) -> Conversation:
    """Alternating messages of (side, octets), every message's segments captured at one instant, then everything acknowledged."""
    talk = Conversation(isns=isns, step_ms=0).opens(rtt_ms=20)
    for turn, (side, size) in enumerate(turns):
        octets = random.Random(turn).randbytes(size)
        talk.after(30)
        for start in range(0, size, cut):
            talk.say(side, octets[start : start + cut])
        talk.after(0.2).acks(1 - side)
    return talk


def times_by_octet(wire: Wire, side: int) -> dict[int, tuple[int, int]]:
    """(seen, deliverable) of every octet of one direction."""
    return {
        chunk.offset + i: (chunk.first_seen_at, chunk.deliverable_at)
        for chunk in wire.chunks(side)
        for i in range(len(chunk.data))
    }


def data_frames(talk: Conversation) -> list[int]:
    """Places of the frames with payload."""
    return [i for i, (_, frame) in enumerate(talk.frames) if len(frame) > 54 and i > 2]


turns = st.lists(st.tuples(st.sampled_from(SIDES), st.integers(1, 6000)), min_size=1, max_size=5)


@given(turns, st.integers(1, 5999), st.integers(1, 5999), st.sampled_from([1000, 2**32 - 2000]))
@settings(max_examples=40, deadline=None)
def test_segmentation_changes_neither_octets_nor_times(
    script: list[tuple[int, int]], one: int, other: int, isn: int
) -> None:
    assume(all(size < 400 * min(one, other) for _, size in script))
    first, second = conversation(script, cut=one).wire(), conversation(script, cut=other, isns=(isn, isn)).wire()
    for side in SIDES:
        assert first.octets(side) == second.octets(side)
        assert times_by_octet(first, side) == times_by_octet(second, side)


@given(turns, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_copies_change_nothing(script: list[tuple[int, int]], chance: random.Random) -> None:
    talk = conversation(script)
    honest = talk.wire()
    frames: list[Timed] = []
    for at, frame in talk.frames:
        frames += [(at, frame)] + [(at + 20_000, frame)] * chance.choice((0, 0, 1, 2))
    doubled = wire_of(sorted(frames, key=lambda frame: frame[0]))
    for side in SIDES:
        assert doubled.octets(side) == honest.octets(side)
        assert times_by_octet(doubled, side) == times_by_octet(honest, side)
    assert doubled.connection().sides.server.retransmitted_segments == 0
    assert doubled.connection().sides.client.duplicate_acks == 0


@given(turns, st.data())
@settings(max_examples=60, deadline=None)
def test_a_late_packet_delays_its_own_octets_and_those_behind_it_only(
    script: list[tuple[int, int]], data: st.DataObject
) -> None:
    talk = conversation(script, cut=700)
    honest = talk.wire()
    places = data_frames(talk)
    moved = data.draw(st.sampled_from(places))
    at, frame = talk.frames[moved]
    late_ns = data.draw(st.integers(1, 400)) * MS // 10
    late = wire_of(sorted(talk.frames[:moved] + talk.frames[moved + 1 :] + [(at + late_ns, frame)], key=lambda f: f[0]))
    for side in SIDES:
        assert late.octets(side) == honest.octets(side)
        before, after = times_by_octet(honest, side), times_by_octet(late, side)
        changed = [offset for offset in before if before[offset][0] != after[offset][0]]
        for offset, (seen_at, deliverable_at) in after.items():
            assert deliverable_at >= seen_at
            if not changed or offset < changed[0]:
                assert after[offset] == before[offset]
            elif offset in changed:
                assert seen_at == before[offset][0] + late_ns
            else:
                assert seen_at == before[offset][0]
                assert deliverable_at == max(seen_at, before[changed[0]][0] + late_ns)


@given(turns, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_any_order_and_any_retransmission_gives_the_same_octets(
    script: list[tuple[int, int]], chance: random.Random
) -> None:
    talk = conversation(script, cut=300)
    honest = talk.wire()
    opening, rest = talk.frames[:3], list(talk.frames[3:])
    rest += chance.sample(rest, chance.randint(0, len(rest)))
    chance.shuffle(rest)
    start = opening[-1][0]
    shuffled = wire_of(opening + [(start + i * MS, frame) for i, (_, frame) in enumerate(rest, 1)])
    for side in SIDES:
        assert shuffled.octets(side) == honest.octets(side)
        ready = [chunk.deliverable_at for chunk in shuffled.chunks(side)]
        assert ready == sorted(ready)
    assert shuffled.connection().sides.client.missing_bytes == 0
    assert shuffled.connection().sides.server.missing_bytes == 0


@given(turns, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_overlapping_retransmissions_of_any_shape_add_nothing(
    script: list[tuple[int, int]], chance: random.Random
) -> None:
    """Some segments are lost; then ranges that ignore all boundaries are sent again until everything is there."""
    talk = conversation(script, cut=250)
    honest = talk.wire()
    streams = {side: honest.octets(side) for side in SIDES}
    kept = [f for i, f in enumerate(talk.frames) if i < 3 or i not in data_frames(talk) or chance.random() < 0.5]
    talk.frames = kept
    for side in SIDES:
        size = len(streams[side])
        cuts = sorted({0, size, *(chance.randint(0, size) for _ in range(4))})
        ranges = list(itertools.pairwise(cuts))
        ranges += [(max(0, low - 100), min(size, high + 100)) for low, high in ranges]
        chance.shuffle(ranges)
        for low, high in ranges:
            if low < high:
                talk.after(50).packet(side, streams[side][low:high], offset=low)
    wire = talk.wire()
    for side in SIDES:
        assert wire.octets(side) == streams[side]
        offsets = [(chunk.offset, chunk.offset + len(chunk.data)) for chunk in wire.chunks(side)]
        assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(offsets))


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=25))
@settings(max_examples=100, deadline=None)
def test_first_seen_is_the_first_copy_of_each_octet(ranges: list[tuple[int, int]]) -> None:
    """Against a model that keeps every octet by itself."""
    talk = Conversation().opens()
    first: dict[int, int] = {}
    for low, length in ranges:
        talk.packet(CLIENT, bytes((low + i) % 251 for i in range(length)), offset=low)
        for offset in range(low, low + length):
            first.setdefault(offset, talk.at_ns)
    talk.sent[CLIENT] = 60
    talk.acks_everything(SERVER)
    wire = talk.wire()
    seen = {offset: at for offset, (at, _) in times_by_octet(wire, CLIENT).items()}
    assert seen == first
    for chunk in wire.chunks(CLIENT):
        assert chunk.data == bytes((chunk.offset + i) % 251 for i in range(len(chunk.data)))
