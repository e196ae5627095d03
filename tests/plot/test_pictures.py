from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.text import Text

from netdiag import plot
from netdiag.errors import OutputError, UsageError
from netdiag.palette import PHASE_HUES
from netdiag.plot.style import Picture, thousands
from netdiag.plot.waterfalls import MOST_ROWS
from netdiag.records.analysis import Analysis
from netdiag.records.exchange import Outcome
from netdiag.records.source import EvidenceLevel
from tests.support import analyses, fabricated, fabricated_lanes
from tests.support.hostile import FORBIDDEN, PAYLOADS

PICTURES: dict[str, Callable[[], Picture]] = {
    "one request": lambda: plot.waterfall(analyses.one_request()),
    "reused": lambda: plot.waterfall(analyses.reused()),
    "multiplexed": lambda: plot.waterfall(analyses.multiplexed()),
    "keyless": lambda: plot.waterfall(analyses.keyless()),
    "failures": lambda: plot.waterfall(analyses.failures()),
    "retried": lambda: plot.waterfall(analyses.retried()),
    "streamed": lambda: plot.waterfall(analyses.streamed()),
    "two arms": lambda: plot.waterfall(analyses.two_arms()),
    "many": lambda: plot.waterfall(analyses.many()),
    "nothing": lambda: plot.waterfall(Analysis(source=fabricated.source())),
    "lanes": lambda: plot.lanes(fabricated_lanes.lanes()),
    "lanes without packets": lambda: plot.lanes(analyses.streamed(), 0),
    "distributions": lambda: plot.distributions(analyses.two_arms()),
    "distributions of a file": lambda: plot.distributions(analyses.many(30)),
    "distributions of nothing": lambda: plot.distributions(Analysis(source=fabricated.source())),
    "arrival": lambda: plot.arrival(analyses.streamed(), 0),
    "arrival with packets": lambda: plot.arrival(
        replace(fabricated_lanes.lanes(), exchange=analyses.streamed().exchanges[0])
    ),
    "differences": lambda: plot.differences(analyses.two_arms()),
    "ecdf": lambda: plot.ecdf(analyses.two_arms(), goal_ns=fabricated.ns(400)),
    "ecdf of a file": lambda: plot.ecdf(analyses.many(30), "wait"),
    "budget": lambda: plot.budget(analyses.two_arms()),
}


def words(picture: Figure) -> str:
    return "\n".join(text.get_text() for text in picture.findobj(Text))


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_a_figure_of_ticket_width_that_draws(name: str) -> None:
    picture = PICTURES[name]()
    assert isinstance(picture, Figure)
    png = picture.rendered("png")
    assert png.startswith(b"\x89PNG")
    assert int.from_bytes(png[16:20], "big") == 1_200


@pytest.mark.parametrize("name", PICTURES)
def test_the_same_records_give_the_same_octets(name: str) -> None:
    assert PICTURES[name]().rendered("svg") == PICTURES[name]().rendered("svg")


@pytest.mark.parametrize("format", ["png", "pdf"])
def test_other_formats_are_as_steady(format: str) -> None:
    picture = PICTURES["failures"]
    assert picture().rendered(format) == picture().rendered(format)


@pytest.mark.parametrize("name", PICTURES)
def test_an_svg_is_well_formed_and_its_text_selectable(name: str) -> None:
    svg = PICTURES[name]().rendered("svg").decode()
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert "<text" in svg
    assert "<dc:date>" not in svg


def test_the_picture_says_what_was_measured() -> None:
    shown = words(plot.waterfall(analyses.one_request()))
    assert "slow.pcapng · api.example.com · 1 request" in shown
    assert "evidence L3: 812 packets, 0 dropped, keys" in shown
    assert "time since the first request began (ms)" in shown
    assert "287.4 ms" in shown
    assert "214.9" in shown


def test_trials_are_compared_from_their_beginnings_by_arm() -> None:
    shown = words(plot.waterfall(analyses.two_arms()))
    assert "time since each request began (ms)" in shown
    assert "HTTP/1.1" in shown
    assert "HTTP/2" in shown
    assert "trial 9" in shown


def test_rows_of_one_connection_are_tied() -> None:
    assert "connection 0" in words(plot.waterfall(analyses.multiplexed()))
    assert "connection" not in words(plot.waterfall(analyses.one_request()))


def test_more_rows_than_can_be_read_are_cut_with_a_note() -> None:
    picture = plot.waterfall(analyses.many(300))
    assert f"only the slowest {MOST_ROWS} of 300 are drawn" in words(picture)
    assert picture.get_figheight() < 20


def test_what_grey_names_ticks_and_thin_lines_mean_is_said_where_there_are_any() -> None:
    assert "black lines: bounds" in words(plot.waterfall(analyses.keyless()))
    assert "ticks: events" in words(plot.waterfall(analyses.streamed()))
    first = replace(analyses.one_request(), statistics=())
    plain = words(plot.waterfall(first))
    assert not any(word in plain for word in ("grey:", "ticks:", "black lines:"))


