"""``polycal audit``."""

import polycal as pc
from polycal.cli.options import (
    AlphaOption,
    FileArgument,
    GroupsOption,
    JobsOption,
    JsonOption,
    NotionOption,
    PartOption,
    SeedOption,
)
from polycal.cli.output import print_audit
from polycal.notions.registry import parse_notion


def audit(
    file: FileArgument,
    *,
    groups: GroupsOption = None,
    part: PartOption = "all",
    notion: NotionOption = None,
    alpha: AlphaOption = 0.05,
    seed: SeedOption = 0,
    jobs: JobsOption = -1,
    as_json: JsonOption = False,
) -> None:
    """Find the question that the predictions in FILE cannot be trusted for, and prove it on unseen rows.

    **Example:** polycal audit preds.npz --groups groups.yaml --part evaluation
    """
    sample = pc.read_predictions(file, part=part)  # type: ignore[arg-type]  # checked by the reader
    result = pc.audit(
        sample.labels,
        sample.proba,
        notions=[parse_notion(text) for text in notion] if notion else None,
        groups=None if groups is None else pc.read_groups(groups),
        sample_weight=sample.sample_weight,
        class_names=sample.class_names,
        alpha=alpha,
        random_state=seed,
        n_jobs=jobs,
    )
    print_audit(result, as_json=as_json)
