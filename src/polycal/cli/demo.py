"""``polycal demo``."""

from rich.console import Console

import polycal as pc
from polycal.cli.options import JobsOption, JsonOption, QuietOption, SeedOption
from polycal.cli.output import print_audit, working
from polycal.report import demo as demo_words


def demo(
    *,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Audit the shipped predictions of a real network, with explanations.

    **Example:** polycal demo
    """
    sample = pc.datasets.load_fashion("evaluation")
    groups = pc.datasets.load_fashion_groups()
    with working("auditing the shipped example", quiet=quiet):
        result = pc.audit(
            sample.labels,
            sample.proba,
            groups=groups,
            class_names=sample.class_names,
            random_state=seed,
            n_jobs=jobs,
        )
    if as_json:
        print_audit(result, as_json=True)
        return
    if quiet:
        return
    console = Console()
    console.print(demo_words.INTRODUCTION, highlight=False)
    print_audit(result, as_json=False)
    console.print(demo_words.conclusion(result.to_dict()), highlight=False)
