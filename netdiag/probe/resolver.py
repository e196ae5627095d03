"""Names to addresses, the way ordinary programs do it: one ``getaddrinfo`` for both families, stamped, in a thread that can be given up.

``getaddrinfo`` sees /etc/hosts, nsswitch and the local caching resolver, so this is what an application experiences; what the resolver
itself did is seen in packets only.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from netdiag.errors import UsageError
from netdiag.probe.clock import ProbeClock
from netdiag.probe.failures import resolve_failure
from netdiag.records.recording import Span


@dataclass(frozen=True, slots=True)
class Resolved:
    """The addresses in the order of preference (RFC 6724, by the system), and how long they took."""

    addresses: tuple[str, ...]
    span: Span | None
    """None when nothing was asked: a literal address, or one given by the user."""
    source: str
    """``literal``, ``given`` (by the user), ``hosts`` (the system was asked, and its hosts file has the name), ``system``."""


class Resolver:
    """Resolves with the user's overrides (``HOST:PORT:ADDRESS[,ADDRESS]``, as curl's ``--resolve``)."""

    def __init__(self, clock: ProbeClock, overrides: Iterable[str] = ()) -> None:
        """Raises ``UsageError`` for an override that has not that form."""
        self._clock = clock
        self._given = dict(_parse_override(text) for text in overrides)

    def known(self, host: str, port: int) -> tuple[str, ...]:
        """Addresses that need no question: literal, or given by the user. Empty when the name must be resolved."""
        if literal := _literal(host):
            return (literal,)
        return self._given.get((host.lower(), port)) or self._given.get(("*", port), ())

    def without_asking(self, host: str, port: int) -> tuple[str, ...]:
        """As ``known``, and what /etc/hosts says: so that a capture can be narrowed without warming any resolver's cache."""
        return self.known(host, port) or _hosts_file().get(host.lower(), ())

    def resolve(self, host: str, port: int, *, timeout_s: float) -> Resolved:
        """Ask the system. Raises ``ResolveFailed`` when there is no address, or none within ``timeout_s``."""
        if known := self.known(host, port):
            return Resolved(known, None, "literal" if _literal(host) else "given")
        started_at = self._clock.now()
        try:
            addresses = _ask(host, port, timeout_s)
        except OSError as error:
            failed = resolve_failure(host, error)
            failed.span = Span(started_at=started_at, ended_at=self._clock.now())
            raise failed from error
        span = Span(started_at=started_at, ended_at=self._clock.now())
        return Resolved(addresses, span, "hosts" if host.lower() in _hosts_file() else "system")


def _ask(host: str, port: int, timeout_s: float) -> tuple[str, ...]:
    """``getaddrinfo`` cannot be interrupted: on a time-out its (daemon) thread is left to end by itself."""
    answers: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()
    threading.Thread(target=_getaddrinfo, args=(host, port, answers), name="netdiag-resolve", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s)
    except queue.Empty:
        raise TimeoutError(f"no answer from the resolver in {timeout_s:g} s") from None
    if isinstance(answer, OSError):
        raise answer
    return tuple(dict.fromkeys(answer))


def _getaddrinfo(host: str, port: int, answers: queue.SimpleQueue[list[str] | OSError]) -> None:
    try:
        rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        answers.put([str(row[4][0]) for row in rows if row[0] in (socket.AF_INET, socket.AF_INET6)])
    except (OSError, UnicodeError) as error:
        answers.put(error if isinstance(error, OSError) else OSError(str(error)))


def _hosts_file(path: str = "/etc/hosts") -> dict[str, tuple[str, ...]]:
    """hosts(5): name to addresses. Empty where there is no such file."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return found
    for line in lines:
        words = line.partition("#")[0].lower().split()
        for name in words[1:]:
            if address := _literal(words[0]):
                found[name] = (*found.get(name, ()), address)
    return found


def _literal(host: str) -> str | None:
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        return None


def _parse_override(text: str) -> tuple[tuple[str, int], tuple[str, ...]]:
    """``[+]HOST:PORT:ADDRESS[,ADDRESS…]``; addresses may stand in brackets."""
    host, _, rest = text.removeprefix("+").partition(":")
    port, _, addresses = rest.partition(":")
    literals = tuple(_literal(a.strip()) for a in addresses.split(","))
    if not host or not port.isdigit() or None in literals:
        raise UsageError(f"--resolve {text!r} is not HOST:PORT:ADDRESS[,ADDRESS…]")
    return (host.lower(), int(port)), tuple(a for a in literals if a)
