"""Requests of our own, measured from inside: plan, network backend, kernel stamps, and a capture around it all.

``netdiag.probe`` is this package and, in the public interface, the function ``netdiag.api.probe``. Importing any module of the package binds
its name in ``netdiag``, so the package itself answers to being called.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netdiag.records.analysis import Analysis


class _CallablePackage(types.ModuleType):
    """A package that can be called (language reference, "Customizing module attribute access")."""

    def __call__(self, *arguments: Any, **options: Any) -> Analysis:
        """See ``netdiag.api.probe``."""
        from importlib import import_module

        result: Analysis = import_module("netdiag.api").probe(*arguments, **options)
        return result


sys.modules[__name__].__class__ = _CallablePackage
