"""The JSON document, version 1: what every other program reads. Its keys are the fields of the records; ``netdiag schema`` describes them.

The text is deterministic (one record a line, keys in the order of the records, ASCII) so that two runs compare with ``diff``, and safe to
show: every control, bidirectional or invisible character of the traffic is a ``\\u`` escape.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TextIO, cast

from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Exchange
from netdiag.version import __version__

SCHEMA_NAME = "netdiag/analysis"
EXCHANGE_SCHEMA_NAME = "netdiag/exchange"
SCHEMA_VERSION = 1

TABLES = (
    "connections",
    "resolutions",
    "exchanges",
    "calls",
    "statistics",
    "comparisons",
    "findings",
    "anomalies",
)

# Header fields stay out: they are redacted in the records, but a document travels further than the person who made it.
WITHHELD = frozenset({"request_headers", "response_headers", "trailers"})


def document(analysis: Analysis) -> dict[str, Any]:
    """The whole document as plain dictionaries, lists, integers, text and None."""
    return {**_head(analysis), **{table: [plain(row) for row in getattr(analysis, table)] for table in TABLES}}


def dumps(analysis: Analysis) -> str:
    """The document as text, ending with a newline."""
    buffer = io.StringIO()
    write(analysis, buffer)
    return buffer.getvalue()


def write(analysis: Analysis, file: TextIO) -> None:
    """Write the document row by row, so that a large analysis never exists twice in memory."""
    file.writelines(_pieces(analysis))
    file.write("\n")


def write_list(analyses: Iterable[Analysis], file: TextIO) -> None:
    """Several documents as one JSON array, each written as soon as it is there."""
    opening = "["
    for analysis in analyses:
        file.write(opening + "\n")
        file.writelines(_pieces(analysis))
        opening = ","
    file.write("\n]\n" if opening == "," else "[]\n")


def exchange_line(analysis: Analysis, exchange: Exchange) -> str:
    """One request as one line (JSON Lines), with the file it is from."""
    head = {
        "schema": EXCHANGE_SCHEMA_NAME,
        "schema_version": SCHEMA_VERSION,
        "source_path": plain(analysis.source.path),
    }
    return _compact({**head, **plain(exchange)}) + "\n"


def plain(value: Any) -> Any:
    """Records as dictionaries, tuples as lists, enumerations as text; a number JSON cannot hold (NaN, infinity) is unknown: None."""
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    names = _field_names(cast(Hashable, kind))
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return _plain_leaf(value)


def _plain_leaf(value: Any) -> Any:
    if isinstance(value, str):
        return str(value) if value.isascii() else _well_formed(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (set, frozenset)):
        return [plain(item) for item in sorted(value)]
    if isinstance(value, (Sequence, Iterator)):
        return [plain(item) for item in value]
    return int(value)  # numpy integers in a finding's evidence


def _well_formed(text: str) -> str:
    """``text`` with lone surrogates (octets of a file name that are no UTF-8) spelt out: many JSON readers refuse them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@functools.cache
def _field_names(kind: Hashable) -> tuple[str, ...] | None:
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return None
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in WITHHELD)


def _head(analysis: Analysis) -> dict[str, Any]:
    return {
        "schema": SCHEMA_NAME,
        "schema_version": SCHEMA_VERSION,
        "netdiag_version": __version__,
        "source": plain(analysis.source),
    }


def _pieces(analysis: Analysis) -> Iterator[str]:
    yield "{\n"
    yield ",\n".join(f"{_compact(key)}: {_compact(value)}" for key, value in _head(analysis).items())
    for table in TABLES:
        yield f",\n{_compact(table)}: ["
        separator = "\n"
        for row in getattr(analysis, table):
            yield separator + _compact(plain(row))
            separator = ",\n"
        yield "]" if separator == "\n" else "\n]"
    yield "\n}"


def _compact(value: Any) -> str:
    # json escapes everything outside ASCII but lets DEL through, which some terminals obey.
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(", ", ": "))
    return text.replace("\x7f", "\\u007f")
