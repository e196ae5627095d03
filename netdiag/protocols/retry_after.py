"""For how long a refusal asks to be left alone: ``Retry-After`` (RFC 9110 section 10.2.3: seconds or a date; clients also take fractions)
and ``retry-after-ms`` of the model APIs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from netdiag.units import NS_PER_MS, NS_PER_S

_LONGEST_NUMBER = 32


class Asked(NamedTuple):
    """A pause that a server asks for."""

    ns: int
    cause: str
    """``retry-after`` or ``retry-after-ms``: the field that says so."""


def asked(headers: Mapping[str, str], *, wall_ns: int, milliseconds: bool = True) -> Asked | None:
    """What the answer asks for; None when it asks for nothing that can be read. ``headers`` are lower case; ``wall_ns`` is when the answer
    came, from which a date counts; without ``milliseconds`` the model APIs' own field means nothing."""
    if milliseconds and (value := _number(headers.get("retry-after-ms"))) is not None:
        return Asked(round(value * NS_PER_MS), "retry-after-ms")
    text = headers.get("retry-after")
    if text is None:
        return None
    if (value := _number(text)) is not None:
        return Asked(round(value * NS_PER_S), "retry-after")
    at_ns = _date_ns(text)
    return None if at_ns is None else Asked(max(0, at_ns - wall_ns), "retry-after")


def _number(text: str | None) -> float | None:
    """A finite number of at least 0; None for anything else."""
    try:
        value = float((text or "")[:_LONGEST_NUMBER])
    except ValueError:
        return None
    return value if 0 <= value < 1e12 else None


def _date_ns(text: str) -> int | None:
    """An HTTP date in ns since the epoch."""
    import email.utils  # takes as long to load as a small capture to read, and hardly any server sends a date

    try:
        return int(email.utils.parsedate_to_datetime(text).timestamp() * NS_PER_S)
    except (TypeError, ValueError, OverflowError):
        return None
