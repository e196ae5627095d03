"""What is written is read back, by netdiag and by tshark."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.capture.facts import Comment
from netdiag.capture.source import open_capture
from netdiag.capture.writer import PcapngWriter
from netdiag.errors import OutputError
from netdiag.wire.tables import Interface
from tests.support.packets import EPOCH_NS, tcp_conversation
from tests.support.tools import needs_capinfos, needs_tshark

ETHERNET = Interface(link_type=1, snap_bytes=0, ticks_per_second=10**9, name="lo")
KEYLOG = b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48 + b"\n"


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=80),
            st.integers(0, 2**62),
            st.integers(0, 2),
            st.one_of(
                st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
            ),
            st.integers(0, 2000),
        )
    )
)
def test_round_trip(packets: list[tuple[bytes, int, int, str | None, int]]) -> None:
    interfaces = [
        ETHERNET,
        Interface(link_type=101, snap_bytes=96, ticks_per_second=10**6, name="tun0"),
        Interface(link_type=113, snap_bytes=0, ticks_per_second=1 << 20, fcs_bytes=4),
    ]
    file = io.BytesIO()
    with PcapngWriter(file, interfaces=interfaces, comment="whole") as writer:
        for data, at, interface, comment, more in packets:
            writer.packet(data, at, interface=interface, original_bytes=len(data) + more, comment=comment)
    capture = open_capture(io.BytesIO(file.getvalue()))
    got = [
        (bytes(w.buffer[start : start + size]), at, interface, original)
        for w in capture.windows()
        for start, size, at, interface, original in zip(
            *(
                c.tolist()
                for c in (
                    w.packets.data_offset,
                    w.packets.captured_bytes,
                    w.packets.captured_at,
                    w.packets.interface,
                    w.packets.original_bytes,
                )
            ),
            strict=True,
        )
    ]
    for (data, at, interface, _, more), (data_read, at_read, interface_read, original) in zip(
        packets, got, strict=True
    ):
        rate = interfaces[interface].ticks_per_second
        assert (data_read, interface_read, original) == (data, interface, len(data) + more)
        assert 0 <= at - at_read <= -(-(10**9) // rate)
        assert at_read == at or rate != 10**9
    if packets:
        assert capture.interfaces == tuple(interfaces)
    comments = [Comment("whole")]
    comments += [Comment(c, n) for n, (_, _, _, c, _) in enumerate(packets, 1) if c is not None]
    assert sorted(capture.comments, key=str) == sorted(comments, key=str)
    assert capture.anomalies == []


def test_secrets_and_statistics() -> None:
    file = io.BytesIO()
    writer = PcapngWriter(file, interfaces=[ETHERNET])
    writer.secrets(KEYLOG)
    writer.packet(b"x", EPOCH_NS)
    writer.statistics(100, 3)
    writer.close()
    writer.close()
    capture = open_capture(io.BytesIO(file.getvalue()))
    list(capture.windows())
    assert (capture.secrets, capture.dropped_packets) == ([KEYLOG], 3)


def test_unknown_drops_stay_unknown() -> None:
    file = io.BytesIO()
    writer = PcapngWriter(file, interfaces=[ETHERNET])
    writer.packet(b"x", EPOCH_NS)
    writer.statistics(None, None)
    capture = open_capture(io.BytesIO(file.getvalue()))
    list(capture.windows())
    assert capture.dropped_packets is None


def test_no_secrets_unless_asked() -> None:
    file = io.BytesIO()
    PcapngWriter(file, interfaces=[ETHERNET]).secrets(b"")
    assert b"KSLT" not in file.getvalue()


def test_interrupted_at_any_block_the_file_is_whole() -> None:
    file = io.BytesIO()
    writer = PcapngWriter(file, interfaces=[ETHERNET])
    for at, frame in tcp_conversation():
        capture = open_capture(io.BytesIO(file.getvalue()))
        list(capture.windows())
        assert capture.anomalies == []
        writer.packet(frame, at)


def test_times_that_do_not_fit_are_refused() -> None:
    writer = PcapngWriter(io.BytesIO(), interfaces=[ETHERNET])
    with pytest.raises(OutputError, match="does not fit"):
        writer.packet(b"", -1)


def test_rates_that_the_format_cannot_say_are_refused() -> None:
    with pytest.raises(ValueError, match="neither"):
        PcapngWriter(io.BytesIO(), interfaces=[Interface(link_type=1, snap_bytes=0, ticks_per_second=3)])


def test_long_comments_are_cut_to_what_an_option_holds() -> None:
    file = io.BytesIO()
    PcapngWriter(file, interfaces=[ETHERNET]).packet(b"x", EPOCH_NS, comment="ü" * 40_000)
    capture = open_capture(io.BytesIO(file.getvalue()))
    list(capture.windows())
    assert capture.comments == [Comment("ü" * 32_767, 1)]


@needs_tshark
@needs_capinfos
def test_tshark_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "written.pcapng"
    frames = tcp_conversation([(0, b"hello")])
    with path.open("wb") as file, PcapngWriter(file, interfaces=[ETHERNET], comment="made by a test") as writer:
        writer.secrets(KEYLOG)
        for number, (at, frame) in enumerate(frames):
            writer.packet(frame, at + 7, comment=f"packet {number}" if number % 2 else None)
        writer.statistics(len(frames), 0)
    fields = ["frame.time_epoch", "frame.comment", "frame.interface_name", "tcp.len"]
    said = subprocess.run(
        ["tshark", "-r", str(path), "-T", "fields", *(x for f in fields for x in ("-e", f))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert [line.split("\t")[0] for line in said] == [f"{(at + 7) // 10**9}.{(at + 7) % 10**9:09d}" for at, _ in frames]
    assert [line.split("\t")[2] for line in said] == ["lo"] * len(frames)
    information = subprocess.run(["capinfos", str(path)], capture_output=True, text=True, check=True).stdout
    assert "Number of decryption secrets in file: 1" in information
    assert "made by a test" in information
