"""netdiag: where did every millisecond of an HTTPS call go, and whose fault is it?

The public names are loaded on first use, so that ``import netdiag`` costs next to nothing: none of scapy, pyshark, matplotlib, httpx
or polars is imported by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netdiag.version import __version__

if TYPE_CHECKING:
    from netdiag import plot as plot
    from netdiag.api import analyze as analyze
    from netdiag.api import aprobe as aprobe
    from netdiag.api import lanes as lanes
    from netdiag.api import observe as observe
    from netdiag.api import open_capture as open_capture
    from netdiag.api import probe as probe
    from netdiag.errors import NetdiagError as NetdiagError
    from netdiag.records.analysis import Analysis as Analysis

_LAZY = {
    "Analysis": ("netdiag.records.analysis", "Analysis"),
    "NetdiagError": ("netdiag.errors", "NetdiagError"),
    "analyze": ("netdiag.api", "analyze"),
    "aprobe": ("netdiag.api", "aprobe"),
    "lanes": ("netdiag.api", "lanes"),
    "observe": ("netdiag.api", "observe"),
    "open_capture": ("netdiag.api", "open_capture"),
    "plot": ("netdiag.plot", None),
    "probe": ("netdiag.api", "probe"),
}

__all__ = [
    "Analysis",
    "NetdiagError",
    "__version__",
    "analyze",
    "aprobe",
    "lanes",
    "observe",
    "open_capture",
    "plot",
    "probe",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'netdiag' has no attribute {name!r}")
    import importlib

    module_name, attribute = _LAZY[name]
    module = importlib.import_module(module_name)
    return module if attribute is None else getattr(module, attribute)


def __dir__() -> list[str]:
    return sorted(__all__)
