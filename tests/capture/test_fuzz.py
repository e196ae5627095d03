"""Mutations of real inputs through readers and decoder: a short seeded run always, a long one when asked (``-m slow``)."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from netdiag.capture.source import open_capture
from netdiag.errors import CaptureFileError
from netdiag.wire.decode import Decoder
from tests.support.encapsulations import ENCAPSULATIONS
from tests.support.packets import pcap, pcapng, snoop, tcp_conversation, timed
from tests.support.tools import needs_public_captures, public_captures

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x10000, 262_145, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutate(data: bytes, generator: random.Random) -> bytes:
    """A few bits, octets, words or stretches changed, removed, repeated or zeroed; or the end cut off."""
    out = bytearray(data)
    for _ in range(generator.choice((1, 1, 2, 4, 16))):
        if not out:
            break
        place, size = generator.randrange(len(out)), generator.choice((1, 2, 4, 16, 200, 1000))
        kind = generator.randrange(7)
        if kind == 0:
            out[place] ^= 1 << generator.randrange(8)
        elif kind == 1:
            out[place] = generator.randrange(256)
        elif kind == 2:
            order = generator.choice(("little", "big"))
            out[place : place + 4] = generator.choice(INTERESTING).to_bytes(4, order)  # type: ignore[arg-type]
        elif kind == 3:
            del out[place : place + size]
        elif kind == 4:
            source = generator.randrange(len(out))
            out[place:place] = out[source : source + size]
        elif kind == 5:
            out[place : place + size] = bytes(size)
        else:
            del out[place:]
    return bytes(out)


def check(data: bytes) -> None:
    """Only errors for the user may leave; every packet is counted once; rows point into the file."""
    try:
        capture = open_capture(io.BytesIO(data))
    except CaptureFileError:
        return
    decoder, packets, counted = Decoder(), 0, 0
    for window in capture.windows():
        decoded = decoder.decode(window)
        raw = window.packets
        packets += len(raw)
        assert (raw.data_offset + raw.captured_bytes <= capture.size_bytes).all()
        for table in (decoded.packets, decoded.datagrams):
            counted += len(table)
            assert (table.captured_payload_bytes >= 0).all()
            assert (table.captured_payload_bytes <= table.payload_bytes).all()
            assert (table.payload_offset + table.captured_payload_bytes <= capture.size_bytes).all()
            assert (table.network_offset >= 0).all()
            assert (table.network_offset + 20 <= capture.size_bytes).all()
        counted += len(decoded.icmp) + decoded.not_decoded.total()
    counted += decoder.finish().total()
    assert packets == capture.packets
    assert counted <= packets or decoded.reassembled


def seeds() -> list[bytes]:
    by_link: dict[int, list[bytes]] = {}
    for link_type, frame in ENCAPSULATIONS.values():
        by_link.setdefault(link_type, []).append(frame)
    files = [pcap(timed(frames), link_type=link_type) for link_type, frames in by_link.items()]
    talk = tcp_conversation([(0, b"GET / HTTP/1.1\r\n\r\n"), (1, b"x" * 4000)])
    return [
        *files,
        snoop(talk),
        pcap(talk, big_endian=True),
        pcapng(talk, keylog=b"k" * 60),
        pcapng(talk, big_endian=True),
    ]


def check_mutations(files: list[bytes], cases: int, seed: int) -> None:
    for case in range(cases):
        generator = random.Random(seed * 1_000_003 + case)
        data = mutate(generator.choice(files), generator)
        try:
            check(data)
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {case}: {len(data)} octets, {data[:2000].hex()}") from error


def test_mutations() -> None:
    check_mutations(seeds(), 600, seed=1)


def public_seeds(most_bytes: int) -> list[bytes]:
    folder = public_captures() or Path("/nonexistent")
    files = [path for path in sorted(folder.glob("*/*")) if path.suffix != ".keys"]
    return [path.read_bytes() for path in files if path.stat().st_size <= most_bytes]


@pytest.mark.slow
@needs_public_captures
@pytest.mark.parametrize("seed", range(10))
def test_mutations_of_public_captures(seed: int) -> None:
    check_mutations(public_seeds(60_000) + seeds(), 10_000, seed=100 + seed)


@pytest.mark.slow
@needs_public_captures
def test_cut_at_every_byte_of_public_captures() -> None:
    """The packets of a cut file are the first ones of the whole, and a file that is not whole never seems so."""
    for data in public_seeds(3000):
        if data[:2] == b"\x1f\x8b":
            continue
        whole, cut_whole = numbers(data)
        if cut_whole is not None:
            continue  # damaged itself: what is read of the packet before the damage depends on what follows
        for size in range(len(data)):
            part, cut = numbers(data[:size])
            assert part == whole[: len(part)], (data[:64].hex(), size)
            assert cut is not None or ends_between_records(data, size, part), (data[:64].hex(), size)


def numbers(data: bytes) -> tuple[list[tuple[int, int, int]], int | None]:
    """(time, offset, captured octets) of each packet, and where the file was cut."""
    try:
        capture = open_capture(io.BytesIO(data))
    except CaptureFileError:
        return [], 0
    rows: list[tuple[int, int, int]] = []
    for window in capture.windows():
        raw = window.packets
        rows += zip(raw.captured_at.tolist(), raw.data_offset.tolist(), raw.captured_bytes.tolist(), strict=True)
    return rows, capture.cut_at_byte


def ends_between_records(data: bytes, size: int, part: list[tuple[int, int, int]]) -> bool:
    """Whether the cut lies where a record (or, in pcapng, any block) ends: then nothing is missing that one could know of."""
    if data[:4] == b"snoo":
        return size == (part[-1][1] + part[-1][2] + (-part[-1][2] % 4) if part else 16)
    if data[:4] != b"\x0a\x0d\x0d\x0a":
        return size == (part[-1][1] + part[-1][2] if part else 24)
    length = data[size - 4 : size]
    return any(
        size - int.from_bytes(length, order) >= 0 and data[size - int.from_bytes(length, order) + 4 :][:4] == length
        for order in ("little", "big")
    )
