"""Heads of HTTP/1 messages: start-line, field lines, and what delimits the body (RFC 9112).

An own parser and not h11: h11 refuses what an observer has to report (bare LF, obs-fold, a body with two lengths, a capture that begins in
the middle), and keeps neither offsets nor times. The framing rules are those of RFC 9112 section 6.3, one row each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from netdiag.protocols.headers import Field, find, find_all, make_field, text_of
from netdiag.records.exchange import CONNECT
from netdiag.wire.chunk import Moment

MAX_HEAD_BYTES = 256 << 10
MAX_FIELDS = 1000

# RFC 9112 sections 2.3, 3 and 4; any run of blanks is taken for the single space.
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32})[ \t]+(\S(?:.*?\S)?)[ \t]+HTTP/1\.(\d)[ \t]*\Z")
# What clients send by mistake, and HTTP/0.9: no version, or half of one. Only believed where a message must begin.
_SIMPLE_REQUEST_LINE = re.compile(rb"([A-Z][A-Z_\-]{1,31})(?:[ \t]+(.*))?\Z")
_SIMPLE_METHODS = frozenset(
    {b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND", b"QUERY"}
)
SIMPLE = "http/0.9"
_STATUS_LINE = re.compile(rb"HTTP/1\.(\d)[ \t]+(\d{3})(?:[ \t].*)?\Z", re.S)
# A version or a status that is none, as lenient recipients take it: of four digits the first three count.
_ODD_STATUS_LINE = re.compile(rb"HTTP/[^ \t]*[ \t]+0*([1-9]\d\d)\d?(?!\d).*\Z", re.S)
_VERSIONS = {b"%d" % minor: f"http/1.{minor}" for minor in range(10)}
# A whole start-line at the beginning of a chunk: what a decoder that lost its place accepts as a new message.
REQUEST_START = re.compile(rb"[A-Z][A-Z\-]{1,31} [^\s]{1,8192} HTTP/1\.[01]\r?\n")
STATUS_START = re.compile(rb"HTTP/1\.[01] [1-5]\d\d(?: [^\r\n]*)?\r?\n")
# The same where the chunk ends inside the line, as a snap length leaves it.
REQUEST_START_CUT = re.compile(
    rb"(GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PROPFIND|QUERY) ((?:/|\*|https?://)[^\s]{0,8192})"
    rb"( (?:H(?:T(?:T(?:P(?:/(?:1(?:\.[01]?)?)?)?)?)?)?)?\r?)?\Z"
)
STATUS_START_CUT = re.compile(rb"HTTP/1\.[01] [1-5]\d\d(?: [^\r\n]*)?\r?\Z")
CUT_MARK = "\N{HORIZONTAL ELLIPSIS}"
"""Ends a target whose rest was not captured."""
# What a start-line can look like before its end has arrived.
_REQUEST_BEGUN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}(?:[ \t][^\r\n]*\r?)?\Z")
_STATUS_BEGUN = re.compile(rb"HTTP/[^ \t\r\n]*[ \t]+[^\r\n]*\r?\Z")
_STATUS_PREFIX = b"HTTP/"


class Framing(Enum):
    """What ends a message's body."""

    EMPTY = "no body"
    LENGTH = "Content-Length"
    CHUNKED = "chunked"
    UNTIL_CLOSE = "end of the connection"
    CODED = "a transfer coding other than chunked"
    UNKNOWN = "not known"
    """Part of the head is missing, or it contradicts itself: only the next message's start-line shows the end."""


@dataclass(frozen=True, slots=True)
class FieldSection:
    """The field lines of one head, with what the framing of the message needs of them. Shared by all heads with the same octets."""

    fields: tuple[Field, ...]
    problems: tuple[str, ...]
    """What is wrong with the lines, and with what they say about the body's length."""
    delimiter: Framing | None
    """``LENGTH``, ``CHUNKED``, ``CODED``, ``UNKNOWN``; None when the fields say nothing."""
    length: int = 0
    host: str | None = None
    upgrade: str | None = None
    """The protocol of an Upgrade field, lower case."""
    expects_continue: bool = False


@dataclass(slots=True)
class Head:
    """One message's head. A request has ``method`` and ``target``, a response ``status``."""

    version: str
    section: FieldSection
    first: Moment
    last: Moment
    octets: int
    offset: int
    method: str | None = None
    target: str | None = None
    status: int | None = None
    complete: bool = True
    """False when octets of the head are missing."""
    resynchronised: bool = False
    """Octets were lost since the message before, so that others may be missing between them."""


def may_begin_request(octets: bytes) -> bool:
    """Whether these octets, without a line end yet, can be the beginning of a request-line."""
    return _REQUEST_BEGUN.match(octets) is not None


def may_begin_status(octets: bytes) -> bool:
    """Whether these octets, without a line end yet, can be the beginning of a status-line."""
    return _STATUS_PREFIX.startswith(octets[:5]) if len(octets) < 9 else _STATUS_BEGUN.match(octets) is not None


def parse_request_line(line: bytes) -> tuple[str, str, str] | None:
    """(method, target, version), or None when it is none. ``http/0.9`` stands for a version that is absent or malformed."""
    match = _REQUEST_LINE.match(line)
    if match is None:
        return _simple_request_line(line)
    method, target, minor = match.groups()
    return method.decode("ascii"), text_of(target), _VERSIONS[minor]


