"""Where the packets (or the client's own stamps) came from, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from netdiag.records.recording import UnsupportedArm


class EvidenceLevel(StrEnum):
    """What a result rests on."""

    L0 = "L0"
    """The application's clock."""
    L1 = "L1"
    """And the kernel's: TCP_INFO, SO_TIMESTAMPING."""
    L2 = "L2"
    """And packets."""
    L3 = "L3"
    """And session keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Entries of key logs and embedded secrets; how many sessions they opened. Never the secrets themselves."""

    entries: int = 0
    used: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One capture file, or one probe."""

    kind: str
    """``file`` or ``probe``."""
    path: str | None
    format: str | None
    """``pcap``, ``pcap-ns``, ``pcap-modified``, ``pcapng``, with ``.gz``/``.zst``/``.lz4`` appended where compressed; None without packets."""
    packets: int
    """Packets in the file, decoded or not."""
    link_types: tuple[str, ...]
    first_at: int | None
    last_at: int | None
    timestamp_resolution_ns: int | None
    dropped_packets: int | None
    """What the kernel says it dropped; None when nobody said."""
    cut_at_byte: int | None = None
    """Where a cut or damaged file stopped being readable."""
    evidence_level: EvidenceLevel = EvidenceLevel.L2
    secrets: Secrets = field(default_factory=Secrets)
    not_decoded: dict[str, int] = field(default_factory=dict)
    """Packets that were counted but not decoded, by reason (``link type 195``, ``arp`` …)."""
    capture_backend: str | None = None
    note: str | None = None
    """One line: why this level, and how to get a better one."""
    verification: str | None = None
    """``on``, or ``off (--insecure)``, in a probe."""
    unsupported: tuple[UnsupportedArm, ...] = ()
    """Arms of a probe that the server does not speak, or that could not be tried."""
