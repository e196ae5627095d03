from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from netdiag.errors import CaptureFileError
from netdiag.export.terminal.connections import connection_filter, connections_table, packets_table
from netdiag.export.terminal.files import file_row, files_table
from netdiag.export.terminal.page import can_show
from netdiag.export.text import Selection, report
from netdiag.records.analysis import Analysis
from netdiag.records.anomaly import Anomaly
from netdiag.records.exchange import Exchange, Outcome
from netdiag.records.finding import Confidence, Evidence, Finding, Severity
from netdiag.records.source import EvidenceLevel, Secrets
from netdiag.stats.medoid import medoid
from tests.support import analyses, fabricated, fabricated_lanes
from tests.support.golden import Golden
from tests.support.hostile import FORBIDDEN, PAYLOADS

FABRICATED = ("one_request", "reused", "multiplexed", "keyless", "failures", "retried", "streamed", "two_arms", "many")


def made(name: str) -> Analysis:
    analysis = getattr(analyses, name)()
    assert isinstance(analysis, Analysis)
    return analysis


def plain(lines: list[Text]) -> str:
    return "".join(line.plain.rstrip() + "\n" for line in lines)


def text(analysis: Analysis, width: int = 100, **options: object) -> str:
    return plain(report(analysis, width=width, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", FABRICATED)
def test_the_report_is_what_it_was(name: str, width: int, golden: Golden) -> None:
    golden.check(f"{name}.{width}.txt", text(made(name), width))


def test_the_report_in_ascii_is_what_it_was(golden: Golden) -> None:
    golden.check("streamed.ascii.txt", text(made("streamed"), ascii_only=True))
    golden.check("two_arms.ascii.txt", text(made("two_arms"), ascii_only=True))


@pytest.mark.parametrize("name", FABRICATED)
def test_ascii_is_ascii(name: str) -> None:
    assert text(made(name), ascii_only=True).isascii()


@settings(max_examples=30, deadline=None)
@given(width=st.integers(20, 250), name=st.sampled_from(FABRICATED), ascii_only=st.booleans())
def test_no_line_is_wider_than_the_terminal(width: int, name: str, ascii_only: bool) -> None:
    for line in report(made(name), width=width, ascii_only=ascii_only):
        assert line.cell_len <= width


@pytest.mark.parametrize("name", FABRICATED)
def test_colour_adds_nothing_to_the_words(name: str) -> None:
    coloured = Console(width=100, force_terminal=True, color_system="truecolor", highlight=False)
    with coloured.capture() as captured:
        for line in report(made(name), width=100):
            coloured.print(line, soft_wrap=True)
    stripped = "".join(line.rstrip() + "\n" for line in Text.from_ansi(captured.get()).plain.splitlines())
    assert stripped.rstrip() == text(made(name)).rstrip()
    assert "\x1b[" in captured.get()


def test_every_phase_has_its_row_its_duration_and_its_frames() -> None:
    rows = {line.split()[0]: line for line in text(made("one_request")).splitlines() if line.startswith("  ")}
    assert list(rows)[:7] == ["dns", "tcp", "tls", "send", "wait", "transfer", "unattributed"]
    assert "214.9" in rows["wait"]
    assert "9 → 10" in rows["wait"]
    assert "path 18.3 + server ≤ 196.6" in rows["wait"]
    assert "between tls and send" in rows["unattributed"]


def test_the_header_names_host_tls_and_evidence() -> None:
    head = text(made("one_request"), 120).split("\n\n")[0]
    for fact in (
        "api.example.com",
        "203.0.113.7:443",
        "TLS 1.3",
        "X25519MLKEM768",
        "AES-128-GCM",
        "evidence L3: 812 packets, 0 dropped, keys",
    ):
        assert fact in head


def test_unknown_drops_are_unknown_not_zero() -> None:
    analysis = replace(made("one_request"), source=fabricated.source(dropped_packets=None))
    assert "drops unknown" in text(analysis)
    assert "0 dropped" not in text(analysis)


@pytest.mark.parametrize(
    ("level", "words"), [(EvidenceLevel.L0, "application clock only"), (EvidenceLevel.L1, "kernel stamps, no packets")]
)
def test_a_low_level_says_what_is_missing(level: EvidenceLevel, words: str) -> None:
    source = fabricated.source(
        kind="probe", path=None, packets=0, evidence_level=level, note="no packets: see netdiag doctor"
    )
    shown = text(replace(made("one_request"), source=source))
    assert words in shown
    assert "see netdiag doctor" in shown


def test_a_guess_is_marked_with_its_bounds() -> None:
    rows = {line.split()[0]: line for line in text(made("keyless")).splitlines() if line.startswith("  ")}
    assert "~214.9" in rows["wait"]
    assert "± 5.0" in rows["wait"]
    assert "~" not in rows["tcp"]


def test_a_failure_ends_where_it_ended() -> None:
    shown = text(made("failures"))
    assert "✗ alert handshake_failure from server after 21.0 ms" in shown
    assert "✗ NXDOMAIN from 192.0.2.53 after 8.0 ms" in shown
    assert "✗ read timeout after 5.00 s" in shown


def test_attempts_and_backoff_stand_under_their_call() -> None:
    lines = text(made("retried")).splitlines()
    call = next(i for i, line in enumerate(lines) if line.startswith("call 0"))
    pause = next(i for i, line in enumerate(lines) if "back-off" in line and "░" in line)
    attempts = [i for i, line in enumerate(lines) if line.startswith("#")]
    assert call < attempts[0] < pause < attempts[1]
    assert "retry-after" in lines[pause]


def test_a_stream_names_its_first_times_and_shows_its_stall() -> None:
    shown = " ".join(text(made("streamed")).split())
    assert "first byte 215.1" in shown
    assert "first token 248.2" in shown
    assert "52 tokens by the server's usage, 45.4/s after the first" in shown
    assert "inter-event median 30.0, worst 400.0 (network)" in shown
    assert "370.0 ms more than usual after event 19: network, later events are back on schedule (shift 3 %)" in shown


def test_many_requests_are_ten_lines_and_a_way_to_see_the_rest() -> None:
    shown = text(made("many"))
    assert len(shown.splitlines()) < 25
    assert sum(line.lstrip().startswith("#") for line in shown.splitlines()) == 10
    assert "290 more: --top 0 shows all" in shown


def test_the_slowest_come_first() -> None:
    totals = [float(line.split()[4]) for line in text(made("many")).splitlines() if line.lstrip().startswith("#")]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == max(e.total_ns for e in made("many").exchanges) / 1e6


def test_top_shows_so_many_in_full() -> None:
    shown = text(made("many"), selection=Selection(top=3))
    assert sum(line.startswith("#") for line in shown.splitlines()) == 3
    assert sum(line.startswith("#") for line in text(made("many"), selection=Selection(top=0)).splitlines()) == 300


def test_one_exchange_alone() -> None:
    shown = text(made("many"), selection=Selection(exchange_id=7))
    assert [line[:3] for line in shown.splitlines() if line.startswith("#")] == ["#7 "]


def test_quantiles_that_n_cannot_bear_are_withheld_and_said_so() -> None:
    shown = text(made("two_arms"))
    assert "P95 needs 59 trials, P99 299: not shown" in shown
    assert "P95  " not in shown


def test_the_verdict_is_in_words_with_its_margin() -> None:
    shown = " ".join(text(made("two_arms")).split())
    assert "[−9.6, +7.4] ms, no difference that matters (margin ± 20 ms, 10 pairs)" in shown


def test_the_typical_trial_is_one_that_happened() -> None:
    trials = made("two_arms").exchanges
    typical = medoid(trials)
    assert typical in trials
    assert medoid([]) is None
    assert medoid(made("failures").exchanges) is None


def test_an_empty_capture_says_so() -> None:
    shown = text(Analysis(source=fabricated.source(packets=0, first_at=None, last_at=None)))
    assert "no request found in 0 connections" in shown


def test_a_cut_file_an_unverified_peer_and_drops_are_loud() -> None:
    source = fabricated.source(cut_at_byte=1_234, dropped_packets=5, verification="off (--insecure)")
    shown = text(replace(made("one_request"), source=source))
    assert "cut or damaged at byte 1,234" in shown
    assert "the kernel dropped 5 packets" in shown
    assert "certificate verification OFF" in shown


def test_findings_come_with_cost_advice_and_frames() -> None:
    finding = Finding(
        id="server-wait-dominant",
        subject="exchange:0",
        phase="wait",
        cost_ns=196_600_000,
        severity=Severity.MAJOR,
        confidence=Confidence.LIKELY,
        evidence=Evidence(packets=(9, 10)),
        advice="Ask the server's owner.",
    )
    shown = text(replace(made("one_request"), findings=(finding,)))
    assert "major  server-wait-dominant  196.6 ms in wait" in shown
    assert "Ask the server's owner. (frames 9, 10)" in shown


def with_hostile_text(payload: str) -> Analysis:
    analysis = made("one_request")
    e = replace(
        analysis.exchanges[0],
        method=payload,
        path=payload,
        authority=payload,
        outcome_detail=payload,
        arm=payload,
        server_name=payload,
        protocol=payload,
    )
    failed = replace(made("failures").exchanges[2], id=1, outcome_detail=payload)
    session = fabricated.session(sni=payload, version=payload, cipher_suite=payload, group=payload)
    return replace(
        analysis,
        source=fabricated.source(path=payload or None, note=payload, not_decoded={payload: 1}),
        exchanges=(e, failed),
        connections=(fabricated.connection(tls=session),),
        resolutions=(fabricated.resolution(type=payload),),
        anomalies=(Anomaly(protocol=payload, reason=payload),),
    )


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_reaches_no_terminal(payload: str) -> None:
    for line in report(with_hostile_text(payload), width=100):
        assert not FORBIDDEN.search(line.plain)
        assert line.cell_len <= 100
        line.plain.encode("utf-8")


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_reaches_no_terminal(payload: str) -> None:
    for line in report(with_hostile_text(payload), width=80):
        assert not FORBIDDEN.search(line.plain)
        assert line.cell_len <= 80


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["dns", "tcp", "tls", "send", "wait", "transfer", "-"]), st.integers(0, 10**6)),
        max_size=8,
    )
)
def test_any_phases_can_be_drawn(parts: list[tuple[str, int]]) -> None:
    e: Exchange = fabricated.exchange(" | ".join(f"{name} {us / 1000}" for name, us in parts))
    shown = report(fabricated.analysis(e), width=90)
    assert all(line.cell_len <= 90 for line in shown)
    assert sum(name != "-" for name, _ in parts) <= sum(
        "█" in line.plain or "▏" in line.plain or "▐" in line.plain or any(b in line.plain for b in "▎▍▌▋▊▉")
        for line in shown
    )


