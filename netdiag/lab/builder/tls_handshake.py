"""TLS handshakes of the modelled hosts, each side as one coroutine that reads like the RFC's figure: 1.3 full, with HelloRetryRequest, resumed;
1.2 full and resumed. Really encrypted; the secrets are kept as a key log."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ed25519

from netdiag.lab.builder import tls_messages as m
from netdiag.lab.builder.settings import TlsClientSettings, TlsServerSettings
from netdiag.lab.builder.tls_keys import (
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    SUITES,
    KeySchedule13,
    Protection,
    Suite,
    plain_record,
    prf,
)
from netdiag.lab.builder.tls_stream import Stream, Ticket, Transcript, alert
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.conversation import HandshakeFailed
from netdiag.lab.link import PeerGone, Sent

_CHANGE = plain_record(CHANGE_CIPHER_SPEC, b"\x01")


@dataclass(slots=True)
class KeyLog:
    """Session secrets in the NSS key log format."""

    lines: list[str] = field(default_factory=list)

    def add(self, label: str, client_random: bytes, secret: bytes) -> None:
        """One line, once (both sides know the secret)."""
        line = f"{label} {client_random.hex()} {secret.hex()}"
        if line not in self.lines:
            self.lines.append(line)

    @property
    def octets(self) -> bytes:
        """The file's content."""
        return "".join(line + "\n" for line in self.lines).encode()


@dataclass(slots=True)
class Session:
    """What a handshake came to."""

    version: str
    suite: Suite
    alpn: str | None
    resumed: bool
    retried: bool = False
    hello: tuple[int, int] = (0, 0)
    """Octets of the (first) hello in its direction's TCP stream: from, to."""
    finished: tuple[int, int] = (0, 0)
    """The octets that end with the own Finished, likewise."""


@dataclass(slots=True)
class ServerIdentity:
    """Certificate chain (DER, leaf first) with its key, and the tickets given out."""

    chain: Sequence[bytes]
    key: ed25519.Ed25519PrivateKey
    tickets: dict[bytes, Ticket] = field(default_factory=dict)


# --- client --------------------------------------------------------------------------------------------------------


