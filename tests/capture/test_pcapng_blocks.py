"""Blocks of pcapng other than packets, in both byte orders and damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.capture.pcapng_blocks import TLS_KEY_LOG, comments, dropped, interface, options, secrets, text
from tests.support.packets import option

orders = st.sampled_from(["<", ">"])


@given(orders, st.lists(st.tuples(st.integers(1, 65_535), st.binary(max_size=20)), max_size=6), st.data())
def test_options_are_read_as_they_were_written(
    order: str, written: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    body = b"head" + b"".join(option(code, value, order=order) for code, value in written)
    assert list(options(body, 4, order)) == written
    cut = data.draw(st.integers(0, len(body)))
    assert list(options(body[:cut], 4, order)) == written[: len(list(options(body[:cut], 4, order)))]
    end = struct.pack(order + "HH", 0, 0)
    assert list(options(body + end + option(1, b"behind the end", order=order), 4, order)) == written


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_interface(order: str) -> None:
    body = struct.pack(order + "HHI", 1, 0, 65_535)
    body += option(2, b"eth0\0", order=order) + option(9, b"\x09", order=order) + option(13, b"\x04", order=order)
    body += option(14, struct.pack(order + "q", -7), order=order)
    found = interface(body, order)
    assert found is not None
    assert (found.link_type, found.snap_bytes, found.name, found.fcs_bytes) == (1, 65_535, "eth0", 4)
    assert (found.ticks_per_second, found.offset_s) == (1_000_000_000, -7)


@pytest.mark.parametrize(("resolution", "ticks"), [(None, 10**6), (b"\x06", 10**6), (b"\x89", 2**9), (b"\x00", 1)])
def test_resolutions_are_powers_of_ten_or_two(resolution: bytes | None, ticks: int) -> None:
    body = struct.pack("<HHI", 1, 0, 0) + (option(9, resolution) if resolution is not None else b"")
    found = interface(body, "<")
    assert found is not None
    assert found.ticks_per_second == ticks


@pytest.mark.parametrize(
    ("counts", "expected"),
    [({5: 3, 7: 4}, (2, 7)), ({}, (2, None)), ({5: 2**64 - 1}, (2, None)), ({4: 100}, (2, None)), ({5: 0}, (2, 0))],
)
def test_drops_are_those_of_interface_and_system(counts: dict[int, int], expected: tuple[int, int | None]) -> None:
    body = struct.pack("<III", 2, 0, 0) + b"".join(option(code, struct.pack("<Q", n)) for code, n in counts.items())
    assert dropped(body, "<") == expected


def test_only_key_logs_are_secrets() -> None:
    log = b"CLIENT_RANDOM aa bb\n"
    assert secrets(struct.pack("<II", TLS_KEY_LOG, len(log)) + log + b"\0", "<") == log
    assert secrets(struct.pack("<II", 0x57474B4C, len(log)) + log, "<") is None  # WireGuard's


def test_comments_are_text() -> None:
    body = option(1, b"first") + option(2, b"a name") + option(1, b"\xff\0\0")
    assert comments(body, 0, "<") == ["first", "�"]
    assert text(b"padded\0\0") == "padded"


@given(st.binary(max_size=60), orders)
def test_any_octets_raise_nothing(body: bytes, order: str) -> None:
    assert len(list(options(body, 0, order))) <= len(body) // 4
    for read in (interface, dropped, secrets):
        read(body, order)
    assert all(isinstance(comment, str) for comment in comments(body, 0, order))