def test_can_show_knows_encodings() -> None:
    assert can_show("utf-8")
    assert not can_show("ascii")
    assert not can_show("latin-1")
    assert not can_show(None)
    assert not can_show("no-such-encoding")


@pytest.mark.parametrize("width", [40, 80, 140])
def test_the_table_of_files_fits_and_keeps_the_end_of_the_path(width: int) -> None:
    rows = [
        file_row("captures/of/a/customer/with/a/long/path/monday.pcapng", made("many"), None),
        file_row("captures/notes.txt", None, CaptureFileError("is no capture file")),
    ]
    lines = files_table(rows, width=width)
    assert all(line.cell_len <= width for line in lines)
    assert lines[0].plain == "in captures"
    assert "day.pcapng" in lines[2].plain
    assert "is no capture" in lines[3].plain


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_table_of_connections_fits(width: int) -> None:
    lines = connections_table(made("many"), width=width)
    assert len(lines) == 9
    assert all(line.cell_len <= width for line in lines)
    assert "HTTP/1.1 TLS 1.3" in lines[1].plain


def test_the_frames_of_a_request_come_with_filters() -> None:
    analysis = made("one_request")
    shown = plain(packets_table(analysis, analysis.exchanges[0], fabricated_lanes.lanes(), width=200))
    assert "frame.number in {1..25}" in shown
    assert "retransmission" in shown
    assert connection_filter(analysis.connections[0]) == (
        "ip.addr == 192.0.2.10 && ip.addr == 203.0.113.7 && tcp.port == 51532 && tcp.port == 443"
    )