class ClientHandshake:
    """One handshake of the client."""

    def __init__(
        self, stream: Stream, settings: TlsClientSettings, keylog: KeyLog, rng: random.Random, ticket: Ticket | None
    ) -> None:
        """``ticket`` is offered when the settings allow."""
        self._stream, self._settings, self._keylog, self._rng = stream, settings, keylog, rng
        self._ticket = ticket if settings.resume else None
        self._transcript = Transcript()
        self._random = rng.randbytes(32)
        self._share = m.private_share(settings.groups[0], rng.randbytes(32))
        self._session_id = rng.randbytes(32)
        self._hello = (0, 0)
        self.early_ready = asyncio.Event()
        """Set when 0-RTT data may be written to the stream."""
        self._early: Protection | None = None
        self._early_secret: bytes | None = None

    @property
    def sends_early(self) -> bool:
        """0-RTT data will be sent: it is wanted, and there is a ticket for it."""
        return self._settings.early_data and self._ticket is not None and self._ticket.is_tls13

    async def run(self) -> Session:
        """Raises PeerGone."""
        hello = self._client_hello(self._settings.groups[0])
        encoded = self._encode(hello, b"")
        sent = await self._write(plain_record(HANDSHAKE, encoded, 0x0301))
        self._hello = (sent.offset, sent.end_offset)
        if self.sends_early:
            await self._begin_early(encoded)
        _, body, whole = await self._stream.read_message()
        facts = m.read_server_hello(body)
        if not facts.is_tls13:
            self._transcript.add(encoded, whole)
            return await self._finish12(facts)
        retried = facts.is_retry
        if retried:
            encoded, facts, whole = await self._retry(encoded, whole, facts)
        self._transcript.add(encoded, whole)
        return await self._finish13(facts, retried)

    async def _begin_early(self, hello: bytes) -> None:
        """From here on the application may write, under the early traffic secret."""
        assert self._ticket is not None
        suite = SUITES["1.3"][self._ticket.suite_name]
        schedule = KeySchedule13(suite, self._ticket.secret)
        self._early_secret = schedule.derive(schedule.early, "c e traffic", suite.digest(hello))
        self._keylog.add("CLIENT_EARLY_TRAFFIC_SECRET", self._random, self._early_secret)
        await self._write(_CHANGE)
        self._early = self._stream.writing = Protection.tls13(suite, self._early_secret)
        self._stream.secure, self._stream.alpn = True, self._ticket.alpn
        self.early_ready.set()

    def _client_hello(self, group: str) -> m.ClientHello:
        settings, ticket = self._settings, self._ticket
        offers13 = "1.3" in settings.versions
        suites = [s.code for v in ("1.3", "1.2") if v in settings.versions for s in SUITES[v].values()]
        psk = ticket is not None and ticket.is_tls13 and offers13
        old_ticket = ticket.identity if ticket is not None and not ticket.is_tls13 else b""
        return m.ClientHello(
            random=self._random,
            session_id=self._session_id,
            suites=suites,
            versions=[{"1.3": 0x0304, "1.2": 0x0303}[v] for v in settings.versions],
            server_name=settings.server_name,
            groups=settings.groups,
            share_group=group,
            share=m.public_octets(self._share),
            alpn=settings.alpn,
            ticket=old_ticket,
            psk_identity=ticket.identity if psk and ticket else None,
            psk_age=self._age(ticket) if psk and ticket else 0,
            binder_bytes=SUITES["1.3"][ticket.suite_name].hash_bytes if psk and ticket else 32,
            early_data=self.sends_early,
            pad_to=settings.hello_bytes,
        )

    def _age(self, ticket: Ticket) -> int:
        age_ms = (Stamp.now().wall_ns - ticket.received_at) // 1_000_000
        return (age_ms + ticket.age_add) & 0xFFFFFFFF

    def _encode(self, hello: m.ClientHello, before: bytes) -> bytes:
        """Octets of the message, the binder filled in (``before``: the transcript before it)."""
        encoded = hello.encode()
        if hello.psk_identity is None or self._ticket is None:
            return encoded
        suite = SUITES["1.3"][self._ticket.suite_name]
        schedule = KeySchedule13(suite, self._ticket.secret)
        binder_key = schedule.derive(schedule.early, "res binder", suite.digest(b""))
        binder = schedule.finished(binder_key, before + hello.truncated(encoded))
        return encoded[: -len(binder)] + binder

    async def _retry(self, first: bytes, retry: bytes, facts: m.HelloFacts) -> tuple[bytes, m.HelloFacts, bytes]:
        suite = _by_code(facts.suite)
        self._transcript.add(m.message(m.MESSAGE_HASH, suite.digest(first)), retry)
        self._share = m.private_share(facts.group, self._rng.randbytes(32))
        encoded = self._encode(self._client_hello(facts.group), bytes(self._transcript.octets))
        await self._write(_CHANGE + plain_record(HANDSHAKE, encoded))
        _, body, whole = await self._stream.read_message()
        return encoded, m.read_server_hello(body), whole

    async def _finish13(self, facts: m.HelloFacts, retried: bool) -> Session:
        stream, suite, ticket = self._stream, _by_code(facts.suite), self._ticket
        resumed = facts.psk_selected and ticket is not None
        schedule = KeySchedule13(suite, ticket.secret if resumed and ticket else None)
        shared = m.shared_secret(self._share, facts.group, facts.key_share)
        client_secret, server_secret = schedule.handshake(shared, bytes(self._transcript.octets))
        stream.reading = Protection.tls13(suite, server_secret)
        alpn = None
        while True:
            kind, body, whole = await stream.read_message()
            self._transcript.add(whole)
            if kind == m.ENCRYPTED_EXTENSIONS:
                alpn = m.read_encrypted_extensions(body)
            if kind == m.FINISHED:
                break
        client, server, exporter = schedule.application(bytes(self._transcript.octets))
        stream.reading = Protection.tls13(suite, server)
        await until(Stamp.now().after(ns(self._settings.cpu_ms)))
        before = b"" if retried or self._early else _CHANGE
        if self._early is not None:
            over = m.message(m.END_OF_EARLY_DATA, b"")
            before = stream.record(HANDSHAKE, over)
            self._transcript.add(over)
        stream.writing = Protection.tls13(suite, client_secret)
        finished = m.message(m.FINISHED, schedule.finished(client_secret, bytes(self._transcript.octets)))
        last_flight = before + stream.record(HANDSHAKE, finished)
        self._transcript.add(finished)
        stream.writing = Protection.tls13(suite, client, pad_to=self._settings.pad_to)
        sent = await self._write(last_flight)
        transcript = bytes(self._transcript.octets)
        _open(stream, suite, is_tls13=True, resumption=lambda nonce: schedule.resumption(transcript, nonce))
        self._log13(client_secret, server_secret, client, server, exporter)
        stream.alpn = alpn
        span = (sent.offset + len(before), sent.end_offset)
        return Session("1.3", suite, alpn, resumed, retried, self._hello, span)

    def _log13(self, *secrets: bytes) -> None:
        labels = (
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "SERVER_TRAFFIC_SECRET_0",
            "EXPORTER_SECRET",
        )
        for label, secret in zip(labels, secrets, strict=True):
            self._keylog.add(label, self._random, secret)

    async def _finish12(self, facts: m.HelloFacts) -> Session:
        ticket = self._ticket
        resumed = ticket is not None and not ticket.is_tls13 and facts.session_id == self._session_id
        if resumed and ticket is not None:
            return await self._resume12(facts, ticket)
        return await self._full12(facts)

    async def _full12(self, facts: m.HelloFacts) -> Session:
        stream, suite, group, peer = self._stream, _by_code(facts.suite), "x25519", b""
        while True:
            kind, body, whole = await stream.read_message()
            self._transcript.add(whole)
            if kind == m.SERVER_KEY_EXCHANGE:
                group = next(n for n, code in m.GROUPS.items() if code == int.from_bytes(body[1:3], "big"))
                peer = body[4 : 4 + body[3]]
            if kind == m.SERVER_HELLO_DONE:
                break
        await until(Stamp.now().after(ns(self._settings.cpu_ms)))
        if group != self._settings.groups[0]:
            self._share = m.private_share(group, self._rng.randbytes(32))
        exchange = m.client_key_exchange(m.public_octets(self._share))
        self._transcript.add(exchange)
        shared = m.shared_secret(self._share, group, peer)
        master = prf(suite, shared, "extended master secret", suite.digest(bytes(self._transcript.octets)), 48)
        keys = _keys12(suite, master, self._random, facts.random)
        span = await self._own_finished12(suite, master, keys, before=plain_record(HANDSHAKE, exchange))
        session = Session("1.2", suite, facts.alpn, False, False, self._hello, span)
        stream.alpn = facts.alpn
        if not self._settings.false_start:
            await self._peer_finished12(keys, ticket_follows=facts.ticket_follows)
        else:
            stream.before_reading = lambda: self._peer_finished12(keys, ticket_follows=facts.ticket_follows)
        self._keylog.add("CLIENT_RANDOM", self._random, master)
        _open(stream, suite, is_tls13=False, resumption=lambda _: master)
        return session

    async def _resume12(self, facts: m.HelloFacts, ticket: Ticket) -> Session:
        suite, master = _by_code(facts.suite), ticket.secret
        keys = _keys12(suite, master, self._random, facts.random)
        await self._peer_finished12(keys, ticket_follows=facts.ticket_follows)
        await until(Stamp.now().after(ns(self._settings.cpu_ms)))
        span = await self._own_finished12(suite, master, keys, before=b"")
        self._keylog.add("CLIENT_RANDOM", self._random, master)
        _open(self._stream, suite, is_tls13=False, resumption=lambda _: master)
        self._stream.alpn = facts.alpn
        return Session("1.2", suite, facts.alpn, True, False, self._hello, span)

    async def _own_finished12(
        self, suite: Suite, master: bytes, keys: tuple[Protection, Protection], *, before: bytes
    ) -> tuple[int, int]:
        stream = self._stream
        verify = prf(suite, master, "client finished", suite.digest(bytes(self._transcript.octets)), 12)
        finished = m.message(m.FINISHED, verify)
        self._transcript.add(finished)
        stream.writing = keys[0]
        sent = await self._write(before + _CHANGE + stream.record(HANDSHAKE, finished))
        return sent.offset + len(before) + len(_CHANGE), sent.end_offset

    async def _peer_finished12(self, keys: tuple[Protection, Protection], *, ticket_follows: bool) -> None:
        if ticket_follows:
            _, body, whole = await self._stream.read_message()
            self._transcript.add(whole)
            self._stream.new_tickets.append(body)
        await self._stream.read_change()
        self._stream.reading = keys[1]
        _, _, whole = await self._stream.read_message()
        self._transcript.add(whole)

    async def _write(self, octets: bytes) -> Sent:
        return await self._stream.send_raw(octets)


