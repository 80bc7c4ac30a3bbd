import copy
import pickle

import numpy as np
import pytest
from tests.export.programs import PROGRAMS, K, predictions

from polycal.steps import Step, run

torch = pytest.importorskip("torch")
make_module = pytest.importorskip("polycal.export.torch").make_module


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_module_computes_the_steps(name, dtype):
    proba = predictions(200, dtype)
    out = make_module(PROGRAMS[name])(torch.from_numpy(proba))
    assert out.numpy().dtype == dtype
    expected = run(PROGRAMS[name], proba.astype(np.float64))
    np.testing.assert_allclose(out, expected, atol=1e-12 if dtype == "float64" else 1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("lookup", "normalise")])
def test_gradients_are_right(name):
    proba = torch.tensor(np.random.default_rng(3).dirichlet(np.ones(K), 3), requires_grad=True)
    assert torch.autograd.gradcheck(make_module(PROGRAMS[name]), (proba,), eps=1e-7, atol=1e-4)


def test_a_module_keeps_its_arrays_as_buffers():
    module = make_module(PROGRAMS["softmax"])
    assert list(module.parameters()) == []
    assert {name for name, _ in module.named_buffers()} == {"precision", "steps.1.scale", "steps.1.shift"}
    assert module.float()(torch.full((1, K), 0.2)).dtype == torch.float32


def test_modules_are_copied_and_stored():
    module = make_module(PROGRAMS["sum"])
    other = copy.deepcopy(module)
    other.load_state_dict(module.state_dict())
    proba = torch.from_numpy(predictions(5))
    assert torch.equal(pickle.loads(pickle.dumps(other))(proba), module(proba))


class Strange(Step):
    """A step that no translation knows."""

    def __call__(self, rows):
        return rows


def test_unknown_steps_are_refused():
    with pytest.raises(TypeError, match="a Strange cannot be written as a torch module"):
        make_module((Strange(),))
