"""Hellos and their extensions, octet by octet."""

from __future__ import annotations

from netdiag.protocols.tls.client_hello import ClientHello, client_hello

RANDOM = bytes(range(32))


def vector(data: bytes, size: int = 2) -> bytes:
    return len(data).to_bytes(size, "big") + data


def extension(kind: int, data: bytes) -> bytes:
    return kind.to_bytes(2, "big") + vector(data)


def sni(name: bytes) -> bytes:
    return extension(0, vector(b"\0" + vector(name)))


def alpn(*names: bytes) -> bytes:
    return extension(16, vector(b"".join(vector(n, 1) for n in names)))


def key_share(*groups: int) -> bytes:
    return extension(51, vector(b"".join(g.to_bytes(2, "big") + vector(bytes(32)) for g in groups)))


def client_octets(*extensions: bytes, version: int = 0x0303, suites: bytes = b"\x13\x01\x13\x02") -> bytes:
    body = version.to_bytes(2, "big") + RANDOM + vector(b"session", 1) + vector(suites) + vector(b"\0", 1)
    return body + (vector(b"".join(extensions)) if extensions else b"")


def server_octets(*extensions: bytes, version: int = 0x0303, random: bytes = RANDOM) -> bytes:
    return version.to_bytes(2, "big") + random + vector(b"id", 1) + b"\x13\x01\0" + vector(b"".join(extensions))


def parsed(body: bytes) -> ClientHello:
    hello = client_hello(body)
    assert hello is not None
    return hello
