"""The client's side of TLS as one coroutine a version, in the order of the RFC's figures: 1.3 full, retried, resumed, with 0-RTT; 1.2 full,
resumed, with False Start. Really encrypted."""

from __future__ import annotations

import asyncio
import random

from netdiag.lab.builder import tls_messages as m
from netdiag.lab.builder.tls_keys import (
    HANDSHAKE,
    SUITES,
    KeySchedule13,
    Protection,
    Suite,
    plain_record,
    prf,
)
from netdiag.lab.builder.tls_session import (
    CHANGE,
    KeyLog,
    Session,
    by_code,
    keys12,
    open_stream,
)
from netdiag.lab.builder.tls_stream import Stream, Ticket, Transcript
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.host_settings import TlsClientSettings
from netdiag.lab.link import Sent


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
        await self._write(CHANGE)
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
        suite = by_code(facts.suite)
        self._transcript.add(m.message(m.MESSAGE_HASH, suite.digest(first)), retry)
        self._share = m.private_share(facts.group, self._rng.randbytes(32))
        encoded = self._encode(self._client_hello(facts.group), bytes(self._transcript.octets))
        await self._write(CHANGE + plain_record(HANDSHAKE, encoded))
        _, body, whole = await self._stream.read_message()
        return encoded, m.read_server_hello(body), whole

    async def _finish13(self, facts: m.HelloFacts, retried: bool) -> Session:
        stream, suite, ticket = self._stream, by_code(facts.suite), self._ticket
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
        before = b"" if retried or self._early else CHANGE
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
        open_stream(stream, suite, is_tls13=True, resumption=lambda nonce: schedule.resumption(transcript, nonce))
        self._log13(client_secret, server_secret, client, server, exporter)
        stream.alpn = alpn
        span = (sent.offset + len(before), sent.end_offset)
        return Session("1.3", suite, alpn, resumed=resumed, retried=retried, hello=self._hello, finished=span)

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
        stream, suite, group, peer = self._stream, by_code(facts.suite), "x25519", b""
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
        keys = keys12(suite, master, self._random, facts.random)
        span = await self._own_finished12(suite, master, keys, before=plain_record(HANDSHAKE, exchange))
        session = Session("1.2", suite, facts.alpn, resumed=False, hello=self._hello, finished=span)
        stream.alpn = facts.alpn
        if not self._settings.false_start:
            await self._peer_finished12(keys, ticket_follows=facts.ticket_follows)
        else:
            stream.before_reading = lambda: self._peer_finished12(keys, ticket_follows=facts.ticket_follows)
        self._keylog.add("CLIENT_RANDOM", self._random, master)
        open_stream(stream, suite, is_tls13=False, resumption=lambda _: master)
        return session

    async def _resume12(self, facts: m.HelloFacts, ticket: Ticket) -> Session:
        suite, master = by_code(facts.suite), ticket.secret
        keys = keys12(suite, master, self._random, facts.random)
        await self._peer_finished12(keys, ticket_follows=facts.ticket_follows)
        await until(Stamp.now().after(ns(self._settings.cpu_ms)))
        span = await self._own_finished12(suite, master, keys, before=b"")
        self._keylog.add("CLIENT_RANDOM", self._random, master)
        open_stream(self._stream, suite, is_tls13=False, resumption=lambda _: master)
        self._stream.alpn = facts.alpn
        return Session("1.2", suite, facts.alpn, resumed=True, hello=self._hello, finished=span)

    async def _own_finished12(
        self, suite: Suite, master: bytes, keys: tuple[Protection, Protection], *, before: bytes
    ) -> tuple[int, int]:
        stream = self._stream
        verify = prf(suite, master, "client finished", suite.digest(bytes(self._transcript.octets)), 12)
        finished = m.message(m.FINISHED, verify)
        self._transcript.add(finished)
        stream.writing = keys[0]
        sent = await self._write(before + CHANGE + stream.record(HANDSHAKE, finished))
        return sent.offset + len(before) + len(CHANGE), sent.end_offset

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
