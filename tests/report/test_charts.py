import json

import pytest
import vl_convert

from polycal.report.charts.cumulative import cumulative_chart
from polycal.report.charts.reliability import reliability_chart

CHARTS = [reliability_chart, cumulative_chart]


@pytest.mark.parametrize("chart", CHARTS)
def test_vega_lite_understands_every_picture_without_a_warning(audit, chart, capfd):
    for picture in audit.to_dict()["pictures"]:
        vega = vl_convert.vegalite_to_vega(json.dumps(chart(picture)), show_warnings=True)
        assert vega["marks"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("chart", CHARTS)
def test_nothing_is_fetched_and_colours_are_the_page_s(compared, chart):
    text = json.dumps([chart(picture) for picture in compared.to_dict()["pictures"]])
    assert "http" not in text
    assert "#" not in text


@pytest.mark.parametrize("chart", CHARTS)
def test_a_legend_only_for_two_series(proven, compared, chart):
    one, two = (json.dumps(chart(audit.to_dict()["pictures"][0])) for audit in (proven, compared))
    assert '"legend": null' in one
    assert '"legend": null' not in two


def test_the_worst_range_is_tinted_for_findings_only(proven):
    for picture in proven.to_dict()["pictures"]:
        assert ("var(--worst)" in json.dumps(reliability_chart(picture))) == (picture["about"] == "finding")
