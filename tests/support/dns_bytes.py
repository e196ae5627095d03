"""DNS messages by hand, with compression where the test asks for it."""

from __future__ import annotations

import socket
import struct

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "TXT": 16, "AAAA": 28, "OPT": 41, "HTTPS": 65}


def name(text: str) -> bytes:
    """An uncompressed domain name."""
    labels = [label.encode("latin-1") for label in text.split(".") if label]
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"


def pointer(offset: int) -> bytes:
    """A compression pointer."""
    return (0xC000 | offset).to_bytes(2, "big")


def record(owner: bytes, type_: str, data: bytes, *, ttl: int = 300, class_: int = 1) -> bytes:
    """One resource record."""
    return owner + struct.pack(">HHIH", TYPES[type_], class_, ttl, len(data)) + data


def a(owner: bytes, address: str, *, ttl: int = 300) -> bytes:
    """An A or AAAA record."""
    if ":" in address:
        return record(owner, "AAAA", socket.inet_pton(socket.AF_INET6, address), ttl=ttl)
    return record(owner, "A", socket.inet_aton(address), ttl=ttl)


def message(
    qname: str,
    type_: str = "A",
    *,
    id_: int = 1,
    flags: int = 0x0100,
    answers: tuple[bytes, ...] = (),
    authorities: tuple[bytes, ...] = (),
    additionals: tuple[bytes, ...] = (),
) -> bytes:
    """A message with one question."""
    head = struct.pack(">HHHHHH", id_, flags, 1, len(answers), len(authorities), len(additionals))
    return head + name(qname) + struct.pack(">HH", TYPES[type_], 1) + b"".join(answers + authorities + additionals)


def answer(
    qname: str, *answers: bytes, type_: str = "A", id_: int = 1, rcode: int = 0, truncated: bool = False
) -> bytes:
    """A response."""
    return message(qname, type_, id_=id_, flags=0x8180 | rcode | (0x0200 if truncated else 0), answers=answers)
