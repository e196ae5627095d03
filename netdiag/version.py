"""The version, for whoever needs it and nothing else of the package."""

from __future__ import annotations

__version__ = "0.1.0"
