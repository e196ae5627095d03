"""A named cause with its cost and its evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much of the time the cause cost."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"
    INFO = "info"


class Confidence(StrEnum):
    """How sure the cause is."""

    PROVED = "proved"
    LIKELY = "likely"
    HINT = "hint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the claim rests on."""

    packets: tuple[int, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    thresholds: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer to "why was this slow"; ids are those of the catalogue."""

    id: str
    subject: str
    """``exchange:3``, ``connection:1``, ``capture`` …"""
    phase: str | None
    cost_ns: int
    severity: Severity
    confidence: Confidence
    evidence: Evidence
    advice: str
    rule_version: int = 1
