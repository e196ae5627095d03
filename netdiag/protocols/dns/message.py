"""DNS messages (RFC 1035, 6891): the header, the question, and of the answers what leads to an address.

Compression pointers may only go backwards and at most sixteen times; a message that breaks a rule later than its question still yields
what came before, as ``damaged``.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import NamedTuple

from netdiag.protocols.dns.numbers import rcode_name, type_name

_HEADER = struct.Struct(">HHHHHH")
_MAX_POINTERS = 16
_MAX_QUESTIONS = 8
_MAX_RECORDS = 512
_MAX_NAME_BYTES = 255
_OPCODE_AND_ZERO, _ANSWERS_ONLY = 0x7840, 0x068F
"""Bits of the flags (RFC 1035 section 4.1.1): that are 0 in every ordinary message; and (AA, TC, RA, RCODE) in every query."""
_FEW = 32


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """One answer record."""

    name: str
    type: int
    ttl_s: int
    address: str | None = None
    """Of an A or AAAA record."""
    target: str | None = None
    """Of a CNAME record."""


@dataclass(frozen=True, slots=True)
class DnsMessage:
    """One message."""

    id: int
    response: bool
    opcode: int
    truncated: bool
    rcode: int
    """With the extension of EDNS (RFC 6891 section 6.1.3) where there is one."""
    name: str
    """QNAME without the final dot, ``.`` for the root, in the case as sent; control characters and dots inside labels escaped."""
    type: int
    """QTYPE; 0 when there is no question."""
    class_: int
    answers: tuple[ResourceRecord, ...]
    answer_count: int
    """As the header says."""
    questions: int
    damaged: bool = False
    """Something after the question could not be read."""
    readable: bool = True
    """False: not even the question is whole (a short snap length, damage); then ``name`` is empty and only the header counts."""

    @property
    def rcode_name(self) -> str:
        """``NOERROR``, ``NXDOMAIN`` …, or ``RCODE99``."""
        return rcode_name(self.rcode)

    @property
    def type_name(self) -> str:
        """The question's type as a mnemonic."""
        return type_name(self.type)


class _Damaged(ValueError):
    """The octets break a rule."""


class _Header(NamedTuple):
    """RFC 1035 section 4.1.1."""

    id: int
    flags: int
    questions: int
    answers: int
    authorities: int
    additionals: int

    @property
    def response(self) -> bool:
        return bool(self.flags & 0x8000)

    @property
    def is_ordinary(self) -> bool:
        """Whether every field is as in nearly all messages, so that it is believed without its question."""
        plain = self.questions == 1 and not self.flags & _OPCODE_AND_ZERO and self.additionals <= _FEW
        asks = not self.flags & _ANSWERS_ONLY and not self.answers and not self.authorities
        return plain and (self.response or asks) and max(self.answers, self.authorities) <= _FEW

    def message(self, question: _Question, rest: _Rest, *, readable: bool = True) -> DnsMessage:
        """With what follows the header."""
        return DnsMessage(
            id=self.id,
            response=self.response,
            opcode=self.flags >> 11 & 0xF,
            truncated=bool(self.flags & 0x0200),
            rcode=self.flags & 0xF | rest.extended_rcode,
            name=question.name,
            type=question.type,
            class_=question.class_,
            answers=tuple(rest.answers),
            answer_count=self.answers,
            questions=self.questions,
            damaged=rest.damaged,
            readable=readable,
        )


class _Question(NamedTuple):
    """The first one. Without any, what the message says of it."""

    name: str = ""
    type: int = 0
    class_: int = 0
    end: int = _HEADER.size


class _Rest(NamedTuple):
    """What was read of the records."""

    answers: list[ResourceRecord]
    extended_rcode: int = 0
    damaged: bool = False


def decode_message(data: bytes) -> DnsMessage | None:
    """The message in one datagram (or one TCP message without its length); None when it is none.

    Where the question cannot be read, a header that is an ordinary query's or answer's still pairs the two by their id.
    """
    if len(data) < _HEADER.size:
        return None
    header = _Header(*_HEADER.unpack_from(data))
    if not header.questions and not header.response:
        return None
    try:
        question = _question(data) if header.questions else _Question()
    except (_Damaged, struct.error):
        return header.message(_Question(), _Rest([], damaged=True), readable=False) if header.is_ordinary else None
    return header.message(question, _rest(data, header, question.end))


