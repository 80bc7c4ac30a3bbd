"""Threads: as many as allowed and no more, in pools and in linear algebra."""

import os
import subprocess
import sys
import threading
import time
import warnings
from functools import lru_cache

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import polycal as pc
from polycal._threads import cpu_count, deal, map_threads, one_blas_thread, thread_budget, thread_count
from polycal.families.defaults import NOTIONS, default_auditor
from polycal.inference.kernel_error import kernel_calibration_error, kernel_test

pytestmark = pytest.mark.usefixtures("all_threads")

# Every prediction three times: one of the notions wants repeated ones.
MADE = pc.datasets.make_calibrated(60, 4, random_state=0)
DATA = np.repeat(MADE.labels, 3), np.repeat(MADE.proba, 3, axis=0)
METHODS = {"temperature": pc.TemperatureScaling(), "audited": pc.AuditedCalibrator(max_rounds=1)}


def audit_file(path, n_jobs):
    np.savez(path, labels=DATA[0], proba=DATA[1])
    return pc.audit_stream(path, n_jobs=n_jobs)


# What has an n_jobs, called with it and a file to write to.
CALLS = {
    **{
        f"error of {name}": lambda path, n_jobs, notion=notion: pc.estimate_error(
            *DATA, notion(), n_jobs=n_jobs
        )
        for name, notion in NOTIONS.items()
    },
    **{
        f"witness of {name}": lambda path, n_jobs, notion=notion: default_auditor(notion(), 0).find_witness(
            *DATA, n_jobs=n_jobs
        )
        for name, notion in NOTIONS.items()
    },
    "automatic witness": lambda path, n_jobs: pc.AutoAuditor().find_witness(*DATA, n_jobs=n_jobs),
    "calibration_error": lambda path, n_jobs: pc.calibration_error(*DATA, pc.SubsetSmooth(), n_jobs=n_jobs),
    "calibration_test": lambda path, n_jobs: pc.calibration_test(
        *DATA, pc.Sigmoid(), n_draws=5, n_jobs=n_jobs
    ),
    "bootstrap": lambda path, n_jobs: pc.bootstrap_interval(*DATA, pc.Classwise(), n_draws=20, n_jobs=n_jobs),
    "kernel error": lambda path, n_jobs: kernel_calibration_error(*DATA, n_jobs=n_jobs),
    "kernel test": lambda path, n_jobs: kernel_test(*DATA, n_draws=5, n_jobs=n_jobs),
    "comparison": lambda path, n_jobs: pc.compare_calibrators(
        *DATA, *DATA, calibrators=METHODS, n_jobs=n_jobs
    ),
    "audit": lambda path, n_jobs: pc.audit(
        *DATA,
        notions=[pc.SubsetSmooth(), pc.ProjectedSmooth(), pc.Sigmoid()],
        groups={"some": [0, 1], "others": [0, 2]},
        calibrator=pc.TemperatureScaling().fit(*DATA[::-1]),
        n_jobs=n_jobs,
    ),
    "stream": audit_file,
}


@pytest.fixture
def most_threads(monkeypatch):
    """A function of what to call: the most threads that lived at a time, and the most that a product could use."""
    start = threading.Thread.start
    before = threading.active_count()
    seen = {0}, {0}

    def count(thread):
        start(thread)
        seen[0].add(threading.active_count() - before)
        seen[1].add(max(blas_threads().values()))

    monkeypatch.setattr(threading.Thread, "start", count)

    def run(function):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pc.CalibrationWarning)
            function()
        return max(seen[0]), max(seen[1])

    return run


@pytest.fixture
def two_blas_threads():
    """Two threads for products, whatever the machine and its environment."""
    with threadpool_limits(limits=2, user_api="blas"):
        yield blas_threads()


def blas_threads():
    return {library.filepath: library.num_threads for library in blas_libraries(len(sys.modules))}


