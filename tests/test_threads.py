import threading
import time

import pytest

from polycal._threads import deal, map_threads


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
