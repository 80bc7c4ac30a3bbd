from polycal.report.demo import INTRODUCTION, conclusion

GROUPS = [{"name": "good", "smooth_error": 0.01}, {"name": "bad", "smooth_error": 0.05}]


def finding(estimate, *, significant=True, is_question=True):
    return {"estimate": estimate, "significant": significant, "is_question": is_question}


def test_the_words_come_from_the_numbers():
    findings = [finding(0.9, is_question=False), finding(0.07), finding(0.06)]
    words = conclusion({"groups": GROUPS, "findings": findings})
    assert 'on "good" its answers have an error of 0.0100' in words
    assert "7 times as much" in words
    assert "Next: polycal audit" in words


def test_nothing_is_claimed_that_was_not_proven():
    unproven = {"groups": GROUPS, "findings": [finding(0.07, significant=False)]}
    for audit in (unproven, {"groups": [], "findings": [finding(0.07)]}):
        assert (
            conclusion(audit).strip() == "Next: polycal audit YOUR_PREDICTIONS.npz --groups YOUR_GROUPS.yaml"
        )


def test_the_introduction_names_a_question_and_the_search():
    assert "is it footwear?" in INTRODUCTION
    assert "worst question" in INTRODUCTION
