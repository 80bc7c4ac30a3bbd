"""Few rows: small tables, where a method that chooses too boldly makes predictions worse than they were."""

from contextlib import ExitStack, nullcontext

import polycal as pc
from benchmarks.data import data_folder, prediction_sets
from benchmarks.methods import BASELINE, own_methods, peer_methods, select
from benchmarks.peers.processes import Limits
from benchmarks.recalibration import KEY, Trial, readable, run
from benchmarks.store import Store

FOLDER = "small"
FILE = "small.jsonl"
METHODS = (
    BASELINE,
    "polycal KernelCalibrator",
    "polycal TemperatureScaling",
    "polycal VectorScaling",
    "polycal MatrixScaling",
    "polycal BetaCalibrator",
    "probmetrics SMS",
    "probmetrics SVS",
    "probmetrics temperature mixture",
    "probmetrics isotonic",
    "probmetrics beta",
    "scikit-learn sigmoid",
    "probmetrics Venn-Abers",
    "probmetrics CatBoost",
    "probmetrics LightGBM",
)


def main(options):
    """Run what is not in the results yet, on the split of each file alone, and say what is missing."""
    folder = data_folder()
    if folder is None or not (folder / FOLDER).is_dir():
        return {"small tables": f"the folder of predictions has no folder {FOLDER!r}"}
    own, own_missing = own_methods()
    peers, peers_missing = peer_methods(create=not options.no_install)
    missing = {**own_missing, **peers_missing}
    methods = select([*own, *peers], options.methods or METHODS, missing)
    sets, unreadable = readable(prediction_sets(options.sets, folder / FOLDER))
    store = Store(options.results / FILE, KEY)
    with OneProcessEach() as start:
        limits = Limits(options.time_limit or 60)
        run(sets, methods, [0], store, limits=limits, force=options.force, start=start, judge=scores)
    names = {method.name for method in methods}
    return {
        **{name: reason for name, reason in missing.items() if name in METHODS and name not in names},
        **unreadable,
    }


def scores(labels, proba, seed):  # noqa: ARG001 - one split
    """What little data can say."""
    return {"log_loss": pc.log_loss(labels, proba), "brier": pc.brier_score(labels, proba)}


class OneProcessEach(ExitStack):
    """One process for each method: most of its time goes into starting."""

    def __init__(self):
        super().__init__()
        self._trials = {}

    def __call__(self, method):
        if method.name not in self._trials:
            self._trials[method.name] = self.enter_context(Trial(method))
        return nullcontext(self._trials[method.name])