def _question(data: bytes) -> _Question:
    name, pos = _name(data, _HEADER.size)
    type_, class_ = struct.unpack_from(">HH", data, pos)
    return _Question(name, type_, class_, pos + 4)


def _rest(data: bytes, header: _Header, pos: int) -> _Rest:
    """Everything behind the first question, up to the first damage."""
    answers: list[ResourceRecord] = []
    extended_rcode = 0
    try:
        for _ in range(min(header.questions, _MAX_QUESTIONS) - 1):
            pos = _name(data, pos)[1] + 4
        pos = _read_records(data, pos, header.answers, answers)
        if header.additionals:
            pos = _skip_records(data, pos, header.authorities)
            extended_rcode = _extended_rcode(data, pos, header.additionals)
    except (_Damaged, struct.error, IndexError):
        return _Rest(answers, extended_rcode, damaged=True)
    return _Rest(answers, extended_rcode)


def _name(data: bytes, pos: int) -> tuple[str, int]:
    """A domain name (RFC 1035 sections 3.1 and 4.1.4) and the offset after it."""
    labels: list[str] = []
    after = -1
    lowest = pos
    pointers = length = 0
    while True:
        if pos >= len(data):
            raise _Damaged
        size = data[pos]
        if size & 0xC0 == 0xC0:
            pointers += 1
            if pos + 1 >= len(data) or pointers > _MAX_POINTERS:
                raise _Damaged
            if after < 0:
                after = pos + 2
            pos = (size & 0x3F) << 8 | data[pos + 1]
            if pos >= lowest:
                raise _Damaged
            lowest = pos
            continue
        if size & 0xC0:
            raise _Damaged
        pos += 1
        if not size:
            return ".".join(labels) or ".", pos if after < 0 else after
        length += size + 1
        if length > _MAX_NAME_BYTES or pos + size > len(data):
            raise _Damaged
        labels.append(_label(data[pos : pos + size]))
        pos += size


def _label(octets: bytes) -> str:
    """RFC 4343 section 2.1: what cannot be printed, and a dot inside a label, is escaped as ``\\DDD``."""
    text = octets.decode("latin-1")
    if text.isascii() and text.replace("-", "").replace("_", "").isalnum():
        return text
    return "".join(c if 33 <= ord(c) < 127 and c not in '.\\"' else f"\\{ord(c):03d}" for c in text)


def _read_records(data: bytes, pos: int, count: int, out: list[ResourceRecord]) -> int:
    for _ in range(min(count, _MAX_RECORDS)):
        name, pos = _name(data, pos)
        type_, _, ttl, size = struct.unpack_from(">HHIH", data, pos)
        pos += 10
        if pos + size > len(data):
            raise _Damaged
        address = target = None
        if type_ == 1 and size == 4:
            address = socket.inet_ntop(socket.AF_INET, data[pos : pos + 4])
        elif type_ == 28 and size == 16:
            address = socket.inet_ntop(socket.AF_INET6, data[pos : pos + 16])
        elif type_ in (5, 39):
            target = _name(data, pos)[0]
        out.append(ResourceRecord(name, type_, ttl & 0x7FFFFFFF, address, target))
        pos += size
    return pos


def _skip_records(data: bytes, pos: int, count: int) -> int:
    for _ in range(min(count, _MAX_RECORDS)):
        pos = _name(data, pos)[1]
        pos += 10 + int.from_bytes(data[pos + 8 : pos + 10], "big")
    return pos


def _extended_rcode(data: bytes, pos: int, count: int) -> int:
    for _ in range(min(count, _MAX_RECORDS)):
        pos = _name(data, pos)[1]
        type_, _, ttl, size = struct.unpack_from(">HHIH", data, pos)
        if type_ == 41:
            return int(ttl >> 24) << 4
        pos += 10 + size
    return 0
