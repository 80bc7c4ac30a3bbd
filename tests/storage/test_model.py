import json
import zipfile

import numpy as np
import pytest

from polycal.storage.archive import read_arrays, write_arrays
from polycal.storage.model import FORMAT, load_object, save_object

ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "names": np.array(["a", "ü"]), "flags": np.array([True])}
TREE = {"is": "thing/any", "degree": 2, "names": ["<b>", "ü"]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "thing.polycal"
    save_object(path, TREE, ARRAYS)
    return path


def test_roundtrip(path):
    tree, arrays = load_object(path)
    assert tree == TREE
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array)


def rewrite(path, **changes):
    arrays = read_arrays(path, None, 1 << 20)
    header = json.loads(arrays["polycal_header"].tobytes())
    header.update(changes)
    arrays["polycal_header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    write_arrays(path, arrays)


def test_a_newer_format_is_refused(path):
    rewrite(path, format=FORMAT + 1)
    with pytest.raises(ValueError, match="newer polycal"):
        load_object(path)


def test_a_changed_array_is_refused(path):
    arrays = read_arrays(path, None, 1 << 20)
    arrays["weights"] = arrays["weights"] + 1e-9
    write_arrays(path, arrays)
    with pytest.raises(ValueError, match="checksum does not fit"):
        load_object(path)


@pytest.mark.parametrize("wrong", [{"format": "2"}, {"format": 1}, {"format": 1, "kind": 3, "meta": {}}])
def test_a_wrong_header_is_refused(path, wrong):
    rewrite(path, **wrong)
    with pytest.raises(ValueError, match="cannot be read as a file saved by polycal"):
        load_object(path)


def test_a_changed_header_is_refused(path):
    rewrite(path, object=TREE | {"degree": 3})
    with pytest.raises(ValueError, match="checksum does not fit"):
        load_object(path)


def test_other_archives_are_refused(tmp_path):
    np.savez(tmp_path / "other.npz", proba=np.ones(3))
    with pytest.raises(ValueError, match="is not a file saved by polycal"):
        load_object(tmp_path / "other.npz")


def test_pickles_are_refused(tmp_path):
    header = np.frombuffer(b"{}", dtype=np.uint8)
    np.savez(tmp_path / "bad.npz", polycal_header=header, evil=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="never loads"):
        load_object(tmp_path / "bad.npz")


def test_bombs_are_refused(path):
    with pytest.raises(ValueError, match="more than the limit"):
        load_object(path, max_bytes=10)


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.6, 0.95])
def test_truncated_files_are_refused(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(ValueError, match=r"thing\.polycal"):
        load_object(path)


def test_every_flipped_byte_is_noticed_or_harmless(path):
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(bytes(damaged))
        try:
            tree, arrays = load_object(path)
        except (ValueError, MemoryError):
            continue
        assert tree == TREE
        np.testing.assert_array_equal(arrays["weights"], ARRAYS["weights"])


def test_missing_folders_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_object(tmp_path / "nowhere" / "x.polycal", {}, {})


def test_the_file_is_a_plain_archive(path):
    assert zipfile.is_zipfile(path)
