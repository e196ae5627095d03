"""Exchanges in the order in which they began; their ids are their places in it."""

from __future__ import annotations

from collections.abc import Sequence

from netdiag.analysis.drafts import Draft
from netdiag.analysis.rows import Rows
from netdiag.records.exchange import Exchange


def numbered(drafts: Sequence[Draft]) -> Rows[Exchange]:
    """Records of all drafts, made when asked for."""
    ordered = sorted(drafts, key=lambda d: d.started_at)
    place = {id(draft): i for i, draft in enumerate(ordered)}

    def make(i: int) -> Exchange:
        opener = ordered[i].opener
        return ordered[i].exchange(i, None if opener is None else place[id(opener)])

    return Rows(len(ordered), make)
