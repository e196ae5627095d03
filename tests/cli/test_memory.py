"""Freed memory is kept for the next pass over a capture."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from netdiag.cli import memory
from netdiag.cli.memory import keep_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt(3) is glibc's")
def test_glibc_takes_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "small.pcap"
    file.write_bytes(b"x")
    assert keep_freed_memory(str(file)) is True


def test_not_for_what_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "large.pcap"
    file.write_bytes(b"x" * 10)
    monkeypatch.setattr(memory, "SMALL_BYTES", 10)
    assert keep_freed_memory(str(file)) is False


@pytest.mark.parametrize("path", ["-", "no/such/file"])
def test_not_for_what_has_no_size(path: str) -> None:
    assert keep_freed_memory(path) is False
