import pytest

import polycal as pc
from polycal.report.summary import percents, points, range_words, summarise


def test_the_states(proven, silent, few):
    states = [summarise(audit.to_dict())["state"] for audit in (proven, silent, few)]
    assert states == ["miscalibrated", "silent", "unsearched"]


def test_no_search_is_not_blamed_on_the_rows():
    made = pc.datasets.make_calibrated(300, 3, random_state=0)
    summary = summarise(pc.audit(made.labels, made.proba, notions=[], auditors={}).to_dict())
    assert summary["headline"] == "Measured, but not searched."
    assert "No search was asked for" in summary["because"]
    assert "default searches" in summary["advice"][0]


def test_the_worst_question_has_its_proven_size(proven):
    worst = summarise(proven.to_dict())["worst"]
    assert worst["question"] in {"is it cat or dog?", "is it car or bus?"}
    assert worst["at_least"] == points(proven.worst.certificate.lower_bound)
    assert worst["reading"]["direction"] in {"too much", "too little"}


def test_groups_are_told_apart(proven):
    advice = " ".join(summarise(proven.to_dict())["advice"])
    assert "do not trust as they are: animal, with wheels." in advice
    assert "No error is shown for your group all." in advice


def test_a_group_shown_wrong_is_no_silence(silent):
    audit = silent.to_dict()
    audit["groups"][0] |= {"p_value": 0.01, "smooth_error": 0.1}
    summary = summarise(audit)
    assert summary["state"] == "miscalibrated"
    assert summary["because"].startswith("Of your groups, even:")


def test_groups_that_could_not_be_tested_are_not_called_fine(silent):
    audit = silent.to_dict()
    audit["groups"][0]["smallest_p_value"] = 0.5
    assert "could not be tested" in " ".join(summarise(audit)["advice"])


def test_a_small_error_is_called_small(proven):
    audit = proven.to_dict()
    audit["groups"] = []
    for finding in audit["findings"]:
        finding["estimate"] = 0.001
    assert summarise(audit)["headline"] == "Errors are proven, but small ones."


def test_before_and_after(compared, silent):
    comparison = summarise(compared.to_dict())["comparison"]
    changes = {row["name"]: row["better"] for row in comparison["rows"]}
    assert changes["Log loss"] == "better"
    assert changes["Error: confidence"] == "better"
    nothing = silent.to_dict() | {"calibrator": "Same()", "after": silent.to_dict()}
    comparison = summarise(nothing)["comparison"]
    assert {row["better"] for row in comparison["rows"]} == {"same"}
    assert comparison["words"] == "After the calibrator no question is proven wrong; before, none was either."


def test_before_and_after_of_too_few_rows(few):
    audit = few.to_dict() | {"calibrator": "Same()", "after": few.to_dict()}
    assert "too few rows" in summarise(audit)["comparison"]["words"]


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.0, 1.0, "anything"),
        (0.0, 0.4, "at most 40%"),
        (0.3, 1.0, "above 30%"),
        (0.3, 0.4, "between 30% and 40%"),
    ],
)
def test_ranges(low, high, words):
    assert range_words({"low": low, "high": high}) == words


def test_numbers():
    assert percents(0.5, 0.6) == ["50%", "60%"]
    assert percents(0.501, 0.509) == ["50.1%", "50.9%"]
    assert points(0.0234) == "2.3 percentage points"
    assert points(-0.1) == "0 percentage points"
