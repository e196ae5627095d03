"""Records that stay inside: what a step of the analysis hands to the next.

A module of such records is loaded at every start, and ``dataclass`` compiles half a dozen methods for each: about half a millisecond a class,
for methods that nobody calls here. ``plain`` makes the same class without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as plain
else:
    import dataclasses

    def plain(*, frozen=False, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``, and to a type checker the same: it is the one that holds that nobody assigns to a frozen record.

        Such records are compared, hashed and shown as any object is. What users get (``netdiag.records``) and small values that are
        compared or used as keys stay ordinary dataclasses.
        """

        def made(cls):
            return dataclasses.dataclass(cls, slots=slots, kw_only=kw_only, eq=False, repr=False)

        return made


__all__ = ["plain"]
