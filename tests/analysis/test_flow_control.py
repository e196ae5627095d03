"""What HTTP/2's flow control costs an exchange."""

from __future__ import annotations

import io

import pytest

from netdiag import api
from netdiag.analysis.flow_control import FlowControl, StreamWindows, held_ns
from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled
from netdiag.protocols.conversation import CLIENT, SERVER, Http2Facts, WindowStall
from netdiag.wire.chunk import Moment
from tests.captures.kinds.http2 import begun_late, upload_limited, window_limited
from tests.support.fabricated import connection
from tests.support.packets import pcap

MS = 1_000_000
RTT_MS = 20


def moment(at_ms: float) -> Moment:
    at = int(at_ms * MS)
    return Moment(seen_at=at, deliverable_at=at, packet=1)


def stall(sender: int, stream: int, since: float, until: float | None, resumed: float | None) -> WindowStall:
    return WindowStall(
        sender=sender,
        stream_id=stream,
        since=moment(since),
        window_bytes=0,
        until=None if until is None else moment(until),
        resumed=None if resumed is None else moment(resumed),
    )


def control(*stalls: WindowStall, preface: bool = True) -> FlowControl:
    facts = Http2Facts(preface=moment(0) if preface else None, stalls=list(stalls))
    return FlowControl(facts, connection(client_rtt_ns=0, server_rtt_ns=RTT_MS * MS))


def told(windows: StreamWindows | None) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    assert windows is not None
    in_ms = [[(a / MS, b / MS) for a, b in spans] for spans in (windows.uploads, windows.downloads)]
    return in_ms[0], in_ms[1]


def test_a_download_goes_on_a_round_trip_after_the_update_left() -> None:
    assert told(control(stall(SERVER, 1, 10, 12, 33)).of(1)) == ([], [(10, 32)])


def test_or_as_soon_as_octets_come() -> None:
    assert told(control(stall(SERVER, 1, 10, 12, 25)).of(1)) == ([], [(10, 25)])


def test_an_upload_goes_on_as_soon_as_the_update_is_here() -> None:
    assert told(control(stall(CLIENT, 1, 10, 40, 41)).of(1)) == ([(10, 40)], [])


def test_the_connections_window_stops_every_stream_and_a_streams_only_it() -> None:
    both = control(stall(SERVER, 0, 10, 12, 32), stall(SERVER, 3, 50, 51, 60))
    assert told(both.of(1)) == ([], [(10, 32)])
    assert told(both.of(3)) == ([], [(10, 32), (50, 60)])


def test_a_window_that_stays_closed_holds_to_the_end_of_the_exchange() -> None:
    windows = control(stall(CLIENT, 1, 10, None, None)).of(1)
    assert windows is not None
    assert held_ns(windows.uploads, 0, 100 * MS) == 90 * MS


def test_without_the_connections_beginning_nothing_is_known() -> None:
    assert control(preface=False).of(1) is None
    assert FlowControl(None, connection()).of(1) is None


@pytest.mark.parametrize(
    ("spans", "expected"), [((), 0), (((0, 5),), 0), (((0, 15), (12, 18), (30, 99)), 18), (((-5, 99),), 30)]
)
def test_held(spans: tuple[tuple[int, int], ...], expected: int) -> None:
    assert held_ns(spans, 10, 40) == expected


def analysed(capture: bytes) -> tuple[float | None, float | None]:
    (exchange,) = api.analyze(io.BytesIO(capture)).exchanges
    held = exchange.upload_window_ns, exchange.download_window_ns
    return held[0] if held[0] is None else held[0] / MS, held[1] if held[1] is None else held[1] / MS


def test_in_captures() -> None:
    upload, download = analysed(pcap(window_limited()))
    assert (upload, download) == (0, pytest.approx(20.1)), "a round trip"
    upload, download = analysed(pcap(upload_limited()))
    assert (upload, download) == (pytest.approx(25.05), 0), "until the update came, and the client had seen it"
    assert analysed(begun_late()) == (None, None)


def test_a_small_window_costs_a_round_trip_each_time() -> None:
    """100 kB through 16 kB: six times, 50 ms each, less what is still under way when the window is opened again."""
    _, download = analysed(record(bundled("small-window")).capture)
    assert download is not None
    assert 200 < download < 310
