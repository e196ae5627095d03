from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest

import netdiag
from netdiag.export import json as out
from netdiag.export.schema import schema
from netdiag.records.analysis import Analysis
from netdiag.records.anomaly import Anomaly
from netdiag.records.finding import Confidence, Evidence, Finding, Severity
from netdiag.records.source import EvidenceLevel
from tests.support import analyses, fabricated
from tests.support.golden import Golden
from tests.support.hostile import FORBIDDEN, PAYLOADS

FABRICATED = ("one_request", "reused", "multiplexed", "keyless", "failures", "retried", "streamed", "two_arms", "many")

# The keys that the document promises. More may come; none may go.
PROMISED = {
    "": "schema schema_version netdiag_version source connections resolutions exchanges calls statistics comparisons findings anomalies",
    "Source": "kind path format packets link_types first_at last_at timestamp_resolution_ns dropped_packets cut_at_byte evidence_level secrets",
    "Secrets": "entries used",
    "Connection": "id transport client server client_known_by syn_at syn_packet syn_ack_at syn_ack_packet ack_at ack_packet syn_retries"
    " handshake_rtt_ns min_rtt_ns vantage complete closed_by close_reason closed_at sides tls http_version",
    "Endpoint": "address port",
    "Sides": "client server",
    "Side": "packets payload_bytes mss_bytes window_scale sack retransmitted_segments spurious_retransmissions out_of_order_segments duplicate_acks"
    " zero_window_ns missing_bytes first_payload_at first_payload_packet last_payload_at last_payload_packet",
    "TlsSession": "version cipher_suite group sni alpn_offered alpn client_hello_at client_hello_packet server_hello_at server_hello_packet finished_at"
    " finished_method hello_retry_request resumed early_data certificate_bytes round_trips alerts decrypted",
    "NameResolution": "name type resolver transport query_at query_packet response_at response_packet duration_ns rcode addresses attempts ttl_s",
    "Exchange": "id call_id attempt connection_id stream_id ordinal reused idle_before_ns protocol method scheme authority path status interim outcome"
    " request_packet response_packet request_bytes response_bytes started_at ended_at total_ns unattributed_ns phases wait_path_ns wait_think_ns stream clocks",
    "InterimResponse": "status at",
    "Phase": "name started_at ended_at duration_ns clock method lo_ns hi_ns first_packet last_packet",
    "StreamTiming": "first_byte_ns first_event_ns first_token_ns first_visible_ns last_content_ns logical_end_ns events gaps_ns tokens",
    "Call": "id url attempts backoff total_ns outcome policy",
    "Backoff": "ns cause",
    "Statistics": "arm n excluded phases",
    "Exclusion": "exchange_id reason",
    "Distribution": "n min p50 p90 p95 p99 max",
    "Finding": "id subject phase cost_ns severity confidence evidence advice rule_version",
    "Evidence": "packets values thresholds",
    "Anomaly": "protocol connection_id packet offset reason",
}


def made(name: str) -> Analysis:
    analysis = getattr(analyses, name)()
    assert isinstance(analysis, Analysis)
    return analysis


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema())


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("record", PROMISED)
def test_every_promised_key_is_required(record: str) -> None:
    described = schema() if record == "" else schema()["$defs"][record]
    assert set(PROMISED[record].split()) <= set(described["required"])
    assert set(described["required"]) == set(described["properties"])


@pytest.mark.parametrize("name", FABRICATED)
def test_the_document_meets_the_schema(name: str, validator: jsonschema.Draft202012Validator) -> None:
    assert list(validator.iter_errors(json.loads(out.dumps(made(name))))) == []


@pytest.mark.parametrize("name", FABRICATED)
def test_text_and_dictionary_say_the_same(name: str) -> None:
    assert json.loads(out.dumps(made(name))) == out.document(made(name))


def test_the_schema_refuses_what_is_no_document(validator: jsonschema.Draft202012Validator) -> None:
    document = out.document(made("one_request"))
    del document["exchanges"][0]["total_ns"]
    document["exchanges"][0]["phases"][0]["clock"] = "sundial"
    document["exchanges"][0]["started_at"] = "yesterday"
    assert len(list(validator.iter_errors(document))) == 3


def test_head() -> None:
    document = out.document(made("one_request"))
    assert (document["schema"], document["schema_version"]) == ("netdiag/analysis", 1)
    assert document["netdiag_version"] == netdiag.__version__


def test_unknown_is_null_and_zero_is_a_measurement() -> None:
    (exchange,) = out.document(made("keyless"))["exchanges"]
    assert exchange["status"] is None
    assert exchange["loss_ns"] == 0


