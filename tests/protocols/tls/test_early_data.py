"""0-RTT data with the real openssl command: accepted, refused with the PSK, refused by a HelloRetryRequest; with all keys, some, none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from netdiag.protocols.tls.keylog import KeyLog, parse_keylog
from netdiag.protocols.tls.observe import TlsObservation, observe
from netdiag.records.tls import EarlyData
from netdiag.wire.record_view import TlsRecordView
from tests.support.openssl_tool import Recorder, openssl_client, openssl_server

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed: 0-RTT data is not tested"),
]

EARLY_LABEL = b"CLIENT_EARLY_TRAFFIC_SECRET"
EARLY = b"GET /early HTTP/1.1\r\n\r\n"
_SERVER = ("-early_data", "-no_anti_replay", "-max_early_data", "16384", "-tls1_3", "-quiet")


class Recorded:
    """A resumed connection with 0-RTT data, and its key log."""

    def __init__(self, recorder: Recorder, keylog: bytes) -> None:
        self.recorder, self.keylog = recorder, keylog

    @property
    def records(self) -> tuple[list[TlsRecordView], list[TlsRecordView]]:
        return self.recorder.from_client.records, self.recorder.from_server.records

    def see(self, keylog: KeyLog | None) -> tuple[TlsObservation, bytes]:
        seen = observe(*self.records, keylog)
        data = b"".join(chunk.data for chunk in seen.client or ())
        seen.finish()
        return seen, data

    def log_without(self, *labels: bytes) -> KeyLog:
        return parse_keylog(b"\n".join(line for line in self.keylog.splitlines() if not line.startswith(labels)))


def _record(folder: Path, second_server: tuple[str, ...] | None = None) -> Recorded:
    """First connection to get a ticket; second one, by default to the same server, with 0-RTT data."""
    (folder / "early").write_bytes(EARLY)

    def second(port: int) -> Recorder:
        recorder = Recorder(port)
        options = ("-sess_in", "session", "-early_data", "early", "-keylogfile", "keys")
        openssl_client(folder, recorder.port, *options, lines=(b"late",))
        recorder.join()
        return recorder

    with openssl_server(folder, *_SERVER) as port:
        openssl_client(folder, port, "-sess_out", "session")
        if second_server is None:
            return Recorded(second(port), (folder / "keys").read_bytes())
    with openssl_server(folder, *_SERVER, *second_server) as port:
        return Recorded(second(port), (folder / "keys").read_bytes())


@pytest.fixture(scope="module")
def accepted(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return _record(tmp_path_factory.mktemp("accepted"))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return _record(tmp_path_factory.mktemp("refused"), ())


@pytest.fixture(scope="module")
def retried(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return _record(tmp_path_factory.mktemp("retried"), ("-groups", "P-521"))


def test_accepted_early_data_comes_first(accepted: Recorded) -> None:
    seen, data = accepted.see(accepted.log_without())
    assert data == EARLY + b"late\n"
    session = seen.session
    assert (session.early_data, session.resumed, session.round_trips) == (EarlyData.ACCEPTED, True, 0)
    assert seen.handshake.first_early is not None
    assert accepted.recorder.from_client.records[seen.handshake.first_early].length == len(EARLY) + 17
    first = seen.handshake.first_application[0]
    assert first is not None
    assert accepted.recorder.from_client.records[first].length == len(b"late\n") + 17
    assert session.finished_method == "exact"
    assert seen.anomalies == []


@pytest.mark.parametrize("kind", ["refused", "retried"])
def test_refused_early_data_is_no_application_data(kind: str, request: pytest.FixtureRequest) -> None:
    recorded: Recorded = request.getfixturevalue(kind)
    seen, data = recorded.see(recorded.log_without())
    assert data == b"late\n"
    assert seen.session.early_data is EarlyData.REJECTED
    assert seen.session.hello_retry_request is (kind == "retried")
    assert seen.session.round_trips == (2 if kind == "retried" else 1)
    assert seen.anomalies == []


@pytest.mark.parametrize("kind", ["accepted", "refused", "retried"])
def test_without_the_early_secret_the_rest_is_read(kind: str, request: pytest.FixtureRequest) -> None:
    recorded: Recorded = request.getfixturevalue(kind)
    seen, data = recorded.see(recorded.log_without(EARLY_LABEL))
    assert data == b"late\n"
    assert seen.anomalies == []
    assert seen.session.decrypted
    first = next(iter(observe(*recorded.records, recorded.log_without(EARLY_LABEL)).client or ()))
    if kind == "accepted":
        assert seen.session.missing_secret == EARLY_LABEL.decode()
        assert first.missing_before == -1
    else:
        assert seen.session.missing_secret is None
        assert first.missing_before == 0


@pytest.mark.parametrize("kind", ["accepted", "refused", "retried"])
def test_the_same_facts_without_any_keys(kind: str, request: pytest.FixtureRequest) -> None:
    recorded: Recorded = request.getfixturevalue(kind)
    exact = recorded.see(recorded.log_without())[0].session
    guessed = recorded.see(None)[0].session
    assert guessed.early_data is exact.early_data
    assert guessed.round_trips == exact.round_trips
    assert (guessed.finished_at, guessed.finished_method) == (exact.finished_at, "grammar")
    assert guessed.resumed is exact.resumed
