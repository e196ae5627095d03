"""What TLS 1.3 hides behind type application_data is no part of a request or an answer."""

from __future__ import annotations

import pytest

from tests.support.record_lengths import MS, TAG13, Record, heard, hello, sessions

KEY_UPDATE = 5 + TAG13
ASKED = [*hello(), Record("client", 23, 160), Record("server", 60, 600)]


def test_a_record_as_long_as_a_key_update_ends_a_chunked_answer() -> None:
    assert heard([*ASKED, Record("server", 90, KEY_UPDATE)]).response_last_at.tolist() == [90 * MS]


def test_with_http2_it_is_a_key_update() -> None:
    found = heard([*ASKED, Record("server", 90, KEY_UPDATE)], sessions(1, h2=1))
    assert found.response_last_at.tolist() == [60 * MS]


@pytest.mark.parametrize(("pause_ms", "last_ms"), [(0.5, 23.5), (10, 23)])
def test_behind_data_of_the_client_it_is_of_the_request_only_at_once(pause_ms: float, last_ms: float) -> None:
    found = heard([*hello(), Record("client", 23, 160), Record("client", 23 + pause_ms, KEY_UPDATE)])
    assert (found.request_last_at / MS).tolist() == [last_ms]


def test_an_alert_is_neither_request_nor_answer() -> None:
    assert len(heard([*ASKED, Record("client", 100, 2 + TAG13), Record("server", 110, 2 + TAG13)])) == 1


def test_what_the_client_sent_under_handshake_keys_is_no_request() -> None:
    certificate = [*hello()[:-1], Record("client", 21.5, 1_200), hello()[-1], Record("client", 23, 160)]
    assert (heard(certificate).request_first_at / MS).tolist() == [23]
