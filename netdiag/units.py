"""Integer nanoseconds and octets to text, nowhere else. Storage never rounds; only what a person reads does."""

from __future__ import annotations

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def format_ms(duration_ns: int | None, *, digits: int = 1, none: str = "–") -> str:
    """``12.3``: milliseconds without unit for tables; ``none`` when the duration is not known."""
    return none if duration_ns is None else f"{duration_ns / NS_PER_MS:.{digits}f}"


def format_ms_readably(duration_ns: int | None, *, digits: int = 1, none: str = "–") -> str:
    """As ``format_ms``, with more digits (three at most) where that many would show something as nothing: ``0.04``, not ``0.0``."""
    if duration_ns is not None and duration_ns != 0:
        while digits < 3 and abs(duration_ns) < NS_PER_MS / 2 / 10**digits:
            digits += 1
    return format_ms(duration_ns, digits=digits, none=none)


def format_duration(duration_ns: int | None, *, none: str = "–") -> str:
    """``870 µs``, ``12.3 ms``, ``4.56 s``, ``2 min 05 s``: a duration with the unit that suits its size."""
    if duration_ns is None:
        return none
    size = abs(duration_ns)
    if size < 1_000_000:
        return f"{duration_ns / 1_000:.0f} µs"
    if size < NS_PER_S:
        return f"{duration_ns / NS_PER_MS:.1f} ms"
    if size < 60 * NS_PER_S:
        return f"{duration_ns / NS_PER_S:.2f} s"
    minutes, rest_ns = divmod(size, 60 * NS_PER_S)
    return f"{'-' if duration_ns < 0 else ''}{minutes} min {rest_ns // NS_PER_S:02d} s"


def format_bytes(count_bytes: int | None, *, none: str = "–") -> str:
    """``312 B``, ``12.4 kB``, ``3.1 MB``: decimal units, as browsers and curl show them."""
    if count_bytes is None:
        return none
    value, unit = float(count_bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
