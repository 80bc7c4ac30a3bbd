"""Every number is the one written down before the code moved."""

import json
import math

import pytest
from tests.golden.cases import CASES, FILE, compute

EXPECTED = json.loads(FILE.read_text(encoding="utf-8"))
# What iterates until it is good enough stops elsewhere when sums are taken in another order.
ITERATED = {"searched_notions", "auditors", "learners", "lists", "audits", "split"}
ITERATED |= {"calibrators", "audited_calibrators", "comparison", "distance", "hardness"}


def tolerance(area, name):
    return 1e-6 if area in ITERATED or "single" in name else 1e-9


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
