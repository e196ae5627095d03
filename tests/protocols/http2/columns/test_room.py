"""Whether a window always had room, against a ledger kept one frame at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from netdiag.protocols.http2.columns.room import Granted, Initial, Sent, always_room
from netdiag.protocols.http2.frames import DEFAULT_WINDOW
from netdiag.protocols.http2.windows import NEARLY_CLOSED
from netdiag.wire.chunk import Moment
from netdiag.wire.tables import NONE

CONNECTION = -1


@dataclass(frozen=True)
class Data:
    place: int
    length: int
    ended: bool = False


@dataclass(frozen=True)
class Update:
    place: int
    increment: int


@dataclass(frozen=True)
class Setting:
    size: int


Event = Data | Update | Setting
places = st.integers(0, 3)
events = st.lists(
    st.one_of(
        st.builds(Data, places, st.sampled_from([1, 16_384, 40_000])),
        st.builds(Update, st.one_of(st.just(CONNECTION), places), st.sampled_from([1, 30_000, 65_535])),
        st.builds(Setting, st.sampled_from([0, 20_000, 100_000])),
    ),
    max_size=14,
)


def ledger(script: list[Event]) -> bool:
    """Windows per stream and for the connection; the frame that ends a stream waits for none afterwards."""
    connection, initial, used = DEFAULT_WINDOW, DEFAULT_WINDOW, dict.fromkeys(range(4), 0)
    room = True
    for event in script:
        if isinstance(event, Setting):
            initial = event.size
        elif isinstance(event, Update) and event.place == CONNECTION:
            connection += event.increment
        elif isinstance(event, Update):
            used[event.place] -= event.increment
        else:
            connection -= event.length
            used[event.place] += event.length
            room &= connection >= NEARLY_CLOSED
            room &= event.ended or initial - used[event.place] >= NEARLY_CLOSED
    return room


def by_columns(script: list[Event]) -> bool:
    data = [(at, e) for at, e in enumerate(script) if isinstance(e, Data)]
    updates = [(at, e) for at, e in enumerate(script) if isinstance(e, Update)]
    sent = Sent(
        row=np.arange(len(data)),
        at=np.array([at for at, _ in data], np.int64),
        place=np.array([e.place for _, e in data], np.int64),
        length=np.array([e.length for _, e in data], np.int64),
        ended=np.array([e.ended for _, e in data], np.bool_),
    )
    granted = Granted(
        row=np.arange(len(updates)),
        at=np.array([at for at, _ in updates], np.int64),
        place=np.array([NONE if e.place == CONNECTION else e.place for _, e in updates], np.int64),
        is_connection=np.array([e.place == CONNECTION for _, e in updates], np.bool_),
        increment=np.array([e.increment for _, e in updates], np.int64),
    )
    initial = [Initial(at, e.size, Moment(at, at, None)) for at, e in enumerate(script) if isinstance(e, Setting)]
    return always_room(sent, granted, initial)


@given(events)
@settings(max_examples=300)
def test_as_a_ledger_kept_one_frame_at_a_time(script: list[Event]) -> None:
    assert by_columns(script) == ledger(script)


def test_who_sends_nothing_always_has_room() -> None:
    assert by_columns([Setting(0), Update(CONNECTION, 1)])


def test_a_stream_that_ends_waits_for_no_window() -> None:
    full = [Update(CONNECTION, 1 << 20), Data(0, DEFAULT_WINDOW)]
    assert not by_columns(full)
    assert by_columns([*full[:1], Data(0, DEFAULT_WINDOW, ended=True)])
