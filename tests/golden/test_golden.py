"""Every number is the one written down before the code moved."""

import json
import math
import re

import pytest
from tests.golden.cases import CASES, FILE, compute, rounding

EXPECTED = json.loads(FILE.read_text(encoding="utf-8"))
IS_ROUNDED_ALIKE = EXPECTED.pop("rounding") == rounding()
# What iterates until it is good enough stops elsewhere when sums are taken in another order.
ITERATED = {"searched_notions", "auditors", "learners", "lists", "audits", "split"}
ITERATED |= {"calibrators", "audited_calibrators", "comparison", "distance", "hardness"}
# Searches for the worst direction find another one where products are rounded otherwise, about as bad.
HEURISTIC = re.compile(r"[Ss]igmoid|projection|ProjectedSmooth|Halfspace")
FOUND = re.compile(r"(/value|/estimate|calibration_error/.*)$")


def tolerance(area, name):
    if not IS_ROUNDED_ALIKE and HEURISTIC.search(name):
        return 0.03 if FOUND.search(name) else math.inf
    if area in ITERATED or "single" in name:
        return 1e-6 if IS_ROUNDED_ALIKE else 1e-4
    return 1e-9


def agrees(found, expected, allowed):
    if isinstance(expected, float) and isinstance(found, int | float):
        return math.isclose(found, expected, rel_tol=allowed, abs_tol=allowed)
    return found == expected


def test_every_area_is_written_down():
    assert set(CASES) == set(EXPECTED)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("area", CASES)
def test_numbers_are_those_written_down(area):
    found, expected = compute(area), EXPECTED[area]
    assert found.keys() == expected.keys()
    changed = {
        name: (found[name], value)
        for name, value in expected.items()
        if not agrees(found[name], value, tolerance(area, name))
    }
    assert not changed, f"{len(changed)} of {len(expected)} (found, expected): {changed}"