@lru_cache(maxsize=1)
def blas_libraries(n_modules):
    """Looked for anew only after an import: a look at all libraries takes longer than starting a thread."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("two_blas_threads")
def test_no_more_threads_than_allowed(name, most_threads, tmp_path):
    path = tmp_path / "rows.npz"
    assert most_threads(lambda: CALLS[name](path, 1)) == (0, 0)
    own, _ = most_threads(lambda: CALLS[name](path, 2))
    assert own <= 2


@pytest.mark.parametrize("name", ["error of classwise", "witness of subset-smooth", "audit", "bootstrap"])
@pytest.mark.usefixtures("two_blas_threads")
def test_allowed_threads_are_used_and_share_no_products(name, most_threads, tmp_path):
    assert most_threads(lambda: CALLS[name](tmp_path, 2)) == (2, 1)


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_products_get_their_threads_back(n_jobs, tmp_path):
    for call in (
        lambda: pc.audit(*DATA, notions=[pc.ProjectedSmooth(), pc.Sigmoid()], n_jobs=n_jobs),
        lambda: audit_file(tmp_path / "rows.npz", n_jobs),
    ):
        call()
        before = threadpool_info()
        call()
        assert threadpool_info() == before


def test_products_get_their_threads_back_after_errors(two_blas_threads):
    def fail(item):
        raise ValueError(item)

    for work in (lambda: map_threads(fail, range(4), 2), lambda: deal(range(4), [fail, fail])):
        with pytest.raises(ValueError, match="0"):
            work()
        assert blas_threads() == two_blas_threads
        assert thread_count(-1) == cpu_count()


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_limits_may_be_left_in_any_order(order, two_blas_threads):
    limits = [one_blas_thread(), thread_budget(1), one_blas_thread()]
    steps = [threading.Event() for _ in limits], [threading.Event() for _ in limits]

    def hold(place):
        with limits[place]:
            steps[0][place].set()
            steps[1][place].wait(10)

    threads = [threading.Thread(target=hold, args=(place,)) for place in range(len(limits))]
    for thread, entered in zip(threads, steps[0], strict=True):
        thread.start()
        assert entered.wait(10)
    for place in order:
        assert set(blas_threads().values()) == {1}
        steps[1][place].set()
        threads[place].join()
    assert blas_threads() == two_blas_threads


def test_callers_on_several_threads_leave_everything_as_it_was(two_blas_threads):
    callers = [threading.Thread(target=CALLS[name], args=(None, 2)) for name in ("audit", "kernel test") * 2]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert blas_threads() == two_blas_threads


def test_large_products_keep_their_threads(two_blas_threads):
    with one_blas_thread(10**10):
        assert blas_threads() == two_blas_threads


def test_the_first_limit_of_a_process_holds_for_libraries_loaded_later():
    program = (
        "from threadpoolctl import ThreadpoolController, threadpool_info\n"
        "from polycal._threads import one_blas_thread\n"
        "with one_blas_thread():\n"
        "    import scipy.linalg\n"
        "    with one_blas_thread():\n"
        "        print({i['num_threads'] for i in threadpool_info() if i['user_api'] == 'blas'})\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "{1}"


def test_budgets_only_shrink():
    with thread_budget(3):
        assert thread_count(-1) == thread_count(8) == 3
        with thread_budget(8):
            assert thread_count(-1) == 3
        with thread_budget(2):
            assert thread_count(-1) == 2
            with thread_budget(None):
                assert thread_count(-1) == 1
    assert thread_count(-1) == cpu_count() >= thread_count(-2) >= 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "all"])
def test_a_number_of_threads_that_is_none(n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be a number of threads"):
        pc.estimate_error(*DATA, pc.Classwise(), n_jobs=n_jobs)


def test_maps_within_maps_start_no_threads_and_keep_the_settings_of_the_caller():
    def inner(item):
        return threading.get_ident(), float(np.float64(item) / 0)

    def outer(item):
        return map_threads(inner, [item, item])

    with np.errstate(divide="ignore"):
        results = map_threads(outer, [1, 2, 3], 2)
    assert all(first == second for first, second in results)


def test_a_map_of_one_item_leaves_the_threads_to_it():
    idents = map_threads(
        lambda _: map_threads(lambda _: time.sleep(0.01) or threading.get_ident(), range(4), 2), [0]
    )
    assert len(set(idents[0])) == 2


def test_results_keep_the_order_whatever_the_threads():
    for n_jobs in (1, 2, -1, None):
        assert map_threads(lambda x: x * x, range(20), n_jobs) == [x * x for x in range(20)]


@pytest.mark.parametrize("n_items", [0, 1, 2, 7, 30])
def test_every_worker_gets_its_items_in_order(n_items):
    hands = [[], [], []]
    deal(iter(range(n_items)), [hand.append for hand in hands])
    assert hands == [list(range(place, n_items, 3)) for place in range(3)]


def test_items_are_made_one_at_a_time_by_the_threads_that_use_them():
    made, used = {}, {}

    def items():
        for i in range(6):
            made[i] = threading.get_ident()
            yield i

    def use(item):
        used[item] = threading.get_ident()

    deal(items(), [use, use])
    assert made == used
    assert made[0] == made[2] == made[4] != made[1]


def test_the_error_of_the_first_item_is_raised_and_no_more_are_made():
    made = []

    def items():
        for i in range(100):
            made.append(i)
            yield i

    def work(item):
        if item == 2:
            # Later, but first in order.
            time.sleep(0.05)
        if item >= 2:
            raise ValueError(f"item {item} is bad")

    with pytest.raises(ValueError, match="item 2 is bad"):
        deal(items(), [work] * 4)
    assert len(made) <= 6


@pytest.mark.parametrize("n_workers", [1, 3])
def test_an_error_in_making_an_item_ends_all(n_workers):
    seen = []

    def items():
        yield from range(4)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deal(items(), [seen.append] * n_workers)
    assert sorted(seen) == [0, 1, 2, 3]


def test_an_earlier_item_is_to_blame_for_more_than_a_later_one_that_cannot_be_made():
    def items():
        yield 0
        raise OSError("no item 1")

    def work(item):
        time.sleep(0.05)
        raise ValueError(f"item {item} is bad")

    with pytest.raises(ValueError, match="item 0 is bad"):
        deal(items(), [work, work])


FIRST_FIT = """
import time
import polycal as pc
sample = pc.datasets.load_fashion("calibration").take(slice(3000))
start = time.process_time()
pc.KernelCalibrator().fit(sample.proba, sample.labels)
print(time.process_time() - start)
"""


@pytest.mark.slow
def test_threads_do_not_spin_in_the_first_kernel_fit():
    def cpu_seconds(**environment):
        run = subprocess.run(
            [sys.executable, "-c", FIRST_FIT],
            env={k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")} | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(run.stdout)

    # Seconds of the processors, which other work on the machine does not lengthen; threads that wait use them up.
    one = min(cpu_seconds(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1") for _ in range(2))
    assert min(cpu_seconds() for _ in range(2)) < 1.3 * one
