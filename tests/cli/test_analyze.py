from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import lz4.frame
import pytest
import zstandard
from click.testing import Result

from netdiag.export.schema import schema

Run = Callable[..., Result]
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "lz4": lz4.frame.compress,
}


def test_a_file_is_a_report(run: Run, good: Path) -> None:
    result = run("analyze", good)
    assert result.exit_code == 0
    assert "GET /v1/models" in result.stdout
    assert "evidence L2" in result.stdout
    assert "wait" in result.stdout
    assert result.stderr == ""


def test_no_secret_is_printed(run: Run, good: Path) -> None:
    for options in ((), ("--json",), ("--jsonl",)):
        assert "canary" not in run("analyze", good, *options).output


def test_json_is_exactly_one_document(run: Run, good: Path) -> None:
    document = json.loads(run("analyze", good, "--json").stdout)
    jsonschema.Draft202012Validator(schema()).validate(document)
    assert [e["status"] for e in document["exchanges"]] == [200, 200]


def test_json_of_several_files_is_a_list(run: Run, good: Path, refused: Path) -> None:
    documents = json.loads(run("analyze", good, refused, "--json").stdout)
    assert [len(d["exchanges"]) for d in documents] == [2, 1]


def test_jsonl_is_a_line_per_request(run: Run, good: Path, refused: Path) -> None:
    lines = [json.loads(line) for line in run("analyze", good, refused, "--jsonl").stdout.splitlines()]
    assert [(Path(row["source_path"]).name, row["status"]) for row in lines] == [
        ("good.pcap", 200),
        ("good.pcap", 200),
        ("refused.pcap", 429),
    ]


def test_standard_input(run: Run, good: Path) -> None:
    result = run("analyze", "-", input=good.read_bytes())
    assert result.exit_code == 0
    assert "GET /v1/models" in result.stdout


@pytest.mark.parametrize("packed", ["gzip", "zstd", "lz4"])
def test_compressed_files_whatever_they_are_called(run: Run, good: Path, tmp_path: Path, packed: str) -> None:
    target = tmp_path / "capture.bin"
    target.write_bytes(PACKERS[packed](good.read_bytes()))
    document = json.loads(run("analyze", target, "--json").stdout)
    assert [e["status"] for e in document["exchanges"]] == [200, 200]
    assert document["source"]["format"].startswith("pcap")
    piped = run("analyze", "-", "--json", input=target.read_bytes())
    assert json.loads(piped.stdout)["exchanges"] == document["exchanges"]


def test_sni_filter(run: Run) -> None:
    capture = Path(__file__).parents[2] / "captures" / "built-dns-h1.pcapng"
    for name, count in (("api.example.test", 1), ("*.test", 1), ("other.test", 0)):
        shown = run("analyze", capture, "--json", "--filter", f"sni={name}")
        assert len(json.loads(shown.stdout)["exchanges"]) == count
        assert ("none of its 1 connections passes the filter" in shown.stderr) == (count == 0)


def test_a_folder_is_searched_and_what_is_no_capture_passed_over(
    run: Run, tmp_path: Path, good: Path, refused: Path
) -> None:
    (tmp_path / "README.md").write_text("not a capture")
    (tmp_path / "below").mkdir()
    good.rename(tmp_path / "below" / "deep.pcap")
    result = run("analyze", tmp_path)
    assert "deep.pcap" in result.stdout
    assert "refused.pcap" in result.stdout
    assert "README" not in result.stdout
    assert "passed over, no captures: README.md" in result.stderr


