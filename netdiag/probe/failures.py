"""Why a request failed, as exceptions that httpcore lets through, each with the outcome that the records show."""

from __future__ import annotations

import errno
import socket

import h2.errors
import h2.events
import httpcore

from netdiag.records.exchange import Outcome
from netdiag.records.recording import Span


class ResolveFailed(httpcore.ConnectError):
    """The name has no address, or the resolver did not answer."""

    outcome = Outcome.DNS_FAIL
    span: Span | None = None
    """How long the question took."""


class Refused(httpcore.ConnectError):
    """Every address answered the SYN with RST."""

    outcome = Outcome.REFUSED


class Unreachable(httpcore.ConnectError):
    """No address could be reached, by word of the network or of our own routes."""

    outcome = Outcome.UNREACHABLE


class ConnectTimedOut(httpcore.ConnectTimeout):
    """No address answered in time."""

    outcome = Outcome.TIMEOUT_CONNECT


class TlsHandshakeTimedOut(ConnectTimedOut):
    """Connected, but the handshake took too long."""


class TlsFailed(httpcore.ConnectError):
    """The handshake ended in an alert, a rejected certificate, a closed connection or silence."""

    outcome = Outcome.TLS_FAIL


class ProtocolNotOffered(TlsFailed):
    """The server does not speak the only protocol that the arm offers (RFC 7301)."""


class ReadTimedOut(httpcore.ReadTimeout):
    """The peer sent nothing for too long."""

    outcome = Outcome.TIMEOUT_READ


class FirstEventTimedOut(ReadTimedOut):
    """Nothing of the answer's content came in time (its limit runs from the submission)."""


class WriteTimedOut(httpcore.WriteTimeout):
    """The peer took nothing for too long."""

    outcome = Outcome.TIMEOUT_WRITE


class TotalTimedOut(httpcore.ReadTimeout):
    """The whole call's limit is over."""

    outcome = Outcome.TIMEOUT_TOTAL


class ConnectionReset(httpcore.ReadError):
    """A RST, or a write after one."""

    outcome = Outcome.RESET


class ConnectionBroken(httpcore.ReadError):
    """A TLS record that does not decrypt, or a socket error with no name of its own."""

    outcome = Outcome.CLOSED_EARLY


_RESET_ERRNOS = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED})
_UNREACHABLE_ERRNOS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EACCES, errno.EPERM}
)


def attempt_outcome(number: int) -> str:
    """The word of ``AddressAttempt.outcome`` for a connect error."""
    if number == errno.ECONNREFUSED:
        return "refused"
    return "timeout" if number == errno.ETIMEDOUT else "unreachable"


def connect_failure(outcomes: list[str], where: str) -> Exception:
    """The one exception for a race in which no attempt connected."""
    if not outcomes or "timeout" in outcomes:
        return ConnectTimedOut(f"no answer from {where}")
    if "refused" in outcomes:
        return Refused(f"connection refused by {where}")
    return Unreachable(f"{where} cannot be reached")


def read_failure(error: OSError) -> Exception:
    """What a failed read or write of the socket means."""
    text = error.strerror or str(error)
    if error.errno == errno.ETIMEDOUT:
        return ReadTimedOut("the peer stopped acknowledging (TCP user timeout)")
    return ConnectionReset(text) if error.errno in _RESET_ERRNOS else ConnectionBroken(text)


def resolve_failure(host: str, error: OSError) -> ResolveFailed:
    """What a failed lookup of ``host`` means."""
    reason = error.strerror if isinstance(error, socket.gaierror) else str(error)
    return ResolveFailed(f"{host}: {reason}")


_OUTCOMES_OF_HTTPCORE = (
    ("PoolTimeout", Outcome.TIMEOUT_POOL),
    ("ConnectTimeout", Outcome.TIMEOUT_CONNECT),
    ("ReadTimeout", Outcome.TIMEOUT_READ),
    ("WriteTimeout", Outcome.TIMEOUT_WRITE),
    ("ConnectError", Outcome.REFUSED),
    ("ProxyError", Outcome.UNREACHABLE),
    ("RemoteProtocolError", Outcome.CLOSED_EARLY),
    ("ReadError", Outcome.RESET),
    ("WriteError", Outcome.RESET),
)
"""By name, since httpcore2 has the same ones. Subclasses of ours know their outcome themselves."""


def outcome_of(error: BaseException) -> Outcome:
    """The outcome for whatever a request raised; looks through the exceptions that wrapped it."""
    seen: BaseException | None = error
    while seen is not None:
        own = getattr(seen, "outcome", None)
        if isinstance(own, Outcome):
            return own
        names = {kind.__name__ for kind in type(seen).__mro__ if kind.__module__.startswith("httpcore")}
        if "RemoteProtocolError" in names and seen.args and _is_reset_event(seen.args[0]):
            return Outcome.RESET
        for name, outcome in _OUTCOMES_OF_HTTPCORE:
            if name in names:
                return outcome
        seen = seen.__cause__ or seen.__context__
    return Outcome.UNKNOWN


def _is_reset_event(event: object) -> bool:
    """RST_STREAM, or a GOAWAY with an error, which gave this stream up (RFC 9113 sections 6.4, 6.8)."""
    if isinstance(event, h2.events.ConnectionTerminated):
        return bool(event.error_code)
    return isinstance(event, h2.events.StreamReset)


_AFTER_GOAWAY = "in state ConnectionState.CLOSED"
GAVE_UP = "its library (httpcore, hyper-h2) waits for no answer after GOAWAY"


def reason_of(error: BaseException) -> str:
    """One line for people."""
    seen: BaseException | None = error
    while seen is not None:
        event = seen.args[0] if seen.args else None
        if isinstance(event, h2.events.StreamReset):
            return f"RST_STREAM ({_code_name(event.error_code)}) from the server"
        if isinstance(event, h2.events.ConnectionTerminated):
            return f"GOAWAY ({_code_name(event.error_code)}) from the server" if event.error_code else GAVE_UP
        seen = seen.__cause__
    text = " ".join(str(error).split())
    return GAVE_UP if _AFTER_GOAWAY in text else text or type(error).__name__


def _code_name(code: int | None) -> str:
    """Of an HTTP/2 error (RFC 9113 section 7)."""
    return code.name if isinstance(code, h2.errors.ErrorCodes) else f"error {code}"
