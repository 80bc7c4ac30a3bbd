import pytest
from benchmarks.peers.environments import Environment

from benchmarks import methods


def test_polycals_calibrators_are_found_or_listed_as_missing():
    found, missing = methods.own_methods()
    names = {method.name for method in found}
    assert methods.BASELINE in names
    assert all(method.is_ours and ":" in method.call for method in found)
    for promised in methods.PROMISED:
        assert (f"polycal {promised}" in names) != (f"polycal {promised}" in missing)


def test_a_calibrator_that_needs_arguments_is_missing_with_the_reason():
    class Needy:
        def __init__(self, auditor):
            self.auditor = auditor

    found, missing = {}, {}
    methods._sort_in(Needy, "x:Needy", found, missing)
    assert found == {}
    assert "auditor" in missing["Needy"]


def test_peers_are_missing_with_the_reason_of_their_environment(monkeypatch):
    places = {
        "main": Environment("python", {}, {"netcal": "no wheel"}),
        "dirichlet": Environment(None, {}, {"*": "needs Python 3.12 or newer"}),
        "torch-uncertainty": Environment("python", {}, {}),
    }
    monkeypatch.setattr(methods, "environment", lambda name, create: places[name])
    found, missing = methods.peer_methods()
    names = {method.name for method in found}
    assert missing["netcal temperature"] == "no wheel"
    assert missing["dirichletcal ODIR"] == "needs Python 3.12 or newer"
    assert "probmetrics SMS" in names
    assert "torch-uncertainty vector" in names
    assert set(methods.NOT_RUN) <= set(missing)
    assert names | set(missing) == {*methods.RECALIBRATORS, *methods.NOT_RUN}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["polycal *"], ["polycal A"]),
        (["*sms", "none"], ["none", "peer SMS"]),
        (["*"], ["none", "polycal A", "peer SMS"]),
    ],
)
def test_methods_are_selected_by_patterns(patterns, expected):
    every = [methods.Method(name, name, "p", "main") for name in ("none", "polycal A", "peer SMS")]
    assert [method.name for method in methods.select(every, patterns)] == expected


def test_the_quick_choice_exists():
    known = {*methods.RECALIBRATORS, methods.BASELINE}
    assert [name for name in methods.QUICK if "*" not in name and name not in known] == []