# --- server --------------------------------------------------------------------------------------------------------


class ServerHandshake:
    """One handshake of the server."""

    def __init__(
        self, stream: Stream, config: LabConfig, tls: TlsServerSettings, identity: ServerIdentity, rng: random.Random
    ) -> None:
        """``config`` is the lab server's own; ``tls`` what its library would decide."""
        self._stream, self._config, self._tls, self._identity, self._rng = stream, config, tls, identity, rng
        self._transcript = Transcript()
        self._random = rng.randbytes(32)
        self._ticket: Ticket | None = None

    async def run(self, offered: TlsClientSettings) -> Session:
        """``offered``: what the client's hello says (both sides are ours, so it needs no second parser). Raises HandshakeFailed, PeerGone."""
        stream, config = self._stream, self._config
        _, body, whole = await stream.read_message()
        await self._misbehave()
        await until(Stamp.now().after(ns(config.tls_ms)))
        version = next((v for v in offered.versions if config.tls_minimum <= v <= config.tls_maximum), None)
        if version is None:
            await stream.send_raw(plain_record(21, alert(2, 70)))
            raise HandshakeFailed("no protocol version in common")
        self._session_id = body[35 : 35 + body[34]]
        self._alpn = next((p for p in config.protocols if p in offered.alpn), None)
        self._ticket = self._known_ticket(body)
        suite = self._suite(version)
        if version == "1.3":
            return await self._run13(whole, suite, offered)
        return await self._run12(whole, suite)

    def _suite(self, version: str) -> Suite:
        suites = SUITES[version]
        if self._ticket is not None and self._ticket.suite_name in suites:
            return suites[self._ticket.suite_name]
        return suites[self._tls.suite] if self._tls.suite in suites else next(iter(suites.values()))

    def _known_ticket(self, hello: bytes) -> Ticket | None:
        if self._config.refuse_tickets:
            return None
        return next((t for identity, t in self._identity.tickets.items() if identity in hello), None)

    async def _misbehave(self) -> None:
        match self._config.fail_handshake:
            case "close":
                self._stream.end(notify=False)
                raise HandshakeFailed("closed on purpose")
            case "reset":
                self._stream.reset()
                raise HandshakeFailed("reset on purpose")
            case "silence":
                while await self._stream.read_record() is not None:
                    pass
                raise PeerGone("client gave up")

    # TLS 1.3

    async def _run13(self, hello: bytes, suite: Suite, offered: TlsClientSettings) -> Session:
        stream, group = self._stream, self._config.groups or offered.groups[0]
        retried = group != offered.groups[0]
        if retried:
            hello = await self._retry(hello, suite, group)
        peer = _share_of(hello, group)
        share = m.private_share(group, self._rng.randbytes(32))
        psk = self._ticket.secret if self._ticket is not None and self._ticket.is_tls13 else None
        server_hello = m.ServerHello(
            random=self._random,
            session_id=self._session_id,
            suite=suite.code,
            is_tls13=True,
            group=group,
            share=m.public_octets(share),
            psk_selected=psk is not None,
        ).encode()
        self._transcript.add(hello, server_hello)
        schedule = KeySchedule13(suite, psk)
        shared = m.shared_secret(share, group, peer)
        client_secret, server_secret = schedule.handshake(shared, bytes(self._transcript.octets))
        early = self._tls.early_data and offered.early_data and psk is not None
        stream.writing, stream.reading = None, Protection.tls13(suite, client_secret)
        if early:
            early_secret = schedule.derive(schedule.early, "c e traffic", suite.digest(hello))
            stream.reading = Protection.tls13(suite, early_secret)
        flight = plain_record(HANDSHAKE, server_hello) + (b"" if retried else _CHANGE)
        stream.writing = Protection.tls13(suite, server_secret)
        flight += self._records(self._flight13(suite, schedule, server_secret, resumed=psk is not None, early=early))
        client, server, _ = schedule.application(bytes(self._transcript.octets))
        stream.writing = Protection.tls13(suite, server, pad_to=self._tls.pad_to)
        early_tickets = self._tls.tickets_with_flight
        if early:
            self._transcript.add(m.message(m.END_OF_EARLY_DATA, b""))
        # The client's Finished is predictable, so its transcript is known before it comes.
        finished = m.message(m.FINISHED, schedule.finished(client_secret, bytes(self._transcript.octets)))
        after = bytes(self._transcript.octets) + finished
        sent = await stream.send_raw(flight + (self._tickets13(schedule, after, suite) if early_tickets else b""))
        span = (sent.offset, sent.offset + len(flight))

        async def client_finished(_: bytes) -> None:
            stream.reading = Protection.tls13(suite, client_secret)
            await stream.read_message()
            stream.reading = Protection.tls13(suite, client)
            if self._config.tickets and not early_tickets:
                await stream.send_raw(self._tickets13(schedule, after, suite))

        _open(stream, suite, is_tls13=True, resumption=lambda nonce: schedule.resumption(after, nonce))
        if early:
            stream.end_of_early_data = client_finished
        else:
            await client_finished(b"")
        return Session("1.3", suite, self._alpn, psk is not None, retried, finished=span)

    async def _retry(self, hello: bytes, suite: Suite, group: str) -> bytes:
        retry = m.ServerHello(
            random=b"", session_id=self._session_id, suite=suite.code, is_tls13=True, group=group, retry=True
        ).encode()
        self._transcript.add(m.message(m.MESSAGE_HASH, suite.digest(hello)), retry)
        await self._stream.send_raw(plain_record(HANDSHAKE, retry) + _CHANGE)
        _, _, second = await self._stream.read_message()
        return second

    def _flight13(
        self, suite: Suite, schedule: KeySchedule13, secret: bytes, *, resumed: bool, early: bool
    ) -> list[bytes]:
        messages = [m.encrypted_extensions(self._alpn, early_data=early)]
        self._transcript.add(messages[0])
        if not resumed:
            chain = m.certificate(self._identity.chain, is_tls13=True)
            digest = suite.digest(self._transcript.add(chain))
            verify = m.certificate_verify(self._identity.key.sign(m.verify_content(digest)))
            self._transcript.add(verify)
            messages += [chain, verify]
        finished = m.message(m.FINISHED, schedule.finished(secret, bytes(self._transcript.octets)))
        self._transcript.add(finished)
        return [*messages, finished]

    def _records(self, messages: list[bytes]) -> bytes:
        if self._tls.coalesce:
            messages = [b"".join(messages)]
        return b"".join(self._stream.record(HANDSHAKE, one) for one in messages)

    def _tickets13(self, schedule: KeySchedule13, transcript: bytes, suite: Suite) -> bytes:
        out = b""
        for i in range(self._config.tickets):
            nonce, identity = i.to_bytes(8, "big"), self._rng.randbytes(208)
            age_add = self._rng.getrandbits(32)
            secret = schedule.resumption(transcript, nonce)
            self._identity.tickets[identity] = Ticket(identity, secret, suite.name, True, age_add, 0)
            early_bytes = 1 << 14 if self._tls.early_data else 0
            message = m.new_session_ticket(
                identity, is_tls13=True, age_add=age_add, nonce=nonce, early_bytes=early_bytes
            )
            out += self._stream.record(HANDSHAKE, message)
        return out

    # TLS 1.2

    async def _run12(self, hello: bytes, suite: Suite) -> Session:
        ticket = self._ticket
        resumed = ticket is not None and not ticket.is_tls13
        server_hello = m.ServerHello(
            random=self._random,
            session_id=self._session_id if resumed else b"",
            suite=suite.code,
            is_tls13=False,
            alpn=self._alpn,
            ticket_follows=bool(self._config.tickets),
        ).encode()
        self._transcript.add(hello, server_hello)
        client_random = hello[6:38]
        if resumed and ticket is not None:
            return await self._resume12(server_hello, suite, ticket.secret, client_random)
        return await self._full12(server_hello, suite, client_random)

    async def _full12(self, server_hello: bytes, suite: Suite, client_random: bytes) -> Session:
        stream, group = self._stream, self._config.groups or "x25519"
        share = m.private_share(group, self._rng.randbytes(32))
        parameters = m.ecdhe_parameters(group, m.public_octets(share))
        signature = self._identity.key.sign(client_random + self._random + parameters)
        flight = [
            m.certificate(self._identity.chain, is_tls13=False),
            m.server_key_exchange(parameters, signature),
            m.message(m.SERVER_HELLO_DONE, b""),
        ]
        self._transcript.add(*flight)
        await stream.send_raw(self._records([server_hello, *flight]))
        _, body, whole = await stream.read_message()
        self._transcript.add(whole)
        shared = m.shared_secret(share, group, body[1:])
        master = prf(suite, shared, "extended master secret", suite.digest(bytes(self._transcript.octets)), 48)
        keys = _keys12(suite, master, client_random, self._random)
        await self._peer_finished12(keys)
        sent = await stream.send_raw(self._own_finished12(suite, master, keys))
        _open(stream, suite, is_tls13=False, resumption=lambda _: master)
        return Session("1.2", suite, self._alpn, False, finished=(sent.offset, sent.end_offset))

    async def _resume12(self, server_hello: bytes, suite: Suite, master: bytes, client_random: bytes) -> Session:
        stream = self._stream
        keys = _keys12(suite, master, client_random, self._random)
        flight = plain_record(HANDSHAKE, server_hello) + self._own_finished12(suite, master, keys)
        sent = await stream.send_raw(flight)
        await self._peer_finished12(keys)
        _open(stream, suite, is_tls13=False, resumption=lambda _: master)
        return Session("1.2", suite, self._alpn, True, finished=(sent.offset, sent.end_offset))

    def _own_finished12(self, suite: Suite, master: bytes, keys: tuple[Protection, Protection]) -> bytes:
        out = b""
        if self._config.tickets:
            identity = self._rng.randbytes(208)
            self._identity.tickets[identity] = Ticket(identity, master, suite.name, False, 0, 0)
            message = m.new_session_ticket(identity, is_tls13=False)
            self._transcript.add(message)
            out = plain_record(HANDSHAKE, message)
        verify = prf(suite, master, "server finished", suite.digest(bytes(self._transcript.octets)), 12)
        finished = m.message(m.FINISHED, verify)
        self._transcript.add(finished)
        self._stream.writing = keys[1]
        return out + _CHANGE + self._stream.record(HANDSHAKE, finished)

    async def _peer_finished12(self, keys: tuple[Protection, Protection]) -> None:
        await self._stream.read_change()
        self._stream.reading = keys[0]
        _, _, whole = await self._stream.read_message()
        self._transcript.add(whole)


