"""What a result means for a script."""

from __future__ import annotations

from collections.abc import Iterable

from netdiag.errors import NetdiagError
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Outcome
from netdiag.records.exchange_table import count_failed, outcome_counts

OK = 0
REQUEST_FAILED = 1
PARTIAL = 2
INTERRUPTED = 130


def of_result(analysis: Analysis | None, error: NetdiagError | None, *, strict: bool) -> int:
    """The code of one file or probe."""
    if error is not None or analysis is None:
        return error.exit_code if error is not None else OK
    if strict and partial(analysis):
        return PARTIAL
    return REQUEST_FAILED if count_failed(analysis.exchanges) else OK


def partial(analysis: Analysis) -> bool:
    """Whether something is missing that was there on the wire: the file is cut, the kernel dropped, or a request's end was not captured."""
    source = analysis.source
    if source.cut_at_byte is not None or source.dropped_packets:
        return True
    return Outcome.INCOMPLETE in outcome_counts(analysis.exchanges)


def worst(codes: Iterable[int]) -> int:
    """Of several: an error beats a partial result, which beats a failed request."""
    return max(codes, default=OK)
