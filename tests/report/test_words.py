from polycal.report.words import reading_words, verdict

READING = {
    "question": "is it a?",
    "low": 0.1,
    "high": 0.9,
    "predicted": 0.62,
    "observed": 0.55,
    "share": 0.23,
}
FINDING = {
    "question": "is it a or b?",
    "is_question": True,
    "estimate": 0.0312,
    "lower_bound": 0.0203,
    "significant": True,
    "detectable": 0.01,
    "reading": READING,
}
AUDIT = {"n_samples": 100, "n_judge": 50, "alpha": 0.05, "findings": [FINDING], "groups": [], "slices": []}


def test_a_proven_finding_is_stated_with_its_bound():
    words = verdict(AUDIT)
    assert words.startswith("Not calibrated.")
    assert "is it a or b?" in words
    assert "error is 0.0312, and at least 0.0203 with 95% confidence" in words
    assert "says 0.620 on average, and is 0.550" in words


def test_the_first_significant_finding_is_the_one_stated():
    silent = FINDING | {"significant": False, "question": "is it c?"}
    assert "is it a or b?" in verdict(AUDIT | {"findings": [silent, FINDING]})


def test_silence_says_what_could_have_been_seen():
    words = verdict(AUDIT | {"findings": [FINDING | {"significant": False}]})
    assert "does not mean calibrated" in words
    assert "0.0100" in words


def test_no_search_is_said():
    assert "too few" in verdict(AUDIT | {"findings": [], "n_judge": 0})
    assert verdict(AUDIT | {"findings": []}) == "Nothing was searched: no search was asked for."


def test_readings():
    assert reading_words(READING) == "says 0.620, is 0.550 (23% of rows)"
    assert reading_words(READING | {"predicted": None}) == "-"


def test_an_empty_range_is_left_out():
    words = verdict(AUDIT | {"findings": [FINDING | {"reading": READING | {"predicted": None}}]})
    assert words.endswith("with 95% confidence.")


def test_questions_come_before_findings_about_the_whole():
    whole = FINDING | {"is_question": False, "question": "a kernel"}
    assert "is it a or b?" in verdict(AUDIT | {"findings": [whole, FINDING]})
    words = verdict(AUDIT | {"findings": [whole]})
    assert "no single question" in words
    assert "(a kernel)" in words


def test_groups_shown_wrong_are_named_where_no_search_proves_anything():
    silent = {"findings": [FINDING | {"significant": False}]}
    groups = [{"name": "animal", "p_value": 0.01}, {"name": "plant", "p_value": 0.3}]
    words = verdict(AUDIT | silent | {"groups": groups})
    assert words.startswith(
        "Not calibrated: the test on all rows shows an error for animal. Of the searches: no "
    )
    assert "animal" not in verdict(AUDIT | {"groups": groups})
