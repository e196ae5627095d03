from __future__ import annotations

import itertools

import numpy as np
import pytest

from netdiag.palette import HATCHED, PHASE_HUES
from netdiag.records.timing import PhaseName

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
JUST_DIFFERENT = 12.0
"""CIE 1976 difference that is plain at a glance side by side (2.3 is the threshold of noticing)."""


def linear(hue: str) -> np.ndarray:
    c = np.array([int(hue[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_no_two_phases_look_alike(deficiency: str) -> None:
    seen = DEFICIENCIES[deficiency]
    hues = {name: hue for name, hue in PHASE_HUES.items() if name not in HATCHED}
    for (a, hue_a), (b, hue_b) in itertools.combinations(hues.items(), 2):
        difference = float(np.linalg.norm(lab(seen @ linear(hue_a)) - lab(seen @ linear(hue_b))))
        assert difference >= JUST_DIFFERENT, f"{a} and {b} differ by {difference:.1f} only"


def test_every_phase_has_a_hue() -> None:
    assert {str(name) for name in PhaseName} <= set(PHASE_HUES)
