"""Costs in every form of the report."""

import numpy as np
import pytest

import polycal as pc
from polycal.report.costs import action_rows, cost_advice, cost_rows, cost_words

NAMES = ("sick", "tired", "<well>")
TRIAGE = {"treat": {"sick": 0, "default": 1}, "wait <b>": {"sick": 20, "default": 0}, "ask": 2}


@pytest.fixture(scope="module")
def audit():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.3, 1.0, 1.0], 8000)
    truth = proba * [15.0, 1.0, 1.0]
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1) < rng.random((8000, 1))).sum(axis=1)
    calibrator = pc.VectorScaling().fit(proba[:4000], labels[:4000], class_names=NAMES)
    options = {"class_names": NAMES, "losses": {"triage": TRIAGE}, "calibrator": calibrator}
    return pc.audit(labels[4000:], proba[4000:], notions=(), auditors={}, **options)


def test_a_manager_reads_what_is_proven(audit):
    cost = audit.to_dict()["costs"][0]
    promised, swaps, repaired = cost_words(cost)
    assert "more than promised (proven)" in promised
    assert swaps.startswith(
        "Without any new model: take treat wherever wait <b> looks best. That saves at least"
    )
    assert "recalibrating saves at least" in repaired
    assert len(cost_advice([cost])) == 2
    assert action_rows(cost)[0][4] == "treat"
    assert [row[1] for row in cost_rows([cost])] == ["as given", "after the calibrator"]


def test_what_is_not_shown_is_not_claimed(audit):
    cost = audit.to_dict()["costs"][0]
    nothing = cost["saving"] | {"lower_bound": -0.1}
    excess = {"value": 0.0, "at_least": -1.0, "at_most": 1.0}
    silent = cost | {"saving": nothing, "excess": excess, "recalibrated": None}
    words = " ".join(cost_words(silent))
    assert "not shown" in words
    assert "proven" not in words
    assert cost_advice([silent]) == []
    assert "too few rows" in cost_words(silent | {"saving": None, "swaps": []})[1]
    assert "No swap" in cost_words(silent | {"swaps": []})[1]
    assert "less than promised" in cost_words(silent | {"excess": excess | {"at_most": -0.5}})[0]


def test_every_form_tells_costs(audit):
    page = audit.to_html()
    assert 'id="costs"' in page
    assert "wait &lt;b&gt;" in page
    assert "wait <b>" not in page.partition("<script")[0]
    assert "## What acting on the predictions costs" in audit.to_markdown()
    assert "triage: Acting on these probabilities was promised to cost" in " ".join(str(audit).split())
