from __future__ import annotations

import os
from pathlib import Path

import pytest

from netdiag.errors import OutputError
from netdiag.outfile import replacing


def test_the_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    with replacing(target) as file:
        file.write(b"half")
        assert not target.exists()
        file.write(b" and half")
    assert target.read_bytes() == b"half and half"
    assert os.listdir(tmp_path) == ["result.json"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(target)
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["result.json"]


def test_a_symbolic_link_is_refused_and_its_target_untouched(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    link = tmp_path / "result.json"
    link.symlink_to(victim)
    with pytest.raises(OutputError, match="symbolic link"), replacing(link):
        pass
    assert victim.read_bytes() == b"precious"


def test_a_folder_and_a_missing_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a directory"), replacing(tmp_path):
        pass
    with pytest.raises(OutputError, match="cannot be written"), replacing(tmp_path / "none" / "x.json"):
        pass


def test_the_mode_is_what_was_asked_less_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "a") as file:
            file.write(b"")
        with replacing(tmp_path / "b", mode=0o600) as file:
            file.write(b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full on this system")
    with pytest.raises(OutputError, match="cannot be written: No space left"):
        write_to_full_disk(tmp_path / "x")
    assert os.listdir(tmp_path) == []


def write_and_fail(target: Path) -> None:
    with replacing(target) as file:
        file.write(b"new")
        raise ZeroDivisionError


def write_to_full_disk(target: Path) -> None:
    with replacing(target), open("/dev/full", "wb", buffering=0) as full:
        full.write(b"x")
