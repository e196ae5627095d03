"""Phases: disjoint, ordered spans of one exchange, each with its clock, its method and its bounds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PhaseName(StrEnum):
    """The phases in the order in which they come."""

    QUEUE = "queue"
    DNS = "dns"
    PROXY = "proxy"
    TCP = "tcp"
    TLS = "tls"
    SEND = "send"
    CONTINUE = "continue"
    WAIT = "wait"
    TRANSFER = "transfer"
    DELIVER = "deliver"


class Clock(StrEnum):
    """Whose clock stamped the ends of a span."""

    APPLICATION = "application"
    KERNEL = "kernel"
    WIRE = "wire"


class Method(StrEnum):
    """How sure the ends of a span are."""

    EXACT = "exact"
    GRAMMAR = "grammar"
    """Told from record types and sizes without keys."""
    BOUNDED = "bounded"
    """Only bounds are known: the duration given is the likeliest, lo and hi enclose the truth."""
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One span. ``lo_ns <= duration_ns <= hi_ns``; all three are equal when the method is exact."""

    name: PhaseName
    started_at: int
    ended_at: int
    duration_ns: int
    clock: Clock
    method: Method
    lo_ns: int
    hi_ns: int
    first_packet: int | None = None
    last_packet: int | None = None
    loss_ns: int | None = None
    """How much of it octets waited for lost ones, or were themselves lost, as in ``Exchange.loss_ns``; None without packets."""
    loss_hi_ns: int | None = None
    """As in ``Exchange.loss_hi_ns``."""
    window_ns: int | None = None
    """How much of it its sender was stopped by a full or zero window of TCP: while the request is sent the server's, else the client's.
    None without packets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockTimeline:
    """The phases of one exchange by one clock."""

    started_at: int
    ended_at: int
    total_ns: int
    unattributed_ns: int
    phases: tuple[Phase, ...]
