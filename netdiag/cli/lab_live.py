"""``netdiag lab run|score --tier T1|T2``: a probe makes the scenario's call on loopback, or through the link in namespaces."""

from __future__ import annotations

import functools
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netdiag.errors import NetdiagError

if TYPE_CHECKING:
    from netdiag.lab.live import Target
    from netdiag.lab.scenario import Scenario

TIERS = ("T0", "T1", "T2")
WHAT = {"T0": "packets from scenarios", "T1": "a server on loopback", "T2": "namespaces with an emulated path"}
CAPTURE = "auto"
"""How a probe on loopback captures: packets where that is permitted, else what its sockets tell."""
Probe = Callable[["Target"], dict[str, Any]]


def why_not(tier: str) -> str | None:
    """Why a tier cannot be run here; None when it can."""
    from netdiag.lab.namespaces import why_not as no_namespaces

    return no_namespaces() if tier == "T2" else None


def probe_of(tier: str, *, trials: int) -> Probe:
    """The client of a live tier: so many calls, each on a new connection."""
    return functools.partial(_probe_here if tier == "T1" else _probe_inside, trials=trials)


def _probe_here(target: Target, *, trials: int) -> dict[str, Any]:
    from netdiag import api
    from netdiag.export.json import document
    from netdiag.probe.plan import ProbeConfig

    config = ProbeConfig(
        urls=(target.url,),
        arms=(_arm(target),),
        trials=_counted(trials),
        method=target.method,
        headers=target.headers,
        body=target.body or None,
        cacert=target.ca_file,
        capture=CAPTURE,
        seed=1,
    )
    return document(api.probe(config))


def _probe_inside(target: Target, *, trials: int) -> dict[str, Any]:
    """On the client's side of the path: a netdiag of its own there."""
    assert target.run is not None
    with tempfile.TemporaryDirectory(prefix="netdiag-lab-") as folder:
        body = Path(folder) / "body"
        body.write_bytes(target.body)
        command = [sys.executable, "-m", "netdiag", "probe", target.url, "-X", target.method, "--json"]
        command += ["-n", str(_counted(trials)), "--arm", _arm(target), "--seed", "1"]
        command += ["--cacert", target.ca_file] if target.ca_file else []
        command += ["-d", f"@{body}"] if target.body else []
        for name, value in target.headers:
            command += ["-H", f"{name}: {value}"]
        output = target.run(command)
    if not output:
        raise NetdiagError("the probe inside the namespace said nothing", advice="run it with --debug to see why")
    told: dict[str, Any] = json.loads(output)
    return told


def _arm(target: Target) -> str:
    return "h2" if target.protocol == "h2" else "h1"


def _counted(trials: int) -> int:
    """A probe makes one call more than it counts, unless it makes only one: so two cannot be had, and are three."""
    return 1 if trials == 1 else max(2, trials - 1)


def require(tier: str, scenario: Scenario) -> None:
    """Raises UsageError when the scenario does not say that it can be run on this tier, PrivilegeMissing when the system does not let us."""
    from netdiag.errors import PrivilegeMissing, UsageError

    if tier not in scenario.tiers:
        raise UsageError(
            f"{scenario.name} cannot be run on {tier}: its tiers are {', '.join(scenario.tiers)}",
            advice='a scenario of your own says so itself: tiers = ["T0", "T1", "T2"]',
        )
    reason = why_not(tier)
    if reason is not None:
        raise PrivilegeMissing(f"{tier} cannot be run here: {reason}")


def runnable(tier: str, names: Sequence[str]) -> list[Scenario]:
    """The named scenarios, or all bundled ones that can be run on this tier. Raises UsageError for a named one that cannot."""
    from netdiag.lab.live_score import scenarios_of
    from netdiag.lab.scenario import load
    from netdiag.lab.score import DEFECTIVE

    if not names:
        return [scenario for scenario in scenarios_of(tier) if scenario.name not in DEFECTIVE]
    chosen = [load(name) for name in names]
    for scenario in chosen:
        require(tier, scenario)
    return chosen
