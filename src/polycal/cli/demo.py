"""``polycal demo``."""

from rich.console import Console

import polycal as pc
from polycal.cli.options import JsonOption
from polycal.cli.output import print_audit
from polycal.report import demo as demo_words


def demo(*, as_json: JsonOption = False) -> None:
    """Audit the shipped predictions of a real network, with explanations."""
    sample = pc.datasets.load_fashion("evaluation")
    groups = pc.datasets.load_fashion_groups()
    result = pc.audit(sample.labels, sample.proba, groups=groups, class_names=sample.class_names)
    if as_json:
        print_audit(result, as_json=True)
        return
    console = Console()
    console.print(demo_words.INTRODUCTION, highlight=False)
    print_audit(result, as_json=False)
    console.print(demo_words.conclusion(result.to_dict()), highlight=False)
