"""The page of the monitor shows the results that are kept."""

from benchmarks.store import FOLDER, Store

from benchmarks import monitoring


def test_the_tables_of_the_page_are_those_of_the_results(tmp_path, monkeypatch):
    page = tmp_path / "monitoring.md"
    written = monitoring.PAGE.read_text()
    page.write_text(written)
    monkeypatch.setattr(monitoring, "PAGE", page)
    monitoring.page(Store(FOLDER / "monitoring.jsonl", monitoring.KEY))
    assert page.read_text() == written