def _by_code(code: int) -> Suite:
    return next(s for suites in SUITES.values() for s in suites.values() if s.code == code)


def _share_of(hello: bytes, group: str) -> bytes:
    """The client's share for a group: found by its header, which is unique enough between two known sides."""
    sizes = {"x25519": 32, "secp256r1": 65, "secp384r1": 97}
    mark = m.GROUPS[group].to_bytes(2, "big") + sizes[group].to_bytes(2, "big")
    start = hello.index(mark, 40) + 4
    return hello[start : start + sizes[group]]


def _keys12(suite: Suite, master: bytes, client_random: bytes, server_random: bytes) -> tuple[Protection, Protection]:
    """Client's and server's write protection (RFC 5246 section 6.3)."""
    iv_bytes = 4 if suite.nonce_is_explicit else 12
    block = prf(suite, master, "key expansion", server_random + client_random, 2 * (suite.key_bytes + iv_bytes))
    keys, ivs = block[: 2 * suite.key_bytes], block[2 * suite.key_bytes :]
    return (
        Protection(suite, keys[: suite.key_bytes], ivs[:iv_bytes], False),
        Protection(suite, keys[suite.key_bytes :], ivs[iv_bytes:], False),
    )


def _open(stream: Stream, suite: Suite, *, is_tls13: bool, resumption: Callable[[bytes], bytes]) -> None:
    stream.secure, stream.is_tls13, stream.suite_name, stream.resumption = True, is_tls13, suite.name, resumption
