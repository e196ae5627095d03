"""A probe with its capture: start to record, make the requests, stop, and say honestly what there is to work with.

Without the right to capture the probe still runs: the kernel's stamps stand in for packets, and one line says how to get them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from netdiag.capture.choose import live_capture, start_first, wide_capture
from netdiag.capture.filter import Rule
from netdiag.capture.keep import keep, keep_keylog
from netdiag.capture.live import Captured, LiveCapture, capture_ends
from netdiag.capture.privileges import advice, in_container
from netdiag.errors import PrivilegeMissing, ToolMissing, Unavailable, UsageError
from netdiag.probe import kernel
from netdiag.probe.attempts import policy_named, worst_case_ns, worst_case_obeying_ns
from netdiag.probe.clock import ProbeClock
from netdiag.probe.observation import Observation
from netdiag.probe.observe import instrumented
from netdiag.probe.plan import ProbeConfig
from netdiag.probe.resolver import Resolver
from netdiag.probe.run import Progress, run
from netdiag.probe.tls import KeyLog
from netdiag.records.recording import Recording
from netdiag.records.source import EvidenceLevel
from netdiag.units import NS_PER_S, format_duration

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHORTEST_LINGER_S, _LONGEST_LINGER_S = 0.02, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a probe brought home. The capture file exists as long as the ``measured`` block lasts."""

    recording: Recording
    captured: Captured | None
    """None without packets."""
    saved: str | None = None
    """Where the capture was kept; None when it was not."""
    level: EvidenceLevel
    """L2 with packets (L3 once the keys open them), L1 with the kernel's stamps, L0 otherwise."""
    note: str | None
    """One line: why not better, and how."""


