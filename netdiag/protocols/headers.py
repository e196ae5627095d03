"""Field lines as text: names in lower case, values readable and free of secrets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from netdiag.protocols.redact import redact_value

Field = tuple[str, str]

_CACHED_BYTES = 512
# Longer fields (cookies, content security policies) come back on the next connection; a cache of many of them could grow large.
_CACHED_LONG_BYTES = 16 << 10


def make_field(name: bytes, value: bytes) -> Field:
    """One field as it is kept: name in lower case, secrets replaced. Octets that are no UTF-8 show as ``\\xNN``."""
    if len(name) + len(value) <= _CACHED_BYTES:
        return _cached_field(name, value)
    return (_cached_long_field if len(value) <= _CACHED_LONG_BYTES else _make_field)(name, value)


def _make_field(name: bytes, value: bytes) -> Field:
    key = text_of(name).lower()
    return key, redact_value(key, text_of(value)) if len(value) <= _CACHED_BYTES else _redact_long(key, text_of(value))


def _redact_long(name: str, value: str) -> str:
    return redact_value.__wrapped__(name, value)


_cached_field = lru_cache(maxsize=8192)(_make_field)
_cached_long_field = lru_cache(maxsize=128)(_make_field)


def text_of(octets: bytes) -> str:
    """RFC 9110 section 5.5 calls octets above 127 opaque; in practice they are UTF-8."""
    return octets.decode("utf-8", "backslashreplace")


def printable(octets: bytes, limit: int = 40) -> str:
    """The beginning of arbitrary octets for an anomaly's sentence, without control characters."""
    text = octets[:limit].decode("ascii", "backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def find(fields: Sequence[Field], name: str) -> str | None:
    """The first value of a field name; None when it is absent."""
    for key, value in fields:
        if key == name:
            return value
    return None


def media_type(fields: Sequence[Field]) -> str:
    """Content-Type in lower case without its parameters; empty where there is none."""
    content_type = find(fields, "content-type")
    return "" if content_type is None else content_type.partition(";")[0].strip().lower()


def find_all(fields: Sequence[Field], name: str) -> list[str]:
    """The members of a list-based field over all its lines (RFC 9110 section 5.6.1), stripped, empty ones left out."""
    members = (part.strip() for key, value in fields if key == name for part in value.split(","))
    return [m for m in members if m]
