"""TLS records that can also be read as rows, as those of a capture can."""

from __future__ import annotations

from collections.abc import Iterator

from netdiag.wire.record_view import RecordRow, TlsRecordView
from netdiag.wire.tables import NONE


class RowsToo(list[TlsRecordView]):
    """A list of views with ``plain`` beside it."""

    @property
    def plain(self) -> _Rows:
        """``RecordRows`` of the same records."""
        return _Rows(list(self))


class _Rows:
    def __init__(self, views: list[TlsRecordView]) -> None:
        self._views = views

    def rows(self, start: int) -> Iterator[tuple[int, ...]]:
        for place in range(start, len(self._views)):
            values = {name: getattr(self._views[place], name) for name in RecordRow._fields[:-1]}
            known = {name: NONE if value is None else value for name, value in values.items()}
            yield RecordRow(**known, content_offset=place)

    def content(self, row: tuple[int, ...]) -> bytes:
        return self._views[row[-1]].fragment()

    def lacking(self, content_type: int) -> tuple[int, int]:
        chosen = [view for view in self._views if view.content_type == content_type]
        return len(chosen), sum(view.missing_bytes > 0 for view in chosen)
