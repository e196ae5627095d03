"""Real OpenSSL peers in memory: what they said to each other is what the passive decoder reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from OpenSSL import SSL

from netdiag.protocols.tls.keylog import KeyLog, parse_keylog
from netdiag.protocols.tls.observe import TlsObservation, observe
from netdiag.records.tls import TlsSession
from netdiag.wire.chunk import Chunk
from tests.support.tls_peers import (
    BEGIN,
    NO_ENCRYPT_THEN_MAC,
    NO_EXTENDED_MASTER_SECRET,
    NO_TICKET,
    ONE_WAY_NS,
    Conversation,
    Pair,
    Settings,
    converse,
)

VERSIONS = {"TLSv1.0": SSL.TLS1_VERSION, "TLSv1.1": SSL.TLS1_1_VERSION, "TLSv1.2": SSL.TLS1_2_VERSION}


def octets(chunks: Sequence[Chunk] | object) -> bytes:
    return b"".join(chunk.data for chunk in chunks or ())  # type: ignore[attr-defined]


def read(talk: Conversation, keylog: KeyLog | None = None) -> tuple[TlsObservation, bytes, bytes]:
    seen = observe(talk.client, talk.server, parse_keylog(talk.keylog) if keylog is None else keylog)
    return seen, octets(seen.client), octets(seen.server)


def assert_same(talk: Conversation) -> TlsSession:
    """The decoder read what the peers read, found nothing odd, and saw the close."""
    seen, client, server = read(talk)
    assert (client, server) == (talk.said.client, talk.said.server)
    assert seen.anomalies == []
    assert seen.unread_records == (0, 0)
    session = seen.session
    assert session.decrypted
    assert session.missing_secret is None
    assert session.finished_method == "exact"
    assert [(a.sender, a.name) for a in session.alerts] == [("client", "close_notify"), ("server", "close_notify")]
    return session


def openssl_suites(version: int) -> list[str]:
    """What OpenSSL offers up to TLS 1.2, without pre-shared keys and SRP (which need more than certificates)."""
    names = SSL.Connection(Pair(Settings(version=version)).client_context, None).get_cipher_list()
    return [n for n in names if not n.startswith("TLS_") and "PSK" not in n and "SRP" not in n]


def key_for(suite: str) -> str:
    return "ecdsa" if "ECDSA" in suite else "dsa" if "DSS" in suite else "rsa"


@pytest.mark.parametrize("name", VERSIONS)
def test_every_suite_of_openssl(name: str) -> None:
    version = VERSIONS[name]
    failed, refused, done = [], [], 0
    for suite in openssl_suites(version):
        try:
            talk = converse(Settings(version=version, ciphers=suite, key=key_for(suite)))
        except SSL.Error:
            refused.append(suite)  # not for this version, says OpenSSL
            continue
        done += 1
        if "ARIA" in suite:
            continue
        session = assert_same(talk)
        if session.version != name:
            failed.append(suite)
    assert not failed
    assert done >= {"TLSv1.0": 30, "TLSv1.1": 30, "TLSv1.2": 90}[name]
    if name == "TLSv1.2":
        assert all("IDEA" in suite for suite in refused)


@pytest.mark.parametrize("suite", ["AES256-SHA", "ECDHE-RSA-AES128-SHA256", "CAMELLIA128-SHA"])
@pytest.mark.parametrize("options", [0, NO_ENCRYPT_THEN_MAC], ids=["encrypt-then-mac", "mac-then-encrypt"])
@pytest.mark.parametrize("name", VERSIONS)
def test_block_ciphers_with_and_without_encrypt_then_mac(name: str, options: int, suite: str) -> None:
    if suite.endswith("256") and name != "TLSv1.2":
        suite = "AES128-SHA"
    assert_same(converse(Settings(version=VERSIONS[name], ciphers=suite, options=options)))


@pytest.mark.parametrize(
    "suite",
    [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    ],
)
def test_every_suite_of_tls13(suite: str) -> None:
    session = assert_same(converse(Settings(suites=suite)))
    assert session.cipher_suite == suite
    assert session.version == "TLSv1.3"


def test_a_suite_that_the_library_lacks_is_named() -> None:
    talk = converse(Settings(version=SSL.TLS1_2_VERSION, ciphers="ECDHE-ARIA128-GCM-SHA256"))
    seen, _, _ = read(talk)
    assert seen.client is None
    assert seen.server is None
    assert not seen.session.decrypted
    assert [a.reason for a in seen.anomalies] == [
        "records under TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256 cannot be decrypted: the cipher is not available"
    ]
    assert seen.session.finished_method == "exact"


# -- facts ---------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [True, False], ids=["keys", "no keys"])
def test_facts_of_a_tls13_session(keys: bool) -> None:
    talk = converse(Settings(alpn=(b"h2", b"http/1.1"), suites="TLS_AES_256_GCM_SHA384"))
    seen, _, _ = read(talk, None if keys else KeyLog())
    session = seen.session
    assert (session.sni, session.alpn_offered) == ("lab.example", ("h2", "http/1.1"))
    assert session.alpn == ("http/1.1" if keys else None)
    assert session.versions_offered == ("TLSv1.3",)
    assert session.group == "X25519MLKEM768"
    assert session.resumed is False
    assert (session.client_hello_at, session.client_hello_packet) == (BEGIN, 1)
    assert (session.server_hello_at, session.server_hello_packet) == (BEGIN + ONE_WAY_NS, 2)
    assert session.finished_at == BEGIN + 2 * ONE_WAY_NS
    assert session.finished_method == ("exact" if keys else "grammar")
    assert session.round_trips == 1
    assert session.early_data is None
    assert session.client_certificate is (False if keys else None)
    assert (session.certificate_bytes or 0) > 600 if keys else session.certificate_bytes is None
    flight = [r.length + 5 for r in talk.server if r.first_packet and r.first_seen_at == BEGIN + ONE_WAY_NS][1:]
    assert session.server_flight_bytes == sum(flight)
    assert session.missing_secret == (None if keys else "CLIENT_TRAFFIC_SECRET_0")
    assert session.decrypted is keys


@pytest.mark.parametrize("keys", [True, False], ids=["keys", "no keys"])
def test_facts_of_a_tls12_session(keys: bool) -> None:
    talk = converse(
        Settings(
            version=SSL.TLS1_2_VERSION, ciphers="ECDHE-RSA-AES128-GCM-SHA256", alpn=(b"h2",), server_group="secp384r1"
        )
    )
    seen, _, _ = read(talk, None if keys else KeyLog())
    session = seen.session
    assert session.cipher_suite == "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
    assert (session.alpn, session.group, session.version) == ("h2", "secp384r1", "TLSv1.2")
    assert (session.round_trips, session.resumed) == (2, False)
    assert session.finished_method == "exact"
    assert session.finished_at == BEGIN + 3 * ONE_WAY_NS
    assert (session.certificate_bytes or 0) > 600
    assert session.client_certificate is False
    assert session.missing_secret == (None if keys else "CLIENT_RANDOM")


@pytest.mark.parametrize(("suite", "group"), [("DHE-RSA-AES128-GCM-SHA256", "ffdhe2048"), ("AES128-GCM-SHA256", None)])
def test_group_of_older_key_exchanges(suite: str, group: str | None) -> None:
    talk = converse(Settings(version=SSL.TLS1_2_VERSION, ciphers=suite))
    assert assert_same(talk).group == group


def test_hello_retry_request() -> None:
    talk = converse(Settings(server_group="secp521r1"))
    session = assert_same(talk)
    assert session.hello_retry_request
    assert (session.group, session.round_trips) == ("secp521r1", 2)
    assert session.client_hello_at == BEGIN
    assert session.server_hello_at == BEGIN + 3 * ONE_WAY_NS
    seen, _, _ = read(talk, KeyLog())
    moments = seen.handshake
    assert moments.hello_retry_request is not None
    assert moments.hello_retry_request.deliverable_at == BEGIN + ONE_WAY_NS
    assert moments.client_hello_last is not None
    assert moments.client_hello_last.seen_at == BEGIN + 2 * ONE_WAY_NS
    assert seen.session.finished_at == session.finished_at


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_client_certificate(version: int) -> None:
    talk = converse(Settings(version=version, client_key="ecdsa"))
    assert assert_same(talk).client_certificate is True
    seen, _, _ = read(talk, KeyLog())
    assert seen.session.client_certificate is (True if version == SSL.TLS1_2_VERSION else None)
    assert seen.session.finished_at == read(talk)[0].session.finished_at


@pytest.mark.parametrize("version", [SSL.TLS1_VERSION, SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
@pytest.mark.parametrize("options", [0, NO_TICKET], ids=["ticket", "session id"])
def test_resumption(version: int, options: int) -> None:
    first = Pair(Settings(version=version, options=options))
    converse(pair=first)
    resumed = converse(pair=Pair(resumes=first))
    session = assert_same(resumed)
    assert session.resumed is True
    assert session.round_trips == 1
    assert session.certificate_bytes is None
    seen, _, _ = read(resumed, KeyLog())
    assert seen.session.resumed is True
    assert seen.session.finished_at == session.finished_at


def test_a_master_secret_learnt_from_one_connection_opens_its_resumption() -> None:
    first = Pair(Settings(version=SSL.TLS1_2_VERSION, ciphers="AES128-SHA"))
    talk = converse(pair=first)
    resumed = converse(pair=Pair(resumes=first))
    keylog = parse_keylog(talk.keylog.splitlines()[0])
    assert read(resumed, keylog)[1] == b""
    assert read(talk, keylog)[1] == talk.said.client
    assert read(resumed, keylog)[1] == resumed.said.client


@pytest.mark.parametrize("suite", ["AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA"])
@pytest.mark.parametrize("version", [SSL.TLS1_VERSION, SSL.TLS1_2_VERSION])
def test_renegotiation(version: int, suite: str) -> None:
    if version == SSL.TLS1_VERSION and "GCM" in suite:
        suite = "AES256-SHA"
    pair = Pair(Settings(version=version, ciphers=suite)).handshake()
    pair.send("client", b"before")
    pair.send("server", b"answer")
    pair.renegotiate()
    pair.send("client", b"after")
    pair.send("server", b"last")
    pair.close()
    talk = Conversation(pair.from_client.records, pair.from_server.records, pair.keylog_text, pair.said)
    assert pair.client.total_renegotiations() == 1
    seen, client, server = read(talk)
    assert (client, server) == (b"beforeafter", b"answerlast")
    assert seen.renegotiations == 1
    assert seen.anomalies == []
    assert seen.session.finished_at == BEGIN + 3 * ONE_WAY_NS


def test_a_failed_handshake_ends_with_its_alert() -> None:
    pair = Pair(Settings(version=SSL.TLS1_2_VERSION, ciphers="AES128-SHA", key="ecdsa"))
    with pytest.raises(SSL.Error):
        pair.handshake()
    seen = observe(pair.from_client.records, pair.from_server.records, None)
    session = seen.session
    assert [(a.sender, a.level, a.name, a.packet) for a in session.alerts] == [("server", 2, "handshake_failure", 2)]
    assert (session.version, session.finished_at, session.round_trips) == (None, None, None)
    assert session.sni == "lab.example"
    assert session.versions_offered == ("TLSv1.2",)
    assert seen.client is None


# -- the extended master secret from a pre-master secret -----------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [0, NO_EXTENDED_MASTER_SECRET], ids=["extended", "plain"])
@pytest.mark.parametrize("name", VERSIONS)
def test_pre_master_secrets(name: str, options: int) -> None:
    """OpenSSL logs an RSA key exchange in the old form too; the same secret may be given by client random."""
    talk = converse(Settings(version=VERSIONS[name], ciphers="AES128-SHA", options=options))
    line = next(line for line in talk.keylog.splitlines() if line.startswith(b"RSA "))
    seen, client, server = read(talk, parse_keylog(line))
    assert (client, server) == (talk.said.client, talk.said.server)
    assert seen.anomalies == []
    by_random = f"PMS_CLIENT_RANDOM {seen.session.client_random} {line.split()[2].decode()}\n".encode()
    assert read(talk, parse_keylog(by_random))[1] == talk.said.client


def test_master_secret_by_session_id() -> None:
    talk = converse(Settings(version=SSL.TLS1_2_VERSION, ciphers="AES128-SHA", options=NO_TICKET))
    hello = talk.server[0].fragment()
    session_id = hello[39 : 39 + hello[38]]
    master = next(line.split()[2].decode() for line in talk.keylog.splitlines() if line.startswith(b"CLIENT_RANDOM"))
    keylog = parse_keylog(f"RSA Session-ID:{session_id.hex()} Master-Key:{master}\n".encode())
    assert read(talk, keylog)[1] == talk.said.client


# -- partial and foreign keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "client", "server", "missing"),
    [
        (["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"], True, True, None),
        (["CLIENT_HANDSHAKE", "SERVER_HANDSHAKE"], False, False, "CLIENT_TRAFFIC_SECRET_0"),
        (["SERVER"], False, True, "CLIENT_TRAFFIC_SECRET_0"),
        (["CLIENT"], True, False, "SERVER_TRAFFIC_SECRET_0"),
        ([], False, False, "CLIENT_TRAFFIC_SECRET_0"),
    ],
)
def test_partial_key_logs(kept: list[str], client: bool, server: bool, missing: str | None) -> None:
    talk = converse()
    lines = [line for line in talk.keylog.splitlines() if any(line.startswith(k.encode()) for k in kept)]
    seen, asked, answered = read(talk, parse_keylog(b"\n".join(lines)))
    assert (asked == talk.said.client, answered == talk.said.server) == (client, server)
    assert (seen.client is not None, seen.server is not None) == (client, server)
    assert seen.session.missing_secret == missing
    assert seen.anomalies == []
    assert seen.session.finished_at == BEGIN + 2 * ONE_WAY_NS


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION])
def test_keys_of_another_session_under_this_ones_random(version: int) -> None:
    talk, other = converse(Settings(version=version)), converse(Settings(version=version))
    mine, theirs = (read(t)[0].session.client_random or "" for t in (talk, other))
    wrong = parse_keylog(other.keylog.replace(theirs.encode(), mine.encode()))
    seen, client, server = read(talk, wrong)
    assert (client, server) == (b"", b"")
    assert not seen.session.decrypted
    assert any("does not authenticate under" in a.reason for a in seen.anomalies)
    assert len(seen.anomalies) < 20


def test_first_application_records() -> None:
    talk = converse()
    for keylog in (None, KeyLog()):
        seen, _, _ = read(talk, keylog)
        client, server = seen.handshake.first_application
        assert client is not None
        assert server is not None
        assert talk.client[client].length == len(b"GET / HTTP/1.1\r\nHost: lab.example\r\n\r\n") + 17
        if keylog is None:  # without keys the tickets may be mistaken for an answer; see grammar
            assert talk.server[server].length == len(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") + 17