def test_wide_characters_count_double() -> None:
    e = fabricated.exchange("wait 10", path="/" + "中" * 80)
    lines = report(fabricated.analysis(e), width=60)
    assert max(cell_len(line.plain) for line in lines) <= 60


def test_of_a_long_path_the_end_is_shown() -> None:
    analysis = made("keyless")
    source = replace(
        analysis.source, kind="file", path="/a/long/way/to/where/it/lies/within/many/folders/slow-call.pcapng"
    )
    first = text(replace(analysis, source=source), width=60).splitlines()[0]
    assert first.startswith("…")
    assert "folders/slow-call.pcapng  " in first


def test_without_keys_the_report_says_how_requests_are_told_and_how_to_read_them() -> None:
    shown = " ".join(text(made("keyless")).split())
    assert "no session keys: requests are told (~)" in shown
    assert "--keylog FILE" in shown
    assert "no session keys" not in text(made("one_request"))


def test_keys_that_open_nothing_are_not_asked_for_again() -> None:
    analysis = made("keyless")
    given = replace(analysis, source=replace(analysis.source, secrets=Secrets(entries=3)))
    shown = " ".join(text(given).split())
    assert "the session keys open nothing: requests are told (~) from the order and sizes of TLS records" in shown
    assert "--keylog FILE" not in shown


