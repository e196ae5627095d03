"""Scenarios drawn at random: paths, TCP settings, TLS versions, both protocols."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from netdiag.lab.scenario import Scenario, from_mapping

QUICK = settings(max_examples=8, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
"""Two seconds. A failure is shown as it was drawn: making it smaller may take Hypothesis five minutes, which the slow variants allow."""
AT_LENGTH = settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

DIRECTIONS = st.fixed_dictionaries(
    {},
    optional={
        "loss": st.sampled_from([0.01, 0.05, 0.1]),
        "reorder": st.sampled_from([0.05, 0.3]),
        "reorder_ms": st.sampled_from([0.02, 1.0, 30.0]),
        "duplicate": st.sampled_from([0.05, 0.3]),
        "jitter_ms": st.sampled_from([0.1, 5.0]),
        "rate_mbit": st.sampled_from([1.0, 20.0]),
    },
)
SCENARIOS = st.fixed_dictionaries(
    {
        "seed": st.integers(1, 10_000),
        "path": st.fixed_dictionaries(
            {"rtt_ms": st.sampled_from([0.0, 3.0, 80.0]), "up": DIRECTIONS, "down": DIRECTIONS}
        ),
        "server": st.fixed_dictionaries(
            {
                "tls_maximum": st.sampled_from(["1.2", "1.3"]),
                "tickets": st.integers(0, 3),
                "record_bytes": st.sampled_from([300, 4096, 16384]),
            }
        ),
        "tcp": st.fixed_dictionaries(
            {
                "client": st.fixed_dictionaries(
                    {
                        "mss": st.sampled_from([100, 536, 1460]),
                        "window_bytes": st.sampled_from([3_000, 65_535, 1 << 20]),
                        "window_scale": st.sampled_from(["none", 0, 7]),
                        "sack": st.booleans(),
                        "delayed_ack_ms": st.sampled_from([0.0, 40.0]),
                    }
                ),
                "server": st.fixed_dictionaries({"nagle": st.booleans(), "tail_loss_probe": st.booleans()}),
            }
        ),
        "connection": st.lists(
            st.fixed_dictionaries(
                {
                    "protocol": st.sampled_from(["h2", "http/1.1"]),
                    "request": st.just(
                        [
                            {"answer": {"stream": True, "events": 4, "gap_ms": 7}},
                            {"method": "GET", "path": "/bytes/30000", "body_bytes": 0, "think_ms": 5},
                            {"path": "/echo", "body_bytes": 9000},
                        ]
                    ),
                }
            ),
            min_size=1,
            max_size=2,
        ),
    }
)


def scenario_of(document: dict[str, Any]) -> Scenario:
    """A drawn document as a scenario."""
    return from_mapping(document, name="drawn")