def test_times_are_integers() -> None:
    document = out.document(made("streamed"))
    numbers = re.findall(r'"(\w+_(?:at|ns))": ([^,}\]]+)', out.dumps(made("streamed")))
    assert len(numbers) > 100
    assert all(value == "null" or value.startswith("[") or re.fullmatch(r"-?\d+", value) for _, value in numbers)
    assert document["exchanges"][0]["started_at"] == fabricated.T0


@pytest.mark.parametrize("name", FABRICATED)
def test_phases_and_rest_are_the_total(name: str) -> None:
    for exchange in out.document(made(name))["exchanges"]:
        assert sum(p["duration_ns"] for p in exchange["phases"]) + exchange["unattributed_ns"] == exchange["total_ns"]


def promised_part(value: Any) -> Any:
    """Without the keys that are not promised, so that a record may grow."""
    keys = {key for keys in PROMISED.values() for key in keys.split()} | {"alpn_offered", "decrypted"}
    if isinstance(value, dict):
        return {key: promised_part(item) for key, item in value.items() if key in keys}
    return [promised_part(item) for item in value] if isinstance(value, list) else value


def test_the_document_is_what_it_was(golden: Golden) -> None:
    document = {**out.document(made("one_request")), "netdiag_version": "VERSION"}
    golden.check("one_request.json", json.dumps(promised_part(document), indent=1) + "\n")


def test_the_same_records_give_the_same_octets() -> None:
    assert out.dumps(made("two_arms")) == out.dumps(made("two_arms"))


def test_header_fields_stay_out() -> None:
    analysis = made("one_request")
    exchange = replace(analysis.exchanges[0], request_headers=(("cookie", "canary"),), trailers=(("t", "canary"),))
    assert "canary" not in out.dumps(replace(analysis, exchanges=(exchange,)))


def test_one_record_is_one_line() -> None:
    lines = out.dumps(made("many")).splitlines()
    rows = [json.loads(line.rstrip(",")) for line in lines if line.startswith('{"id"')]
    assert [row["id"] for row in rows if "phases" in row] == list(range(300))


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_hostile_text_is_escaped_and_the_document_well_formed(payload: str) -> None:
    analysis = made("one_request")
    exchange = replace(analysis.exchanges[0], path=payload, authority=payload, outcome_detail=payload)
    hostile = replace(analysis, exchanges=(exchange,), anomalies=(Anomaly(protocol=payload, reason=payload),))
    text = out.dumps(hostile)
    assert not FORBIDDEN.search(text.replace("\n", ""))
    text.encode("ascii")
    read = json.loads(text)["exchanges"][0]["path"]
    assert read == payload.encode("utf-8", "backslashreplace").decode()


def test_numbers_that_json_cannot_hold_are_null() -> None:
    values = {"nan": math.nan, "inf": math.inf, "numpy": np.int64(7), "bytes": b"\x01", "set": frozenset({2, 1})}
    finding = Finding(
        id="x",
        subject="capture",
        phase=None,
        cost_ns=0,
        severity=Severity.INFO,
        confidence=Confidence.HINT,
        evidence=Evidence(values=values),
        advice="",
    )
    document = json.loads(out.dumps(replace(made("one_request"), findings=(finding,))))
    expected = {"nan": None, "inf": None, "numpy": 7, "bytes": "01", "set": [1, 2]}
    assert document["findings"][0]["evidence"]["values"] == expected


def test_several_documents_are_one_list() -> None:
    file = io.StringIO()
    out.write_list([made("one_request"), made("reused")], file)
    assert json.loads(file.getvalue()) == [out.document(made("one_request")), out.document(made("reused"))]


def test_no_document_is_an_empty_list() -> None:
    file = io.StringIO()
    out.write_list([], file)
    assert json.loads(file.getvalue()) == []


def test_a_line_per_request_names_its_file() -> None:
    analysis = made("reused")
    lines = [json.loads(out.exchange_line(analysis, e)) for e in analysis.exchanges]
    assert [line["id"] for line in lines] == [0, 1, 2]
    assert {line["path"] for line in lines} == {"/v1/models"}
    assert {line["source_path"] for line in lines} == {"slow.pcapng"}
    assert {(line["schema"], line["schema_version"]) for line in lines} == {("netdiag/exchange", 1)}


def test_an_analysis_without_packets_is_a_document(validator: jsonschema.Draft202012Validator) -> None:
    source = fabricated.source(
        kind="probe", path=None, format=None, packets=0, evidence_level=EvidenceLevel.L1, first_at=None, last_at=None
    )
    assert list(validator.iter_errors(json.loads(out.dumps(Analysis(source=source))))) == []
