"""Heads of HTTP/1 messages: start-line, field lines, and what delimits the body (RFC 9112).

An own parser and not h11: h11 refuses what an observer has to report (bare LF, obs-fold, a body with two lengths, a capture that begins in
the middle), and keeps neither offsets nor times. The framing rules are those of RFC 9112 section 6.3, one row each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from netdiag.protocols.headers import Field, find, find_all, make_field, text_of
from netdiag.wire.chunk import Moment

MAX_HEAD_BYTES = 256 << 10
MAX_FIELDS = 1000

# RFC 9112 sections 2.3, 3 and 4; any run of blanks is taken for the single space.
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32})[ \t]+(\S(?:.*?\S)?)[ \t]+HTTP/(1)\.(\d)[ \t]*\Z")
# What clients send by mistake, and HTTP/0.9: no version, or half of one. Only believed where a message must begin.
_SIMPLE_REQUEST_LINE = re.compile(rb"([A-Z][A-Z_\-]{1,31})(?:[ \t]+(.*))?\Z")
_SIMPLE_METHODS = frozenset(
    {b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH", b"PROPFIND", b"QUERY"}
)
SIMPLE = "http/0.9"
_STATUS_LINE = re.compile(rb"HTTP/(1)\.(\d)[ \t]+(\d{3})(?:[ \t].*)?\Z", re.S)
# A whole start-line at the beginning of a chunk: what a decoder that lost its place accepts as a new message.
_REQUEST_START = re.compile(rb"[A-Z][A-Z\-]{1,31} [^\s]{1,8192} HTTP/1\.[01]\r?\n")
_STATUS_START = re.compile(rb"HTTP/1\.[01] [1-5]\d\d(?: [^\r\n]*)?\r?\n")
# What a start-line can look like before its end has arrived.
_REQUEST_BEGUN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}(?:[ \t][^\r\n]*\r?)?\Z")
_STATUS_BEGUN = re.compile(rb"HTTP/1\.\d[ \t]+[^\r\n]*\r?\Z")
_STATUS_PREFIX = b"HTTP/1."


class Framing(Enum):
    """What ends a message's body."""

    EMPTY = "no body"
    LENGTH = "Content-Length"
    CHUNKED = "chunked"
    UNTIL_CLOSE = "end of the connection"
    UNKNOWN = "not known"
    """Part of the head is missing, or it contradicts itself: only the next message's start-line shows the end."""


@dataclass(slots=True)
class Head:
    """One message's head. A request has ``method`` and ``target``, a response ``status``."""

    version: str
    fields: tuple[Field, ...]
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


def is_request_start(octets: bytes) -> bool:
    """Whether a complete request-line stands at the beginning."""
    return _REQUEST_START.match(octets) is not None


def is_status_start(octets: bytes) -> bool:
    """Whether a complete status-line stands at the beginning."""
    return _STATUS_START.match(octets) is not None


def may_begin_request(octets: bytes) -> bool:
    """Whether these octets, without a line end yet, can be the beginning of a request-line."""
    return _REQUEST_BEGUN.match(octets) is not None


def may_begin_status(octets: bytes) -> bool:
    """Whether these octets, without a line end yet, can be the beginning of a status-line."""
    return _STATUS_PREFIX.startswith(octets[:7]) if len(octets) < 9 else _STATUS_BEGUN.match(octets) is not None


def parse_request_line(line: bytes) -> tuple[str, str, str] | None:
    """(method, target, version), or None when it is none. ``http/0.9`` stands for a version that is absent or malformed."""
    match = _REQUEST_LINE.match(line)
    if match is None:
        return _simple_request_line(line)
    method, target, major, minor = match.groups()
    return method.decode("ascii"), text_of(target), f"http/{major.decode()}.{minor.decode()}"


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


def parse_status_line(line: bytes) -> tuple[int, str] | None:
    """(status, version), or None when it is none."""
    match = _STATUS_LINE.match(line)
    if match is None:
        return None
    major, minor, status = match.groups()
    return int(status), f"http/{major.decode()}.{minor.decode()}"


def parse_fields(lines: list[bytes], anomalies: list[str]) -> tuple[Field, ...]:
    """Field lines without their line ends; obs-fold (RFC 9112 section 5.2) is joined. What is wrong is added to ``anomalies``."""
    fields: list[Field] = []
    for line in _unfolded(lines):
        name, colon, value = line.partition(b":")
        if not colon or not name.strip():
            anomalies.append("a field line has no name")
        elif len(fields) >= MAX_FIELDS:
            anomalies.append(f"more than {MAX_FIELDS} fields; the rest is left out")
            break
        else:
            fields.append(make_field(name.strip(), value.strip()))
    return tuple(fields)


def _unfolded(lines: list[bytes]) -> list[bytes]:
    if not any(line[:1] in (b" ", b"\t") for line in lines):
        return lines
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


def split_lines(octets: bytes) -> list[bytes]:
    """Lines of a head without their ends, the empty one at its end left out; bare LF counts (RFC 9112 section 2.2)."""
    lines = octets.split(b"\r\n")
    if octets.count(b"\n") != len(lines) - 1:
        lines = [line.removesuffix(b"\r") for line in octets.split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def request_framing(head: Head, anomalies: list[str]) -> tuple[Framing, int]:
    """RFC 9112 section 6.3 for a request: (what ends it, length)."""
    return _framing(head, anomalies, Framing.EMPTY)


def response_framing(head: Head, method: str | None, anomalies: list[str]) -> tuple[Framing, int]:
    """RFC 9112 section 6.3 for the response to a request of this method (None where the request was not captured)."""
    status = head.status or 0
    if method == "HEAD" or status in (204, 304) or 100 <= status < 200:
        return Framing.EMPTY, 0
    if method == "CONNECT" and 200 <= status < 300:
        return Framing.EMPTY, 0
    return _framing(head, anomalies, Framing.UNTIL_CLOSE)


def _framing(head: Head, anomalies: list[str], default: Framing) -> tuple[Framing, int]:
    if not head.complete:
        return Framing.UNKNOWN, 0
    codings = [c.lower() for c in find_all(head.fields, "transfer-encoding")]
    lengths = set(find_all(head.fields, "content-length"))
    if codings:
        if lengths:
            anomalies.append("both Transfer-Encoding and Content-Length (RFC 9112 section 6.3): the coding counts")
        return _coded(codings, anomalies, default)
    if not lengths:
        return default, 0
    if len(lengths) > 1 or not all(_is_length(value) for value in lengths):
        anomalies.append("Content-Length is ambiguous; the body's end is not known")
        return Framing.UNKNOWN, 0
    return Framing.LENGTH, int(lengths.pop())


def _coded(codings: list[str], anomalies: list[str], default: Framing) -> tuple[Framing, int]:
    if codings[-1] == "chunked":
        return Framing.CHUNKED, 0
    if codings == ["identity"]:  # RFC 2616 had it; it never delimited anything
        return default, 0
    if default is Framing.UNTIL_CLOSE:
        return default, 0
    anomalies.append("the last transfer coding of a request is not chunked; the body's end is not known")
    return Framing.UNKNOWN, 0


def _is_length(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 19


def wants_upgrade(fields: tuple[Field, ...]) -> str | None:
    """The protocol of an Upgrade field, lower case; None without one."""
    value = find(fields, "upgrade")
    return value.split(",")[0].strip().lower() if value else None
