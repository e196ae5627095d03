"""Key logs: the NSS format (SSLKEYLOGFILE), now RFC 9850, with the older forms that Wireshark and OpenSSL know.

A key log may be shuffled, hold other sessions' secrets, be cut in the middle of a line or be damaged: every usable line is used, every other one
becomes an ``Anomaly`` with its line number. Reasons never repeat a line's content, which may be a secret.
"""

from __future__ import annotations

import re
from binascii import Error as HexError
from binascii import unhexlify
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from netdiag.records.anomaly import Anomaly

_MOST_ANOMALIES = 100
_MOST_REMEMBERED = 100_000
_MOST_TRIALS = 100_000
"""Each costs about 25 µs, and a capture may have many connections to try them on."""

MASTER = "CLIENT_RANDOM"
"""Label of a master secret of TLS 1.2 and before."""
PREMASTER = "PMS_CLIENT_RANDOM"

_HASHES = (32, 48, 64)
"""Octets that a TLS 1.3 secret can have (SHA-256, SHA-384, SHA-512)."""
_RANDOM = 32

_LABELS: Mapping[bytes, tuple[int, ...] | None] = {
    b"CLIENT_RANDOM": (48,),
    b"PMS_CLIENT_RANDOM": None,
    b"CLIENT_EARLY_TRAFFIC_SECRET": _HASHES,
    b"CLIENT_HANDSHAKE_TRAFFIC_SECRET": _HASHES,
    b"SERVER_HANDSHAKE_TRAFFIC_SECRET": _HASHES,
    b"CLIENT_TRAFFIC_SECRET_0": _HASHES,
    b"SERVER_TRAFFIC_SECRET_0": _HASHES,
}
"""Labels used here, with the possible lengths of their secrets (None: any). Exporter, QUIC and ECH secrets are accepted and not needed."""

_UNUSED = re.compile(
    rb"(EARLY_)?EXPORTER(_MASTER)?_SECRET|EARLY_EXPORTER_SECRET|ECH_(SECRET|CONFIG)|QUIC_\w+|(CLIENT|SERVER)_TRAFFIC_SECRET_[1-9]\d*|"
    rb"[A-Z][A-Z0-9_]{2,63}"
)
_SESSION = re.compile(rb"RSA\s+Session-ID:([0-9A-Fa-f]*)\s+Master-Key:([0-9A-Fa-f]*)\s*\Z")


class KeyLog:
    """Secrets by session. What a session teaches about a later one that resumes it is added by ``remember``."""

    __slots__ = (
        "_resumable",
        "anomalies",
        "entries",
        "ignored",
        "masters_by_session",
        "needs_transcript",
        "premasters",
        "secrets",
        "trials_left",
    )

    def __init__(self) -> None:
        self.secrets: dict[bytes, dict[str, bytes]] = {}
        """By client random, then by label."""
        self.premasters: dict[bytes, bytes] = {}
        """Pre-master secrets by the first eight octets of their encrypted form in the ClientKeyExchange."""
        self.masters_by_session: dict[bytes, bytes] = {}
        """Master secrets by session id."""
        self.needs_transcript = False
        """Whether there are pre-master secrets, from which a master secret may have to be made over the handshake's messages (RFC 7627)."""
        self._resumable: dict[bytes, bytes] = {}
        self.anomalies: list[Anomaly] = []
        self.entries = 0
        """Usable lines."""
        self.trials_left = _MOST_TRIALS
        """Sessions that may still be tried on records of which only one direction, or not the true client random, is known."""
        self.ignored = 0
        """Well-formed lines whose label is not needed here (exporter secrets, labels of other software)."""

    def __repr__(self) -> str:
        return f"KeyLog({self.entries} entries for {len(self.secrets)} sessions, {len(self.anomalies)} anomalies)"

    def __bool__(self) -> bool:
        return self.entries > 0

    def of(self, client_random: bytes) -> Mapping[str, bytes]:
        """The secrets of one session by label; empty where the log has none."""
        return self.secrets.get(client_random) or _NOTHING

    def remember(self, session: bytes, master: bytes) -> None:
        """Keep a master secret under the session id or ticket with which a later connection may resume it."""
        if session and len(self._resumable) < _MOST_REMEMBERED:
            self._resumable.setdefault(session, master)

    def master_of(self, session: bytes) -> bytes | None:
        """Master secret by session id or ticket: from an ``RSA Session-ID:`` line or remembered; None where unknown."""
        return (self.masters_by_session.get(session) or self._resumable.get(session)) if session else None

    def merge(self, other: KeyLog) -> KeyLog:
        """A new key log with the secrets of both; where they disagree this one's win."""
        merged = KeyLog()
        for source in (self, other):
            for random, secrets in source.secrets.items():
                merged.secrets.setdefault(random, {}).update(
                    {k: v for k, v in secrets.items() if k not in merged.secrets[random]}
                )
            for mine, theirs in (
                (merged.premasters, source.premasters),
                (merged.masters_by_session, source.masters_by_session),
                (merged._resumable, source._resumable),
            ):
                mine.update({k: v for k, v in theirs.items() if k not in mine})
            merged.anomalies += source.anomalies
            merged.entries += source.entries
            merged.ignored += source.ignored
            merged.needs_transcript |= source.needs_transcript
        return merged


