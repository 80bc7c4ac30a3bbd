"""Everything an audit shows holds together: bounds from both sides, tests, and gates."""

import numpy as np
import pytest

import polycal as pc
from polycal._validation import check_sample
from polycal.measures.smooth import projected_error
from polycal.sample import ask_confidence, ask_subset

K, SUPPORT = 4, 30
GROUPS = {"a": ["0", "1"], "b": ["1", "3"]}


def population(design):
    """Predictions of which each is as likely, and the true probabilities there."""
    rng = np.random.default_rng(4)
    proba = rng.dirichlet(np.full(K, 0.7), SUPPORT)
    if design == "right":
        truth = proba
    elif design == "overconfident":
        truth = np.sqrt(proba) / np.sqrt(proba).sum(axis=1, keepdims=True)
    else:
        truth = proba.copy()
        moved = 0.9 * np.minimum(proba[:, 0], proba[:, 2])
        truth[:, 0] -= moved
        truth[:, 2] += moved
    return proba, truth


def drawn(proba, truth, n, rng):
    rows = rng.integers(0, SUPPORT, n)
    labels = (truth[rows].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return labels, proba[rows]


def true_error(proba, truth, members):
    """The exact smooth error of a question in the population; None asks for the most likely class."""
    sample = check_sample(np.zeros(SUPPORT, dtype=int), proba)
    if members is None:
        predicted, happens = ask_confidence(sample).predicted, truth[np.arange(SUPPORT), proba.argmax(axis=1)]
    else:
        members = np.array([int(c) for c in members])
        predicted, happens = ask_subset(sample, members).predicted, truth[:, members].sum(axis=1)
    order = np.argsort(predicted)
    return projected_error(predicted[order], (happens - predicted)[order] / SUPPORT)


def broken(audit, proba, truth):
    """Whether some bound of an audit is wrong."""
    residual = truth - proba
    for finding in (*audit.findings, *audit.path):
        correlation = np.mean(np.einsum("ij,ij->i", residual, finding.witness.evaluate(proba)))
        if finding.certificate.lower_bound > correlation + 1e-6:
            return True
    questions = [(audit.confidence, None), *((q, q.classes) for q in (*audit.groups, *audit.classes))]
    return any(
        not q.at_least - 1e-9 <= true_error(proba, truth, members) <= q.at_most + 1e-9
        for q, members in questions
    )


@pytest.mark.slow
@pytest.mark.parametrize("design", ["right", "overconfident", "moved"])
def test_all_bounds_of_an_audit_hold_together(design):
    proba, truth = population(design)
    rng, alpha, repeats = np.random.default_rng(0), 0.2, 40
    audits = [
        pc.audit(
            *drawn(proba, truth, 200, rng),
            groups=GROUPS,
            class_names=list("0123"),
            alpha=alpha,
            random_state=seed,
        )
        for seed in range(repeats)
    ]
    assert np.mean([broken(audit, proba, truth) for audit in audits]) <= alpha
    if design == "right":
        accused = [
            any(f.significant for f in a.findings) or min(q.p_value for q in a.groups) <= alpha
            for a in audits
        ]
        assert np.mean(accused) <= alpha + 2 * np.sqrt(alpha * (1 - alpha) / repeats)
    else:
        assert np.mean([any(f.significant for f in audit.findings) for audit in audits]) > 0.5


def test_levels_add_up_to_alpha():
    from polycal.auditing.shares import CLASS_SHARES, FOUND_SHARE, NAMED_SHARES, RANK_SHARES  # noqa: PLC0415

    assert FOUND_SHARE + sum((*NAMED_SHARES, *RANK_SHARES, *CLASS_SHARES)) == pytest.approx(1.0)
    made = pc.datasets.make_calibrated(400, 5, random_state=0)
    audit = pc.audit(made.labels, made.proba, alpha=0.1)
    level = 0.1 * FOUND_SHARE / len(audit.findings)
    assert sum(f.certificate.alpha for f in audit.path) == pytest.approx(level)
    others = [f for f in audit.findings if f.source != audit.path[0].source]
    assert [f.certificate.alpha for f in others] == [level] * (len(audit.findings) - 1)


def test_confidence_is_tested_by_all_rows():
    # Half of the rows do not show this temperature, all of them do.
    found = {"audit": 0, "half": 0}
    for seed in range(15):
        made = pc.datasets.make_temperature(1000, 6, temperature=0.85, n_distinct=1000, random_state=seed)
        finding = next(f for f in pc.audit(made.labels, made.proba).findings if f.source == "confidence")
        found["audit"] += min(finding.whole_p_value or 1.0, finding.certificate.p_value) <= 0.0125
        found["half"] += finding.certificate.p_value <= 0.0125
    assert found["audit"] >= found["half"] + 2


def test_questions_have_three_verdicts():
    rng = np.random.default_rng(0)
    proba = np.tile([0.5, 0.3, 0.2], (20_000, 1))
    labels = rng.choice(3, 20_000, p=[0.45, 0.35, 0.2])
    audit = pc.audit(labels, proba, groups={"off": [0], "right": [2], "all": [0, 1, 2]})
    off, right, everything = audit.groups
    assert (off.verdict(), right.verdict(), everything.verdict()) == ("off", "right", "right")
    assert 0.02 < off.at_least <= 0.05 <= off.at_most
    few = pc.audit(labels[:300], proba[:300], groups={"right": [2]}).groups[0]
    assert few.verdict() == "not enough rows"
    assert 2_000 < few.rows_needed(300) < 100_000
    # As many would do.
    n = min(few.rows_needed(300), 20_000)
    assert pc.audit(labels[:n], proba[:n], groups={"right": [2]}).groups[0].at_most < 2 * 0.02


def test_two_classes_are_one_question():
    made = pc.datasets.make_calibrated(300, 2, random_state=0)
    audit = pc.audit(made.labels, made.proba)
    assert sorted(f.source for f in audit.findings) == ["classwise", "confidence", "kernel"]
    first, second = audit.classes
    assert (first.at_least, first.at_most) == pytest.approx((second.at_least, second.at_most))


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_go_by_have_the_same_bounds(monkeypatch, tmp_path, weighted):
    made = pc.datasets.make_temperature(3000, 4, temperature=0.7, random_state=0)
    weight = np.where(np.arange(3000) % 2, 1.0, 2.0) if weighted else None
    pc.write_predictions(tmp_path / "p.npz", made.labels, made.proba, sample_weight=weight)
    groups = {"a": [0, 1]}
    held = pc.audit_stream(tmp_path / "p.npz", groups=groups)
    monkeypatch.setattr("polycal.auditing.source.HELD_CELLS", 1000)
    streamed = pc.audit_stream(tmp_path / "p.npz", groups=groups)
    assert streamed.approximations
    for one, other in zip(
        (held.confidence, *held.groups), (streamed.confidence, *streamed.groups), strict=True
    ):
        assert one.at_least < one.smooth_error < one.at_most
        assert (one.at_least, one.at_most) == pytest.approx((other.at_least, other.at_most), abs=1e-4)
        assert one.discovered == other.discovered
        assert np.log(other.e_value) == pytest.approx(np.log(one.e_value), abs=0.5)
