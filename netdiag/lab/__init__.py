"""Scenarios with known ground truth: a server with faults, packets from a description, and the score of the analysis against them.

``serve`` runs the embedded server; the rest is in the modules' own names, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netdiag.lab.behaviour import Behaviour
    from netdiag.lab.config import LabConfig
    from netdiag.lab.foreground import serve
    from netdiag.lab.listening import AddressInUse
    from netdiag.lab.proxy import LabProxy, ProxyConfig
    from netdiag.lab.relay import Flow, LabRelay, RelayConfig
    from netdiag.lab.server import LabServer

__all__ = [
    "AddressInUse",
    "Behaviour",
    "Flow",
    "LabConfig",
    "LabProxy",
    "LabRelay",
    "LabServer",
    "ProxyConfig",
    "RelayConfig",
    "serve",
]

_HOMES = {
    "AddressInUse": "netdiag.lab.listening",
    "Behaviour": "netdiag.lab.behaviour",
    "LabConfig": "netdiag.lab.config",
    "Flow": "netdiag.lab.relay",
    "LabProxy": "netdiag.lab.proxy",
    "LabRelay": "netdiag.lab.relay",
    "LabServer": "netdiag.lab.server",
    "ProxyConfig": "netdiag.lab.proxy",
    "RelayConfig": "netdiag.lab.relay",
    "serve": "netdiag.lab.foreground",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used (``netdiag --help`` must not pay for h2)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
