from polycal.report.demo import INTRODUCTION, conclusion


def test_the_words_come_from_the_numbers():
    groups = [
        {"name": "good", "classes": ["a"], "smooth_error": 0.01},
        {"name": "bad", "classes": ["b", "c"], "smooth_error": 0.05},
    ]
    words = conclusion({"groups": groups})
    assert '"good" have an error of 0.0100' in words
    assert '"bad" (b, c)' in words
    assert "5 times as much" in words
    assert "footwear" in INTRODUCTION