def _simple_request_line(line: bytes) -> tuple[str, str, str] | None:
    match = _SIMPLE_REQUEST_LINE.match(line)
    if match is None:
        return None
    method, rest = match.group(1), (match.group(2) or b"").strip()
    target, _, version = rest.rpartition(b" ")
    if not version.startswith(b"HTTP/"):
        target = rest
        if method not in _SIMPLE_METHODS and b"HTTP/" not in rest:
            return None
    return method.decode("ascii"), text_of(target.strip()), SIMPLE


def parse_cut_request_line(octets: bytes) -> tuple[str, str, str] | None:
    """The same for a line whose end was not captured; a target that is not whole either ends with ``CUT_MARK``."""
    match = REQUEST_START_CUT.match(octets)
    if match is None:
        return None
    method, target, after = match.groups()
    return method.decode("ascii"), text_of(target) + ("" if after else CUT_MARK), _VERSIONS[b"1"]


def parse_status_line(line: bytes) -> tuple[int, str] | None:
    """(status, version), or None when it is none."""
    match = _STATUS_LINE.match(line)
    if match is None:
        odd = _ODD_STATUS_LINE.match(line)
        return None if odd is None else (int(odd[1]), _VERSIONS[b"1"])
    minor, status = match.groups()
    return int(status), _VERSIONS[minor]


def is_regular_status_line(line: bytes) -> bool:
    """Whether version and status are as RFC 9112 section 4 says."""
    return _STATUS_LINE.match(line) is not None


_CACHED_SECTION_BYTES = 2048


def read_section(octets: bytes) -> FieldSection:
    """The field lines of a head, from after the start-line to its end; obs-fold (RFC 9112 section 5.2) is joined.

    Heads of one client repeat from request to request, so the sections of the same octets are read once.
    """
    return _cached_section(octets) if len(octets) <= _CACHED_SECTION_BYTES else _read_section(octets)


def _read_section(octets: bytes) -> FieldSection:
    problems: list[str] = []
    fields = parse_fields(split_lines(octets), problems)
    delimiter, length = _delimiter(fields, problems)
    upgrade = find(fields, "upgrade")
    return FieldSection(
        fields=fields,
        problems=tuple(problems),
        delimiter=delimiter,
        length=length,
        host=find(fields, "host"),
        upgrade=upgrade.partition(",")[0].strip().lower() if upgrade else None,
        expects_continue="100-continue" in (e.lower() for e in find_all(fields, "expect")),
    )


_cached_section = lru_cache(maxsize=1024)(_read_section)


def parse_fields(lines: list[bytes], problems: list[str]) -> tuple[Field, ...]:
    """Field lines without their line ends. What is wrong is added to ``problems``."""
    fields: list[Field] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name.strip():
            problems.append("a field line has no name")
        elif len(fields) >= MAX_FIELDS:
            problems.append(f"more than {MAX_FIELDS} fields; the rest is left out")
            break
        else:
            fields.append(make_field(name.strip(), value.strip()))
    return tuple(fields)


def split_lines(octets: bytes) -> list[bytes]:
    """Lines without their ends, folded ones joined, the empty one at the end left out; bare LF counts (RFC 9112 section 2.2)."""
    lines = octets.split(b"\r\n")
    if octets.count(b"\n") != len(lines) - 1:
        lines = [line.removesuffix(b"\r") for line in octets.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return _unfolded(lines) if b"\n " in octets or b"\n\t" in octets else lines


def _unfolded(lines: list[bytes]) -> list[bytes]:
    out: list[bytes] = []
    parts: list[bytes] = []
    for line in lines:
        if line[:1] in (b" ", b"\t") and parts:
            parts.append(line.strip())
            continue
        if parts:
            out.append(b" ".join(parts))
        parts = [line]
    if parts:
        out.append(b" ".join(parts))
    return out


def _delimiter(fields: tuple[Field, ...], problems: list[str]) -> tuple[Framing | None, int]:
    # RFC 2616 had "identity"; it never delimited anything.
    codings = [coding for c in find_all(fields, "transfer-encoding") if (coding := c.lower()) != "identity"]
    lengths = set(find_all(fields, "content-length"))
    if codings:
        if lengths:
            problems.append("both Transfer-Encoding and Content-Length (RFC 9112 section 6.3): the coding counts")
        return (Framing.CHUNKED if codings[-1] == "chunked" else Framing.CODED), 0
    if not lengths:
        return None, 0
    if len(lengths) > 1 or not all(_is_length(value) for value in lengths):
        problems.append("Content-Length is ambiguous; the body's end is not known")
        return Framing.UNKNOWN, 0
    return Framing.LENGTH, int(lengths.pop())


def _is_length(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value.lstrip("0")) < 19


def request_framing(head: Head) -> tuple[Framing, int]:
    """RFC 9112 section 6.3 for a request: (what ends it, length)."""
    section = head.section
    if not head.complete or section.delimiter is Framing.CODED:
        return Framing.UNKNOWN, 0
    return section.delimiter or Framing.EMPTY, section.length


def response_framing(head: Head, method: str | None) -> tuple[Framing, int]:
    """RFC 9112 section 6.3 for the response to a request of this method (None where the request was not captured)."""
    status = head.status or 0
    if method == "HEAD" or status in (204, 304) or 100 <= status < 200:
        return Framing.EMPTY, 0
    if method == CONNECT and 200 <= status < 300:
        return Framing.EMPTY, 0
    section = head.section
    if not head.complete:
        return Framing.UNKNOWN, 0
    if section.delimiter is None or section.delimiter is Framing.CODED:
        return Framing.UNTIL_CLOSE, 0
    return section.delimiter, section.length
