"""Our own hot paths as multiples of known floors, printed: what to watch while working on them."""

from importlib import import_module
from importlib.util import find_spec

MODULES = ("smooth", "kernel", "subsets", "predicting")


def main():
    """Run those that are there."""
    for name in MODULES:
        path = f"benchmarks.{name}"
        if find_spec(path) is not None:
            print(f"## {name}")
            import_module(path).main()
