"""TLS by real OpenSSL peers in memory, their records one to a packet. Keys are drawn at random, so these files are kept, not made each time."""

from __future__ import annotations

import struct
from collections.abc import Callable

from OpenSSL import SSL

from netdiag.wire.record_view import TlsRecordView
from tests.captures.kinds.kind import AT_ONCE_NS, RTT_NS, Kind
from tests.support.http_bytes import head
from tests.support.packets import EPOCH_NS, TcpTalk, pcapng
from tests.support.tls_peers import ALLOW_CLIENT_RENEGOTIATION, NO_ENCRYPT_THEN_MAC, Pair, Settings
from tests.support.tls_sealer import Sealer13

GET = head("GET /v1/models HTTP/1.1\nHost: lab.example")
OK = head("HTTP/1.1 200 OK\nContent-Length: 12") + b'{"data": []}'
SERVER = ("10.0.0.2", 443)

Records = list[tuple[int, TlsRecordView]]


def records(pair: Pair) -> Records:
    """What both sent, in order of time: 0 client, 1 server."""
    both = [(0, record) for record in pair.from_client.records] + [(1, record) for record in pair.from_server.records]
    return sorted(both, key=lambda one: (one[1].first_seen_at, one[0]))


def on_tcp(sent: Records, number: int = 0) -> TcpTalk:
    """The records in segments as captured at the client: what the server says after the client comes a round trip later."""
    talk = TcpTalk(
        client=("10.0.0.1", 40000 + number), server=SERVER, step_ns=AT_ONCE_NS, at_ns=EPOCH_NS + number * 10**9
    )
    talk.handshake(rtt_ns=RTT_NS)
    before = 0
    for side, record in sent:
        head = struct.pack(">BHH", record.content_type, record.version, record.length)
        talk.say(side, head + record.fragment(), acked=False, after_ns=RTT_NS if side > before else AT_ONCE_NS)
        before = side
    return talk.finish(0, after_ns=RTT_NS)


def request(settings: Settings, prepare: Callable[[Pair], None] = lambda _: None) -> bytes:
    """A handshake, a request and its answer, and the close; the secrets are inside."""
    pair = Pair(settings).handshake()
    prepare(pair)
    pair.send("client", GET)
    pair.send("server", OK)
    pair.close()
    return pcapng(on_tcp(records(pair)).frames, keylog=pair.keylog_text)


def resumed(version: int) -> bytes:
    """A second connection takes up the first one's session."""
    first = Pair(Settings(version=version)).handshake()
    first.send("client", GET)
    first.send("server", OK)
    first.close()
    second = Pair(resumes=first).handshake()
    second.send("client", GET)
    second.send("server", OK)
    second.close()
    frames = on_tcp(records(first)).frames + on_tcp(records(second), 1).frames
    return pcapng(frames, keylog=first.keylog_text + second.keylog_text)


def refused_name() -> bytes:
    """The peers have no version in common: an alert ends the handshake."""
    pair = Pair(Settings(version=SSL.TLS1_2_VERSION, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256"))
    try:
        pair.handshake()
    except SSL.Error:
        return pcapng(on_tcp(records(pair)).frames)
    raise AssertionError("an RSA certificate cannot serve an ECDSA suite")


def without_some_keys(missing: bytes) -> bytes:
    """As ``request``, but a line of the key log is missing."""
    pair = Pair(Settings()).handshake()
    pair.send("client", GET)
    pair.send("server", OK)
    pair.close()
    kept = b"\n".join(line for line in pair.keylog_text.splitlines() if not line.startswith(missing)) + b"\n"
    return pcapng(on_tcp(records(pair)).frames, keylog=kept)


def key_update() -> bytes:
    """The client changes its keys before a second request; sealed by hand, as pyOpenSSL cannot ask for it."""
    pair = Pair(Settings(suites="TLS_AES_128_GCM_SHA256")).handshake()
    pair.send("client", GET)
    pair.send("server", OK)
    sent = records(pair)
    secrets = dict(line.split(b" ", 1) for line in pair.keylog_text.splitlines())
    secret = bytes.fromhex(secrets[b"CLIENT_TRAFFIC_SECRET_0"].split()[1].decode())
    old = Sealer13(secret, "TLS_AES_128_GCM_SHA256", sequence=1)
    talk = on_tcp(sent)
    talk.frames = talk.frames[:-3]
    talk.client_seq, talk.server_seq = talk.client_seq - 1, talk.server_seq - 1
    update = old.seal(b"\x18\0\0\1\0", 22)
    talk.say(0, update + old.updated().seal(GET), acked=False)
    talk.finish(0, after_ns=RTT_NS)
    return pcapng(talk.frames, keylog=pair.keylog_text)


_NO_SECRET = "; a line of the key log is missing"
TLS12, TLS10 = SSL.TLS1_2_VERSION, SSL.TLS1_VERSION

KINDS = tuple(
    Kind(f"{name}.pcapng", shows, make, drawn=True)
    for name, shows, make in (
        ("tls13-chacha20", "TLS 1.3, ChaCha20-Poly1305", lambda: request(Settings(suites="TLS_CHACHA20_POLY1305_SHA256"))),
        ("tls13-client-certificate", "the server asks for a certificate", lambda: request(Settings(client_key="ecdsa"))),
        ("tls13-retry", "HelloRetryRequest", lambda: request(Settings(server_group="secp384r1"))),
        ("tls13-resumed", "a ticket taken up", lambda: resumed(SSL.TLS1_3_VERSION)),
        ("tls13-key-update", "the client changes its keys", key_update),
        ("tls13-server-secret-missing", f"TLS 1.3{_NO_SECRET}", lambda: without_some_keys(b"SERVER_TRAFFIC_SECRET_0")),
        ("tls13-handshake-secret-missing", f"TLS 1.3{_NO_SECRET}", lambda: without_some_keys(b"SERVER_HANDSHAKE")),
        ("tls12-ecdhe-gcm", "TLS 1.2, ECDHE, AES-GCM", lambda: request(Settings(version=TLS12, ciphers="ECDHE-RSA-AES128-GCM-SHA256"))),
        ("tls12-rsa", "RSA key exchange: no forward secrecy", lambda: request(Settings(version=TLS12, ciphers="AES128-GCM-SHA256"))),
        ("tls12-cbc-encrypt-then-mac", "CBC, encrypt-then-MAC", lambda: request(Settings(version=TLS12, ciphers="AES256-SHA256"))),
        (
            "tls12-cbc-mac-then-encrypt",
            "CBC as TLS began",
            lambda: request(Settings(version=TLS12, ciphers="AES256-SHA256", options=NO_ENCRYPT_THEN_MAC)),
        ),
        ("tls12-ccm", "AES-CCM with a short tag", lambda: request(Settings(version=TLS12, ciphers="AES128-CCM8"))),
        ("tls12-resumed", "an abbreviated handshake", lambda: resumed(TLS12)),
        (
            "tls12-renegotiated",
            "the server asks for another handshake in the middle",
            lambda: request(Settings(version=TLS12, options=ALLOW_CLIENT_RENEGOTIATION), Pair.renegotiate),
        ),
        ("tls10", "TLS 1.0", lambda: request(Settings(version=TLS10, ciphers="AES128-SHA"))),
        ("tls-alert", "no suite in common: a fatal alert", refused_name),
    )
)  # fmt: skip
