"""Merges through losses: the bound of every number of clusters on the way down, and rows that their clusters explain worst."""

import numpy as np
import pytest
from scipy import sparse

from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from stickbreak.data import ArraySource, SparseSource
from stickbreak.inference import Threads
from stickbreak.inference.survey import MOST, SHARE, survey
from stickbreak.kernels.assign import merged_entropies
from stickbreak.likelihoods import REGISTRY, Sample
from stickbreak.likelihoods.responsibilities import Responsibilities
from stickbreak.model import Model, local_step
from stickbreak.model.seeding import hard_summary
from stickbreak.moves.agglomeration import Step, ancestry, hopeful, levels_of, merges, row_nodes, with_groups


def problem(name, allocation, N=400, K=6):
    """A model, rows, and a summary of K clusters that overlap."""
    rng = np.random.default_rng(0)
    z = rng.integers(K, size=N)
    if name == "multinomial":
        X = np.stack([rng.multinomial(20, p) for p in rng.dirichlet(np.full(9, 0.5), K)[z]]).astype(float)
    else:
        X = 2.0 * rng.normal(size=(K, 2))[z] + rng.normal(size=(N, 2))
    likelihood = REGISTRY[name]().resolve(Sample.of(X))
    model = Model(likelihood, allocation)
    T = np.array(likelihood.features(X, np.empty((N, likelihood.n_statistics))))
    start = hard_summary(T, np.ones(N), z)
    return model, X, local_step(model.likelihood, model.parameters(start, X.dtype), X, np.ones(N))[0]


ALLOCATIONS = [DirichletProcess(1.0), FiniteDirichlet(8, 2.0), PitmanYor(1.0, 0.5)]


@pytest.mark.parametrize("allocation", ALLOCATIONS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("name", ["gaussian", "diagonal_gaussian", "multinomial"])
def test_levels_are_the_bounds_of_added_responsibilities(name, allocation):
    model, X, total = problem(name, allocation)
    N, K = len(X), total.K
    parameters = model.parameters(total, X.dtype)
    summary, kept = local_step(model.likelihood, parameters, X, np.ones(N))
    steps = list(merges(model.posterior(total)))
    assert [len(step.groups) for step in steps] == list(range(K - 1, 0, -1))
    H = np.zeros(2 * K - 1)
    parents = ancestry(steps, K)
    merged_entropies(*kept, np.ones(N), parents, H)
    R = sparse.csr_array((kept.values, kept.indices, kept.indptr), (N, K)).toarray()
    T = np.array(model.likelihood.features(X, np.empty((N, model.likelihood.n_statistics))))
    for level in levels_of(model, summary, steps, row_nodes(summary.N, parents, H, summary.base)):
        added = np.stack([R[:, group].sum(axis=1) for group in level.groups], axis=1)
        entropy = -np.where(added > 0.0, added * np.log(np.maximum(added, 1e-300)), 0.0).sum(axis=0)
        merged = type(summary)(added.sum(axis=0), added.T @ T, entropy, summary.base)
        assert level.bound == pytest.approx(model.bound(model.ordered(merged)), abs=1e-6)
        grouped = with_groups(summary, level.groups)
        np.testing.assert_allclose(np.sort(grouped.N), np.sort(merged.N), rtol=1e-9)


@pytest.mark.parametrize("container", [ArraySource, SparseSource])
def test_a_survey_finds_the_rows_explained_worst(container):
    model, X, total = problem("multinomial", ALLOCATIONS[0], N=3000)
    source = container(X if container is ArraySource else sparse.csr_array(X))
    parameters = model.parameters(total, X.dtype)
    summary, kept = local_step(model.likelihood, parameters, X, np.ones(len(X)))
    steps = list(merges(model.posterior(total)))
    with Threads(2) as threads:
        seen = survey(model, total, source, threads, ancestry(steps, total.K))
    np.testing.assert_allclose(seen.total.S, summary.S, rtol=1e-9)
    assert seen.total.base == total.base
    assert isinstance(kept, Responsibilities)
    R = sparse.csr_array((kept.values, kept.indices, kept.indptr), (len(X), total.K)).toarray()
    owner = R.argmax(axis=1)
    scores = model.likelihood.log_base(X) + (X @ parameters.W.T + parameters.bias)[np.arange(len(X)), owner]
    for k in range(total.K):
        rows, shares = seen.poor.of(k)
        most = int(min(MOST, SHARE * total.N[k]))
        mine = np.flatnonzero(owner == k)
        limit = np.sort(scores[mine])[most - 1]
        assert most <= len(rows) <= 2 * most
        assert set(mine[scores[mine] < limit - 1e-9]) <= set(rows) <= set(mine[scores[mine] <= limit + 1e-9])
        np.testing.assert_allclose(shares, R[rows, k])


@pytest.mark.parametrize(
    ("gains", "many"),
    [([-1.0, -2.0, -3.0, -4.0], 2), ([-1.0, 3.0, 2.0, 1.0, 0.0], 4), ([1.0, 2.0, 3.0], 3), ([], 0)],
)
def test_merges_are_looked_at_up_to_some_beyond_the_best(gains, many):
    steps = [Step(0, 1, gain, []) for gain in gains]
    assert hopeful(steps, 2) == steps[:many]
