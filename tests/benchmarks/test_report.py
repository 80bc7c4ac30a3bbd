import json

import pytest
from benchmarks.__main__ import parse
from benchmarks.peers.recalibrators import RECALIBRATORS
from benchmarks.rendering import markdown
from benchmarks.rendering import recalibration as recalibration_rendering
from benchmarks.store import Store

from benchmarks import (
    costs,
    detecting,
    measuring,
    multicalibration,
    recalibration,
    report,
    small,
    subset_search,
)


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
    page = report.render_sets(folder)
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


def test_a_method_that_failed_on_one_split_stays_in_the_table(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    row = store.find(set="letters", seed=1, method="peer B")
    store.add({**row, "status": "failed", "error": "oops"})
    page = report.render_sets(folder)
    assert f"| peer B (failed on 1 of 2 splits) |{' – |' * 12}" in page
    assert f"| peer B (time limit on 2 of 2 splits) |{' – |' * 12}" in page
    assert "| peer B | letters | 1 | failed | oops |" in page


def test_what_was_not_tried_is_called_skipped(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    old = {**store.find(set="words", seed=1, method="peer B")}
    store.add({**old, "error": "not finished after 5 s on another split, so not tried here"})
    page = report.render_sets(folder)
    assert "| peer B | words | 1 | time limit | not finished after 5 s |" in page
    assert "| peer B | words | 1 | skipped | not finished after 5 s on another split |" in page
    assert "| peer B (time limit on 1, skipped on 1 of 2 splits) |" in page
    store.add({**old, "status": "skipped", "error": "not finished after 5 s on another split"})
    assert report.render_sets(folder) == page


def test_a_set_that_has_begun_is_named_and_shown(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    before = report.render_sets(folder)
    row = store.find(set="letters", seed=0, method="none")
    store.add({**row, "set": "new_set"})
    page = report.render_sets(folder)
    assert "Not all methods were run on new\\_set yet, so it does not count." in page
    assert "### new\\_set" in page
    assert "3 methods, 2 sets of predictions, 2 splits of each." in page
    assert cells(page, "polycal A")[0] == cells(before, "polycal A")[0]
    store.add({**row, "seed": 7})
    assert "run on letters (split 7), new\\_set yet, so they do not count." in report.render_sets(folder)


def test_without_ranks_the_page_says_so(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    row = store.find(set="letters", seed=0, method="none")
    store.clear()
    for name, method in ("sa", "sb", "tb", "tc", "uc", "ua"):
        store.add({**row, "set": name, "method": method})
    report.write(folder, folder)
    assert recalibration_rendering.NO_RANKS in (folder / "benchmarks.md").read_text()
    assert not (folder / "images").exists()


def test_without_the_input_nothing_is_compared_with_it(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    rows = [row for row in store.rows if row["method"] != "none"]
    store.clear()
    for row in rows:
        store.add(row)
    assert cells(report.render_sets(folder), "polycal A")[0][8:10] == ["– / –", "– / –"]


def test_the_page_says_which_version_made_each_row(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    for row in store.rows:
        if row["method"] != "peer B":
            store.add({**row, "version": "1+old" if row["set"] == "words" else "1+new"})
    row = store.find(set="letters", seed=0, method="none")
    store.add({**row, "method": "netcal BBQ", "version": "1.3"})
    store.add({**row, "method": "polycal B", "version": None})
    page = report.render(folder)
    assert "  - 1+new: the input (none) (2 of 4 rows), A (2 of 4 rows).\n" in page
    assert "  - 1+old: the input (none) (2 of 4 rows), A (2 of 4 rows).\n" in page
    assert "  - not recorded: B.\n" in page
    assert "- Rows of other versions than these:\n  - netcal 1.3: netcal BBQ.\n" in page


def test_notes_on_the_calls_are_in_the_page(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    assert "Notes on the calls" not in report.render_sets(folder)
    store.add({**store.find(set="letters", seed=0, method="none"), "method": "venn-abers"})
    note = RECALIBRATORS["venn-abers"].note
    assert f"## Notes on the calls\n\n- venn-abers: {note}.\n" in report.render_sets(folder)


def test_file_names_need_not_be_text(folder):
    store = Store(folder / "recalibration.jsonl", recalibration.KEY)
    store.add({**store.find(set="letters", seed=0, method="none"), "set": "caf\udce9"})
    report.write(folder, folder)
    assert "### caf?" in (folder / "benchmarks-sets.md").read_text(encoding="utf-8")


def test_times_are_ratios_of_the_same_run(folder):
    page = report.render(folder)
    (slow,) = cells(page, "slow")
    assert slow == ["slow", "50 ms (50)", "500 ms (50)", "time limit", "1.00", "1 MiB"]


def test_power_is_in_the_page(folder):
    (test,) = cells(report.render(folder), "SKCE block")
    assert test[2:6] == ["0%", "50%", "100%", "0.16"]


def test_what_is_missing_and_where_it_was_made_is_in_the_page(folder):
    page = report.render(folder)
    assert "| peer C | needs \\| Julia |" in page
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


def test_repairs_for_rows_that_differ_are_averaged_over_seeds(folder):
    store = Store(folder / "multicalibration.jsonl", multicalibration.KEY)
    for seed, loss in enumerate((0.2, 0.4)):
        row = {"set": "s", "method": "m", "seed": seed, "log_loss": loss, "mce": 0.01, "mce_sigma": 2.0}
        store.add(row | {"seconds": 1.0})
    assert "| s: m | 2 | 0.3000 | 0.0100 | 2.0 | 1 s |" in report.render(folder)


def test_costs_are_compared_beyond_noise(folder):
    store = Store(folder / costs.FILE, costs.KEY)
    cases = {costs.BASELINE: (0.4, 0.0, 0.03), costs.KERNEL: (0.2, 0.2, 0.02), "peer": (0.44, -0.04, 0.01)}
    for method, (cost, saved, regret) in cases.items():
        row = {"set": "s", "method": method, "k": 4, "n": 100, "seconds": 1.0}
        for family in costs.FAMILIES:
            values = {"cost": cost, "saved": saved, "regret": regret, "kernel more": 0.02 - regret}
            row |= {f"{family} {column}": value for column, value in values.items()}
            row |= {f"{family} {column} error": 0.004 for column in values}
        # Less than nothing is nothing: there the flagship's own noise counts.
        row |= {"random regret error": 0.02, "ordinal kernel more error": 0.01}
        store.add(row | ({"random regret": -0.5} if method == "peer" else {}))
    page = report.render(folder)
    assert cells(page, costs.KERNEL)[0][2:] == ["0.500", "0.500", "0.500", "0 of 3", "5.00 %", "–", "–"]
    assert cells(page, "peer")[-1][1:] == [
        "1",
        "1.100",
        "1.100",
        "1.100",
        "3 of 3",
        "1.67 %",
        "1 of 3",
        "0 of 0",
    ]
    assert "cost no more than acting on the input in 3 of 3 cases. Its swap regret" in page
    assert (
        "in 0 of 3 cases; except (± a standard error) s, abstain, 0.02000 ± 0.00400 against 0.00000; " in page
    )


def test_a_page_without_results_says_so(tmp_path):
    assert report.render(tmp_path).count("Not run yet.") == 7
    assert "Not run yet." in report.render_sets(tmp_path)


def test_the_first_page_has_a_figure_and_two_short_tables(folder):
    page = report.render(folder)
    assert (
        page.index("leaderboard.png")
        < page.index("## Recalibration with few rows")
        < page.index("## Measuring")
    )
    ((_, *ranks, ratio, worse, fit),) = cells(page, "polycal A")
    assert ranks == ["1.5 ± 0.5"] * 2
    assert (ratio, worse, fit) == ("0.810 / 0.810", "0 / 0", "2 ms")


def test_few_rows_are_told_by_how_many_there_are(folder):
    store = Store(folder / small.FILE, recalibration.KEY)
    for name, n, k, given in (("a", 50, 2, 0.4), ("b", 100, 3, 0.2), ("c", 900, 2, 0.1)):
        row = {"set": name, "seed": 0, "k": k, "n_calibration": n, "status": "ok"}
        store.add({**row, "method": "none", "log_loss": given, "brier": given})
        store.add({**row, "method": "bold", "log_loss": 0.3, "brier": 0.2})
    store.add({**row, "method": "broken", "status": "failed", "error": "oops"})
    page = report.render(folder)
    assert "3 tasks" in page
    (bold,) = cells(page, "bold")
    few = (0.301 / 0.401 * 0.301 / 0.201) ** 0.5
    assert bold[1].startswith(f"{few:.3f} / ")
    assert bold[1].endswith(", 50%")
    assert bold[2].startswith("2.980 / 1.990, 100%")
    assert bold[-2:] == ["2.98", "0"]
    assert cells(page, "broken") == [["broken", "–", "–", "–", "–", "1"]]
    assert (
        "| method | below 120 rows (2) | 400 to 1,500 rows (1) | two classes (2) | worst | failed |" in page
    )


def test_results_kept_apart_are_reported_beside_them(folder):
    report.main(parse(["report", "--quick", "--results", str(folder)]))
    assert (folder / "images" / "leaderboard.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "benchmarks.md").read_text()
    assert page == report.render(folder)
    assert (folder / "benchmarks-sets.md").read_text() == report.render_sets(folder)
    assert "benchmarks/results" not in page


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"there is no folder of results .*nowhere"):
        report.main(parse(["report", "--results", str(tmp_path / "nowhere")]))


@pytest.mark.parametrize("is_relative", [False, True])
def test_the_results_are_reported_in_the_documentation(folder, tmp_path, monkeypatch, is_relative):
    docs = tmp_path / "docs"
    docs.mkdir()
    monkeypatch.setattr(report, "FOLDER", folder)
    monkeypatch.setattr(report, "DOCS", docs)
    monkeypatch.chdir(folder.parent)
    report.main(parse(["report", "--results", folder.name if is_relative else str(folder)]))
    assert "from the data in `benchmarks/results`" in (docs / "benchmarks.md").read_text()
    assert not (folder / "benchmarks.md").exists()


@pytest.mark.parametrize(
    ("value", "shown"),
    [(2.5, "2.5 s"), (0.0025, "2.5 ms"), (2.5e-6, "2.5 µs"), (1e-9, "0.001 µs"), (float("nan"), "–")],
)
def test_seconds_have_a_readable_unit(value, shown):
    assert markdown.seconds(value) == shown


def test_text_columns_stand_left():
    assert markdown.table(["a", "n", "b"], [["x", 1, "y"]], text=(0, 2)).splitlines()[1] == "|---|--:|---|"


@pytest.mark.parametrize(("n", "said"), [(1, "1 set"), (0, "0 sets"), (1200, "1,200 sets")])
def test_one_is_singular(n, said):
    assert markdown.count(n, "set") == said


def test_escaped_text_is_one_line_without_meaning():
    assert markdown.escape("a_b\n <i>|\\ ") == r"a\_b &lt;i&gt;\|\\"
    assert markdown.escape("-1.5 (2) ± 3e-4, x/y") == "-1.5 (2) ± 3e-4, x/y"


@pytest.mark.parametrize(
    "name",
    [
        "a_b_c",
        "`x`",
        "[a](b)",
        "&lt; & <b>",
        "a|b",
        "\\|",
        "end\\",
        "*a* **b**",
        "~~a~~ $x$ #",
        "# a",
        "![i](j)",
    ],
)
def test_names_are_shown_as_they_are_in_headings_and_in_cells(name):
    """Read back with a parser of Markdown: one plain text, the same in both."""
    parser = pytest.importorskip("markdown_it").MarkdownIt().enable(["table", "strikethrough"])
    page = f"#### {markdown.escape(name)}\n\n" + markdown.table(["name", "n"], [[name, 1]])
    inline = [token for token in parser.parse(page) if token.type == "inline"]
    assert len(inline) == 5
    for token in (inline[0], inline[3]):
        assert {child.type for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children) == name


def test_sections_are_checked(capsys):
    assert parse(["report", "--quick"]).sections == ["report"]
    with pytest.raises(SystemExit):
        parse(["nonsense"])
    assert "no section called nonsense" in capsys.readouterr().err
