"""Slices from the command: columns of the file or of another one, and gates that see them."""

import json

import numpy as np
import pandas as pd
import pytest

import polycal as pc

QUICK = ("--notion", "confidence", "--quiet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slices")
    data = pc.datasets.make_slices(2400, temperature=0.2, random_state=0)
    column, codes = data.features.column("device")
    device = np.array(column.categories)[codes.astype(int)]
    frame = pd.DataFrame(data.proba, columns=[f"c {c}" for c in range(10)])
    frame = frame.assign(label=[f"c {c}" for c in data.labels], **{"user id": np.arange(2400)})
    frame.to_csv(folder / "p.csv", index=False)
    users = pd.DataFrame({"user id": np.arange(2400), "device": device, "note": "x"})
    users.iloc[::-1].to_csv(folder / "users.csv", index=False)
    return folder


def test_features_of_another_file_are_sliced_by(run, folder):
    given = ("--features", folder / "users.csv", "--key", "user id", "--slice-by", "device")
    done = run("audit", folder / "p.csv", *given, *QUICK, "--json")
    found = json.loads(done.stdout)
    assert found["slices"][0]["rows"]["columns"] == {"device": "tablet"}
    assert [one["name"] for one in found["named_slices"]][:2] == ["device is phone", "device is laptop"]
    failed = run("audit", folder / "p.csv", *given, *QUICK, "--fail-above", "0.05", "--pass-below", "0.9")
    assert failed.returncode == 1
    assert "failed: where device is tablet" in failed.stderr
    assert "--pass-below" not in failed.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--key", "user id"), "--key is for --features"),
        (("--slice-by", "devise"), "no column 'devise' for --slice-by"),
        (("--features", "users.csv", "--drop", "user id", "--key", "user"), "no column 'user'"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_line(run, folder, options, message):
    done = run("audit", "p.csv", *options, cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_calibrator_with_features_is_fitted_and_applied(run, tmp_path):
    data = pc.datasets.make_slices(1200, temperature=0.2, random_state=0)
    column, codes = data.features.column("device")
    frame = pd.DataFrame(data.proba, columns=[f"c{c}" for c in range(10)]).assign(
        label=[f"c{c}" for c in data.labels], device=np.array(column.categories)[codes.astype(int)]
    )
    path, model, out = tmp_path / "p.csv", tmp_path / "m.polycal", tmp_path / "q.csv"
    frame.to_csv(path, index=False)
    fitted = run("recalibrate", path, "--slice-by", "device", "--out", model, "--json")
    assert json.loads(fitted.stdout)["method"] == "multicalibrated"
    calibrator = pc.load(model)
    assert calibrator.feature_names_ == ("device",)
    assert run("apply", model, path, "--out", out).returncode == 0
    expected = calibrator.predict_proba(data.proba, features=frame[["device"]])
    np.testing.assert_allclose(pc.read_predictions(out).proba, expected, atol=1e-6)
    refused = run("recalibrate", path, "--slice-by", "device", "--method", "beta", "--out", model)
    assert "--slice-by is for --method kernel" in refused.stderr