def test_an_incomplete_request_is_grey_and_says_so() -> None:
    e = fabricated.exchange("tcp 10 | send 1", outcome=Outcome.INCOMPLETE, status=None, connection_id=None)
    shown = words(plot.waterfall(fabricated.analysis(e, fabricated.exchange("wait 10", id=1, connection_id=None))))
    assert "11.0 ms  incomplete" in shown


def test_the_phases_under_the_arrival_line_have_names() -> None:
    shown = words(plot.arrival(analyses.streamed(), 0)).splitlines()
    assert "wait" in shown
    assert "transfer" in shown


def test_the_answer_to_a_syn_is_called_syn_ack() -> None:
    shown = words(plot.lanes(fabricated_lanes.lanes())).splitlines()
    assert any(word.startswith("SYN-ACK ") for word in shown)
    assert sum(word.startswith("SYN ") for word in shown) == 1


def test_the_arms_of_a_budget_are_sorted_whatever_the_order_of_trials() -> None:
    backwards = replace(analyses.two_arms(), exchanges=analyses.two_arms().exchanges[::-1])
    labels = [t.get_text() for t in plot.budget(backwards).axes[0].get_yticklabels()]
    assert labels[0].startswith("HTTP/1.1, typical")


def test_bars_are_one_collection_a_phase_in_the_terminal_s_hues() -> None:
    from matplotlib.colors import to_hex

    axes = plot.waterfall(analyses.reused()).axes[0]
    hues = [to_hex(c.get_facecolor()[0]) for c in axes.collections if isinstance(c, PolyCollection)]
    expected = [PHASE_HUES[name].lower() for name in ("dns", "tcp", "tls", "send", "wait", "transfer", "unattributed")]
    assert hues == expected


def test_unattributed_time_is_drawn_white_with_an_outline() -> None:
    axes = plot.waterfall(analyses.one_request()).axes[0]
    last = [c for c in axes.collections if isinstance(c, PolyCollection)][-1]
    assert tuple(last.get_facecolor()[0][:3]) == (1, 1, 1)
    assert tuple(last.get_edgecolor()[0][:3]) != (1, 1, 1)


def test_a_failure_says_how_it_failed() -> None:
    shown = words(plot.waterfall(analyses.failures()))
    for reason in ("DNS failure", "refused", "TLS failure", "reset", "read timeout", "200 closed early"):
        assert reason in shown


def test_a_partial_or_unverified_result_says_so() -> None:
    source = fabricated.source(cut_at_byte=99, verification="off (--insecure)", dropped_packets=None)
    shown = words(plot.waterfall(replace(analyses.one_request(), source=source)))
    assert "cut at byte 99" in shown
    assert "certificate NOT verified" in shown
    assert "drops unknown" in shown


def test_a_picture_without_packets_names_its_level() -> None:
    source = fabricated.source(kind="probe", path=None, packets=0, evidence_level=EvidenceLevel.L1)
    assert "evidence L1: kernel stamps, no packets" in words(
        plot.waterfall(replace(analyses.one_request(), source=source))
    )


def test_lanes_show_packets_records_messages_holes_and_phases() -> None:
    shown = words(plot.lanes(fabricated_lanes.lanes()))
    for part in (
        "13 packets",
        "ClientHello 1.8 kB",
        "NewSessionTicket",
        "response head",
        "1.4 kB missing for 44.0 ms",
        "resent 23",
        "wait 60.0 ms",
    ):
        assert part in shown


def test_lanes_of_an_analysis_say_that_packets_are_not_shown() -> None:
    assert "packets not shown" in words(plot.lanes(analyses.one_request(), 0))


def test_an_unknown_exchange_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="no exchange 9"):
        plot.lanes(analyses.one_request(), 9)
    with pytest.raises(KeyError, match="has no events"):
        plot.arrival(analyses.one_request(), 0)


def test_every_trial_is_a_dot_and_the_median_has_its_interval() -> None:
    picture = plot.distributions(analyses.two_arms())
    total = picture.axes[-1]
    assert sum(len(c.get_offsets()) for c in total.collections if c.get_offsets().shape[0] > 1) == 20
    assert "290.5 [277.9, 303.1] ms  n 10" in words(picture)


def test_the_stall_is_named_with_its_cause_on_the_arrival_line() -> None:
    shown = words(plot.arrival(analyses.streamed(), 0))
    assert "stall: network\n400.0 ms, usual 30.0 ms\nlater events are back on schedule (shift 3 %)" in shown
    assert "dashed: schedule" in shown


def test_packets_and_what_was_sent_again_stand_below_the_line() -> None:
    lanes = replace(fabricated_lanes.lanes(), exchange=analyses.streamed().exchanges[0])
    picture = plot.arrival(lanes)
    assert "packets" in words(picture)
    assert picture.axes[0].get_xlim() == picture.axes[1].get_xlim(), "both rows have one time axis"


