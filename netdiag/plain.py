"""Records that stay inside: what a step of the analysis hands to the next.

Tables of columns are not compared and not shown, and the type checker sees to it that nobody assigns to a frozen one; so ``plain`` makes the
class without the methods for that: making a class takes less time at every start, and making an instance half as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as plain
else:
    from dataclasses import dataclass

    def plain(*, frozen=False, slots=False, kw_only=False):
        """As ``dataclass``, and to a type checker the same: it is the one that holds that nobody assigns to a frozen record.

        Such records are compared, hashed and shown as any object is. What users get (``netdiag.records``) and small values that are
        compared or used as keys are ordinary dataclasses.
        """
        return dataclass(slots=slots, kw_only=kw_only, eq=False, repr=False)


__all__ = ["plain"]
