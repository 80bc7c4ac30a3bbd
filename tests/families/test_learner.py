import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests import reference_kernel as reference

import polycal as pc
from polycal._validation import check_sample
from polycal.families.learner import LearnerAuditor, draw_signed_classes
from polycal.families.reduction import KernelLearner
from polycal.kernels.kernels import Multinomial
from polycal.storage.saved import packed, unpacked

SUPPORT = np.array([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
TRUTH = np.array([[0.4, 0.3, 0.3], [0.1, 0.6, 0.3]])
MASS = np.array([0.6, 0.4])


def draw(n, seed):
    """Labels and predictions of the two-point distribution."""
    rng = np.random.default_rng(seed)
    row = rng.choice(2, size=n, p=MASS)
    labels = (TRUTH[row].cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return labels, SUPPORT[row]


def test_signed_classes_have_mean_half_the_residual():
    proba = np.tile([[0.5, 0.3, 0.2]], (60_000, 1))
    sample = check_sample(np.full(60_000, 1), proba)
    classes, signs = draw_signed_classes(sample, np.random.default_rng(0))
    mean = np.array([np.sum(signs[classes == c]) for c in range(3)]) / 60_000
    np.testing.assert_allclose(mean, (np.eye(3)[1] - proba[0]) / 2, atol=0.01)
    assert set(classes[signs == 1]) == {1}


@pytest.mark.parametrize(
    "options", [{"combine": False, "amplify": False}, {}], ids=["the paper's", "default"]
)
def test_the_guarantee_is_carried_through(options):
    # Over functions in [-1, 1] of two predictions, the error is the l1 norm of the mean residuals. On the rows that
    # drew class j any regressor of group means finds sum_a m_a r_a^2 / sum of the shares, hence beta below.
    k, alpha = 3, np.sum(MASS[:, None] * np.abs(TRUTH - SUPPORT))
    share = MASS[:, None] * (TRUTH + SUPPORT) / 2
    mean_sign = (TRUTH - SUPPORT) / (TRUTH + SUPPORT)
    beta = np.max(np.sum(share * mean_sign**2, axis=0) / share.sum(axis=0))
    reached = []
    for seed in range(20):
        witness = LearnerAuditor(DecisionTreeRegressor(), random_state=seed, **options).find_witness(
            *draw(2000, seed)
        )
        correlation = reference.population_correlation(witness, SUPPORT, MASS, TRUTH)
        reached.append(correlation >= alpha * beta / (6 * k))
    assert np.mean(reached) >= 0.95


def test_combining_and_amplifying_find_more():
    labels, proba = draw(4000, 1)
    found = {}
    for combine in (False, True):
        for amplify in (False, True):
            auditor = LearnerAuditor(DecisionTreeRegressor(), combine=combine, amplify=amplify)
            witness = auditor.find_witness(labels, proba)
            assert witness.members.size > 1 or not combine
            found[combine, amplify] = reference.population_correlation(witness, SUPPORT, MASS, TRUTH)
    assert found[True, True] > found[True, False] > found[False, False]
    assert found[True, True] > found[False, True]
    assert found[True, True] == pytest.approx(np.sum(MASS[:, None] * np.abs(TRUTH - SUPPORT)), rel=0.1)


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        LogisticRegression(),
        LinearSVC(),
        DecisionTreeClassifier(max_depth=2),
        KNeighborsRegressor(50),
        KernelLearner(Multinomial(2)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_any_estimator_is_a_learner(estimator):
    witness = LearnerAuditor(estimator).find_witness(*draw(2000, 0))
    assert reference.population_correlation(witness, SUPPORT, MASS, TRUTH) > 0.1
    assert np.abs(witness(np.concatenate([SUPPORT, np.eye(3)]))).max() <= 1
    assert type(estimator).__name__ in witness.describe()


def test_a_single_sign_is_no_obstacle():
    # Class 2 is predicted but never happens; class 1 always happens and is never predicted.
    proba = np.tile([[0.5, 0.0, 0.5]], (400, 1))
    witness = LearnerAuditor(LogisticRegression()).find_witness(np.full(400, 1), proba)
    np.testing.assert_allclose(witness(proba[:1]), [[-1, 1, -1]])


def test_weights_reach_the_estimator():
    labels, proba = draw(3000, 0)
    weight = np.where(proba[:, 0] > 0.5, 1.0, 0.0)
    witness = LearnerAuditor(DecisionTreeRegressor()).find_witness(labels, proba, sample_weight=weight)
    only = LearnerAuditor(DecisionTreeRegressor()).find_witness(labels[weight > 0], proba[weight > 0])
    np.testing.assert_allclose(witness(SUPPORT[:1]), only(SUPPORT[:1]))
    with pytest.raises(TypeError, match="does not take it"):
        LearnerAuditor(KNeighborsRegressor()).find_witness(labels, proba, sample_weight=weight)


def test_few_rows_give_no_witness():
    witness = LearnerAuditor(LinearRegression()).find_witness([0, 1], [[0.5, 0.5], [0.2, 0.8]])
    assert not np.any(witness(np.eye(2)))
    assert witness.describe() == "no class"


def test_a_fitted_witness_is_not_saved():
    witness = LearnerAuditor(Ridge()).find_witness(*draw(200, 0))
    with pytest.raises(TypeError, match="pickles"):
        packed(witness)
    with pytest.raises(TypeError, match="cannot be loaded"):
        unpacked({"is": "witness/learner"}, {})


def test_real_predictions():
    fit, fresh = pc.datasets.load_fashion("calibration"), pc.datasets.load_fashion("evaluation")
    names = [f"class {c}" for c in range(10)]
    witness = LearnerAuditor(LogisticRegression()).find_witness(fit.labels, fit.proba, class_names=names)
    assert witness.correlation(fresh) > 0.05
    assert "class 0" in witness.describe()
    assert "more" in witness.describe()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LearnerAuditor(Ridge), TypeError, "not its class"),
        (lambda: LearnerAuditor("ridge"), TypeError, "estimator must be"),
        (lambda: LearnerAuditor(Ridge(), min_rows=0), ValueError, "min_rows"),
        (lambda: LearnerAuditor(Ridge(), holdout=1.0), ValueError, "holdout"),
        (lambda: LearnerAuditor(Ridge(), random_state=-1), ValueError, "random_state"),
    ],
)
def test_bad_parameters_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
