import numpy as np
import pytest

from polycal._compiled.kernels import agreement_sums, geometric_sum


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("columns", [1, 1023, 1024, 1025, 3000])
def test_geometric_sum_across_chunks(columns, dtype):
    block = np.random.default_rng(0).random((3, columns)).astype(dtype)
    expected = sum(block.astype(float) ** i for i in range(6))
    geometric_sum(block, 5)
    assert block.dtype == dtype
    np.testing.assert_allclose(block, expected, rtol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_agreement_sums(offset):
    rng = np.random.default_rng(0)
    block, left, right = rng.random((4, 7)), rng.integers(0, 3, (4, 5)), rng.integers(0, 3, (7, 5))
    counted = np.ones((4, 7), dtype=bool) if offset < 0 else np.tri(4, 7, offset - 1, dtype=bool)
    expected = [np.sum(block * counted * (left[:, d, None] == right[:, d])) for d in range(5)]
    np.testing.assert_allclose(agreement_sums(block, left, right, offset), expected)
