"""Every witness as elementary steps: the same function, saved and exported by what steps are."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import polycal as pc
from polycal.families.questions import TopWitness
from polycal.families.witness import Evaluate, Witness
from polycal.kernels.kernels import CallableKernel, Laplace
from polycal.measures.functions import LipschitzFunction, StepFunction
from polycal.steps import run

MADE = pc.datasets.make_temperature(300, 4, random_state=0)
SOURCES = {
    "subset": pc.SubsetAuditor(),
    "binned subset": pc.NotionAuditor(pc.Classwise(n_bins=5)),
    "confidence": pc.NotionAuditor(pc.Confidence(smooth=True)),
    "top": pc.NotionAuditor(pc.TopLabel(smooth=True)),
    "binned top": pc.NotionAuditor(pc.TopLabel(n_bins=5)),
    "table": pc.NotionAuditor(pc.Canonical(min_repeats=1)),
    "kernel": pc.KernelAuditor(pc.Multinomial(3)),
    "constant kernel": pc.KernelAuditor(pc.Multinomial(0)),
    "gaussian kernel": pc.KernelAuditor(),
    "laplace kernel": pc.KernelAuditor(Laplace(0.3)),
    "projected": pc.ProjectionAuditor(),
    "sigmoid": pc.SigmoidAuditor(),
    "decision": pc.DecisionAuditor(),
    "soft decision": pc.DecisionAuditor(temperature=0.2),
    "swap": pc.SwapAuditor(np.vstack([1 - np.eye(4), np.full(4, 0.3)])),
    "halfspace": pc.NotionAuditor(pc.Halfspace()),
    "monomial": pc.NotionAuditor(pc.LowDegree(2)),
    "full-smooth": pc.NotionAuditor(pc.FullSmooth(n_floor_draws=0)),
}


def predictions():
    """Predictions seen and new, with ties, zeros and corners."""
    new = np.random.default_rng(1).dirichlet(np.ones(4), 200)
    return np.concatenate([MADE.proba, new, np.eye(4), np.full((1, 4), 0.25), [[0.5, 0.5, 0, 0]]])


@pytest.mark.parametrize("name", SOURCES)
def test_steps_compute_the_witness(name):
    witness = SOURCES[name].find_witness(MADE.labels, MADE.proba)
    steps = witness.to_steps()
    assert not any(isinstance(step, Evaluate) for step in steps)
    proba = predictions()
    # Kernels take rounding off distances, so that the square root of the Laplace kernel differs by 1e-7.
    np.testing.assert_allclose(run(steps, proba), witness.evaluate(proba), atol=1e-6, rtol=0)


def test_every_kind_is_tried():
    tried = {auditor.find_witness(MADE.labels, MADE.proba).family for auditor in SOURCES.values()}
    # Ranks are no elementary step yet, and steps see no features: such witnesses are evaluated, and not exported.
    assert Witness.homes.keys() - tried == {"list-kernel", "slice", "top-set"}


def test_functions_of_both_kinds_may_be_mixed():
    ramp = LipschitzFunction(np.array([0.0, 1.0]), np.array([-1.0, 0.0]))
    steps = StepFunction(np.array([0.5]), np.array([-1.0, 1.0]))
    witness = TopWitness((ramp, steps, StepFunction(np.empty(0), np.zeros(1)), ramp), 4)
    proba = predictions()
    np.testing.assert_allclose(run(witness.to_steps(), proba), witness.evaluate(proba), atol=1e-12)


def test_foreign_code_is_asked_as_it_is():
    linear = CallableKernel(lambda left, right: left @ right.T, bound=1.0)
    for auditor in (pc.LearnerAuditor(LogisticRegression()), pc.KernelAuditor(linear)):
        witness = auditor.find_witness(MADE.labels, MADE.proba)
        (step,) = witness.to_steps()
        assert step.title == type(witness).__name__
        np.testing.assert_array_equal(step(MADE.proba), witness.evaluate(MADE.proba))
