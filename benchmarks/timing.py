"""Wall-clock helpers: the best of several runs, interleaved so that drift hits both sides alike."""

from time import perf_counter


def best_times(functions, repeats=5):
    """Seconds of the fastest run of each function; the functions take turns."""
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = perf_counter()
            function()
            best[i] = min(best[i], perf_counter() - start)
    return best
