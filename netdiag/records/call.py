"""What the user asked for: one call may take several attempts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Time slept between two attempts, and why."""

    ns: int
    cause: str
    """``retry-after``, ``retry-after-ms``, ``computed``, ``redirect`` (0), ``reconnect`` (0: by the client library, on a new connection), ``unknown``."""
    planned_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressAttempt:
    """One TCP connection attempt of a Happy Eyeballs race (RFC 8305)."""

    address: str
    port: int
    started_at: int
    ended_at: int
    outcome: str
    """``connected``, ``refused``, ``unreachable``, ``timeout``, ``abandoned``."""
    client_port: int | None = None
    """Our side's port, which tells the attempt from other programs' connections; None when it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Attempts are exchange ids in order."""

    id: int
    url: str
    attempts: tuple[int, ...]
    backoff: tuple[Backoff, ...]
    total_ns: int
    outcome: str
    policy: str
    inferred: bool = False
    addresses: tuple[AddressAttempt, ...] = ()