def test_a_folder_without_captures_and_short_files_are_bad_input(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    for arguments in (["analyze"], ["analyze", "--json"]):
        result = run(*arguments, tmp_path)
        assert (result.exit_code, result.stdout) == (65, "")
        assert "no capture in it, only a.txt" in result.stderr
    result = run("analyze", tmp_path / "a.txt")
    assert result.exit_code == 65
    assert "a.txt: not a capture file: it is text that begins with “hello”" in result.stderr
    (tmp_path / "b.txt").write_text("hello")
    result = run("analyze", tmp_path)
    assert result.exit_code == 65
    assert "no capture in it, only a.txt" in result.stdout
    result = run("analyze", tmp_path / "a.txt", tmp_path / "b.txt", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (65, [])


def test_a_cut_magic_number_is_a_partial_result(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cut.pcapng").write_bytes(b"\x0a\x0d\x0d")
    result = run("analyze", tmp_path / "cut.pcapng", "--strict")
    assert result.exit_code == 2
    assert "no packet could be read" in result.stdout
    assert "magic number of a pcapng" in result.stdout


def test_an_unreadable_file_does_not_stop_the_others_and_is_in_the_table(run: Run, tmp_path: Path, good: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a capture")
    result = run("analyze", tmp_path / "notes.txt", good)
    assert result.exit_code == 65
    table = result.stdout.splitlines()[-2:]
    assert table[0].startswith("notes.txt")
    assert table[1].startswith("good.pcap")


def test_many_files_end_with_a_table_only(run: Run, tmp_path: Path, good: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.pcap").write_bytes(good.read_bytes())
    result = run("analyze", tmp_path)
    assert len(result.stdout.splitlines()) == 8
    assert "unattributed" not in result.stdout


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("host=api.example.com",), 2),
        (("host=*.example.com",), 2),
        (("host=other.example.com",), 0),
        (("port=443",), 2),
        (("port=80",), 0),
        (("sni=api.example.com",), 0),
        (("time=0..1000",), 2),
        (("time=500..",), 0),
        (("port=443", "host=other.example.com"), 0),
    ],
)
def test_filters(run: Run, good: Path, words: tuple[str, ...], count: int) -> None:
    options = [part for word in words for part in ("--filter", word)]
    document = json.loads(run("analyze", good, "--json", *options).stdout)
    assert len(document["exchanges"]) == count


def test_one_connection(run: Run, good: Path) -> None:
    assert len(json.loads(run("analyze", good, "--json", "--connection", 0).stdout)["exchanges"]) == 2
    assert json.loads(run("analyze", good, "--json", "--connection", 5).stdout)["exchanges"] == []


def test_statistics_of_a_part_are_of_the_part(run: Run, good: Path) -> None:
    document = json.loads(run("analyze", good, "--json", "--filter", "host=other").stdout)
    assert document["statistics"] == []


def test_one_exchange_with_its_packets_as_a_picture(run: Run, good: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.svg"
    result = run("analyze", good, "--exchange", 1, "-o", target)
    assert result.exit_code == 0, result.output
    assert "#1 " in result.stdout
    assert "#0 " not in result.stdout
    assert "packets" in target.read_text()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "json"])
def test_output_files(run: Run, good: Path, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"result.{ending}"
    assert run("analyze", good, "-o", target).exit_code == 0
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "json": b"{\n"}[ending]
    assert target.read_bytes().startswith(start)


def test_the_written_document_is_the_printed_one(run: Run, good: Path, tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    printed = run("analyze", good, "--json", "-o", target).stdout
    assert target.read_text() == printed


def test_strict_is_about_partial_results(run: Run, good: Path, cut: Path) -> None:
    assert run("analyze", good, "--strict").exit_code == 0
    assert run("analyze", cut).exit_code == 0
    assert run("analyze", cut, "--strict").exit_code == 2
    assert "cut or damaged at byte" in run("analyze", cut).stdout


def test_connections_and_packets(run: Run, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert "10.0.0.1:40000" in run("connections", good).stdout
    shown = run("packets", good, "--exchange", 0).stdout
    assert "Wireshark display filters" in shown
    assert "tcp.port == 443" in shown
    assert run("packets", good, "--exchange", 9).exit_code == 64


def test_a_capture_with_comments_in_it(run: Run, good: Path, tmp_path: Path) -> None:
    target = tmp_path / "commented.pcapng"
    assert run("analyze", good, "-o", target).exit_code == 0
    assert b"wait ends after" in target.read_bytes()
    again = json.loads(run("analyze", target, "--json").stdout)
    assert [e["status"] for e in again["exchanges"]] == [200, 200]
    part = tmp_path / "part.pcapng"
    assert run("analyze", good, "-o", part, "--filter", "port=80").exit_code == 0
    assert json.loads(run("analyze", part, "--json").stdout)["source"]["packets"] == 0
