"""AWS event streams (``application/vnd.amazon.eventstream``): what Amazon Bedrock streams instead of server-sent events.

A message is a prelude (its length, the length of its headers, a checksum), headers, a payload and a checksum. The checksums are not
verified: octets that TCP and TLS have delivered are what the client saw.
"""

from __future__ import annotations

import json
import struct
from binascii import Error as Base64Error
from binascii import a2b_base64
from dataclasses import dataclass

from netdiag.protocols.llm_events import EventClassifier
from netdiag.records.stream import EventKind

BEDROCK = "bedrock"
CONTENT_TYPE = "application/vnd.amazon.eventstream"

_PRELUDE = struct.Struct(">III")
_CRC_BYTES = 4
_SMALLEST = _PRELUDE.size + _CRC_BYTES
_LARGEST = 16 << 20
_HELD = 1 << 20
_STRING = 7
# Octets of a header value by its type; None: two octets of length before it.
_VALUE_BYTES: dict[int, int | None] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: None, 7: None, 8: 8, 9: 16}

# ConverseStream (Bedrock API reference, "ConverseStreamOutput").
_CONVERSE: dict[str, EventKind] = {
    "messageStart": EventKind.ROLE,
    "contentBlockStart": EventKind.OTHER,
    "contentBlockStop": EventKind.OTHER,
    "messageStop": EventKind.DONE,
    "metadata": EventKind.USAGE,
}
_DELTAS = (("text", EventKind.TEXT), ("reasoningContent", EventKind.REASONING), ("toolUse", EventKind.TOOL))


@dataclass(frozen=True, slots=True)
class AwsMessage:
    """One message; ``payload`` is None where it was too large to be held."""

    headers: dict[str, str]
    payload: bytes | None
    size_bytes: int


class AwsEventStream:
    """Finds messages in octets that come in pieces of any size. After nonsense it finds no more."""

    __slots__ = ("_broken", "_buffer", "_left", "_size")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._size = 0
        self._left = 0
        self._broken = False

    def feed(self, octets: bytes) -> list[AwsMessage]:
        """Messages whose last octet is among these."""
        out: list[AwsMessage] = []
        pos = 0
        while pos < len(octets) and not self._broken:
            if not self._left:
                pos = self._begin(octets, pos)
                continue
            step = min(self._left, len(octets) - pos)
            if self._size <= _HELD:
                self._buffer += octets[pos : pos + step]
            self._left -= step
            pos += step
            if not self._left:
                out.append(self._end())
        return out

    def _begin(self, octets: bytes, pos: int) -> int:
        need = _PRELUDE.size - len(self._buffer)
        self._buffer += octets[pos : pos + need]
        if len(self._buffer) == _PRELUDE.size:
            self._size = int.from_bytes(self._buffer[:4], "big")
            self._left = self._size - _PRELUDE.size
            self._broken = not _SMALLEST <= self._size <= _LARGEST
        return min(pos + need, len(octets))

    def _end(self) -> AwsMessage:
        data, size = bytes(self._buffer), self._size
        self._buffer.clear()
        if len(data) < size:
            return AwsMessage({}, None, size)
        headers_end = _PRELUDE.size + int.from_bytes(data[4:8], "big")
        if headers_end > size - _CRC_BYTES:
            return AwsMessage({}, None, size)
        return AwsMessage(_headers(data[_PRELUDE.size : headers_end]), data[headers_end : size - _CRC_BYTES], size)


def _headers(data: bytes) -> dict[str, str]:
    """The headers that are strings."""
    found: dict[str, str] = {}
    pos = 0
    while pos < len(data):
        name_end = pos + 1 + data[pos]
        if name_end >= len(data):
            break
        name, kind = data[pos + 1 : name_end], data[name_end]
        pos = name_end + 1
        size = _VALUE_BYTES.get(kind, -1)
        if size is None:
            size = int.from_bytes(data[pos : pos + 2], "big")
            pos += 2
        if size < 0:
            break
        if kind == _STRING:
            found[name.decode("utf-8", "replace")] = data[pos : pos + size].decode("utf-8", "replace")
        pos += size
    return found


def classify(message: AwsMessage, classifier: EventClassifier) -> EventKind:
    """The kind of one Bedrock message; tokens and times go to the classifier. Inside ``chunk`` are the events of the model's own API."""
    if message.headers.get(":message-type") in ("exception", "error"):
        return EventKind.ERROR
    type_ = message.headers.get(":event-type", "")
    try:
        value = json.loads(message.payload) if message.payload else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return _CONVERSE.get(type_, EventKind.OTHER)
    if type_ == "chunk":
        return _chunk(value.get("bytes"), classifier)
    classifier.api = classifier.api or BEDROCK
    if type_ == "contentBlockDelta":
        delta = value.get("delta")
        return next(
            (kind for member, kind in _DELTAS if isinstance(delta, dict) and delta.get(member)), EventKind.OTHER
        )
    if type_ == "metadata":
        classifier.read_bedrock_metadata(value)
    return _CONVERSE.get(type_, EventKind.OTHER)


def _chunk(encoded: object, classifier: EventClassifier) -> EventKind:
    """InvokeModelWithResponseStream: base64 of one event."""
    if not isinstance(encoded, str):
        return EventKind.OTHER
    try:
        inner = a2b_base64(encoded)
    except (Base64Error, ValueError):
        return EventKind.OTHER
    return classifier.classify("", inner)
