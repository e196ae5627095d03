"""HTTP/2 connections as they come, ordinary and odd, frame by frame: for decoders that must agree about all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from netdiag.wire.chunk import Chunk
from tests.support import h2_bytes as h2
from tests.support.http_bytes import recut

MS = 1_000_000
CLIENT, SERVER = 0, 1
UNKNOWN_TYPE = 0xFA
DEFAULT_WINDOW = 65_535
_KINDS = ("text/plain", "text/event-stream", "application/grpc", "application/json", "application/dns-message")
_CONTENTS = (
    b"",
    b"x",
    b"y" * 700,
    b"w" * 9000,
    b"data: 1\n\ndata: [DONE]\n\n",
    b"\0\0\0\0\3abc",
    b'{"usage": {"completion_tokens": 3}}',
)


@dataclass
class Talk:
    """Both directions; what is said is kept as (side, octets) in the order in which it is said."""

    rng: random.Random
    said: list[tuple[int, bytes]] = field(default_factory=list)
    headers: tuple[h2.Headers, h2.Headers] = field(default_factory=lambda: (h2.Headers(), h2.Headers()))

    def say(self, side: int, *frames: bytes) -> None:
        """These frames, now."""
        self.said += [(side, frame) for frame in frames]

    def section(self, side: int, stream_id: int, fields: Sequence[tuple[str, str]], *, ends: bool = False) -> bytes:
        """HEADERS, sometimes with a priority."""
        block = self.headers[side].block(fields)
        flags = h2.END_HEADERS | (h2.END_STREAM if ends else 0)
        if side == CLIENT and self.rng.random() < 0.2:
            return h2.frame(h2.HEADERS, flags | h2.PRIORITY_FLAG, stream_id, b"\0\0\0\0\x10" + block)
        return h2.frame(h2.HEADERS, flags, stream_id, block)

    def chunks(self, *, cut: bool, late: bool) -> tuple[list[Chunk], list[Chunk]]:
        """What each side said with its times. ``cut``: frames need not begin chunks; ``late``: instants go back now and then."""
        rng, now = self.rng, 0
        sides: tuple[list[Chunk], list[Chunk]] = ([], [])
        sent = [0, 0]
        runs: list[tuple[int, bytes]] = []
        for side, octets in self.said:
            if runs and runs[-1][0] == side and rng.random() < 0.6:
                runs[-1] = side, runs[-1][1] + octets
            else:
                runs.append((side, octets))
        for packet, (side, octets) in enumerate(runs, 1):
            now += rng.choice((0, 1, 2)) * MS
            first = now - (rng.choice((0, 0, 5)) * MS if late else 0)
            last = first + rng.choice((0, 0, 1)) * MS
            number = None if rng.random() < 0.1 else packet
            ready = last + rng.choice((0, 0, 3)) * MS
            sides[side].append(Chunk(octets, sent[side], first, last, ready, number, number))
            sent[side] += len(octets)
        if not cut:
            return sides
        return self._cut(sides[CLIENT], sent[CLIENT]), self._cut(sides[SERVER], sent[SERVER])

    def _cut(self, chunks: list[Chunk], size: int) -> list[Chunk]:
        return recut(chunks, [self.rng.randrange(size) for _ in range(self.rng.randrange(12))])


def opened(rng: random.Random, window: int = DEFAULT_WINDOW) -> Talk:
    """The beginning of a connection; ``window``: what both sides grant each stream at first."""
    talk = Talk(rng)
    grown = h2.settings(s4=window) if window != DEFAULT_WINDOW else b""
    talk.say(CLIENT, h2.PREFACE + h2.settings(s3=100) + grown, h2.window_update(0, rng.choice((0, 1 << 24))))
    talk.say(SERVER, h2.settings(s3=rng.choice((10, 100))) + grown, h2.SETTINGS_ACK)
    talk.say(CLIENT, h2.SETTINGS_ACK)
    return talk


def ordinary(rng: random.Random, most: int = 8, window: int = DEFAULT_WINDOW) -> Talk:
    """Streams that ask and are answered, in any interleaving; some answers may not have ended."""
    talk = opened(rng, window)
    waiting = [_stream(talk, 2 * number + 1) for number in range(rng.randint(1, most))]
    active: list[list[tuple[int, object]]] = []
    while waiting or active:
        if waiting and (not active or rng.random() < 0.4):
            active.append(waiting.pop(0))
            _next(talk, active, active[-1])
        else:
            _next(talk, active, rng.choice(active))
        if rng.random() < 0.15:
            talk.say(rng.choice((CLIENT, SERVER)), rng.choice(_HARMLESS))
    if rng.random() < 0.3:
        talk.say(SERVER, h2.goaway(99))
    return talk


_HARMLESS = (
    h2.frame(h2.PING, 0, 0, b"12345678"),
    h2.frame(h2.PRIORITY, 0, 1, b"\0\0\0\0\1"),
    h2.window_update(0, 1000),
    h2.window_update(1, 1000),
    h2.window_update(3, 700),
    h2.frame(UNKNOWN_TYPE, 0xFF, 7, b"abc"),
    h2.settings(s4=1 << 20),
    h2.SETTINGS_ACK,
)


def _next(talk: Talk, active: list[list[tuple[int, object]]], steps: list[tuple[int, object]]) -> None:
    side, what = steps.pop(0)
    talk.say(side, what() if callable(what) else what)  # type: ignore[arg-type]
    if not steps:
        active.remove(steps)


def _stream(talk: Talk, stream_id: int) -> list[tuple[int, object]]:
    """Its frames in order; header blocks are encoded when they are sent."""
    rng = talk.rng
    steps: list[tuple[int, object]] = []
    path = rng.choice(("/a", "/v1/chat/completions", f"/{stream_id}"))
    upload = [rng.choice(_CONTENTS) for _ in range(rng.choice((0, 0, 1, 2)))]
    expects = [("expect", "100-continue")] if upload and rng.random() < 0.3 else []
    fields = [(":method", "POST" if upload else "GET"), *h2.REQUEST[1:3], (":path", path), *expects]
    steps.append((CLIENT, lambda: talk.section(CLIENT, stream_id, fields, ends=not upload)))
    steps += _body(CLIENT, stream_id, upload, ends=True)
    steps += _answer(talk, stream_id)
    return steps


def _answer(talk: Talk, stream_id: int) -> list[tuple[int, object]]:
    rng = talk.rng
    if rng.random() < 0.05:
        return []
    steps: list[tuple[int, object]] = []
    interim = rng.choice(((), (), (), ("100",), ("103", "103")))
    steps += [(SERVER, partial(talk.section, SERVER, stream_id, [(":status", status)])) for status in interim]
    content = [rng.choice(_CONTENTS) for _ in range(rng.choice((0, 1, 1, 3)))]
    trailers = rng.choice(([], [], [("grpc-status", rng.choice(("0", "5", "x")))]))
    kind = ("content-type", rng.choice(_KINDS))
    reported = [("grpc-status", "3")] if rng.random() < 0.1 else []
    head = [(":status", rng.choice(("200", "204", "404", "503"))), kind, *reported]
    steps.append((SERVER, lambda: talk.section(SERVER, stream_id, head, ends=not content and not trailers)))
    ends = rng.random() < 0.95
    steps += _body(SERVER, stream_id, content, ends=ends and not trailers)
    if trailers and ends:
        steps.append((SERVER, lambda: talk.section(SERVER, stream_id, trailers, ends=True)))
    return steps


def _body(side: int, stream_id: int, contents: list[bytes], *, ends: bool) -> list[tuple[int, object]]:
    last = len(contents) - 1
    return [
        (side, h2.frame(h2.DATA, h2.END_STREAM if ends and place == last else 0, stream_id, octets))
        for place, octets in enumerate(contents)
    ]


def odd(rng: random.Random) -> Talk:
    """The same with frames where they need not, or must not, be."""
    talk = ordinary(rng)
    for _ in range(rng.randint(0, 3)):
        stream_id = rng.choice((1, 1, 3, 5, 2, 0))
        side = rng.choice((CLIENT, SERVER))
        block = h2.Headers().block([(":status", "200")])
        frame = rng.choice(
            (
                h2.rst(stream_id, 8),
                h2.goaway(stream_id),
                h2.frame(h2.DATA, h2.PADDED, stream_id, b"\2ab\0\0"),
                h2.frame(h2.DATA, h2.END_STREAM, stream_id, b"late"),
                h2.frame(h2.DATA, 0, stream_id, b"z" * 16_000),
                h2.frame(h2.HEADERS, 0, stream_id, block[:1]) + h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream_id),
                h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, stream_id, b"\x88"),
                h2.frame(h2.HEADERS, h2.END_HEADERS, stream_id, b"\xff\xff"),
                h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, stream_id, b"\0\0\0\2" + b"\x82"),
                h2.settings(s4=rng.choice((0, 100, 1 << 20))),
                h2.frame(h2.PING, 0, 0, b"x" * 17_000),
                h2.window_update(stream_id, 1 << 16),
            )
        )
        talk.said.insert(rng.randint(3, len(talk.said)), (side, frame))
    if rng.random() < 0.2:
        side, octets = talk.said[-1]
        talk.said[-1] = side, octets[: rng.randrange(len(octets))]
    if rng.random() < 0.1:
        place = rng.randrange(len(talk.said))
        side, octets = talk.said[place]
        talk.said[place] = side, octets[1:]
    return talk


def with_a_gap(chunks: list[Chunk], rng: random.Random) -> list[Chunk]:
    """Without one of them."""
    place = rng.randrange(len(chunks))
    rest = chunks[place + 1 :]
    if rest:
        rest[0] = replace(rest[0], missing_before=len(chunks[place].data))
    return [*chunks[:place], *rest]
