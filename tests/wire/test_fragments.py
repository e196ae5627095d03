"""IP fragments: one row per fragment of a TCP segment, whole datagrams for UDP, nothing for what never became whole."""

from __future__ import annotations

import io
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from netdiag.capture.source import open_capture
from netdiag.wire.decode import Decoder, decode, dissect
from netdiag.wire.fragments import MAX_PENDING
from netdiag.wire.tables import Datagrams, Packets
from tests.support.fragmenting import fragments_v4, fragments_v6, stream_of
from tests.support.packets import (
    ACK,
    EPOCH_NS,
    PSH,
    pcap,
    tcp,
    timed,
    udp,
    window_of,
)
from tests.support.tools import needs_tshark

DATA = bytes(range(256)) * 10
SEGMENT = tcp(DATA, seq=1000, flags=ACK | PSH, options=b"\x01\x01\x08\x0a" + bytes(8))


@pytest.mark.parametrize("make", [fragments_v4, fragments_v6])
@pytest.mark.parametrize("size", [8, 16, 24, 512, 1480])
@pytest.mark.parametrize("order", ["in order", "reversed", "shuffled"])
def test_a_segment_in_fragments_is_the_same_stream(make, size: int, order: str) -> None:  # type: ignore[no-untyped-def]
    frames = make(SEGMENT, size)
    if order == "reversed":
        frames.reverse()
    elif order == "shuffled":
        random.Random(1).shuffle(frames)
    window = window_of(timed(frames))
    decoded = decode(window)
    packets = decoded.packets
    assert stream_of(packets, window) == DATA
    assert packets.payload_bytes.sum() == len(DATA)
    assert packets.number.tolist() == sorted(packets.number.tolist())
    assert (packets.flags & ACK == ACK).all()
    assert int((packets.flags & PSH != 0).sum()) == 1
    last = packets.seq.astype(int) + packets.payload_bytes
    assert packets.flags[int(last.argmax())] & PSH
    assert decoded.not_decoded == {}


def test_incomplete_packets_are_counted_not_guessed() -> None:
    frames = fragments_v4(SEGMENT, 512)
    del frames[2]
    decoded = decode(window_of(timed(frames)))
    assert len(decoded.packets) == 0
    assert decoded.not_decoded == {"ip fragment of an incomplete packet": len(frames)}


def test_repeated_fragments_are_counted() -> None:
    frames = fragments_v4(SEGMENT, 512)
    decoded = decode(window_of(timed([frames[0], *frames])))
    assert decoded.packets.payload_bytes.sum() == len(DATA)
    assert decoded.not_decoded == {"ip fragment seen before": 1}


def test_fragments_of_two_packets_are_kept_apart() -> None:
    one = fragments_v4(tcp(b"a" * 100, source_port=1), 64, identification=1)
    two = fragments_v4(tcp(b"b" * 100, source_port=2), 64, identification=2)
    packets = decode(window_of(timed([one[0], two[0], two[1], one[1]]))).packets
    assert packets.number.tolist() == [1, 2, 3, 4]
    assert (packets.low[0], packets.high[0]) == (packets.low[3], packets.high[3])
    assert packets.low[0] != packets.low[1] or packets.high[0] != packets.high[1]


def test_fragments_meet_across_windows_of_one_decoder() -> None:
    frames = timed(fragments_v4(SEGMENT, 512))
    capture = open_capture(io.BytesIO(pcap(frames)))
    windows = list(capture.windows(window_bytes=600))
    assert len(windows) > 2
    decoder = Decoder()
    tables = [decoder.complete(dissect(window)).packets for window in windows]
    assert stream_of(Packets.concat(tables), windows[0]) == DATA
    assert decoder.finish() == {}


def test_fragments_expire() -> None:
    first, second = fragments_v4(tcp(b"a" * 100), 64)
    decoded = decode(window_of([(EPOCH_NS, first), (EPOCH_NS + 61 * 10**9, second)]))
    assert len(decoded.packets) == 0
    assert decoded.not_decoded.total() == 2


def test_waiting_fragments_are_bounded() -> None:
    frames = [fragments_v4(tcp(b"a" * 100), 64, identification=n % 65536)[0] for n in range(MAX_PENDING + 500)]
    decoder = Decoder()
    decoded = decoder.complete(dissect(window_of(timed(frames))))
    assert decoded.not_decoded == {"ip fragment of an incomplete packet": 500}
    assert decoder.finish().total() == MAX_PENDING


def test_a_datagram_in_fragments_has_its_octets_beside_the_table() -> None:
    message = bytes(range(200)) * 20
    for make in (fragments_v4, fragments_v6):
        frames = make(udp(message), 512, protocol=17)
        window = window_of(timed(frames))
        decoded = decode(window)
        assert decoded.datagrams.number.tolist() == [len(frames)]
        assert decoded.datagrams.payload_bytes.tolist() == [len(message)]
        assert decoded.datagrams.captured_payload_bytes.tolist() == [504]
        assert decoded.reassembled == {len(frames): message}


@needs_tshark
@pytest.mark.parametrize("make", [fragments_v4, fragments_v6])
def test_as_tshark_puts_them_together(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    frames: Sequence[bytes] = make(SEGMENT, 24)
    path = tmp_path / "fragments.pcap"
    path.write_bytes(pcap(timed(frames)))
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.seq_raw", "-e", "tcp.len", "-e", "tcp.payload"]
    said = [
        line
        for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        if line.strip()
    ]
    assert said == [f"1000\t{len(DATA)}\t{DATA.hex()}"]


def test_of_a_dns_answer_whose_first_fragment_alone_was_captured_what_is_there() -> None:
    """``port 53`` as capture filter lets only the first fragment through: the others have no port."""
    answer = udp(DATA[:2000], source_port=53, destination_port=40000)
    first, second = fragments_v4(answer, 1480, protocol=17), fragments_v6(answer, 1480, protocol=17)
    for frames in (first, second):
        window = window_of(timed([frames[0]]))
        decoder = Decoder()
        assert len(decoder.complete(dissect(window)).datagrams) == 0
        decoder.finish()
        (row,) = rows(decoder.beginnings(window.buffer))
        assert row[:4] == (1, 2000, 1472, 53)
        start = row[4]
        assert bytes(window.buffer[start : start + 1472]) == DATA[:1472]
        whole = Decoder()
        whole.complete(dissect(window_of(timed(frames))))
        whole.finish()
        assert rows(whole.beginnings(window.buffer)) == []


def test_of_other_datagrams_no_half_is_given() -> None:
    (frame, _) = fragments_v4(udp(DATA[:2000], destination_port=443), 1480, protocol=17)
    window, decoder = window_of(timed([frame])), Decoder()
    decoder.complete(dissect(window))
    decoder.finish()
    assert rows(decoder.beginnings(window.buffer)) == []


def rows(table: Datagrams) -> list[tuple[int, ...]]:
    columns = (table.number, table.payload_bytes, table.captured_payload_bytes, table.source_port, table.payload_offset)
    return list(zip(*(column.tolist() for column in columns), strict=True))
