"""The call that stands for others: a real one, since an averaged timeline shows a call that never happened."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.analysis.median import median as middle_of
from netdiag.records.exchange import Exchange


def medoid(exchanges: Sequence[Exchange]) -> Exchange | None:
    """The successful request that is closest to the median of every phase; None when none succeeded."""
    good = [exchange for exchange in exchanges if not exchange.failed]
    if not good:
        return None
    vectors = [{str(p.name): p.duration_ns for p in e.phases} | {"unattributed": e.unattributed_ns} for e in good]
    names = {name for vector in vectors for name in vector}
    median = {name: middle_of(vector.get(name, 0) for vector in vectors) for name in names}
    distances = [sum(abs(vector.get(name, 0) - median[name]) for name in names) for vector in vectors]
    return good[distances.index(min(distances))]
