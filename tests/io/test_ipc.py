import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as pf
import pytest

from polycal.io._ipc import read_claim

TABLE = pa.table(
    {
        "a": np.arange(1000) / 7,
        "b": np.zeros(1000, dtype=np.float32),
        "label": pa.array(["cat", "dog", None, "emu"] * 250),
        "group": pa.array(["x", "y"] * 500).dictionary_encode(),
    }
)


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("chunksize", [1000, 77])
def test_the_claim_is_what_the_columns_take(tmp_path, compression, chunksize):
    path = tmp_path / "a.feather"
    pf.write_feather(TABLE, path, compression=compression, chunksize=chunksize)
    n_rows, n_bytes = read_claim(path)
    assert n_rows == 1000
    # Offsets and masks of text are repeated in each batch.
    assert TABLE.nbytes <= n_bytes <= 1.1 * TABLE.nbytes + 100


def test_a_file_by_polars(tmp_path):
    path = tmp_path / "a.feather"
    pl.DataFrame({"a": np.zeros(10**5)}).write_ipc(path, compression="zstd")
    assert path.stat().st_size < 10**4
    assert read_claim(path) == (10**5, 8 * 10**5)


def test_a_file_without_batches(tmp_path):
    path = tmp_path / "a.feather"
    with pa.ipc.new_file(path, TABLE.schema):
        pass
    assert read_claim(path) == (0, 0)


def test_rubbish_raises(tmp_path):
    path = tmp_path / "a.feather"
    rng = np.random.default_rng(0)
    for size in (1, 10, 16, 100, 1000):
        for _ in range(50):
            path.write_bytes(b"ARROW1\0\0" + rng.bytes(size) + b"ARROW1")
            try:
                n_rows, n_bytes = read_claim(path)
            except Exception:  # anything but a crash: the caller reports it
                continue
            assert isinstance(n_rows, int)
            assert isinstance(n_bytes, int)
