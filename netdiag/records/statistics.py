"""Distributions of many trials, honest about what n allows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One quantity over n trials, nanoseconds. A quantile that n cannot support is None."""

    n: int
    min: int | None
    p50: int | None
    p90: int | None
    p95: int | None
    p99: int | None
    max: int | None
    interval_lo: int | None = None
    """Distribution-free 95 % interval of the median; None when n < 6."""
    interval_hi: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A trial that does not count, and why."""

    exchange_id: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What one arm's requests moved, the uncounted first round left out."""

    requests: int
    failed: int
    failed_share_lo: float
    failed_share_hi: float
    """Exact 95 % interval of the share of failures (Clopper and Pearson)."""
    response_bytes: int
    in_flight_ns: int
    """Time in which at least one of them was under way."""
    requests_per_s: float | None
    """Successful ones per second of ``in_flight_ns``; None when that is 0."""
    bytes_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """One arm's trials."""

    arm: str
    n: int
    excluded: tuple[Exclusion, ...]
    phases: dict[str, Distribution]
    """By phase name, and ``total``, ``unattributed``, ``first_byte``, ``first_event``, ``first_token``, ``first_visible``. All count from the
    beginning of the exchange (in a probe the submission; a stream's own ``first_…_ns`` count from its first octet sent). Where a call had
    several attempts these are of the one that answered, and ``call``, ``call_first_byte`` … count from the beginning of its first."""
    outcomes: dict[str, int]
    throughput: Throughput | None = None
    """In a probe; None for a capture file, whose programs may have asked for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One quantity of two arms, paired where trials are."""

    quantity: str
    arm_a: str
    arm_b: str
    pairs: int
    paired: bool
    estimate_ns: int | None
    """Hodges–Lehmann estimate of B − A ("typical paired difference")."""
    lo_ns: int | None
    hi_ns: int | None
    """95 % interval; None when n < 6."""
    margin_ns: int
    verdict: str
    """``faster``, ``slower``, ``faster-but-too-little``, ``slower-but-too-little``, ``no-difference-that-matters``, ``cannot-tell``."""
    pairs_needed: int | None = None
    """About how many more pairs a verdict needs."""
    predicted_ns: int | None = None
    predicted_by: str | None = None
    primary: bool = False
    p_value: float | None = None
    p_value_adjusted: float | None = None
    points_ns: tuple[int, ...] = ()
    """The paired differences themselves, in the order of the trials, where they are too few for an interval."""
