import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from polycal._compiled.runs import add_up, merged
from polycal.states.sums import Runs

columns = st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=30).map(
    lambda rows: np.array(rows, dtype=np.float64).reshape(-1, 3).T.copy()
)


def expected(run, n_keys):
    """A dictionary does it."""
    sums = {}
    for column in run.T:
        key = tuple(column[:n_keys])
        sums[key] = sums.get(key, 0) + column[n_keys:]
    return np.array([[*key, *sums[key]] for key in sorted(sums)]).reshape(-1, run.shape[0]).T


@settings(deadline=None)
@given(columns, columns, st.integers(1, 2))
def test_runs_are_sorted_with_equal_keys_added_up(left, right, n_keys):
    runs = [add_up(run, np.lexsort(run[:n_keys][::-1]), n_keys) for run in (left, right)]
    np.testing.assert_array_equal(runs[0], expected(left, n_keys))
    whole = expected(np.concatenate([left, right], axis=1), n_keys)
    np.testing.assert_array_equal(merged(*runs, n_keys), whole)


@settings(deadline=None)
@given(st.lists(columns, max_size=5), st.integers(1, 2))
def test_chunks_of_any_size_give_the_same_run(chunks, n_keys):
    runs = Runs(n_keys, np.zeros((3, 0)))
    for chunk in chunks:
        runs.add(chunk)
    whole = np.concatenate([np.zeros((3, 0)), *chunks], axis=1)
    np.testing.assert_array_equal(runs.whole(), expected(whole, n_keys))
