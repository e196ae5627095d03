"""What the user of ``netdiag probe`` chose, as one record: the command line and ``netdiag watch`` fill it, the plan is made from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeOptions:
    """What the user chose."""

    urls: tuple[str, ...]
    lab: bool
    trials: int
    arms: tuple[str, ...]
    http1: bool
    http2: bool
    warm: bool
    request: str | None
    headers: tuple[str, ...]
    data: tuple[str, ...]
    insecure: bool
    cacert: str | None
    resolve: tuple[str, ...]
    proxy: str | None
    location: bool
    user_agent: str | None
    timeout: float
    connect_timeout: float
    idle: float | None
    concurrency: int
    seed: int | None
    policy: str
    capture: str
    capture_interface: str | None
    allow_link_local: bool
    embed_keys: bool
    keep_keys: str | None
    json: bool
    outputs: tuple[str, ...]
    force: bool
    top: int | None
    picture: str | None
    slo: str | None
    strict: bool
    llm: str | None = None
    prompt: str | None = None
    model: str | None = None
    max_tokens: int | None = None
    no_stream: bool = False
    key_env: str | None = None
    tls_timeout: float = 10.0
    first_timeout: float | None = None
    gap_timeout: float | None = None
