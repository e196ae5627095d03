"""One HTTP/2 header or trailer section: pseudo-header fields apart from the others (RFC 9113 section 8.3)."""

from __future__ import annotations

from dataclasses import dataclass

from netdiag.protocols.headers import Field
from netdiag.protocols.hpack_decoder import FieldBlock


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
    has_pseudo: bool = False


UNKNOWN = Section(incomplete=True)
"""A section whose octets could not be read."""


def assemble(block: FieldBlock[Field]) -> Section:
    """A section from the fields of a decoded block; of a pseudo-header field that comes twice the first counts."""
    pseudo: dict[str, str] = {}
    fields: list[Field] = []
    for field in block.fields:
        if field[0][:1] == ":":
            pseudo.setdefault(field[0], field[1])
        else:
            fields.append(field)
    return Section(
        fields=tuple(fields),
        method=pseudo.get(":method"),
        scheme=pseudo.get(":scheme"),
        authority=pseudo.get(":authority") or _host(fields),
        path=pseudo.get(":path"),
        status=_status(pseudo.get(":status")),
        protocol=pseudo.get(":protocol"),
        incomplete=block.incomplete,
        over_limit=block.over_limit,
        has_pseudo=bool(pseudo),
    )


def _host(fields: list[Field]) -> str | None:
    return next((value for name, value in fields if name == "host"), None)


def _status(value: str | None) -> int | None:
    return int(value) if value is not None and len(value) == 3 and value.isascii() and value.isdigit() else None
