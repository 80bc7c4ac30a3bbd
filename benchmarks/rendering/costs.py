"""What acting on the outcome of each method costs, and what swaps of actions still save."""

from collections import defaultdict
from math import exp, log

from benchmarks.costs import FAMILIES, KERNEL, PEERS, REFERENCES
from benchmarks.methods import BASELINE
from benchmarks.rendering import markdown

INTRODUCTION = (
    "Acting by least expected cost on the outcome of each method, on the evaluation part, for three losses: 0/1 with "
    "an action that abstains for 0.1, random costs of five actions, and distances between classes; by `python -m "
    "benchmarks.costs sets`. *Cost*: to that of acting on the input, the geometric mean over sets. *Dearer*: cases (a "
    "set and a loss) where acting cost more than on the input, by more than two standard errors of the paired "
    "difference. *Swap regret*: what swaps of actions that were found on one half of the rows save on the other, in "
    "parts of the input's cost, mean over cases (0 where they save nothing, since nobody must swap). *Ours larger*: "
    "cases where the regret after KernelCalibrator, and after the repair of what it leaves, is larger than after this "
    "method, by more than two standard errors."
)
_HEADER = [
    "method",
    "sets",
    "cost, abstain",
    "random",
    "ordinal",
    "dearer",
    "swap regret",
    "ours larger",
    "repaired",
]


def costs_part(rows):
    """One table for all methods, and in words the cases where acting on our own outcome is not the cheapest."""
    if not rows:
        return "## Acting\n\nNot run yet."
    by_set = defaultdict(dict)
    for row in rows:
        by_set[row["set"]][row["method"]] = row
    cases = [(methods, family) for _, methods in sorted(by_set.items()) for family in FAMILIES]
    names = sorted({row["method"] for row in rows}, key=lambda name: (_ratio(cases, name), name))
    table = markdown.table(_HEADER, [_line(name, cases) for name in names])
    return f"## Acting\n\n{INTRODUCTION}\n\n{table}\n\n{_exceptions(cases)}"


def _line(name, cases):
    own = [(methods, family) for methods, family in cases if name in methods]
    dearer = sum(_is_dearer(methods[name], family) for methods, family in own)
    regrets = [max(m[name][f"{f} regret"], 0.0) / m[BASELINE][f"{f} cost"] for m, f in own]
    others = {} if name in {BASELINE, *REFERENCES.values()} else REFERENCES
    larger = [
        f"{sum(_is_larger(m, f, name, short) for m, f in own)} of {sum(ours in m for m, _ in own)}"
        for short, ours in others.items()
    ]
    return [
        name,
        len(own) // len(FAMILIES),
        *(f"{_ratio(cases, name, family):.3f}" for family in FAMILIES),
        f"{dearer} of {len(own)}",
        f"{100 * sum(regrets) / len(regrets):.2f} %",
        *(larger or ["–"] * len(REFERENCES)),
    ]


def _ratio(cases, name, only=None):
    """The geometric mean of the cost to the input's."""
    logs = [
        log(methods[name][f"{family} cost"] / methods[BASELINE][f"{family} cost"])
        for methods, family in cases
        if name in methods and only in {None, family}
    ]
    return exp(sum(logs) / len(logs))


def _is_dearer(row, family):
    return row[f"{family} saved"] < -2.0 * row[f"{family} saved error"]


def _is_larger(methods, family, name, short):
    """Whether our own regret is larger than that of a method, beyond noise; less than nothing is nothing."""
    ours = methods.get(REFERENCES[short])
    if ours is None:
        return False
    column = f"{family} regret"
    if methods[name][column] > 0:
        more = methods[name][f"{family} {short} more"], methods[name][f"{family} {short} more error"]
    else:
        more = ours[column], ours[f"{column} error"]
    return more[0] > 2.0 * more[1]


def _exceptions(cases):
    """Where the flagship's outcome is not the best, however little: than the input by cost, than a peer's by regret."""
    known = [(methods, family, methods[KERNEL]) for methods, family in cases if KERNEL in methods]
    dearer = [
        f"{own['set']}, {family}, by {-own[f'{family} saved']:.5f} ± {own[f'{family} saved error']:.5f}"
        for _, family, own in known
        if own[f"{family} saved"] < 0
    ]
    larger = []
    for methods, family, own in known:
        regret, error, least = (
            own[f"{family} regret"],
            own[f"{family} regret error"],
            _least_regret(methods, family),
        )
        if regret > least:
            larger.append(f"{own['set']}, {family}, {regret:.5f} ± {error:.5f} against {least:.5f}")
    n = len(known)
    return markdown.escape(
        f"Acting on KernelCalibrator's outcome cost no more than acting on the input in {n - len(dearer)} of {n} cases"
        f"{_except(dearer)}. Its swap regret was no larger than any peer's in {n - len(larger)} of {n} cases"
        f"{_except(larger)}."
    )


def _least_regret(methods, family):
    return max(
        min((methods[name][f"{family} regret"] for name in PEERS if name in methods), default=0.0), 0.0
    )


def _except(said):
    """The exceptions, each with a standard error."""
    return f"; except (± a standard error) {'; '.join(said)}" if said else ""
