"""Which names of a capture came to nothing."""

from __future__ import annotations

from collections.abc import Container, Sequence

from netdiag.records.dns import NameResolution

_OF_ADDRESSES = frozenset({"A", "AAAA"})


def unresolved(resolutions: Sequence[NameResolution]) -> list[tuple[str, str]]:
    """Names of which no question for an address was answered with one, and why: the last RCODE, ``no address`` or ``no answer``.

    A name that was only tried with a suffix of the search list, before or after it was found without, is none of them.
    """
    asked = [r for r in resolutions if r.type in _OF_ADDRESSES and r.name]
    found = {r.name for r in asked if r.addresses}
    why: dict[str, str] = {}
    for resolution in asked:
        if resolution.name not in found and not _is_expansion(resolution.name, found):
            why[resolution.name] = _reason(resolution)
    return [(name, reason) for name, reason in why.items() if not _is_expansion(name, why)]


def _is_expansion(name: str, of: Container[str]) -> bool:
    """Whether the name is one of the others with a suffix."""
    parts = name.split(".")
    return any(".".join(parts[:end]) in of for end in range(1, len(parts)))


def _reason(resolution: NameResolution) -> str:
    if resolution.rcode is None:
        return "no answer"
    return "no address" if resolution.rcode == "NOERROR" else resolution.rcode