def test_a_request_that_cannot_be_read_needs_no_name_beside_its_number() -> None:
    heading = next(line for line in text(made("keyless")).splitlines() if line.startswith("#0"))
    assert heading.split() == ["#0", "encrypted", "12.4", "kB", "total", "287.4", "ms"]
    two = replace(made("keyless"), exchanges=tuple(replace(made("keyless").exchanges[0], id=i) for i in range(8)))
    row = next(line for line in text(two).splitlines() if line.startswith("#7"))
    assert row.split()[:3] == ["#7", "api.example.com", "287.4"]


def test_the_servers_part_of_a_bounded_wait_is_the_most_that_its_bounds_allow() -> None:
    """214.9 ± 5.0 with a path of 18.3: at most 201.6."""
    assert "path 18.3 + server ≤ 201.6" in text(made("keyless"))


def test_failures_of_one_kind_are_shown_once_for_each_arm() -> None:
    failed = {"outcome": Outcome.TLS_FAIL, "outcome_detail": "alert", "status": None, "response_bytes": None}
    rows = [
        fabricated.exchange("tcp 1 | tls 2", id=i, arm="h2" if i % 2 else "h1", trial=i // 2, **failed)
        for i in range(8)
    ]
    analysis = replace(fabricated.analysis(*rows), source=fabricated.source(kind="probe", path=None))
    shown = text(analysis)
    assert [line[:2] for line in shown.splitlines() if line.startswith("#")] == ["#0", "#1"]
    assert "6 more requests are in the summary; --top 0 shows all" in shown
    few = text(replace(analysis, exchanges=analysis.exchanges[:3]))
    assert [line[:2] for line in few.splitlines() if line.startswith("#")] == ["#0", "#1"]
    assert "1 more request is in the summary" in few


@pytest.mark.parametrize("width", [60, 80, 120])
def test_frame_numbers_without_a_note_beside_them_are_not_cut(width: int) -> None:
    e = fabricated.exchange("tcp 2", outcome=Outcome.INCOMPLETE, connection_id=None)
    row = next(line for line in text(fabricated.analysis(e), width=width).splitlines() if line.startswith("  tcp"))
    assert "…" not in row
    assert row.rstrip()[-1].isdigit()


def test_a_narrow_table_of_connections_keeps_address_and_port() -> None:
    """The name gives way first, then the count of packets, then the address."""
    one = made("one_request").connections[0]
    far = replace(one, server=replace(one.server, address="192.168.115.175", port=44321))
    rows = replace(made("one_request"), connections=tuple(replace(far, id=i) for i in range(30)))
    at_80 = plain(connections_table(rows, width=80))
    assert "192.168.115.175:44321" in at_80
    assert "packets" in plain(connections_table(rows, width=120))


def test_a_column_that_is_empty_in_every_row_is_left_out() -> None:
    one = replace(made("one_request").connections[0], tls=None)
    assert "name" not in plain(connections_table(replace(made("one_request"), connections=(one,)), width=120))


def test_a_silence_in_the_middle_of_an_answer_ends_the_transfer_not_a_wait() -> None:
    begun = fabricated.exchange(
        "send 0.2 | wait 12 | transfer 500",
        outcome=Outcome.TIMEOUT_READ,
        outcome_detail="the server was silent for too long",
    )
    shown = text(fabricated.analysis(begun), 120).splitlines()
    (failed,) = (line for line in shown if "✗" in line)
    assert failed.split()[0] == "transfer" or "transfer" in shown[shown.index(failed) - 1]
    assert sum(line.strip().startswith("wait") for line in shown) == 1


def test_on_a_terminal_too_narrow_for_frame_numbers_there_are_none() -> None:
    rows = [line for line in text(made("one_request"), width=40).splitlines() if line.startswith("  ")]
    assert not any("…" in row or "→" in row for row in rows)
    assert any("█" in row for row in rows)


def test_a_short_path_is_whole_on_a_narrow_terminal() -> None:
    analysis = made("keyless")
    shown = text(replace(analysis, source=replace(analysis.source, path="captures/h1.pcapng")), width=40)
    assert shown.startswith("captures/h1.pcapng")


def test_a_reason_that_ends_with_a_full_stop_goes_on() -> None:
    e = fabricated.exchange(
        "wait 10", outcome=Outcome.CLOSED_EARLY, outcome_detail="Server disconnected.", status=None, response_bytes=None
    )
    assert "✗ Server disconnected after 10.0 ms" in text(fabricated.analysis(e))


@pytest.mark.parametrize("width", [72, 80, 100])
def test_a_long_target_gives_way_to_what_stands_behind_it(width: int) -> None:
    e = fabricated.exchange("wait 10", path="/v1/chat/completions?stream=true&" + "x" * 80, trial=1)
    heading = next(line for line in text(fabricated.analysis(e), width=width).splitlines() if line.startswith("#0"))
    assert re.search(r"…  200  [\d.]+ k?B  +total 10.00 ms$", heading)


def test_of_many_files_the_names_can_be_told_apart_beside_a_long_remark() -> None:
    anomalies = tuple(Anomaly(protocol="tls", reason="x") for _ in range(3))
    bad = replace(made("one_request"), anomalies=anomalies)
    bad = replace(bad, source=replace(bad.source, cut_at_byte=262_144_000))
    rows = [file_row(f"folder/tls13-server-secret-{n}.pcapng", bad, None) for n in ("missing", "there")]
    shown = plain(files_table(rows, width=80))
    assert "secret-missing.pcapng" in shown
    assert "cut at byte" in shown
