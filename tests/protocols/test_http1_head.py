"""Heads of HTTP/1 messages: lines, fields, and what delimits the body."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netdiag.protocols.http1_head import (
    MAX_FIELDS,
    Framing,
    Head,
    may_begin_request,
    may_begin_status,
    parse_fields,
    parse_request_line,
    parse_status_line,
    read_section,
    request_framing,
    response_framing,
    split_lines,
)
from netdiag.wire.chunk import Moment

START = Moment(0, 0, None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"GET / HTTP/1.1", ("GET", "/", "http/1.1")),
        (b"POST  /a b  HTTP/1.0", ("POST", "/a b", "http/1.0")),
        (b"GET /x", ("GET", "/x", "http/0.9")),
        (b"GET", ("GET", "", "http/0.9")),
        (b"GET / HTTP/2.x", ("GET", "/", "http/0.9")),
        (b"HELLO there", None),
        (b"get /", None),
        (b"HTTP/1.1 200 OK", None),
    ],
)
def test_request_lines(line: bytes, expected: tuple[str, str, str] | None) -> None:
    assert parse_request_line(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"HTTP/1.1 200 OK", (200, "http/1.1")),
        (b"HTTP/1.0 404", (404, "http/1.0")),
        (b"HTTP/1.1 0200 OK", (200, "http/1.1")),
        (b"HTTP/x 500 odd", (500, "http/1.1")),
        (b"HTTP/1.1 2000 OK", (200, "http/1.1")),
        (b"GET / HTTP/1.1", None),
    ],
)
def test_status_lines(line: bytes, expected: tuple[int, str] | None) -> None:
    assert parse_status_line(line) == expected


@given(st.sampled_from([b"GET /a?b=c HTTP/1.1\r", b"OPTIONS * HTTP/1.0\r"]), st.integers(1, 20))
def test_every_beginning_of_a_request_line_may_begin_one(line: bytes, size: int) -> None:
    assert may_begin_request(line[:size])
    assert not may_begin_request(b"\x16\x03\x01" + line[:size])


@given(st.integers(0, 20))
def test_every_beginning_of_a_status_line_may_begin_one(size: int) -> None:
    assert may_begin_status(b"HTTP/1.1 200 OK\r"[:size])
    assert size == 0 or not may_begin_status(b"GET /" + b"HTTP/1.1"[:size])


@given(st.lists(st.sampled_from([b"a: 1", b" folded", b"\tfolded", b"b:2", b"c"]), max_size=8), st.data())
def test_lines_with_either_end_and_folded_ones_joined(more: list[bytes], data: st.DataObject) -> None:
    """RFC 9112 sections 2.2 and 5.2."""
    lines = [b"name: value", *more]
    ends = [data.draw(st.sampled_from([b"\r\n", b"\n"])) for _ in lines]
    octets = b"".join(line + end for line, end in zip(lines, ends, strict=True))
    unfolded = re.sub(rb"\n[ \t]+", b" ", b"\n".join(lines)).split(b"\n")
    assert split_lines(octets) == split_lines(octets + b"\r\n") == unfolded


def test_lines_without_a_name_and_too_many_of_them_are_problems() -> None:
    problems: list[str] = []
    assert parse_fields([b"no colon", b": no name", b"a: 1"], problems) == (("a", "1"),)
    assert problems == ["a field line has no name"] * 2
    assert len(parse_fields([b"a: 1"] * (MAX_FIELDS + 5), problems)) == MAX_FIELDS
    assert "the rest is left out" in problems[-1]


def head(fields: bytes = b"", *, status: int | None = None, complete: bool = True) -> Head:
    section = read_section(fields)
    return Head("http/1.1", section, START, START, len(fields), 0, status=status, complete=complete)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (b"", (Framing.EMPTY, 0)),
        (b"Content-Length: 5\r\n", (Framing.LENGTH, 5)),
        (b"Content-Length: 5, 5\r\nContent-Length: 5\r\n", (Framing.LENGTH, 5)),
        (b"Content-Length: 5, 6\r\n", (Framing.UNKNOWN, 0)),
        (b"Content-Length: +5\r\n", (Framing.UNKNOWN, 0)),
        (b"Content-Length: 99999999999999999999\r\n", (Framing.UNKNOWN, 0)),
        (b"Transfer-Encoding: gzip, chunked\r\n", (Framing.CHUNKED, 0)),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", (Framing.CHUNKED, 0)),
        (b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n", (Framing.LENGTH, 5)),
        (b"Transfer-Encoding: gzip\r\n", (Framing.UNKNOWN, 0)),
    ],
)
def test_what_delimits_a_request(fields: bytes, expected: tuple[Framing, int]) -> None:
    assert request_framing(head(fields)) == expected


@pytest.mark.parametrize(
    ("fields", "status", "method", "expected"),
    [
        (b"Content-Length: 5\r\n", 200, "GET", (Framing.LENGTH, 5)),
        (b"Content-Length: 5\r\n", 200, "HEAD", (Framing.EMPTY, 0)),
        (b"Content-Length: 5\r\n", 304, "GET", (Framing.EMPTY, 0)),
        (b"Content-Length: 5\r\n", 204, "GET", (Framing.EMPTY, 0)),
        (b"", 103, "GET", (Framing.EMPTY, 0)),
        (b"Content-Length: 5\r\n", 200, "CONNECT", (Framing.EMPTY, 0)),
        (b"Content-Length: 5\r\n", 407, "CONNECT", (Framing.LENGTH, 5)),
        (b"", 200, "GET", (Framing.UNTIL_CLOSE, 0)),
        (b"Transfer-Encoding: gzip\r\n", 200, "GET", (Framing.UNTIL_CLOSE, 0)),
        (b"Transfer-Encoding: chunked\r\n", 200, None, (Framing.CHUNKED, 0)),
    ],
)
def test_what_delimits_a_response(
    fields: bytes, status: int, method: str | None, expected: tuple[Framing, int]
) -> None:
    """RFC 9112 section 6.3."""
    assert response_framing(head(fields, status=status), method) == expected


def test_a_head_that_lacks_octets_does_not_tell_where_its_body_ends() -> None:
    assert request_framing(head(b"Content-Length: 5\r\n", complete=False)) == (Framing.UNKNOWN, 0)
    assert response_framing(head(status=200, complete=False), "GET") == (Framing.UNKNOWN, 0)


def test_what_a_section_says_beside_its_fields() -> None:
    section = read_section(b"Host: a.test\r\nUpgrade: H2C, other\r\nExpect: 100-Continue\r\n")
    assert (section.host, section.upgrade, section.expects_continue) == ("a.test", "h2c", True)
    assert read_section(b"A: 1\r\n") is read_section(b"A: 1\r\n")  # heads of one client repeat
