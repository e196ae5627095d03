"""Who talks to whom."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A transport address."""

    address: str
    """IPv4 dotted or IPv6 in RFC 5952 form, without scope."""
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"
