"""By what a client library's requests tell which attempt of a call they are (retries section 3)."""

from __future__ import annotations

from collections.abc import Iterable

from netdiag.protocols.headers import Field

COUNT = "x-stainless-retry-count"
KEYS = ("idempotency-key", "x-idempotency-key")
_MARKS = frozenset({COUNT, *KEYS})


def bears_mark(fields: Iterable[Field]) -> bool:
    """Whether a request with these fields may tell which attempt it is."""
    return any(name in _MARKS for name, _ in fields)
