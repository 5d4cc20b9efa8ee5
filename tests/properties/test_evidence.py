"""The bound against the exact log evidence, by enumeration of every assignment of a few rows."""

from functools import cache
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from stickbreak.allocations import DirichletProcess, FiniteDirichlet, PitmanYor
from stickbreak.model import Model, local_step

SEEDS = st.integers(0, 2**32 - 1)
ALLOCATIONS = [
    DirichletProcess(0.3),
    DirichletProcess(4.0),
    FiniteDirichlet(4, 0.5),
    FiniteDirichlet(4, 9.0),
    PitmanYor(0.8, 0.6),
]
for_every_allocation = pytest.mark.parametrize("allocation", ALLOCATIONS, ids=str)


def set_partitions(n):
    """All partitions of n rows, each a list of blocks, a block a list of rows."""
    if n == 0:
        yield []
        return
    for blocks in set_partitions(n - 1):
        yield [*blocks, [n - 1]]
        for i, block in enumerate(blocks):
            yield [*blocks[:i], [*block, n - 1], *blocks[i + 1 :]]


def chinese_restaurant(sizes, gamma, d=0.0):
    """log p(partition) = sum_{k=0}^{K-1} log(gamma + k d) + log Gamma(gamma) / Gamma(gamma + n)

    + sum_k log Gamma(n_k - d) / Gamma(1 - d).
    """
    tables = np.log(gamma + d * np.arange(len(sizes))).sum()
    return tables + gammaln(gamma) - gammaln(gamma + sum(sizes)) + (gammaln(np.array(sizes) - d) - gammaln(1 - d)).sum()


def dirichlet_multinomial(labels, allocation):
    """log p(labels), one label after the other."""
    share, total, seen = allocation.concentration / allocation.n_clusters, 0.0, np.zeros(allocation.n_clusters)
    for n, k in enumerate(labels):
        total += np.log((seen[k] + share) / (n + allocation.concentration))
        seen[k] += 1.0
    return total


@cache
def prior_terms(allocation, n):
    """Every way to put n rows into blocks, with its log prior probability."""
    if not isinstance(allocation, FiniteDirichlet):
        at = allocation.concentration, getattr(allocation, "discount", 0.0)
        return [(blocks, chinese_restaurant([len(b) for b in blocks], *at)) for blocks in set_partitions(n)]
    every = product(range(allocation.n_clusters), repeat=n)
    return [
        ([list(np.flatnonzero(np.array(z) == k)) for k in set(z)], dirichlet_multinomial(z, allocation)) for z in every
    ]


def log_evidence(model, X, T):
    """log p(X) = log sum over assignments of p(assignment) prod over blocks of p(rows of the block)."""
    n = len(X)
    member = np.array(list(product([0.0, 1.0], repeat=n)))  # every block, as a binary number
    marginal = model.likelihood.log_marginal(member.sum(axis=1), member @ T)
    place = 2 ** np.arange(n)[::-1]
    terms = [
        p + sum(marginal[place[block].sum()] for block in blocks) for blocks, p in prior_terms(model.allocation, n)
    ]
    return logsumexp(terms) + model.likelihood.log_base(X).sum()


@for_every_allocation
def test_the_enumeration_is_a_distribution(allocation):
    for n in range(1, 5):
        terms = prior_terms(allocation, n)
        assert logsumexp([p for _, p in terms]) == pytest.approx(0.0, abs=1e-12)
        assert all(sorted(chain(*blocks)) == list(range(n)) for blocks, _ in terms)


@settings(max_examples=20)
@given(
    allocation=st.sampled_from(ALLOCATIONS),
    seed=SEEDS,
    n=st.integers(1, 6),
    K=st.integers(1, 4),
    D=st.integers(1, 2),
    softness=st.sampled_from([0.05, 1.0, 50.0]),
)
def test_bound_is_below_the_evidence(exact_family, naive, allocation, seed, n, K, D, softness):
    """For any responsibilities, and at each of several steps of coordinate ascent, which climb."""
    rng = np.random.default_rng(seed)
    n = min(n, 4) if isinstance(allocation, FiniteDirichlet) else n
    likelihood = exact_family.likelihood(exact_family.rows(rng, 30, D))
    X = exact_family.rows(rng, n, D)
    model = Model(likelihood, allocation)
    exact = log_evidence(model, X, naive.features(likelihood, X))
    summary = naive.summarise(likelihood, X, rng.dirichlet(np.full(K, softness), n))
    bounds = [model.bound(summary)]
    for _ in range(6):
        summary = model.ordered(summary)
        summary, _ = local_step(model.likelihood, model.parameters(summary, np.dtype(float)), X, np.ones(n))
        bounds.append(model.bound(summary))
    slack = 1e-11 * (1.0 + abs(exact))
    assert max(bounds) <= exact + slack
    assert np.all(np.diff(bounds) > -slack)


@given(seed=SEEDS, concentration=st.floats(1e-3, 1e3))
def test_stick_breaking_order_costs_log_one_plus_concentration(exact_family, naive, seed, concentration):
    """One row in one cluster: the only partition has probability one, the first stick only 1 / (1 + concentration)."""
    rng = np.random.default_rng(seed)
    likelihood = exact_family.likelihood(exact_family.rows(rng, 30, 2))
    x = exact_family.rows(rng, 1, 2)
    exact = likelihood.log_marginal(np.ones(1), naive.features(likelihood, x))[0] + likelihood.log_base(x)[0]
    bound = Model(likelihood, DirichletProcess(concentration)).bound(naive.summarise(likelihood, x, np.ones((1, 1))))
    assert exact - bound == pytest.approx(np.log1p(concentration), abs=1e-9)  # rows may be far away, and squares cancel


def test_hard_assignments_add_up_to_the_evidence(exact_family, naive, turn):
    """exp(bound) of a labelling is p(X, labels); over all labels it sums to p(X) (beyond 30 sticks lies 1e-19)."""
    allocation, K = ((FiniteDirichlet(4, 0.5), 4), (DirichletProcess(0.3), 30))[turn % 2]
    rng = np.random.default_rng(1)
    likelihood = exact_family.likelihood(exact_family.rows(rng, 30, 1))
    X, model = exact_family.rows(rng, 2, 1), Model(likelihood, allocation)
    labelled = [model.bound(naive.summarise(likelihood, X, np.eye(K)[list(z)])) for z in product(range(K), repeat=2)]
    exact = log_evidence(model, X, naive.features(likelihood, X))
    assert logsumexp(labelled) == pytest.approx(exact, rel=1e-11)
