def test_hostile_names_are_escaped(hostile):
    card = hostile._repr_html_()
    assert "<script" not in card
    assert "<img" not in card
    assert card.count("<div") == card.count("</div>") == card.count("</table>") == 1


def test_the_card_says_the_verdict(proven, silent, few, compared):
    assert "Not calibrated" in proven._repr_html_()
    assert "is answered off by at least" in proven._repr_html_()
    assert "Nothing proven" in silent._repr_html_()
    assert "<table" not in few._repr_html_()
    assert "After the calibrator" in compared._repr_html_()
