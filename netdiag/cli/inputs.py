"""Files and folders to work on, and filters, from their words on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from netdiag.analysis.selection import Filter
from netdiag.errors import UsageError
from netdiag.units import NS_PER_S

STANDARD_INPUT = "-"
FILTER_KEYS = ("host", "port", "sni", "time")

_SECONDS = re.compile(r"[+]?\d+(\.\d+)?\Z")


@dataclass(frozen=True, slots=True)
class Input:
    """One file to read; ``from_folder`` when the user named only its folder, so that it need not be a capture."""

    path: str
    from_folder: bool = False
    kept: str | None = None
    """Where its octets are, when they come through a pipe and are needed more than once."""


def inputs(paths: Iterable[str]) -> Iterator[Input]:
    """Files as given; every regular, visible file of a folder, sorted, at any depth. Links inside folders are not followed."""
    for path in paths:
        if not path:  # a variable that is not set, most likely; Path would take it for the current folder
            raise UsageError("a file name is empty")
        if path != STANDARD_INPUT and Path(path).is_dir():
            yield from (Input(str(found), from_folder=True) for found in _files_of(Path(path)))
        else:
            yield Input(path)


def _files_of(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        yield folder  # reading it as a file says why it cannot be read, and the others still count
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _files_of(entry)
        elif entry.is_file():
            yield entry


@dataclass(frozen=True, slots=True)
class FilterWords:
    """``--filter`` words, understood as far as that is possible without the file: relative times need its first packet."""

    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    server_names: tuple[str, ...] = ()
    connections: tuple[int, ...] = ()
    span: tuple[str, str] = ("", "")

    def filter(self, first_at: int | None) -> Filter:
        """The filter for a file whose first packet was captured at ``first_at``."""
        return Filter(
            hosts=self.hosts,
            ports=self.ports,
            server_names=self.server_names,
            connections=self.connections,
            from_at=_instant(self.span[0], first_at),
            until_at=_instant(self.span[1], first_at),
        )


def parse_filters(words: Sequence[str], connections: Sequence[int] = ()) -> FilterWords:
    """``host=…``, ``port=…``, ``sni=…`` (each may come several times: any of them), ``time=FROM..TO``. Raises ``UsageError``."""
    found: dict[str, list[str]] = {key: [] for key in FILTER_KEYS}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key not in found or not value:
            raise UsageError(f"filter {word!r}: write one of {', '.join(f'{k}=…' for k in FILTER_KEYS)}")
        found[key].append(value)
    return FilterWords(
        hosts=tuple(found["host"]),
        ports=tuple(_port(text) for text in found["port"]),
        server_names=tuple(found["sni"]),
        connections=tuple(connections),
        span=_span(found["time"]),
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise UsageError(f"filter port={text}: a port is a number from 1 to 65535")
    return int(text)


def _span(words: Sequence[str]) -> tuple[str, str]:
    if not words:
        return ("", "")
    begin, dots, end = words[0].partition("..")
    if len(words) > 1 or not dots or not (begin or end):
        raise UsageError(
            "filter time: write once time=FROM..TO, in seconds after the first packet or as 2026-01-31T12:00:00Z"
        )
    for text in (begin, end):
        _instant(text, 0)
    return (begin, end)


def _instant(text: str, first_at: int | None) -> int | None:
    if not text:
        return None
    if _SECONDS.match(text):
        seconds, _, fraction = text.lstrip("+").partition(".")
        return (first_at or 0) + int(seconds) * NS_PER_S + int(fraction[:9].ljust(9, "0"))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"filter time: {text!r} is neither seconds nor a date and time like 2026-01-31T12:00:00Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    whole = int(moment.replace(microsecond=0).timestamp())
    return whole * NS_PER_S + moment.microsecond * 1_000
