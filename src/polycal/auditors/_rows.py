"""Which rows a search looks at."""

from polycal.sample import Sample


def weighted_rows(sample: Sample) -> Sample:
    """The sample without the rows of weight 0, which say nothing."""
    if sample.sample_weight is None or sample.sample_weight.all():
        return sample
    return sample.take(sample.sample_weight > 0)
