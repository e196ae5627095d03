"""Which of a host's addresses a probe may connect to."""

from __future__ import annotations

import ipaddress

from netdiag.probe.failures import Unreachable

_METADATA = frozenset({"169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"})
"""Where clouds answer with credentials to whoever asks from inside."""


def permitted(host: str, addresses: tuple[str, ...], *, family: str | None, allow_link_local: bool) -> tuple[str, ...]:
    """The addresses of a family (None: of both). Raises ``Unreachable`` where there is none, and where one is off limits."""
    chosen = tuple(a for a in addresses if family in (None, "ipv6" if ":" in a else "ipv4"))
    if not chosen:
        raise Unreachable(f"{host} has no {family} address")
    for address in () if allow_link_local else chosen:
        if is_off_limits(address):
            raise Unreachable(
                f"{address} is a link-local or cloud-metadata address, which needs a permission of its own"
            )
    return chosen


def is_off_limits(address: str) -> bool:
    """Whether an address is link-local (RFC 3927, RFC 4291) or a cloud's metadata service."""
    parsed = ipaddress.ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None) or parsed
    return bool(mapped.is_link_local) or str(mapped) in _METADATA


def is_address(name: str) -> bool:
    """Whether a host is named by its address (which no SNI may carry, RFC 6066 section 3)."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
