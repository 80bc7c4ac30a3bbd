"""Clock helpers: the best of several runs, interleaved so that drift hits both sides alike."""

from time import perf_counter


def best_times(functions, repeats=5, clock=perf_counter):
    """Seconds of the fastest run of each function, by the wall clock or another; the functions take turns."""
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = clock()
            function()
            best[i] = min(best[i], clock() - start)
    return best
