import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from polycal.io import read_predictions, read_probabilities, write_predictions

HEADER = "cat,dog,label\n"


def write(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "preds.csv"
    path.write_text(text, encoding=encoding, newline="")
    return path


def test_classes_are_the_columns_that_are_not_special(tmp_path):
    path = write(tmp_path, "weight,cat,label,dog,evaluation\n2,0.25,dog,0.75,true\n1,1,cat,0,False\n")
    sample = read_predictions(path)
    np.testing.assert_array_equal(sample.proba, [[0.25, 0.75], [1, 0]])
    np.testing.assert_array_equal(sample.labels, [1, 0])
    np.testing.assert_array_equal(sample.sample_weight, [2, 1])
    assert sample.class_names == ("cat", "dog")
    assert sample.proba.flags.c_contiguous
    np.testing.assert_array_equal(read_predictions(path, part="evaluation").labels, [1])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
def test_dialects(tmp_path, newline, encoding, end):
    text = 'émeu,"a ""b"", #c",label\n\n0.5, 0.5,émeu\n"1e-1",.9,"a ""b"", #c"' + end
    sample = read_predictions(write(tmp_path, text.replace("\n", newline), encoding))
    assert sample.class_names == ("émeu", 'a "b", #c')
    np.testing.assert_array_equal(sample.proba, [[0.5, 0.5], [0.1, 0.9]])
    np.testing.assert_array_equal(sample.labels, [0, 1])


@pytest.mark.parametrize(
    ("columns", "labels", "expected", "names"),
    [
        ("0,1", "1,0", [1, 0], None),
        ("1,2", "1,2", [0, 1], ("1", "2")),
        ("a,b", "1.0,0.0", [1, 0], ("a", "b")),
        ("a,b", "b,a", [1, 0], ("a", "b")),
    ],
)
def test_labels_are_names_or_else_positions(tmp_path, columns, labels, expected, names):
    first, second = labels.split(",")
    sample = read_predictions(write(tmp_path, f"{columns},label\n0.5,0.5,{first}\n0.5,0.5,{second}\n"))
    np.testing.assert_array_equal(sample.labels, expected)
    assert sample.class_names == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; the first line must name the columns"),
        ("\n\n", "the file is empty"),
        (HEADER, "there is a header but no row"),
        (HEADER + "\n \n", "there is a header but no row"),
        ("label\n1\n", "there is no column of probabilities"),
        ("cat,dog,cat,label\n", "two columns are called 'cat'"),
        ("weight,sample_weight,cat,label\n", "'weight' and 'sample_weight'; keep one"),
        ("cat,,dog,label\n0.5,0,0.5,cat\n", "column 2 has no name; name it"),
        ("cat;dog;label\n0.5;0.5;cat\n", "not separated by commas"),
        ("cat,dog\n0.5,0.5\n", "the file has no labels; give it a column 'label'"),
        (HEADER + "0.5,0.5,cat\n0.5,x1,dog\n", "line 3, column 'dog' is 'x1', which is not a number"),
        (HEADER + "\n0.5,,cat\n", "line 3, column 'dog' is empty"),
        (HEADER + "0.5,0.5,cat\n\n0.5,0.5\n", "line 4 has 2 cells but the header has 3"),
        (HEADER + "0.5,0.5\n0.5,0.5\n", "line 2 has 2 cells but the header has 3"),
        (HEADER + "0.5,0.5,cat,1\n", "line 2 has 4 cells but the header has 3"),
        (
            HEADER + "0.5,0.5,cat\n0.5,0.5,cow\n",
            r"label\[1\] is 'cow': labels must all be class names \('cat', 'dog'\)",
        ),
        (HEADER + "0.5,0.5,cat\n0.5,0.5,1\n", r"label\[1\] is '1'"),
        (HEADER + "0.5,0.5,1\n0.5,0.5,0.5\n", r"label\[1\] is '0.5'"),
        (HEADER + "0.5,0.5,1\n0.5,0.5,\n", r"label\[1\] is ''"),
        (HEADER + "0.5,0.5,1\n0.5,0.5,nan\n", r"label\[1\] is 'nan'"),
        (HEADER + "0.5,0.5,2\n", r"y_true\[0\] is outside 0..1"),
        (HEADER + "0.5,nan,cat\n", r"y_proba\[0\] holds a NaN"),
        (HEADER + "1e300,1e300,cat\n", r"y_proba\[0\] does not sum to 1"),
        (HEADER + "0.5,0.6,cat\n", r"y_proba\[0\] does not sum to 1; its sum is 1.1"),
        (
            "id,cat,dog,label\nx7,0.5,0.5,cat\n",
            "column 'id' is 'x7', .* taken for a class, .* drop=",
        ),
        ("cat,dog,label,evaluation\n0.5,0.5,cat,maybe\n", r"evaluation\[0\] is 'maybe'; use true or false"),
    ],
)
def test_bad_files(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        read_predictions(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("place", ["header", "body"])
def test_not_utf8(tmp_path, place):
    text = "émeu,dog,label\n0.5,0.5,0\n" if place == "header" else HEADER + "0.5,0.5,0\n0.5,0.5,émeu\n"
    with pytest.raises(ValueError, match=r"cannot be read as CSV in UTF-8: .*UnicodeDecodeError"):
        read_predictions(write(tmp_path, text, encoding="latin-1"))


def test_binary_rubbish(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_bytes(np.random.default_rng(0).bytes(4000))
    with pytest.raises(ValueError, match="truncated or corrupt"):
        read_predictions(path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_read_back_exactly(tmp_path, dtype):
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.full(7, 0.1), 400).astype(dtype)
    path = tmp_path / "a.csv"
    write_predictions(path, rng.integers(0, 7, 400), proba, sample_weight=rng.random(400))
    once = read_predictions(path)
    assert once.proba.dtype == dtype
    np.testing.assert_array_equal(once.proba, proba)
    assert path.read_text().count("\n") == 401


def test_rounded_numbers_are_accepted_as_far_as_float32_would_be(tmp_path):
    path = write(tmp_path, HEADER + "0.3333,0.6667,cat\n0.33333,0.66666,dog\n0.5,0.5,dog\n")
    proba = read_predictions(path).proba
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-7)
    with pytest.raises(ValueError, match=r"y_proba\[0\] does not sum to 1"):
        read_predictions(write(tmp_path, HEADER + "0.33,0.66,cat\n"))


def test_a_cut_last_row_does_not_pass_for_rounding(tmp_path, predictions):
    path = tmp_path / "a.csv"
    write_predictions(path, predictions.labels, predictions.proba, class_names=predictions.names)
    text = path.read_text(encoding="utf-8")
    last = len(text) - text.rstrip("\n").rfind("\n")
    for cut in range(2, last - 1):
        path.write_text(text[:-cut], encoding="utf-8")
        try:
            sample = read_predictions(path)
        except ValueError as error:
            assert re.search("sum to 1|cells|label|empty|not a number", str(error))  # noqa: PT017
        else:
            np.testing.assert_allclose(sample.proba, predictions.proba, atol=2e-8)


def test_written_by_pandas(tmp_path, predictions):
    frame = pd.DataFrame(predictions.proba, columns=list(predictions.names))
    frame["label"] = [predictions.names[i] for i in predictions.labels]
    frame["weight"] = predictions.weight
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert predictions.agree_with(read_predictions(tmp_path / "a.csv"))


def test_read_by_pandas(tmp_path, predictions):
    path = tmp_path / "a.csv"
    write_predictions(path, predictions.labels, predictions.proba, class_names=predictions.names)
    frame = pd.read_csv(path)
    assert list(frame.columns) == ["label", *predictions.names]
    np.testing.assert_allclose(frame[list(predictions.names)].to_numpy(), predictions.proba, rtol=1e-15)


@pytest.mark.parametrize("name", ["label", "weight", "sample_weight", "evaluation", ""])
def test_a_class_name_that_means_something_else(tmp_path, name):
    with pytest.raises(ValueError, match=f"cannot have a class column called '{name}'"):
        write_predictions(tmp_path / "a.csv", [0], [[0.5, 0.5]], class_names=["x", name])
    assert not list(tmp_path.iterdir())


def test_names_with_newlines(tmp_path):
    names = ["two\nlines", "tab\t", " spaces "]
    write_predictions(tmp_path / "a.csv", [0, 1, 2], np.full((3, 3), 1 / 3), class_names=names)
    sample = read_predictions(tmp_path / "a.csv")
    assert list(sample.class_names) == names
    np.testing.assert_array_equal(sample.labels, [0, 1, 2])


def test_probabilities_without_labels(tmp_path):
    proba, names = read_probabilities(write(tmp_path, "cat,dog\n0.5,0.5\n"))
    assert proba.shape == (1, 2)
    assert names == ("cat", "dog")


WIDE = """
import sys
import polycal as pc

for path in sys.argv[1:]:
    try:
        print(pc.read_predictions(path).n_classes)
    except ValueError as error:
        print(error)
"""


def test_the_time_is_linear_in_the_columns(tmp_path):
    n_classes = 300_000
    names = [f"c{i}" for i in range(n_classes)]
    row = ["1", *["0"] * (n_classes - 1)]
    wide, twice = tmp_path / "wide.csv", tmp_path / "twice.csv"
    wide.write_text(",".join([*names, "label"]) + "\n" + ",".join([*row, "c1"]) + "\n")
    twice.write_text(",".join([*names, names[-1]]) + "\n")
    command = [sys.executable, "-c", WIDE, str(wide), str(twice)]
    # Seconds; quadratic it takes hours.
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    first, second = done.stdout.splitlines()
    assert first == str(n_classes)
    assert "two columns are called 'c299999'" in second
