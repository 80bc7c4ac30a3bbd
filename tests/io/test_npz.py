import io
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from polycal import CalibrationWarning
from polycal.io import read_predictions, read_probabilities, write_predictions
from polycal.io.layout import Layout
from polycal.io.npz import NpzReader
from polycal.io.predictions import read_with_roles
from polycal.storage.archive import open_npy

PROBA = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
LABELS = np.array([1, 0, 0])


def save(path, **arrays):
    np.savez(path, **{"proba": PROBA, "labels": LABELS, **arrays})
    return path


def npy_bytes(header, payload=b"", version=(1, 0)):
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + payload


def header(shape, descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def zipped(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


# Archives


def test_arrays_by_their_names(tmp_path):
    weight = np.array([1.0, 2.0, 0.0])
    path = save(
        tmp_path / "a.npz", sample_weight=weight, class_names=np.array(["no", "yes"]), features=np.ones(9)
    )
    sample = read_predictions(path, drop=["features"])
    np.testing.assert_array_equal(sample.proba, PROBA)
    np.testing.assert_array_equal(sample.labels, LABELS)
    np.testing.assert_array_equal(sample.sample_weight, weight)
    assert sample.class_names == ("no", "yes")


def test_compressed_archive_and_text_labels(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(
        path, proba=PROBA, labels=np.array(["yes", "no", "no"]), class_names=np.array(["no", "yes"])
    )
    np.testing.assert_array_equal(read_predictions(path).labels, LABELS)


def test_logits(tmp_path):
    logits = np.log(PROBA[:2])
    np.savez(tmp_path / "a.npz", logits=logits, labels=LABELS[:2])
    np.testing.assert_allclose(read_predictions(tmp_path / "a.npz").proba, PROBA[:2])


def test_arrays_with_other_names_are_not_decompressed(tmp_path):
    path = save(tmp_path / "a.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("notes.txt", "not an array")
        archive.writestr("features.npy", pickle.dumps([1]))
    with pytest.warns(CalibrationWarning, match=r"arrays not used: 'notes.txt', 'features'"):
        assert read_predictions(path).n_samples == 3
    assert read_predictions(path, drop=["notes.txt", "feat*"]).n_samples == 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"logits": PROBA}, "both 'proba' and 'logits'"),
        ({"weight": np.ones(3), "sample_weight": np.ones(3)}, "both 'weight' and 'sample_weight'; keep one"),
        ({"class_names": np.array([1, 2])}, "class_names must be one text per class"),
        ({"class_names": np.array([["a", "b"]])}, "class_names must be one text per class"),
        ({"weight": np.ones(2)}, "sample_weight has 2 entries"),
        ({"labels": np.ones(3, dtype="datetime64[s]")}, "labels.npy of an .npz archive holds datetime64"),
        ({"proba": np.ones(3, dtype=[("a", "f8")])}, "save plain numbers or text"),
        ({"proba": PROBA * 2}, r"y_proba\[0\] does not sum to 1"),
        ({"proba": PROBA[:0]}, "y_proba is empty"),
    ],
)
def test_wrong_arrays(tmp_path, arrays, message):
    path = save(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        read_predictions(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_neither_proba_nor_logits(tmp_path):
    np.savez(tmp_path / "a.npz", outputs=PROBA)
    with pytest.raises(ValueError, match="neither 'proba' nor 'logits'"):
        read_predictions(tmp_path / "a.npz")


def test_arrays_with_the_names_that_others_use_are_taken_and_told(tmp_path):
    np.savez(tmp_path / "a.npz", probs=PROBA, y=np.zeros(len(PROBA), int), fold=np.zeros(len(PROBA)))
    with pytest.warns(CalibrationWarning, match="^arrays not used: 'fold'"):
        sample, roles = read_with_roles(tmp_path / "a.npz", "all", Layout())
    np.testing.assert_array_equal(sample.proba, PROBA)
    assert str(roles).startswith("arrays taken for predictions and labels: 'probs', 'y' (if that is wrong")
    # Our own names go first, and what is named needs no telling.
    np.savez(tmp_path / "b.npz", proba=PROBA, probs=PROBA, labels=np.zeros(len(PROBA), int))
    _, roles = read_with_roles(tmp_path / "b.npz", "all", Layout(drop=["probs"]))
    assert str(roles) == ""


# Hostile files


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_a_pickle_is_never_loaded(tmp_path):
    objects = np.empty(3, dtype=object)
    objects[:] = Bomb()
    save(tmp_path / "a.npz", labels=objects)
    np.save(tmp_path / "a.npy", objects)
    for name in ("a.npz", "a.npy"):
        with pytest.raises(ValueError, match=r"Python objects \(a pickle\), which polycal never loads"):
            read_probabilities(tmp_path / name)
    for name in ("b.npz", "b.npy"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(ValueError, match="truncated or corrupt"):
            read_probabilities(tmp_path / name)
    zipped(tmp_path / "c.npz", {"proba.npy": pickle.dumps(Bomb())})
    with pytest.raises(ValueError, match="truncated or corrupt"):
        read_probabilities(tmp_path / "c.npz")


def test_an_archive_that_claims_too_much_is_refused_unopened(tmp_path):
    path = zipped(tmp_path / "bomb.npz", {"x.npy": bytes(1 << 22)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1 << 14
    with pytest.raises(ValueError, match=r"claims to unpack to .*4,194,304 bytes.*max_bytes=4194304"):
        NpzReader(path, 1 << 20).read()


def test_a_raised_limit_lets_it_pass(tmp_path):
    path = save(tmp_path / "a.npz")
    with zipfile.ZipFile(path) as archive:
        claim = sum(member.file_size for member in archive.infolist())
    assert read_predictions(path, max_bytes=claim).n_samples == 3
    with pytest.raises(ValueError, match="the limit"):
        read_predictions(path, max_bytes=claim - 1)


@pytest.mark.parametrize(
    "content",
    [
        npy_bytes(header((10**9, 10**6))),
        npy_bytes(header((10**15,), "'<U0'")),
        npy_bytes(header((-2, -4)), bytes(64)),
        npy_bytes(header((0, 10**30))),
        npy_bytes(header((2, 2)), bytes(24)),
        npy_bytes(header((2, 2)), bytes(40)),
        npy_bytes(header((2,), "('<f8', (10**9,))")),
        npy_bytes(header((2,), "[('a', '<f8')]"), bytes(16), version=(3, 0)),
        npy_bytes(header((1,)) + " " * 20_000, bytes(8), version=(2, 0)),
        npy_bytes("[" * 5000),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100),
    ],
    ids=[
        "huge",
        "no width",
        "negative",
        "overflow",
        "short",
        "long",
        "subarray",
        "version",
        "header",
        "nested",
        "4 GiB",
    ],
)
def test_hostile_headers(tmp_path, content):
    (tmp_path / "a.npy").write_bytes(content)
    zipped(tmp_path / "a.npz", {"proba.npy": content})
    for name in ("a.npy", "a.npz"):
        with pytest.raises(
            ValueError, match=r"a\.np[yz]: .*(truncated or corrupt|save plain numbers|is empty)"
        ):
            read_probabilities(tmp_path / name)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path):
    path = save(tmp_path / "a.npz")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", b"")
    with pytest.raises(ValueError, match="two arrays of the same name"):
        read_predictions(path)


@pytest.mark.parametrize("save_archive", [np.savez, np.savez_compressed])
def test_damaged_archives_never_give_other_data(tmp_path, predictions, damaged, save_archive):
    path = tmp_path / "a.npz"
    arrays = {"proba": predictions.proba, "labels": predictions.labels, "weight": predictions.weight}
    save_archive(path, **arrays, class_names=np.array(predictions.names))
    truncated, flipped = damaged(path.read_bytes())
    for data in truncated:
        path.write_bytes(data)
        with pytest.raises(ValueError, match="truncated or corrupt"):
            read_predictions(path)
    for data in flipped:
        path.write_bytes(data)
        try:
            sample = read_predictions(path)
        except ValueError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
        else:
            assert predictions.agree_with(sample)


# Single arrays


def test_npy_of_two_classes_in_fortran_order_and_halves(tmp_path):
    np.save(tmp_path / "binary.npy", PROBA[:, 1])
    np.save(tmp_path / "fortran.npy", np.asfortranarray(PROBA))
    np.save(tmp_path / "half.npy", PROBA.astype(np.float16))
    for name in ("binary", "fortran", "half"):
        proba, _ = read_probabilities(tmp_path / f"{name}.npy")
        np.testing.assert_array_equal(proba, PROBA)


def test_files_beside_the_array(tmp_path, predictions):
    path = tmp_path / "val.set.npy"
    write_predictions(
        path,
        predictions.labels,
        predictions.proba,
        sample_weight=predictions.weight,
        class_names=predictions.names,
    )
    assert {p.name for p in tmp_path.iterdir()} == {
        "val.set.npy",
        "val.set.labels.npy",
        "val.set.weight.npy",
        "val.set.class_names.json",
    }
    assert predictions.agree_with(read_predictions(path))


def test_a_stale_file_beside_the_array_is_not_taken_for_new(tmp_path):
    path = tmp_path / "a.npy"
    write_predictions(path, LABELS, PROBA)
    with pytest.raises(ValueError, match=r"a\.labels\.npy would be read with the new array"):
        write_predictions(path, None, PROBA)


def test_errors_name_the_file_beside_the_array(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, PROBA)
    names = tmp_path / "a.class_names.json"
    for text, message in (
        ("{", "cannot be read as JSON"),
        ('{"a": 1}', "list of class names"),
        ("[1, 2]", "list of"),
    ):
        names.write_text(text)
        with pytest.raises(ValueError, match=rf"a\.npy: a\.class_names\.json: .*{message}"):
            read_probabilities(path)
    names.write_text(json.dumps(["no", "yes"]))
    (tmp_path / "a.labels.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(ValueError, match=r"a\.npy: a\.labels\.npy: .*truncated or corrupt"):
        read_predictions(path)


def test_truncated_arrays_are_refused_and_flipped_bytes_do_no_harm(tmp_path, predictions, damaged):
    path = tmp_path / "a.npy"
    np.save(path, predictions.proba)
    truncated, flipped = damaged(path.read_bytes())
    for data in truncated:
        path.write_bytes(data)
        with pytest.raises(ValueError, match="truncated or corrupt"):
            read_probabilities(path)
    for data in flipped:
        path.write_bytes(data)
        try:
            proba, _ = read_probabilities(path)
        except (ValueError, TypeError):
            continue
        # There is no checksum, but a change that keeps the rows' sums is a small one.
        np.testing.assert_allclose(proba, predictions.proba, atol=1e-7)


def test_an_archive_with_trailing_bytes_in_an_array(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, PROBA)
    zipped(tmp_path / "a.npz", {"proba.npy": buffer.getvalue() + b"more"})
    with pytest.raises(ValueError, match="48 bytes, but 52 follow"):
        read_probabilities(tmp_path / "a.npz")


def test_two_members_of_one_array(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, PROBA)
    data = buffer.getvalue()
    zipped(tmp_path / "a.npz", {"proba": data, "proba.npy": data})
    with pytest.raises(ValueError, match=r"a\.npz: the archive holds two arrays of the same name, 'proba'"):
        read_probabilities(tmp_path / "a.npz")


CUT = """
import os, sys
import polycal as pc

sample = pc.read_predictions(sys.argv[1])
os.truncate(sys.argv[1], 4096)
print(sample.proba.sum())
"""


def test_an_array_that_is_cut_does_not_end_the_process(tmp_path):
    write_predictions(tmp_path / "a.npy", np.zeros(5000, int), np.full((5000, 4), 0.25))
    command = [sys.executable, "-c", CUT, str(tmp_path / "a.npy")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "5000.0\n")


def test_an_array_that_is_cut_between_chunks(tmp_path):
    path = tmp_path / "a.npy"
    for order in "CF":
        np.save(path, np.full((5000, 4), 0.25, order=order))
        array = open_npy(path)
        np.testing.assert_array_equal(array.rows(slice(4000, 9000)), np.full((1000, 4), 0.25))
        os.truncate(path, 4096)
        for read in (array.read, lambda array=array: array.rows(slice(4000, 5000))):
            with pytest.raises(ValueError, match="truncated or corrupt"):
                read()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["labels.npy", "weight.npy", "class_names.json"])
def test_a_pipe_beside_the_array_does_not_hang(tmp_path, name):
    np.save(tmp_path / "a.npy", PROBA)
    os.mkfifo(tmp_path / f"a.{name}")
    code = "import sys, polycal; polycal.read_probabilities(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "a.npy")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert "is a pipe or a device" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("code", [0xD800, 0x110000, 0xFFFFFFFF])
def test_class_names_are_characters(tmp_path, code):
    names = np.array(["aa", "b"])
    names.view(np.uint32)[0] = code
    path = save(tmp_path / "a.npz", class_names=names)
    with pytest.raises(ValueError, match=r"a\.npz: the class name .* holds a code point that"):
        read_predictions(path)
