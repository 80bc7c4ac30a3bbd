import pytest

import polycal as pc
from polycal.report.references import bibtex, limits, python_call


def test_the_call_in_python_says_what_was_chosen(proven, weighted, compared):
    assert "groups=groups" in python_call(proven.to_dict())
    assert "notions" not in python_call(proven.to_dict())
    assert "sample_weight=sample_weight" in python_call(weighted.to_dict())
    assert "calibrator=calibrator" in python_call(compared.to_dict())
    made = pc.datasets.make_calibrated(100, 3, random_state=0)
    own = pc.audit(made.labels, made.proba, notions=[pc.Sigmoid(4)], alpha=0.1, random_state=7)
    call = python_call(own.to_dict())
    assert "notions=[pc.Sigmoid(slope=4" in call
    assert "alpha=0.1" in call
    assert "random_state=7" in call


def test_the_call_is_python(audit):
    compile(python_call(audit.to_dict()), "call", "exec")


def test_the_version_is_cited(proven):
    assert f"version = {{{pc.__version__}}}" in bibtex(proven.to_dict())


@pytest.mark.parametrize(
    ("name", "words"), [("weighted", "Rows were weighted"), ("compared", "must not have been")]
)
def test_what_could_not_be_seen(request, few, name, words):
    assert words in " ".join(limits(request.getfixturevalue(name).to_dict()))
    assert words not in " ".join(limits(few.to_dict()))
