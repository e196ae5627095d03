"""The server's side of TLS, the counterpart of ``tls_client``."""

from __future__ import annotations

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
    ServerIdentity,
    Session,
    keys12,
    open_stream,
    share_of,
)
from netdiag.lab.builder.tls_stream import Stream, Ticket, Transcript, alert
from netdiag.lab.clock import Stamp, ns, until
from netdiag.lab.config import LabConfig
from netdiag.lab.conversation import HandshakeFailed
from netdiag.lab.host_settings import TlsClientSettings, TlsServerSettings
from netdiag.lab.link import PeerGone


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
        peer = share_of(hello, group)
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
        flight = plain_record(HANDSHAKE, server_hello) + (b"" if retried else CHANGE)
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

        open_stream(stream, suite, is_tls13=True, resumption=lambda nonce: schedule.resumption(after, nonce))
        if early:
            stream.end_of_early_data = client_finished
        else:
            await client_finished(b"")
        return Session("1.3", suite, self._alpn, resumed=psk is not None, retried=retried, finished=span)

    async def _retry(self, hello: bytes, suite: Suite, group: str) -> bytes:
        retry = m.ServerHello(
            random=b"", session_id=self._session_id, suite=suite.code, is_tls13=True, group=group, retry=True
        ).encode()
        self._transcript.add(m.message(m.MESSAGE_HASH, suite.digest(hello)), retry)
        await self._stream.send_raw(plain_record(HANDSHAKE, retry) + CHANGE)
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
        keys = keys12(suite, master, client_random, self._random)
        await self._peer_finished12(keys)
        sent = await stream.send_raw(self._own_finished12(suite, master, keys))
        open_stream(stream, suite, is_tls13=False, resumption=lambda _: master)
        return Session("1.2", suite, self._alpn, resumed=False, finished=(sent.offset, sent.end_offset))

    async def _resume12(self, server_hello: bytes, suite: Suite, master: bytes, client_random: bytes) -> Session:
        stream = self._stream
        keys = keys12(suite, master, client_random, self._random)
        flight = plain_record(HANDSHAKE, server_hello) + self._own_finished12(suite, master, keys)
        sent = await stream.send_raw(flight)
        await self._peer_finished12(keys)
        open_stream(stream, suite, is_tls13=False, resumption=lambda _: master)
        return Session("1.2", suite, self._alpn, resumed=True, finished=(sent.offset, sent.end_offset))

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
        return out + CHANGE + self._stream.record(HANDSHAKE, finished)

    async def _peer_finished12(self, keys: tuple[Protection, Protection]) -> None:
        await self._stream.read_change()
        self._stream.reading = keys[0]
        _, _, whole = await self._stream.read_message()
        self._transcript.add(whole)
