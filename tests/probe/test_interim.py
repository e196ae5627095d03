"""Interim responses noticed in the plaintext, however it is cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.probe.interim import Http1Tap, Http2Tap, tap_for
from tests.support import h2_bytes as h2

EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n"


def test_heads_before_the_final_one_are_interim() -> None:
    assert Http1Tap().feed(b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY + FINAL) == [(None, 100), (None, 103)]


def test_what_looks_like_a_head_inside_content_is_content() -> None:
    assert Http1Tap().feed(FINAL + b"\r\n\r\n" + EARLY) == []


def answers() -> bytes:
    headers = h2.Headers()
    return (
        h2.settings(s3=100)
        + headers.frame(1, [(":status", "103"), ("link", "</a>")])
        + headers.frame(3, [(":status", "100")])
        + headers.frame(1, [(":status", "200")])
        + h2.frame(h2.DATA, h2.END_STREAM, 1, b"x" * 300)
        + headers.frame(3, [(":status", "103")])
    )


@given(st.lists(st.integers(0, 500), max_size=12))
def test_frames_cut_anywhere_give_the_same(cuts: list[int]) -> None:
    octets, tap = answers(), Http2Tap()
    edges = [0, *sorted(c for c in cuts if c < len(octets)), len(octets)]
    found = [one for a, b in itertools.pairwise(edges) for one in tap.feed(octets[a:b])]
    assert found == [(1, 103), (3, 100), (3, 103)]


def test_after_something_malformed_it_sees_no_more() -> None:
    tap = Http2Tap()
    assert tap.feed(h2.frame(h2.HEADERS, 4, 1, b"\xff" * 40)) == []
    assert tap.feed(answers()) == []


@pytest.mark.parametrize(
    ("alpn", "protocol", "kind"),
    [("h2", "h1", Http2Tap), ("http/1.1", "h2", Http1Tap), (None, "h2", Http2Tap), (None, None, Http1Tap)],
)
def test_what_was_negotiated_decides_and_in_clear_text_the_arm(
    alpn: str | None, protocol: str | None, kind: type[object]
) -> None:
    assert isinstance(tap_for(alpn, protocol), kind)
