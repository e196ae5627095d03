"""One HTTP/2 header or trailer section: pseudo-header fields apart from the others (RFC 9113 section 8.3)."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.protocols.headers import Field, find
from netdiag.protocols.http2.hpack_decoder import FieldBlock


@dataclass(frozen=True, slots=True)
class Section:
    """Immutable, so that turns with the same fields share it."""

    fields: tuple[Field, ...] = ()
    method: str | None = None
    scheme: str | None = None
    authority: str | None = None
    path: str | None = None
    status: int | None = None
    protocol: str | None = None
    """``:protocol`` of an extended CONNECT (RFC 8441)."""
    incomplete: bool = False
    over_limit: bool = False
    expects_continue: bool = False


UNKNOWN = Section(incomplete=True)
"""A section whose octets could not be read."""


def assemble(block: FieldBlock[Field]) -> Section:
    """A section from the fields of a decoded block. Pseudo-header fields come first (RFC 9113 section 8.3); of one that comes twice the
    first counts."""
    pseudo: dict[str, str] = {}
    fields = block.fields
    count = 0
    for name, value in fields:
        if name[:1] != ":":
            break
        pseudo.setdefault(name, value)
        count += 1
    fields = fields[count:]
    get = pseudo.get
    return Section(
        fields=fields,
        method=get(":method"),
        scheme=get(":scheme"),
        authority=get(":authority") or (find(fields, "host") if ":method" in pseudo else None),
        path=get(":path"),
        status=_status(get(":status")),
        protocol=get(":protocol"),
        incomplete=block.incomplete,
        over_limit=block.over_limit,
        expects_continue=("expect", "100-continue") in fields,
    )


def _status(value: str | None) -> int | None:
    return int(value) if value is not None and len(value) == 3 and value.isascii() and value.isdigit() else None
