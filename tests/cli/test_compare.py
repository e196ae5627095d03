"""``netdiag compare`` over results and captures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from netdiag.cli.compare import compare
from netdiag.cli.main import cli
from netdiag.export.json import dumps, exchange_line
from netdiag.records.exchange import Outcome
from netdiag.stats.distribution import statistics
from tests.support.fabricated import analysis, connection, exchange

CAPTURES = Path(__file__).resolve().parents[2] / "captures"


def result_file(folder: Path, name: str, waits: dict[str, list[float]]) -> str:
    rows = [
        replace(
            exchange(f"send 0.1 | wait {wait} | transfer 1", id=100 * n + i),
            arm=arm,
            trial=i + 1,
            protocol="h2" if arm == "h2" else "http/1.1",
        )
        for n, (arm, values) in enumerate(waits.items())
        for i, wait in enumerate(values)
    ]
    rows = [replace(row, id=i) for i, row in enumerate(rows)]
    whole = replace(analysis(exchanges=rows, connections=(connection(),)), statistics=statistics(rows))
    path = folder / name
    path.write_text(dumps(whole))
    return str(path)


WAITS = [100 + (7 * i) % 5 for i in range(10)]


def test_arms_of_one_run_are_compared_pair_by_pair(tmp_path):
    run = result_file(tmp_path, "run.json", {"h1": WAITS, "h2": [w + 50 for w in WAITS]})
    done = CliRunner().invoke(compare, [run])
    assert done.exit_code == 0, done.output
    assert "h2 against h1" in done.output
    assert "pair by pair" in done.output
    wait = next(line for line in done.output.splitlines() if line.startswith("wait"))
    assert "+50.0" in wait
    assert "slower" in wait


def test_two_runs_are_two_samples(tmp_path):
    a = result_file(tmp_path, "a.json", {"h1": WAITS})
    b = result_file(tmp_path, "b.json", {"h1": [w - 60 for w in WAITS]})
    rows = json.loads(CliRunner().invoke(compare, [a, b, "--json"]).output)
    wait = next(row for row in rows if row["quantity"] == "wait")
    assert (wait["paired"], wait["verdict"], wait["pairs"]) == (False, "faster", 10)
    assert wait["estimate_ns"] == -60_000_000


def test_the_margin_decides_what_matters(tmp_path):
    run = result_file(tmp_path, "run.json", {"h1": WAITS, "h2": [w + 50 for w in WAITS]})
    rows = json.loads(CliRunner().invoke(compare, [run, "--json", "--margin", "80"]).output)
    assert {row["verdict"] for row in rows if row["quantity"] == "wait"} == {"slower-but-too-little"}


def test_two_captures_are_compared_by_kind(tmp_path):
    """The same capture twice: nothing differs, and with so few calls nothing is claimed."""
    file = str(CAPTURES / "h1-reused.pcapng")
    rows = json.loads(CliRunner().invoke(compare, [file, file, "--json"]).output)
    assert {row["estimate_ns"] for row in rows} == {0}
    assert {row["arm_a"] for row in rows} == {"first: http/1.1, reused"}


def test_an_unknown_arm_and_a_foreign_file_are_clear(tmp_path):
    run = result_file(tmp_path, "run.json", {"h1": WAITS, "h2": WAITS})
    unknown = CliRunner().invoke(cli, ["compare", run, "--arm", "h3"])
    assert unknown.exit_code == 64
    foreign = tmp_path / "other.json"
    foreign.write_text('{"log": {}}')
    assert CliRunner().invoke(cli, ["compare", str(foreign)]).exit_code == 65
    single = result_file(tmp_path, "single.json", {"h1": WAITS})
    assert CliRunner().invoke(cli, ["compare", single]).exit_code == 64


def test_too_few_pairs_for_an_interval_are_shown_themselves(tmp_path):
    run = result_file(tmp_path, "run.json", {"h1": [100, 110, 120], "h2": [103, 108, 124]})
    done = CliRunner().invoke(compare, [run])
    wait = next(line for line in done.output.splitlines() if line.startswith("wait"))
    assert "+3.0 −2.0 +4.0" in wait
    assert "nothing is claimed: the differences themselves" in " ".join(done.output.split())
    rows = json.loads(CliRunner().invoke(compare, [run, "--json"]).output)
    assert next(r for r in rows if r["quantity"] == "wait")["points_ns"] == [3_000_000, -2_000_000, 4_000_000]


def test_a_difference_that_round_trips_do_not_explain_is_marked(tmp_path):
    run = result_file(tmp_path, "run.json", {"h1": WAITS, "h2": [w + 50 for w in WAITS]})
    output = CliRunner().invoke(compare, [run]).output
    wait = next(line for line in output.splitlines() if line.startswith("wait"))
    assert "≠" in wait, "both have one round trip in their wait"
    assert "round trips alone do not explain it" in output
    same = result_file(tmp_path, "same.json", {"h1": WAITS, "h2": [w + 1 for w in WAITS]})
    assert "≠" not in CliRunner().invoke(compare, [same]).output


def test_a_direction_that_may_be_chance_among_several_is_marked(tmp_path):
    drift = [0.5, 0.4, 0.3, 0.6, 0.2, 0.1, 0.7]  # seven of seven up: the interval excludes 0, p is 1/64
    run = result_file(tmp_path, "run.json", {"h1": [100.0] * 7, "h2": [100 + d for d in drift]})
    rows = json.loads(CliRunner().invoke(compare, [run, "--json"]).output)
    wait = next(r for r in rows if r["quantity"] == "wait")
    assert wait["p_value"] < 0.05
    output = CliRunner().invoke(compare, [run]).output
    marked = next(line for line in output.splitlines() if line.startswith("wait")).rstrip().endswith("*")
    assert marked == (wait["p_value_adjusted"] > 0.05)


def lines_file(folder: Path, name: str, waits: list[float], *, failed: int = 0, cut: bool = False) -> str:
    """As a watch writes it: every call is number 0 of its own analysis."""
    lines = []
    for tick, wait in enumerate(waits, 1):
        outcome = Outcome.RESET if tick <= failed else Outcome.OK
        row = replace(
            exchange(f"send 0.1 | wait {wait} | transfer 1", id=0), arm="h1", trial=tick, call_id=0, outcome=outcome
        )
        lines.append(exchange_line(analysis(exchanges=[row]), row))
    path = folder / name
    path.write_text("".join(lines) + (lines[0][:200] if cut else ""))
    return str(path)


def test_two_watches_are_compared_by_their_lines(tmp_path):
    a = lines_file(tmp_path, "monday.jsonl", WAITS, failed=2)
    b = lines_file(tmp_path, "tuesday.jsonl", [w - 60 for w in WAITS], cut=True)
    rows = json.loads(CliRunner().invoke(compare, [a, b, "--json"]).output)
    wait = next(row for row in rows if row["quantity"] == "wait")
    assert (wait["paired"], wait["verdict"], wait["pairs"]) == (False, "faster", 8)
    assert wait["predicted_ns"] is None


def test_what_is_no_result_is_an_input_error(tmp_path):
    run = lines_file(tmp_path, "run.jsonl", WAITS)
    for text in (
        "{",
        "{}",
        '{"schema": "other"}\n{"schema": "other"}\n',
        '{"schema": "netdiag/exchange", "schema_version": 1}',
    ):
        (tmp_path / "bad.json").write_text(text)
        done = CliRunner().invoke(cli, ["compare", run, str(tmp_path / "bad.json")])
        assert done.exit_code == 65, text
        assert "bad.json" in done.stderr
