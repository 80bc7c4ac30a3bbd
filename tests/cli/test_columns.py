"""Options that say what the columns of a file are: every subcommand that reads predictions takes them."""

import gzip
import json

import numpy as np
import pytest

ROWS = np.random.default_rng(0).dirichlet(np.ones(3), 120)
TRUTH = [int(np.random.default_rng(i).choice(3, p=row)) for i, row in enumerate(ROWS)]
TEXT = "id,x,y,z,truth\n" + "\n".join(
    f"a{i},{','.join(f'{p:.3f}' for p in row)},{'xyz'[t]}"
    for i, (row, t) in enumerate(zip(ROWS, TRUTH, strict=True))
)
OPTIONS = ["--label", "truth", "--drop", "id", "--normalize"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(TEXT)
    return path


def test_what_was_made_of_the_columns_is_said(run, table):
    done = run("audit", table, *OPTIONS)
    assert done.returncode == 0
    assert "columns taken for classes: 'x', 'y', 'z'" in done.stdout
    assert "rows are divided by their sums" in done.stdout
    assert "taken for classes" not in run("audit", table, *OPTIONS, "--quiet").stdout
    assert json.loads(run("audit", table, *OPTIONS, "--json").stdout)["n_classes"] == 3
    named = run("audit", table, "--label", "truth", "--classes", "x,y,z", "--normalize")
    assert "columns not used: 'id'" in named.stdout


def test_every_subcommand_takes_them(run, table, tmp_path):
    model, out = tmp_path / "m.polycal", tmp_path / "out.tsv"
    assert run("recalibrate", table, *OPTIONS, "--method", "temperature", "--out", model).returncode == 0
    assert run("apply", model, table, *OPTIONS, "--out", out).returncode == 0
    assert out.read_text().startswith("label\tx\ty\tz\n")
    assert run("compare", table, table, *OPTIONS, "--method", "temperature").returncode == 0


@pytest.mark.parametrize(("packed", "said"), [(False, "csv"), (True, None)])
def test_standard_input_may_be_of_any_format(run, tmp_path, packed, said):
    path = tmp_path / "stdin"
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    with path.open("rb") as stdin:
        done = run(
            "audit", "-", *OPTIONS, *([] if said is None else ["--format", said]), "--json", stdin=stdin
        )
    assert json.loads(done.stdout)["n_samples"] == 120


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--label id or --drop id"),
        (["--drop", "id"], "--label truth or --drop truth"),
        (["--drop", "id,truth"], "name them by --label"),
        (["--drop", "id", "--label", "truth"], "if they were rounded, use --normalize"),
        (["--drop", "id", "--label", "Truth"], "did you mean 'truth'"),
        (["--format", "tsv"], "the columns are not separated by tabs; say so by --format csv"),
    ],
)
def test_errors_advise_options_of_the_command(run, table, options, said):
    done = run("audit", table, *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_column_that_is_no_class_is_named(run, tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("id,a,b,label\n17,.5,.5,a\n18,.25,.75,b\n")
    done = run("audit", path)
    assert "columns taken for classes: 'id', 'a', 'b'" in done.stderr.lower()
    path.write_text("fold,a,b,label\n" + "0,.5,.5,a\n0,.25,.75,b\n" * 5)
    assert "'fold', 'a', 'b'" in run("audit", path).stdout
