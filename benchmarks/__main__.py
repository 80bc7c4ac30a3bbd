"""``python -m benchmarks [--quick] [section ...]``: compare polycal with its peers, and write the report."""

import argparse
from pathlib import Path

from benchmarks import detecting, floors, machine, measuring, recalibration, report
from benchmarks.peers.environments import RECIPES, environment
from benchmarks.store import keep_out_of_git, results_folder

# Each returns what it could not run, with the reason.
SECTIONS = {"recalibration": recalibration.main, "measuring": measuring.main, "detecting": detecting.main}
OTHERS = ("floors", "install", "report")


def parse(arguments=None):
    """The options, checked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add(
        "sections",
        nargs="*",
        help=f"any of {', '.join([*SECTIONS, *OTHERS])}; by default the first three, then the report",
    )
    add(
        "--quick",
        action="store_true",
        help="small sets, few peers, one split: minutes; results are kept apart",
    )
    add("--force", action="store_true", help="make rows again that the results have already")
    add("--sets", nargs="+", help="only these sets of predictions")
    add("--methods", nargs="+", help="only methods that match, such as 'polycal *'")
    add("--seeds", type=int, help="number of splits")
    add("--time-limit", type=float, help="seconds for each call")
    add("--no-install", action="store_true", help="use only those environments of peers that are there")
    add("--results", type=Path, help="the folder of the results")
    options = parser.parse_args(arguments)
    unknown = set(options.sections) - {*SECTIONS, *OTHERS}
    if unknown:
        parser.error(
            f"no section called {', '.join(sorted(unknown))}; choose from {', '.join([*SECTIONS, *OTHERS])}"
        )
    options.results = results_folder(options.quick) if options.results is None else options.results
    return options


def main(arguments=None):
    """Run the sections asked for."""
    options = parse(arguments)
    wanted = options.sections or [*SECTIONS, "report"]
    if options.quick:
        keep_out_of_git(options.results)
    if "install" in wanted:
        for name in RECIPES:
            made = environment(name)
            print(name, made.versions, made.missing or "complete", sep="\n  ")
    for name, run in SECTIONS.items():
        if name in wanted:
            missing = run(options)
            machine.record(name, missing, options.results)
            for peer, reason in missing.items():
                print(f"missing: {peer}: {reason}")
    if "floors" in wanted:
        floors.main()
    if "report" in wanted:
        report.main(options)


if __name__ == "__main__":
    main()
