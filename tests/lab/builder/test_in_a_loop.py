"""A notebook's kernel runs an event loop of its own; scenarios are built inside it all the same."""

from __future__ import annotations

import asyncio

from netdiag.lab.builder.output import record
from netdiag.lab.scenario import bundled


def test_a_scenario_is_built_inside_a_running_loop_and_is_the_same() -> None:
    async def inside() -> bytes:
        return record(bundled("clean-h1")).capture

    assert asyncio.run(inside()) == record(bundled("clean-h1")).capture