_NOTHING: Mapping[str, bytes] = MappingProxyType({})


def parse_keylog(text: bytes, *, origin: str = "key log") -> KeyLog:
    """Reads a whole key log. ``origin`` names it in anomalies. Line ends may be LF, CRLF or CR; UTF-8 and UTF-16 byte order marks are understood."""
    log = KeyLog()
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(_plain(text).splitlines(), start=1):
        problem = _read_line(log, line)
        if problem:
            problems.append((number, problem))
    log.anomalies = _anomalies(problems, origin)
    return log


def merge_keylogs(texts: Iterable[tuple[str, bytes]]) -> KeyLog:
    """One key log of several (origin, text): files, then the secrets a capture carries (pcapng Decryption Secrets Blocks)."""
    merged = KeyLog()
    for origin, text in texts:
        merged = merged.merge(parse_keylog(text, origin=origin))
    return merged


def _plain(text: bytes) -> bytes:
    """Without a byte order mark; PowerShell's redirection writes UTF-16."""
    if text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return text.decode("utf-16", "replace").encode("ascii", "replace")
    return text.removeprefix(b"\xef\xbb\xbf")


def _anomalies(problems: list[tuple[int, str]], origin: str) -> list[Anomaly]:
    rows = [Anomaly(protocol="key-log", reason=f"{origin}, line {n}: {what}") for n, what in problems[:_MOST_ANOMALIES]]
    if len(problems) > _MOST_ANOMALIES:
        rows.append(
            Anomaly(protocol="key-log", reason=f"{origin}: {len(problems) - _MOST_ANOMALIES} more lines are damaged")
        )
    return rows


def _read_line(log: KeyLog, line: bytes) -> str | None:
    """Takes what a line says into ``log``; what is wrong with the line, or None."""
    words = line.split()
    if not words or words[0][:1] == b"#":
        return None
    label = words[0]
    if label == b"RSA":
        return _read_rsa(log, line, words)
    if len(words) != 3:
        return f"{len(words)} words, 3 expected"
    try:
        identity, secret = unhexlify(words[1]), unhexlify(words[2])
    except (HexError, ValueError):
        return f"not hexadecimal, or an odd number of digits, after {_shown(label)}"
    if label not in _LABELS:
        return _unused(log, label)
    lengths = _LABELS[label]
    if len(identity) != _RANDOM:
        return f"client random of {len(identity)} octets, {_RANDOM} expected"
    if not secret or (lengths and len(secret) not in lengths):
        return f"{_shown(label)} of {len(secret)} octets"
    return _keep(log, log.secrets.setdefault(identity, {}), label.decode(), secret)


def _keep(log: KeyLog, secrets: dict[str, bytes], label: str, secret: bytes) -> str | None:
    """The first of two different secrets for one session and label is kept."""
    if secrets.setdefault(label, secret) != secret:
        return f"another {label} for a session that has one already"
    log.needs_transcript |= label == PREMASTER
    log.entries += 1
    return None


def _unused(log: KeyLog, label: bytes) -> str | None:
    """RFC 9850 section 2: unknown labels are ignored; what does not even look like a label is damage."""
    if _UNUSED.fullmatch(label):
        log.ignored += 1
        return None
    return "no label that could be one"


def _read_rsa(log: KeyLog, line: bytes, words: list[bytes]) -> str | None:
    """``RSA`` + eight octets of the encrypted pre-master + pre-master, or ``RSA Session-ID:… Master-Key:…``."""
    by_session = _SESSION.match(line.strip())
    key, secret = by_session.groups() if by_session else (*words[1:], b"", b"")[:2]
    try:
        identity, value = unhexlify(key), unhexlify(secret)
    except (HexError, ValueError):
        return "not hexadecimal, or an odd number of digits, after RSA"
    if len(value) != 48:
        return f"RSA secret of {len(value)} octets, 48 expected"
    if by_session:
        log.masters_by_session.setdefault(identity, value)
    elif len(identity) == 8 and len(words) == 3:
        log.premasters.setdefault(identity, value)
        log.needs_transcript = True
    else:
        return "RSA line of an unknown form"
    log.entries += 1
    return None


def _shown(label: bytes) -> str:
    """A label in an anomaly: only when it is one of those known, for an unknown word may be a secret out of place."""
    return label.decode() if label in _LABELS else "the label"
