import json

import pytest
from benchmarks.__main__ import parse
from benchmarks.rendering import markdown
from benchmarks.store import Store

from benchmarks import detecting, measuring, recalibration, report, subset_search


def recalibration_rows():
    for name in ("letters", "words"):
        for seed in (0, 1):
            for i, method in enumerate(("none", "polycal A", "peer B")):
                row = {
                    "set": name,
                    "seed": seed,
                    "method": method,
                    "k": 3,
                    "n_calibration": 1000,
                    "n_evaluation": 2000,
                }
                if (method, name) == ("peer B", "words"):
                    yield {
                        **row,
                        "status": "time limit",
                        "error": "not finished after 5 s",
                        "limit_seconds": 5,
                    }
                    continue
                value = 0.5 - 0.1 * i + 0.01 * seed * i
                columns = (
                    "brier",
                    "log_loss",
                    "accuracy",
                    "ece",
                    "classwise_ece",
                    "canonical",
                    "worst_subset",
                )
                made = dict.fromkeys(columns, value)
                costs = {"fit_seconds": 0.002, "predict_seconds": 2.0, "peak_bytes": 3 << 20}
                note = {"note": "rows summed to 1 only within 0.5"} if method == "peer B" else {}
                yield {**row, "status": "ok", **made, **costs, **note}


@pytest.fixture
def folder(tmp_path):
    tables = {
        "recalibration": (recalibration.KEY, recalibration_rows()),
        "measuring": (
            measuring.KEY,
            [
                {"curve": "binary, growing n", "n": n, "k": 2, "method": method, "status": "ok"}
                | {"seconds": factor * n * 1e-6, "peak_bytes": 1 << 20, "value": 0.1}
                for n in (1000, 10_000)
                for method, factor in (("polycal smooth error", 1), ("slow", 50))
            ]
            + [
                {
                    "curve": "binary, growing n",
                    "n": 10**5,
                    "k": 2,
                    "method": "slow",
                    "status": "time limit",
                    "error": "x",
                }
            ],
        ),
        "detecting": (
            detecting.KEY,
            [
                {
                    "case": "cat and dog, 4 classes",
                    "strength": s,
                    "test": "SKCE block",
                    "n": 100,
                    "repeats": 10,
                }
                | {"status": "ok", "rejected": r, "seconds": 0.1}
                for s, r in ((0, 0), (0.1, 5), (0.2, 10))
            ],
        ),
    }
    for name, (key, rows) in tables.items():
        store = Store(tmp_path / f"{name}.jsonl", key)
        for row in rows:
            store.add(row)
    run = {
        "date": "2026-01-01",
        "commit": "abc",
        "polycal": "0+1",
        "python": "3",
        "system": "S",
        "processor": "P",
    }
    run |= {
        "cores": 2,
        "memory_gib": 8,
        "versions": {"main": {"netcal": "1.4"}},
        "missing": {"peer C": "needs | Julia"},
    }
    (tmp_path / "runs.json").write_text(json.dumps({"recalibration": run}))
    return tmp_path


def cells(page, first):
    """The cells of the table rows that begin with a name."""
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith(f"| {first} |")]


def test_ranks_failures_and_costs_are_in_the_page(folder):
    page = report.render(folder)
    ranks, letters, *_ = cells(page, "peer B")
    assert ranks[0] == "peer B"
    # First among the letters, last among the words, where it was too slow.
    assert ranks[1] == "2.0 ± 1.0"
    assert ranks[-4:] == ["1", "2 ms", "2 s", "3 MiB"]
    assert letters[1:3] == ["0.3100", "0.0000 ± 0.0000"]
    ours = cells(page, "polycal A")
    assert ours[1][1:3] == ["0.4050", "0.0950 ± 0.0050"]
    assert ours[2][2] == "0.0000 ± 0.0000"
    assert "| peer B | words | 2 | time limit | not finished after 5 s |" in page
    assert "peer B (rows summed to 1 only within 0.5)" in page


def test_times_are_ratios_of_the_same_run(folder):
    page = report.render(folder)
    (slow,) = cells(page, "slow")
    assert slow == ["slow", "50 ms (50)", "500 ms (50)", "time limit", "1.00", "1 MiB"]


def test_power_is_in_the_page(folder):
    (test,) = cells(report.render(folder), "SKCE block")
    assert test[2:6] == ["0%", "50%", "100%", "0.16"]


def test_what_is_missing_and_where_it_was_made_is_in_the_page(folder):
    page = report.render(folder)
    assert "| peer C | needs / Julia |" in page
    assert "commit abc" in page
    assert "netcal 1.4" in page


def test_searches_are_in_the_page(folder):
    store = Store(folder / "subset_search.jsonl", subset_search.KEY)
    row = {"set": "s", "k": 4, "n": 100, "seconds": 0.5, "size": 2, "seen": 0.03, "noise_floor": 0.001}
    store.add({**row, "method": "worse", "held_out": 0.01})
    store.add({**row, "method": "better", "held_out": 0.02})
    page = report.render(folder)
    assert cells(page, "s: better") == [
        ["s: better", "4", "100", "500 ms", "2", "0.0300", "0.0200", "0.0010"]
    ]
    assert page.index("s: better") < page.index("s: worse")


def test_a_page_without_results_says_so(tmp_path):
    assert report.render(tmp_path).count("Not run yet.") == 4


def test_results_kept_apart_are_reported_beside_them(folder):
    report.main(parse(["report", "--quick", "--results", str(folder)]))
    assert (folder / "images" / "leaderboard.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "benchmarks.md").read_text() == report.render(folder)


def test_the_results_are_reported_in_the_documentation(folder, tmp_path, monkeypatch):
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(report, "FOLDER", folder)
    monkeypatch.setattr(report, "DOCS", docs)
    report.main(parse(["report", "--results", str(folder)]))
    assert (docs / "benchmarks.md").exists()
    assert not (folder / "benchmarks.md").exists()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.5, "2.5 s"), (0.0025, "2.5 ms"), (2.5e-6, "2.5 µs"), (1e-9, "0.001 µs"), (float("nan"), "–")],
)
def test_seconds_have_a_readable_unit(value, shown):
    assert markdown.seconds(value) == shown


def test_cells_cannot_break_a_table():
    assert markdown.table(["a", "b"], [["x|y\nz", "<b>*"]]).splitlines()[-1] == "| x/y z | ‹b›· |"


def test_sections_are_checked(capsys):
    assert parse(["report", "--quick"]).sections == ["report"]
    with pytest.raises(SystemExit):
        parse(["nonsense"])
    assert "no section called nonsense" in capsys.readouterr().err
