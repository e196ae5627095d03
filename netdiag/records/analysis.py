"""Everything netdiag says about one source."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from netdiag.records.anomaly import Anomaly
from netdiag.records.call import Call
from netdiag.records.connection import Connection
from netdiag.records.dns import NameResolution
from netdiag.records.exchange import Exchange
from netdiag.records.finding import Finding
from netdiag.records.source import Source
from netdiag.records.statistics import Comparison, Statistics

if TYPE_CHECKING:
    import pandas
    import polars


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One capture file or one probe; every table is a sequence of frozen records (lazy over columns where there are many); ids are positions in it."""

    source: Source
    connections: Sequence[Connection] = ()
    resolutions: Sequence[NameResolution] = ()
    exchanges: Sequence[Exchange] = ()
    calls: Sequence[Call] = ()
    statistics: Sequence[Statistics] = ()
    comparisons: Sequence[Comparison] = ()
    findings: Sequence[Finding] = ()
    anomalies: Sequence[Anomaly] = ()

    TABLES: ClassVar[tuple[str, ...]] = (
        "connections",
        "resolutions",
        "exchanges",
        "calls",
        "phases",
        "findings",
        "anomalies",
    )

    def to_dicts(self, table: str) -> list[dict[str, Any]]:
        """Rows of a table as flat dictionaries (nested records are joined by dots); ``phases`` has one row per phase of each exchange.

        Raises ``KeyError`` with the tables' names when there is no such table.
        """
        if table not in self.TABLES:
            raise KeyError(f"no table {table!r}; there are {', '.join(self.TABLES)}")
        if table == "phases":
            return [{"exchange_id": e.id, **_flat(p)} for e in self.exchanges for p in e.phases]
        return [_flat(row) for row in getattr(self, table)]

    def to_polars(self, table: str) -> polars.DataFrame:
        """A polars frame of a table; needs the extra ``tables``."""
        try:
            import polars
        except ImportError as error:
            raise _missing_extra("polars") from error
        return polars.DataFrame(self.to_dicts(table), infer_schema_length=None)

    def to_pandas(self, table: str) -> pandas.DataFrame:
        """A pandas frame of a table; needs the extra ``tables``. Columns of integers stay integers where some are unknown (``<NA>``): as the
        floats that pandas would make of them, instants would be off by up to 128 ns."""
        try:
            import pandas
        except ImportError as error:
            raise _missing_extra("pandas") from error
        columns = _columns(self.to_dicts(table))
        return pandas.DataFrame({name: _pandas_column(values, pandas) for name, values in columns.items()})

    def __repr__(self) -> str:
        return (
            f"<Analysis {self.source.kind} {self.source.evidence_level} {self.source.packets} packets,"
            f" {len(self.connections)} connections, {len(self.exchanges)} exchanges>"
        )

    def _repr_html_(self) -> str:
        from netdiag.records.markup import summary_html

        return summary_html(repr(self), self.exchanges)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows may lack keys: where a nested record is None, its fields are not there."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _pandas_column(values: list[Any], pandas: Any) -> Any:
    kinds = {type(value) for value in values}
    if kinds == {int, type(None)}:
        return pandas.array(values, dtype="Int64")
    return pandas.array(values, dtype="boolean") if kinds == {bool, type(None)} else values


def _missing_extra(package: str) -> Exception:
    from netdiag.errors import ToolMissing

    return ToolMissing(f"{package} is not installed", advice="pip install 'netdiag-wire[tables]'")


def _flat(row: Any, prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        name = prefix + field.name
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            out.update(_flat(value, name + "."))
        elif isinstance(value, (tuple, dict)):
            out[name] = str(_plain(value)) if value else None
        else:
            out[name] = str(value) if isinstance(value, str) else value
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return str(value) if isinstance(value, str) else value
