"""The splitter for columns against the splitter for one exchange."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.analysis.marks import Mark, Marks, Milestone
from netdiag.analysis.phase_columns import ABSENT, split_columns
from netdiag.analysis.phases import split
from netdiag.wire.tables import NONE

instants = st.integers(-1, 40)
all_marks = st.dictionaries(st.sampled_from(list(Milestone)), instants.map(Mark), min_size=1)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(all_marks, st.none() | instants), min_size=1, max_size=8))
def test_columns_and_single_exchanges_are_split_alike(rows: list[tuple[Marks, int | None]]) -> None:
    columns = {m: np.array([marks[m].at if m in marks else ABSENT for marks, _ in rows], np.int64) for m in Milestone}
    ended = np.array([ABSENT if at is None else at for _, at in rows], np.int64)
    found = split_columns(columns, ended)
    for i, (marks, at) in enumerate(rows):
        one = split(marks, ended=None if at is None else Mark(at))
        durations: dict[str, int] = {}
        begins: dict[str, int] = {}
        for phase in one.phases:
            durations[phase.name] = durations.get(phase.name, 0) + phase.duration_ns
            begins.setdefault(phase.name, phase.started_at)
        assert (found.started_at[i], found.ended_at[i], found.total_ns[i], found.unattributed_ns[i]) == one[:4]
        assert {k: v[i] for k, v in found.durations_ns.items() if v[i] != NONE} == durations
        assert {k: v[i] for k, v in found.begins_at.items() if v[i] != ABSENT} == begins
