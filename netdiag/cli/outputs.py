"""``-o NAME``: the format is the ending; nothing is overwritten without ``--force``, nothing is written through a link."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from netdiag.errors import OutputError, UsageError
from netdiag.records.analysis import Analysis

if TYPE_CHECKING:
    from netdiag.plot.style import Picture
    from netdiag.records.lanes import ExchangeLanes

PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One result file."""

    path: str
    ending: str
    drawing: str | None = None
    """Which picture; None lets the result decide."""
    exchange_id: int | None = None
    source: str | None = None
    """The capture file, for pictures that show packets and for the commented copy."""
    keylog: str | None = None
    embed_keys: bool = False
    is_part: bool = False
    """Whether the analysis is of a part of the file only."""


def check(paths: Sequence[str], endings: Sequence[str], *, force: bool) -> None:
    """Refuse before the work what could not be written after it. Raises ``UsageError`` or ``OutputError``."""
    for path in paths:
        if ending_of(path) not in endings:
            raise UsageError(f"-o {path}: the ending says the format; there are {', '.join(endings)}")
        if not force and os.path.lexists(path):
            raise OutputError("exists already", path=path, advice="Give --force to replace it, or another name.")
        if not (Path(path).parent if str(Path(path).parent) else Path()).is_dir():
            raise OutputError("the folder does not exist", path=path)


def ending_of(path: str) -> str:
    """``.png`` of ``a/b.PNG``; empty when there is none."""
    return Path(path).suffix.lower()


def pictures_last(paths: Sequence[str]) -> list[str]:
    """The order to write them in: a picture that cannot be drawn must not cost the results of a run that cannot be made again."""
    return sorted(paths, key=lambda path: ending_of(path) in PICTURES)


def needs_packets(path: str, exchange_id: int | None, drawing: str | None) -> bool:
    """Whether the capture is read again for this output: for its commented copy, and for pictures of packets."""
    if ending_of(path) not in PICTURES:
        return ending_of(path) == ".pcapng"
    return drawing in ("lanes", "arrival") or (drawing is None and exchange_id is not None)


def write(analysis: Analysis, wanted: Wanted) -> None:
    """Write one file. Raises ``OutputError``."""
    _WRITERS[wanted.ending](analysis, wanted)


def _write_document(analysis: Analysis, wanted: Wanted) -> None:
    from netdiag.export import json
    from netdiag.outfile import replacing

    with replacing(wanted.path) as file:
        text = io.TextIOWrapper(file, encoding="ascii")
        json.write(analysis, text)
        text.flush()
        text.detach()  # the file itself is closed, or thrown away, by the block above


def _write_picture(analysis: Analysis, wanted: Wanted) -> None:
    from netdiag import plot

    plot.save(_figure(analysis, wanted), wanted.path)


def _figure(analysis: Analysis, wanted: Wanted) -> Picture:
    from netdiag import plot

    drawing = wanted.drawing or ("lanes" if wanted.exchange_id is not None and wanted.source else "waterfall")
    if drawing == "lanes":
        return plot.lanes(_lanes(analysis, wanted))
    try:
        if drawing == "arrival":
            return _arrival(analysis, wanted)
        return {
            "waterfall": plot.waterfall,
            "distributions": plot.distributions,
            "differences": plot.differences,
            "ecdf": plot.ecdf,
            "budget": plot.budget,
        }[drawing](analysis)
    except KeyError as error:
        raise UsageError(f"the picture {drawing} cannot be drawn: {error.args[0]}") from error


def _arrival(analysis: Analysis, wanted: Wanted) -> Picture:
    """Of the request that was chosen, else of the first streamed one that counts; with its packets where there is a file."""
    from netdiag import plot

    chosen = _first_streamed(analysis) if wanted.exchange_id is None else wanted.exchange_id
    if wanted.source is not None and wanted.source != "-":
        return plot.arrival(_lanes(analysis, dataclasses.replace(wanted, exchange_id=chosen)))
    return plot.arrival(analysis, chosen)


def _first_streamed(analysis: Analysis) -> int:
    """A first round pays for cold caches everywhere, so it is only shown where there is nothing else. Raises ``KeyError``."""
    uncounted = {row.exchange_id for arm in analysis.statistics for row in arm.excluded}
    streamed = [e.id for e in analysis.exchanges if e.stream is not None and e.stream.events]
    if not streamed:
        raise KeyError("no answer was a stream of events")
    return next((id for id in streamed if id not in uncounted), streamed[0])


def _lanes(analysis: Analysis, wanted: Wanted) -> ExchangeLanes:
    from netdiag import api

    if wanted.source is None or wanted.exchange_id is None:
        raise UsageError("the picture lanes needs one request of one capture file: --exchange N")
    return api.lanes(wanted.source, wanted.exchange_id, analysis=analysis)


def _write_capture(analysis: Analysis, wanted: Wanted) -> None:
    from netdiag import api

    assert wanted.source is not None
    api.annotate(
        wanted.source,
        wanted.path,
        analysis=analysis,
        keylog=wanted.keylog,
        only_its_connections=wanted.is_part,
        embed_keys=wanted.embed_keys,
    )


_WRITERS: dict[str, Callable[[Analysis, Wanted], None]] = {
    ".json": _write_document,
    ".pcapng": _write_capture,
    **dict.fromkeys(PICTURES, _write_picture),
}
