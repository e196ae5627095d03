"""The PROXY protocol (HAProxy's specification, versions 1 and 2): what a load balancer puts before the client's own octets."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from netdiag.records.endpoint import Endpoint
from netdiag.wire.chunk import Chunk

_V1 = re.compile(
    rb"PROXY (?:TCP4|TCP6|UNKNOWN)(?: ([0-9a-fA-F.:]{2,39}) [0-9a-fA-F.:]{2,39} (\d{1,5}) \d{1,5})?[^\r\n]{0,107}\r\n"
)
_V1_BYTES = 107
_V2_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
_V2_HEADER_BYTES = 16


def begins(prefix: bytes) -> bool:
    """Whether a stream's first octets may be such a header."""
    return len(prefix) >= 6 and _may_begin(prefix)


def strip(chunks: Iterable[Chunk]) -> tuple[Endpoint | None, Iterator[Chunk]]:
    """(the client that the load balancer speaks for, the octets after the header). Octets without a header come back as they were.

    The endpoint is None where there is no header, or one that names nobody (UNKNOWN, LOCAL).
    """
    rows = iter(chunks)
    seen: list[Chunk] = []
    prefix = b""
    for row in rows:
        seen.append(row)
        prefix += row.data
        if len(prefix) >= _V1_BYTES or _header_bytes(prefix) is not None or not _may_begin(prefix):
            break
    size = _header_bytes(prefix)
    if size is None:
        return None, itertools.chain(seen, rows)
    while len(prefix) < size and (row := next(rows, None)) is not None:  # type: ignore[assignment]
        seen.append(row)
        prefix += row.data
    return _client(prefix[:size]), itertools.chain(_after(seen, size), rows)


def _may_begin(prefix: bytes) -> bool:
    return b"PROXY ".startswith(prefix[:6]) or _V2_SIGNATURE.startswith(prefix[:12])


def _header_bytes(prefix: bytes) -> int | None:
    """Length of the header; None where there is none (yet)."""
    if prefix.startswith(_V2_SIGNATURE) and len(prefix) >= _V2_HEADER_BYTES:
        return _V2_HEADER_BYTES + int.from_bytes(prefix[14:16], "big")
    match = _V1.match(prefix)
    return match.end() if match else None


def _client(header: bytes) -> Endpoint | None:
    match = _V1.match(header)
    if match is not None:
        address, port = match.groups()
        return Endpoint(address.decode("ascii").lower(), int(port)) if address else None
    family, body = header[13], header[_V2_HEADER_BYTES:]
    if not header[12] & 1 or family >> 4 not in (1, 2):  # LOCAL, or neither IPv4 nor IPv6
        return None
    import socket

    kind, size = (socket.AF_INET, 4) if family >> 4 == 1 else (socket.AF_INET6, 16)
    if len(body) < 2 * size + 4:
        return None
    return Endpoint(socket.inet_ntop(kind, body[:size]), int.from_bytes(body[2 * size : 2 * size + 2], "big"))


def _after(chunks: list[Chunk], count: int) -> Iterator[Chunk]:
    """The chunks without their first ``count`` octets."""
    for chunk in chunks:
        skipped = min(count, len(chunk.data))
        count -= skipped
        if skipped < len(chunk.data):
            yield replace(chunk, data=chunk.data[skipped:], offset=chunk.offset + skipped) if skipped else chunk