@contextmanager
def measured(
    config: ProbeConfig, *, progress: Progress | None = None, stop: threading.Event | None = None
) -> Iterator[Measurement]:
    """Carry the plan out under a capture.

    Raises ``UsageError`` for what cannot be tried, ``Unavailable`` when a capture backend was asked for by name and does not work,
    ``OutputError`` when the capture cannot be saved.
    """
    folder = tempfile.mkdtemp(prefix="netdiag-")
    try:
        path = os.path.join(folder, "probe.pcapng")
        capture, note = _begun(config.capture, config.interface, lambda name: capture_for(config, path, name))
        if capture is None:
            recording = run(config, progress=progress, stop=stop)
            if config.keep_keys is not None:
                keep_keylog(recording.keylog, config.keep_keys)
            yield Measurement(
                recording=recording,
                captured=None,
                level=level_without_packets(recording),
                note=_one_line(note, *_remarks(config, recording)),
            )
            return
        with capture_ends(capture):
            recording = run(config, progress=progress, stop=stop)
            captured = capture.finish(linger_s=_linger_s(recording))
        if config.save_capture is not None:
            keep(captured.path, config.save_capture, recording.keylog if config.embed_keys else b"")
        if config.keep_keys is not None:
            keep_keylog(recording.keylog, config.keep_keys)
        yield Measurement(
            recording=recording,
            captured=captured,
            saved=config.save_capture,
            level=EvidenceLevel.L2,
            note=_one_line(*captured.notes, *_remarks(config, recording)),
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(slots=True)
class ClientSession:
    """An application's client under observation."""

    observation: Observation
    capture: LiveCapture | None
    note: str | None

    def conclude(self) -> Measurement:
        """Stop the capture; what there is to work with. Connections that the client keeps open are told as far as they are."""
        recording = self.observation.recording()
        captured = None if self.capture is None else self.capture.finish(linger_s=_linger_s(recording))
        remarks = [self.note, *(() if captured is None else captured.notes)]
        if self.observation.unopened:
            remarks.append("the client's TLS settings do not log their keys, so packets stay closed")
        return Measurement(
            recording=recording,
            captured=captured,
            level=level_without_packets(recording) if captured is None else EvidenceLevel.L2,
            note=_one_line(*remarks),
        )


@contextmanager
def observed_client(client: Any, *, capture: str = "auto", interface: str | None = None) -> Iterator[ClientSession]:
    """Record what an httpx or httpx2 client does inside the block, under a capture where one is possible.

    Raises ``UsageError`` for a client that cannot be observed, and as ``measured`` for a capture asked for by name.
    """
    folder = tempfile.mkdtemp(prefix="netdiag-")
    path = os.path.join(folder, "observed.pcapng")
    try:
        with contextlib.closing(KeyLog()) as keylog, instrumented(client, keylog) as observation:
            running, note = _begun(
                capture, interface, lambda name: wide_capture(name=name, path=path, interface=interface)
            )
            with nullcontext() if running is None else capture_ends(running):
                yield ClientSession(observation, running, note)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remarks(config: ProbeConfig, recording: Recording) -> list[str]:
    """What the run itself has to say: its retry policy at its worst, a proxy left aside, an early end. Arms that were not run have their own
    place, and so has a clock that was set.
    """
    remarks: list[str] = []
    if config.policy != "none":
        remarks.append(worst_case(config))
    if config.proxy is None and (variable := _proxy_variable(config)) is not None:
        remarks.append(f"the proxy of {variable} was not used (--proxy takes one)")
    if recording.broken_rounds:
        rounds = f"{recording.broken_rounds} round{'s' if recording.broken_rounds > 1 else ''}"
        remarks.append(f"{rounds} met an answer of 429 or 503, paired nothing, and were made again")
    if recording.ended_early is not None:
        remarks.append(f"ended early: {recording.ended_early}")
    return remarks


def worst_case(config: ProbeConfig) -> str:
    """How long one call may take under the plan's policy, in words (retries section 4)."""
    policy, timeout_ns = policy_named(config.policy), round(config.timeout_s * NS_PER_S)
    attempts = f"{policy.retries + 1} attempt{'s' if policy.retries else ''}"
    longest = format_duration(worst_case_ns(policy, timeout_ns))
    obeying = format_duration(worst_case_obeying_ns(policy, timeout_ns))
    return f"policy {policy.name}: at most {attempts} a call, {longest} in the worst case, {obeying} where Retry-After is obeyed"


def _proxy_variable(config: ProbeConfig) -> str | None:
    """The environment variable that would send other clients through a proxy; None when there is none."""
    schemes = {urlsplit(url).scheme for url in config.urls}
    names = [f"{scheme}_proxy" for scheme in sorted(schemes)] + ["all_proxy"]
    return next((n for name in names for n in (name, name.upper()) if os.environ.get(n)), None)


def _one_line(*notes: str | None) -> str | None:
    return "; ".join(filter(None, notes)) or None


def level_without_packets(recording: Recording) -> EvidenceLevel:
    """L1 when the kernel has stamped anything."""
    stamped = any(op.kernel_at is not None for connection in recording.connections for op in connection.operations)
    return EvidenceLevel.L1 if stamped or kernel.available() else EvidenceLevel.L0


def capture_for(config: ProbeConfig, path: str, backend: str) -> LiveCapture:
    """A capture by one backend, not yet started, of what this plan will do. Narrowed to addresses only where they are known without asking a resolver:
    a question now would warm its cache, and the first request would not be cold any more.
    """
    resolver = Resolver(ProbeClock(), config.resolve)
    targets = [_host_and_port(url) for url in config.urls]
    known = [resolver.without_asking(host, port) for host, port in targets]
    hosts = tuple(dict.fromkeys(a for addresses in known for a in addresses)) if all(known) else ()
    return live_capture(
        name=backend,
        path=path,
        ports={port for _, port in targets},
        hosts=hosts,
        also=_proxy_rules(config, resolver),
        interface=config.interface,
    )


def _begun(
    backend: str, interface: str | None, make: Callable[[str], LiveCapture]
) -> tuple[LiveCapture | None, str | None]:
    """The running capture, or None and the one line that says why there is none. Only what was asked for by name raises."""
    if backend == "none":
        return None, "no packets: capture is off (--capture none)"
    try:
        return start_first(backend, make), None
    except Unavailable as error:
        if backend != "auto":
            raise
        return None, _note(error)
    except UsageError as error:
        if interface is not None:
            raise
        return None, f"no packets: {error.message}"


def _note(error: Unavailable) -> str:
    reason = f"no packets: {error.message.rstrip('.')}"
    if isinstance(error, (PrivilegeMissing, ToolMissing)):
        installed = shutil.which("dumpcap") is not None
        return f"{reason}; {advice(contained=in_container(), dumpcap_installed=installed)[0]} (more: netdiag doctor)"
    return reason


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]


def _proxy_rules(config: ProbeConfig, resolver: Resolver) -> tuple[Rule, ...]:
    if config.proxy is None:
        return ()
    host, port = _host_and_port(config.proxy)
    known = resolver.without_asking(host, port)
    return tuple(Rule(port, address) for address in known) or (Rule(port),)


def _linger_s(recording: Recording) -> float:
    """Two round trips after our FIN the server's FIN and its last ACK have passed."""
    trips = [c.tcp_info.rtt_ns for c in recording.connections if c.tcp_info is not None and c.tcp_info.rtt_ns]
    return min(_LONGEST_LINGER_S, max(_SHORTEST_LINGER_S, 2 * max(trips, default=0) / 1e9))
