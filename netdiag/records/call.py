"""What the user asked for: one call may take several attempts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Time slept between two attempts, and why."""

    ns: int
    """From the end of one attempt to the beginning of the next."""
    cause: str
    """``retry-after``, ``retry-after-ms``, ``computed``, ``redirect`` (0), ``reconnect`` (0: by the client library, on a new connection), ``unknown``."""
    planned_ns: int | None = None
    """What the policy computed, or the server asked for; None where the plan is not known."""


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
    """One thing that the user asked for: one attempt, or several with the pauses between."""

    id: int
    url: str
    """Of the first attempt; values of secret-looking query parameters are replaced."""
    attempts: tuple[int, ...]
    """Exchange ids in order."""
    backoff: tuple[Backoff, ...]
    """Number ``i`` lies between attempts ``i`` and ``i + 1``."""
    total_ns: int
    """From the beginning of the first attempt to the end of the last, pauses included."""
    outcome: str
    """Of the last attempt."""
    policy: str
    """``none``, ``article``, ``openai``, ``anthropic`` of a probe; of an inferred call ``client library`` or ``unknown``."""
    inferred: bool = False
    """Told from marks in the requests (``x-stainless-retry-count``, an idempotency key), not from a client that was seen to do it."""
    addresses: tuple[AddressAttempt, ...] = ()
    """TCP connection attempts for it; empty for a reused connection, and in a file."""
