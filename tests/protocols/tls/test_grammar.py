"""Record lengths that tell something without keys."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from netdiag.protocols.tls import grammar
from netdiag.protocols.tls.grammar import SmallRecord
from netdiag.protocols.tls.names import TLS12, TLS13
from netdiag.protocols.tls.suites import suite_of
from netdiag.wire.record_view import TlsRecordView
from tests.support.tls_peers import BEGIN, Pair, Settings, converse, record_view

AES128, AES256, CHACHA, CCM8 = (suite_of(n) for n in (0x1301, 0x1302, 0x1303, 0x1305))
GCM12, CHACHA12, CBC12 = (suite_of(n) for n in (0xC02F, 0xCCA8, 0xC013))


@pytest.mark.parametrize(("suite", "length"), [(AES128, 53), (AES256, 69), (CHACHA, 53), (CCM8, 45)])
def test_finished_lengths(suite: grammar.Suite, length: int) -> None:
    assert grammar.finished_length(suite, TLS13) == length


def test_finished_length_is_known_for_tls13_only() -> None:
    assert grammar.finished_length(GCM12, TLS12) is None
    assert grammar.finished_length(suite_of(0xABCD), TLS13) is None


@pytest.mark.parametrize(
    ("length", "suite", "version", "kind"),
    [
        (21, AES128, TLS13, SmallRecord.END_OF_EARLY_DATA),
        (22, AES128, TLS13, SmallRecord.KEY_UPDATE),
        (19, AES256, TLS13, SmallRecord.ALERT),
        (26, AES128, TLS13, SmallRecord.SETTINGS_ACK),
        (34, AES128, TLS13, SmallRecord.PING),
        (30, AES128, TLS13, SmallRecord.WINDOW_UPDATE),
        (33, GCM12, TLS12, SmallRecord.SETTINGS_ACK),
        (26, GCM12, TLS12, SmallRecord.ALERT),
        (25, CHACHA12, TLS12, SmallRecord.SETTINGS_ACK),
        (28, GCM12, TLS12, None),
        (11, CCM8, TLS13, SmallRecord.ALERT),
        (10, AES128, TLS13, None),
        (33, CBC12, TLS12, None),
    ],
)
def test_small_records(length: int, suite: grammar.Suite, version: int, kind: SmallRecord | None) -> None:
    assert grammar.small_record(length, suite, version) is kind


def records(*lengths: int, at: int = BEGIN) -> list[TlsRecordView]:
    return [record_view(b"\x17\x03\x03" + n.to_bytes(2, "big") + bytes(n), 0, at + i, i) for i, n in enumerate(lengths)]


def find(
    client: Sequence[TlsRecordView], server: Sequence[TlsRecordView] = (), *, settings: bool = False
) -> int | None:
    found = grammar.finished_by_size(client, server, suite=AES128, version=TLS13, offers_settings=settings)
    return None if found is None else found.client_finished


def test_where_the_finished_is() -> None:
    assert find(records(53, 100)) == 0
    assert find(records(700, 281, 53, 100)) == 2, "a client certificate and its proof come before"
    assert find(records(500, 21, 53, 100)) == 2, "0-RTT data come before"
    assert find(records(61, 100)) == 0, "an empty certificate shares its record"
    assert find(records(63, 100), settings=True) == 0, "application settings share its record"
    assert find(records(63, 100)) is None
    assert find(records(100, 63), settings=True) is None
    assert find([]) is None


def test_tickets_are_two_to_four_records_of_one_size() -> None:
    client = records(53, 90)

    def tickets(*lengths: int) -> tuple[int, ...]:
        server = [*records(27, 600, at=BEGIN - 10), *records(*lengths, at=BEGIN + 5)]
        found = grammar.finished_by_size(client, server, suite=AES128, version=TLS13)
        assert found is not None
        assert found.server_flight_end == 1
        return found.tickets

    assert tickets(249, 249, 900) == (2, 3)
    assert tickets(249, 900) == ()
    assert tickets(40, 40) == ()
    assert tickets(5_000, 5_000) == ()


def test_tickets_of_openssl_are_recognised() -> None:
    talk = converse(Settings(suites="TLS_AES_128_GCM_SHA256"))
    found = grammar.finished_by_size(talk.client, talk.server, suite=AES128, version=TLS13)
    assert found is not None
    assert len(found.tickets) == 2
    assert (
        talk.client[found.first_client_application].length == len(b"GET / HTTP/1.1\r\nHost: lab.example\r\n\r\n") + 17
    )


@pytest.mark.parametrize("settings", [Settings(), Settings(client_key="rsa"), Settings(server_group="secp521r1")])
def test_the_guess_is_right_for_openssl(settings: Settings) -> None:
    from netdiag.protocols.tls.keylog import parse_keylog
    from netdiag.protocols.tls.observe import observe

    talk = converse(settings)
    exact = observe(talk.client, talk.server, parse_keylog(talk.keylog))
    guess = observe(talk.client, talk.server, None)
    assert guess.handshake.method == "grammar"
    assert guess.handshake.client_finished == exact.handshake.client_finished
    assert guess.handshake.server_finished == exact.handshake.server_finished
    assert guess.session.server_flight_bytes == exact.session.server_flight_bytes


def test_a_peer_that_pads_is_not_guessed_at() -> None:
    pair = Pair(Settings()).handshake()
    client = [r if r.length != 69 else records(128)[0] for r in pair.from_client.records]
    assert grammar.finished_by_size(client, pair.from_server.records, suite=AES256, version=TLS13) is None
