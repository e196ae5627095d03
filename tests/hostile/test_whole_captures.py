"""Damaged and cut captures through everything, from the file to the JSON document: no exception, no hang, no growth, no false completeness.

A short seeded run always; 100,000 cases, and a cut at every octet of twelve captures, when asked (``-m slow``). An input that fails is
written to ``regressions``: commit it with the repair.
"""

from __future__ import annotations

import hashlib
import io
import random
import resource
import time
from functools import lru_cache
from pathlib import Path

import pytest

import netdiag
from netdiag.capture.source import open_capture
from netdiag.cli.exit_codes import of_result
from netdiag.errors import CaptureFileError
from netdiag.export import json as json_export
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Outcome
from tests.support.packets import pcap, snoop

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.pcapng"))
REGRESSIONS = Path(__file__).parent / "regressions"
SLOWEST_S = 5.0
MOST_GROWTH_KB = 256 * 1024
SEEDS = 12


@lru_cache(maxsize=1)
def seeds() -> dict[str, bytes]:
    """Twelve small captures: pcapng with keys, the same packets as pcap (without keys) and as snoop."""
    small = sorted(CAPTURES, key=lambda path: path.stat().st_size)[: SEEDS - 2]
    found = {path.stem: path.read_bytes() for path in small}
    frames = _frames(CAPTURES[0].parent / "h1.pcapng")
    return {**found, "pcap": pcap(frames, link_type=frames_link_type()), "snoop": snoop(_frames(_built()))}


def _built() -> Path:
    return CAPTURES[0].parent / "built-dns-h1.pcapng"


def frames_link_type() -> int:
    with open_capture(CAPTURES[0].parent / "h1.pcapng") as capture:
        list(capture.windows())
        return capture.interfaces[0].link_type


def _frames(path: Path) -> list[tuple[int, bytes]]:
    with open_capture(path) as capture:
        out: list[tuple[int, bytes]] = []
        for window in capture.windows():
            raw = window.packets
            rows = zip(raw.captured_at.tolist(), raw.data_offset.tolist(), raw.captured_bytes.tolist(), strict=True)
            out += [(at, bytes(window.buffer[start : start + size])) for at, start, size in rows]
        return out


def mutate(data: bytes, dice: random.Random) -> bytes:
    """A few octets or stretches changed, removed, repeated; or the end cut off."""
    out = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4, 16))):
        if not out:
            break
        place, size = dice.randrange(len(out)), dice.choice((1, 2, 4, 16, 200))
        kind = dice.randrange(6)
        if kind == 0:
            out[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            out[place] = dice.randrange(256)
        elif kind == 2:
            out[place : place + 4] = dice.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF)).to_bytes(
                4, "little"
            )
        elif kind == 3:
            del out[place : place + size]
        elif kind == 4:
            source = dice.randrange(len(out))
            out[place:place] = out[source : source + size]
        else:
            del out[place:]
    return bytes(out)


def check_analysis(data: bytes) -> Analysis | None:
    """The analysis, with what always holds; None where it is no capture."""
    began = time.process_time()
    try:
        analysis = netdiag.analyze(io.BytesIO(data))
    except CaptureFileError:
        return None
    for exchange in analysis.exchanges:
        assert sum(p.duration_ns for p in exchange.phases) + exchange.unattributed_ns == exchange.total_ns
        assert exchange.unattributed_ns >= 0
        assert all(p.lo_ns <= p.duration_ns <= p.hi_ns for p in exchange.phases)
    assert all(r.duration_ns is None or r.duration_ns >= 0 for r in analysis.resolutions)
    assert json_export.dumps(analysis)
    assert time.process_time() - began <= SLOWEST_S
    return analysis


def check_and_keep(data: bytes, what: str) -> Analysis | None:
    """As ``check_analysis``; a failing input is kept."""
    try:
        return check_analysis(data)
    except Exception as error:
        REGRESSIONS.mkdir(exist_ok=True)
        kept = REGRESSIONS / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
        kept.write_bytes(data)
        raise AssertionError(f"{what}: kept as {kept.name}") from error


def memory_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def check_mutations(seed: int, cases: int) -> None:
    names, before = list(seeds()), memory_kb()
    for case in range(cases):
        dice = random.Random(seed * 1_000_003 + case)
        name = dice.choice(names)
        check_and_keep(mutate(seeds()[name], dice), f"{name}, seed {seed}, case {case}")
    assert memory_kb() - before <= MOST_GROWTH_KB


def check_cuts(name: str, step: int) -> None:
    """What a cut capture says is what the whole says of the same packets, and it never seems whole."""
    data = seeds()[name]
    whole = check_analysis(data)
    assert whole is not None
    facts = {(e.connection_id, e.stream_id, e.ordinal): e for e in whole.exchanges}
    for size in range(step // 2, len(data), step):
        part = check_and_keep(data[:size], f"{name} cut at {size}")
        if part is None:
            continue
        assert part.source.packets <= whole.source.packets
        if part.source.cut_at_byte is not None:
            assert part.source.cut_at_byte <= size
            assert of_result(part, None, strict=True) == 2
        if part.source.evidence_level != whole.source.evidence_level:
            continue
        for exchange in part.exchanges:
            if exchange.outcome is Outcome.OK and exchange.protocol is not None:
                same = facts[exchange.connection_id, exchange.stream_id, exchange.ordinal]
                assert exchange.phases == same.phases, f"{name} cut at {size}"


def test_mutations() -> None:
    check_mutations(1, 150)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_hundred_thousand_mutations(seed: int) -> None:
    check_mutations(seed, 10_000)


@pytest.mark.parametrize("name", list(seeds()))
def test_cut_in_some_places(name: str) -> None:
    check_cuts(name, 601)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(seeds()))
def test_cut_at_every_octet(name: str) -> None:
    check_cuts(name, 1)


def test_what_failed_once() -> None:
    for path in sorted(REGRESSIONS.glob("*.bin")):
        check_analysis(path.read_bytes())
