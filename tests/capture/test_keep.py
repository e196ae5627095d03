"""Keeping a capture: private, never over something else, keys only when given."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from netdiag.capture.keep import keep
from netdiag.capture.source import open_capture
from netdiag.errors import OutputError

SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
INTERFACE = struct.pack("<IIHHII", 1, 20, 1, 0, 262_144, 20)
PACKET = struct.pack("<IIIIIII", 6, 36, 0, 0, 0, 4, 4) + b"abcd" + struct.pack("<I", 36)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A pcapng file of one packet."""
    path = tmp_path / "in.pcapng"
    path.write_bytes(SECTION + INTERFACE + PACKET)
    return path


def test_a_copy_without_keys_is_the_same(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.pcapng"
    keep(str(source), str(target))
    assert target.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o600


def test_keys_come_before_the_packets(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.pcapng"
    keep(str(source), str(target), b"CLIENT_RANDOM 00 11\n")
    with open_capture(str(target)) as capture:
        assert sum(len(window.packets) for window in capture.windows()) == 1
        assert capture.secrets == [b"CLIENT_RANDOM 00 11\n"]
        assert not capture.anomalies


def test_nothing_is_overwritten_or_followed(source: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for target in (taken, link, tmp_path / "no" / "such" / "folder"):
        with pytest.raises(OutputError):
            keep(str(source), str(target))
    assert taken.read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()