def test_differences_show_every_pair_the_margin_and_the_verdict() -> None:
    picture = plot.differences(analyses.two_arms())
    shown = words(picture)
    assert "HTTP/2 against HTTP/1.1" in shown
    assert "−1.0 [−9.6, +7.4] ms · no difference that matters" in shown
    (axes,) = picture.axes
    dots = next(c for c in axes.collections if c.get_offsets().shape[0] == 10)
    assert len(dots.get_offsets()) == 10
    band = next(c for c in axes.collections if isinstance(c, PolyCollection)).get_paths()[0].vertices
    assert (band[:, 0].min(), band[:, 0].max()) == (-20, 20)


def test_without_pairs_there_are_no_differences_to_draw() -> None:
    with pytest.raises(KeyError, match="no paired comparison"):
        plot.differences(analyses.one_request())


def test_the_ecdf_says_how_far_it_may_be_read_and_shows_the_goal() -> None:
    shown = words(plot.ecdf(analyses.two_arms(), goal_ns=fabricated.ns(400)))
    assert "n = 10 is too small to speak of more than P50" in shown
    assert "goal 400 ms" in shown
    assert "HTTP/1.1  n 10" in shown
    with pytest.raises(KeyError, match="no counted call has 'first_token'"):
        plot.ecdf(analyses.two_arms(), "first_token")


def test_the_budget_shows_real_calls_and_their_parts_add_up() -> None:
    picture = plot.budget(analyses.two_arms())
    shown = words(picture)
    assert "HTTP/1.1, typical of 10" in shown
    assert "HTTP/2, slowest" in shown
    totals = {f"{e.total_ns / 1e6:,.1f} ms" for e in analyses.two_arms().exchanges}
    assert sum(line in totals for line in shown.splitlines()) == 4
    with pytest.raises(KeyError, match="no successful call"):
        plot.budget(Analysis(source=fabricated.source()))


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_in_an_svg(payload: str) -> None:
    analysis = analyses.one_request()
    e = replace(analysis.exchanges[0], path=payload, method=payload, authority=payload, arm=payload)
    session = fabricated.session(sni=payload)
    hostile = replace(
        analysis,
        exchanges=(e,),
        connections=(fabricated.connection(tls=session),),
        source=fabricated.source(path=payload),
    )
    svg = plot.waterfall(hostile).rendered("svg").decode()
    root = ElementTree.fromstring(svg)
    assert not [node for node in root.iter() if node.tag.rpartition("}")[2] in ("script", "foreignObject", "a")]
    assert not any(name.lower().startswith("on") for node in root.iter() for name in node.attrib)
    assert not FORBIDDEN.search(svg.replace("\n", ""))


@pytest.mark.parametrize("payload", ["a$$b", "\x1b[2J\ud800", "中$\\frac{1}{0}$\0"])
def test_hostile_text_in_every_other_picture(payload: str) -> None:
    rows = fabricated_lanes.lanes()
    e = replace(rows.exchange, path=payload, authority=payload)
    records = tuple(replace(r, label=payload) for r in rows.records)
    for picture in (
        plot.lanes(replace(rows, exchange=e, records=records)),
        plot.arrival(
            replace(analyses.streamed(), exchanges=(replace(analyses.streamed().exchanges[0], path=payload),)), 0
        ),
        plot.distributions(fabricated.analysis(replace(e, arm=payload), replace(e, arm=payload))),
        plot.ecdf(fabricated.analysis(replace(e, arm=payload), replace(e, arm=payload))),
        plot.budget(fabricated.analysis(replace(e, arm=payload), replace(e, arm=payload))),
    ):
        assert ElementTree.fromstring(picture.rendered("svg")).tag.endswith("svg")


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_save_writes_the_format_of_the_ending(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"picture{ending}"
    plot.save(plot.waterfall(analyses.one_request()), target)
    assert target.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml", b"%PDF-")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_save_refuses_other_endings_and_places_that_cannot_be_written(tmp_path: Path) -> None:
    picture = plot.waterfall(analyses.one_request())
    with pytest.raises(UsageError, match=r"no picture format \.gif"):
        plot.save(picture, tmp_path / "x.gif")
    with pytest.raises(OutputError):
        plot.save(picture, tmp_path / "none" / "x.png")


def test_a_notebook_shows_a_picture_by_itself() -> None:
    assert plot.waterfall(analyses.one_request())._repr_png_().startswith(b"\x89PNG")


def test_a_user_s_settings_change_nothing() -> None:
    import matplotlib

    before = plot.waterfall(analyses.one_request()).rendered("png")
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "text.usetex": False, "figure.dpi": 30}):
        assert plot.waterfall(analyses.one_request()).rendered("png") == before


def test_pyplot_is_never_imported() -> None:
    code = (
        "import sys; from netdiag import plot; from tests.support import analyses as a, fabricated_lanes as f;"
        "plot.waterfall(a.one_request()).rendered('svg'); plot.lanes(f.lanes()); plot.distributions(a.two_arms());"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("value", "label"), [(0.0, "0"), (0.25, "0.25"), (12_000.0, "12,000"), (-5.0, "−5"), (1e-7, "0")]
)
def test_tick_labels(value: float, label: str) -> None:
    assert thousands(value, 0) == label
