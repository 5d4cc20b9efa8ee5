"""Data and models on which the published births are tested."""

import numpy as np

from stickbreak import Mixture
from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from stickbreak.likelihoods import Gaussian, Sample, StudentT
from stickbreak.model import Model, RowKind

CORNERS = np.array([[-20.0, 0.0], [0.0, 20.0], [20.0, 0.0]])
MODELS = {
    "gaussian": (Gaussian(), DirichletProcess(1.0), RowKind()),
    "latent scales": (StudentT(), DirichletProcess(1.0), RowKind()),
    "two kept": (Gaussian(), DirichletProcess(1.0), RowKind(2)),
    "at most four": (Gaussian(), FiniteDirichlet(4), RowKind()),
    "power law": (Gaussian(), PitmanYor(1.0, 0.3), RowKind()),
}


def rows(n=450, seed=0, centres=CORNERS):
    """Rows (n, 2) around the centres."""
    rng = np.random.default_rng(seed)
    return centres[rng.integers(len(centres), size=n)] + rng.standard_normal((n, 2))


def model_of(X, name="gaussian"):
    """A model of rows, with the default prior of these."""
    likelihood, allocation, kind = MODELS[name]
    return Model(likelihood.resolve(Sample.of(X)), allocation, kind)


def fitted_with(birth, X, **options):
    """A mixture whose clusters are born by a published scheme."""
    moves = (birth, "merge", "delete")
    return Mixture("gaussian", moves=moves, n_batches=3, **({"random_state": 0, "n_jobs": 1} | options)).fit(X)
