"""Conversations as text to chunks with times, and the same octets cut anywhere else."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

from netdiag.wire.chunk import Chunk

MS = 1_000_000


def head(conversation: str) -> bytes:
    """A message's head written readably: common indentation gone, lines ended by CRLF, the empty line added."""
    lines = conversation.strip("\n").rstrip().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return ("\r\n".join(line[margin:] for line in lines) + "\r\n\r\n").encode()


def chunk(
    data: bytes, at_ms: float = 0, *, offset: int = 0, packet: int | None = None, missing_before: int = 0
) -> Chunk:
    """One segment: sent, seen and deliverable at the same moment."""
    at = int(at_ms * MS)
    return Chunk(data, offset, at, at, at, packet, packet, missing_before)


def packet_at(at_ms: float) -> int:
    """The frame number that ``stream`` gives to what it sends at this time."""
    return int(at_ms * 10) + 1


def chunked(*contents: bytes) -> bytes:
    """Chunks of the chunked transfer coding, without the last one."""
    return b"".join(b"%x\r\n%b\r\n" % (len(c), c) for c in contents)


LAST_CHUNK = b"0\r\n\r\n"


def stream(*pieces: tuple[float, bytes | str | int]) -> list[Chunk]:
    """One direction from (milliseconds, octets) pairs; an integer instead of octets is that many missing ones (negative: not known how many).

    Packets are numbered by time (``packet_at``), so that those of two directions can be compared.
    """
    chunks: list[Chunk] = []
    offset = missing = 0
    for at_ms, piece in pieces:
        if isinstance(piece, int):
            missing += piece
            offset += max(0, piece)
            continue
        data = piece.encode() if isinstance(piece, str) else piece
        chunks.append(chunk(data, at_ms, offset=offset, packet=packet_at(at_ms), missing_before=missing))
        offset += len(data)
        missing = 0
    return chunks


def recut(chunks: Iterable[Chunk], cuts: Sequence[int]) -> list[Chunk]:
    """The same octets cut at the given stream offsets as well; pieces keep their chunk's times."""
    out: list[Chunk] = []
    for whole in chunks:
        inside = sorted({c - whole.offset for c in cuts if whole.offset < c < whole.offset + len(whole.data)})
        edges = [0, *inside, len(whole.data)]
        for i, (a, b) in enumerate(pairwise(edges)):
            out.append(
                Chunk(
                    whole.data[a:b],
                    whole.offset + a,
                    whole.first_seen_at,
                    whole.last_seen_at,
                    whole.deliverable_at,
                    whole.first_packet,
                    whole.last_packet,
                    whole.missing_before if i == 0 else 0,
                )
            )
    return out


def octet_by_octet(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Every octet a chunk of its own."""
    rows = list(chunks)
    end = max((c.offset + len(c.data) for c in rows), default=0)
    return recut(rows, range(end))


def join(chunks: Iterable[Chunk]) -> list[Chunk]:
    """All octets (no gap among them) in one chunk, with the times of the last."""
    rows = list(chunks)
    if not rows:
        return []
    last = rows[-1]
    data = b"".join(c.data for c in rows)
    return [
        Chunk(data, 0, last.first_seen_at, last.last_seen_at, last.deliverable_at, last.first_packet, last.last_packet)
    ]


def mutate(data: bytes, seed: int, most: int = 8) -> bytes:
    """A few octets changed, removed or doubled, the same for the same seed."""
    rng = random.Random(seed)
    out = bytearray(data)
    for _ in range(rng.randint(1, most)):
        if not out:
            break
        at = rng.randrange(len(out))
        kind = rng.randrange(4)
        if kind == 0:
            out[at] = rng.randrange(256)
        elif kind == 1:
            del out[at : at + rng.randint(1, 16)]
        elif kind == 2:
            out[at:at] = out[at : at + rng.randint(1, 16)]
        else:
            out[at] ^= 1 << rng.randrange(8)
    return bytes(out)
