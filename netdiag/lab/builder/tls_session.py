"""What both sides of a TLS handshake share: the session, the key log, the server's identity, keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ed25519

from netdiag.lab.builder import tls_messages as m
from netdiag.lab.builder.tls_keys import CHANGE_CIPHER_SPEC, SUITES, Protection, Suite, plain_record, prf
from netdiag.lab.builder.tls_stream import Stream, Ticket

CHANGE = plain_record(CHANGE_CIPHER_SPEC, b"\x01")
"""The record that middleboxes want to see (RFC 8446 appendix D.4), and TLS 1.2 needs."""


@dataclass(slots=True)
class KeyLog:
    """Session secrets in the NSS key log format."""

    lines: list[str] = field(default_factory=list)

    def add(self, label: str, client_random: bytes, secret: bytes) -> None:
        """One line, once (both sides know the secret)."""
        line = f"{label} {client_random.hex()} {secret.hex()}"
        if line not in self.lines:
            self.lines.append(line)

    @property
    def octets(self) -> bytes:
        """The file's content."""
        return "".join(line + "\n" for line in self.lines).encode()


@dataclass(slots=True)
class Session:
    """What a handshake came to."""

    version: str
    suite: Suite
    alpn: str | None
    resumed: bool
    retried: bool = False
    hello: tuple[int, int] = (0, 0)
    """Octets of the (first) hello in its direction's TCP stream: from, to."""
    finished: tuple[int, int] = (0, 0)
    """The octets that end with the own Finished, likewise."""


@dataclass(slots=True)
class ServerIdentity:
    """Certificate chain (DER, leaf first) with its key, and the tickets given out."""

    chain: Sequence[bytes]
    key: ed25519.Ed25519PrivateKey
    tickets: dict[bytes, Ticket] = field(default_factory=dict)


def by_code(code: int) -> Suite:
    """The suite with this number."""
    return next(s for suites in SUITES.values() for s in suites.values() if s.code == code)


def share_of(hello: bytes, group: str) -> bytes:
    """The client's share for a group: found by its header, which is unique enough between two known sides."""
    sizes = {"x25519": 32, "secp256r1": 65, "secp384r1": 97}
    mark = m.GROUPS[group].to_bytes(2, "big") + sizes[group].to_bytes(2, "big")
    start = hello.index(mark, 40) + 4
    return hello[start : start + sizes[group]]


def keys12(suite: Suite, master: bytes, client_random: bytes, server_random: bytes) -> tuple[Protection, Protection]:
    """Client's and server's write protection (RFC 5246 section 6.3)."""
    iv_bytes = 4 if suite.nonce_is_explicit else 12
    block = prf(suite, master, "key expansion", server_random + client_random, 2 * (suite.key_bytes + iv_bytes))
    keys, ivs = block[: 2 * suite.key_bytes], block[2 * suite.key_bytes :]
    return (
        Protection(suite, keys[: suite.key_bytes], ivs[:iv_bytes], False),
        Protection(suite, keys[suite.key_bytes :], ivs[iv_bytes:], False),
    )


def open_stream(stream: Stream, suite: Suite, *, is_tls13: bool, resumption: Callable[[bytes], bytes]) -> None:
    """The handshake is done: application data may pass."""
    stream.secure, stream.is_tls13, stream.suite_name, stream.resumption = True, is_tls13, suite.name, resumption
