"""``python -m benchmarks [--quick] [section ...]``: compare polycal with its peers, and write the report."""

import argparse
from pathlib import Path

from benchmarks import detecting, floors, machine, measuring, recalibration, report, small
from benchmarks.data import is_own_data
from benchmarks.peers.environments import RECIPES, environment
from benchmarks.store import FOLDER, keep_out_of_git, results_folder

# Each returns what it could not run, with the reason.
SECTIONS = {
    "recalibration": recalibration.main,
    "small": small.main,
    "measuring": measuring.main,
    "detecting": detecting.main,
}
OTHERS = ("floors", "install", "report")


def parse(arguments=None):
    """The options, checked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add(
        "sections",
        nargs="*",
        help=f"any of {', '.join([*SECTIONS, *OTHERS])}; by default the first four, then the report",
    )
    add(
        "--quick",
        action="store_true",
        help="small sets, few peers, one split: minutes; results are kept apart",
    )
    add("--force", action="store_true", help="make rows again that the results have already")
    add("--sets", nargs="+", help="only these sets of predictions")
    add("--methods", nargs="+", help="only methods and tests that match, such as 'polycal *'")
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
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds must be 1 or more; got {options.seeds}")
    if options.time_limit is not None and options.time_limit <= 0:
        parser.error(f"--time-limit must be positive; got {options.time_limit}")
    return options


def main(arguments=None):
    """Run the sections asked for; what goes wrong is said in one line."""
    options = parse(arguments)
    try:
        run(options)
    except ValueError as error:
        raise SystemExit(f"benchmarks: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit("benchmarks: interrupted; the same command goes on from here") from None


def prepared_folder(options):
    """Where results are kept; only those of the page are kept in version control."""
    if options.results is not None:
        return options.results
    folder = results_folder(options.quick, own=is_own_data())
    if folder != FOLDER:
        keep_out_of_git(folder)
        print(f"results are kept in {folder}")
    return folder


def run(options):
    """Run the sections, one after another."""
    wanted = options.sections or [*SECTIONS, "report"]
    options.results = prepared_folder(options)
    if "install" in wanted:
        for name in RECIPES:
            made = environment(name)
            print(name, made.versions, made.missing or "complete", sep="\n  ")
    for name, run_section in SECTIONS.items():
        if name in wanted:
            try:
                missing = run_section(options)
            except KeyboardInterrupt:
                machine.record(name, None, options.results)
                raise
            machine.record(name, missing, options.results)
            for peer, reason in missing.items():
                print(f"missing: {peer}: {reason}")
    if "floors" in wanted:
        floors.main()
    if "report" in wanted:
        report.main(options)


if __name__ == "__main__":
    main()
