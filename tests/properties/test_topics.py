"""The bound of topic models: below the evidence, never falling, the same for any batches and threads."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import gammaln, logsumexp, psi, xlogy

from stickbreak.allocations import HierarchicalDirichletProcess, LatentDirichlet
from stickbreak.data import BagSource, GroupSource
from stickbreak.inference import Options, Session, Threads
from stickbreak.inference.laps import Laps
from stickbreak.inference.topics.survey import document_survey
from stickbreak.inference.visit import visit
from stickbreak.likelihoods import DiagonalGaussian, Multinomial, Sample, ZeroMeanGaussian
from stickbreak.model import BAGS, GROUPS, Batch, Model, Summary
from stickbreak.moves import Schedule
from stickbreak.moves.agglomeration import ancestry, levels_of, merges

SEEDS = st.integers(0, 2**32 - 1)
FLOAT = np.dtype(float)
ALLOCATIONS = [HierarchicalDirichletProcess(0.7, 1.5), LatentDirichlet(8, 2.0), LatentDirichlet(8, 2.0, symmetric=True)]
every = pytest.mark.parametrize("allocation", ALLOCATIONS, ids=lambda a: type(a).__name__)


def words(seed, D=40, V=12, K=3, tokens=30):
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(V, 0.2), K)
    counts = rng.multinomial(rng.poisson(tokens, D), rng.dirichlet(np.full(K, 0.4), D) @ topics)
    counts[0] = 0  # an empty document
    counts[1] = np.eye(V)[0]  # of one word
    return counts.astype(float)


def patches(seed, D=15, K=3):
    """Rows of K zero-mean clusters in groups; the second is empty."""
    rng = np.random.default_rng(seed)
    lengths = rng.poisson(12, D)
    lengths[1] = 0
    scales = rng.lognormal(0.0, 1.0, (K, 2))
    labels = np.concatenate([rng.choice(K, n, p=rng.dirichlet(np.full(K, 0.4))) for n in lengths])
    return scales[labels] * rng.standard_normal((len(labels), 2)), lengths


def problem(kind, allocation, seed):
    """A model, a source and a first summary of five clusters."""
    rng = np.random.default_rng(seed)
    if kind == "words":
        X = words(seed)
        likelihood = Multinomial(0.3).resolve(Sample.of(X))
        S = rng.exponential(1.0, (5, 12)) * X.sum() / 60.0
        return (
            Model(likelihood, allocation, BAGS),
            BagSource(sparse.csr_array(X)),
            BAGS.start(Summary(S.sum(1), S, np.zeros(5), np.zeros(()))),
        )
    X, lengths = patches(seed)
    family = {"zero-mean": ZeroMeanGaussian, "diagonal": DiagonalGaussian}[kind]
    likelihood = family().resolve(Sample.of(X))
    R = rng.dirichlet(np.ones(5), len(X))
    T = likelihood.features(X, np.empty((len(X), likelihood.n_statistics)))
    return (
        Model(likelihood, allocation, GROUPS),
        GroupSource(X, lengths),
        GROUPS.start(Summary(R.sum(0), R.T @ T, np.zeros(5), np.zeros(()))),
    )


def laps(model, source, start, moves=(), n_batches=1, n_jobs=1, max_laps=25, learn=(), seed=0):
    rng = np.random.default_rng(seed)
    with Threads(n_jobs) as threads:
        schedule = Schedule(moves, model.kind.recipe)
        found = Laps(
            model, source, schedule, Session(threads), rng, Options(n_batches, max_laps, 1e-9, True, learn, check=True)
        )
        found.run(start)
    return found


@every
@pytest.mark.parametrize("kind", ["words", "zero-mean", "diagonal"])
def test_the_bound_never_falls(kind, allocation, turn):
    """`check` compares the exact bound after every batch, lap and move; warm starts make it monotone."""
    learn = ("document_concentration", "concentration", "likelihood")
    for seed in range(3):
        model, source, start = problem(kind, allocation, seed)
        n_batches = (1, 3)[(turn + seed) % 2]
        found = laps(model, source, start, ("birth", "merge", "delete"), n_batches, learn=learn, seed=seed)
        bounds = np.array([lap.lower_bound for lap in found.history])
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
        assert found.model.bound(found.total) == found.bound
        assert found.total.N.sum() == pytest.approx(source.total_weight, rel=1e-9)
        assert source.n_rows == found.total.D


@pytest.mark.parametrize("L", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["words", "diagonal"])
def test_the_bound_never_falls_with_few_topics_a_document(kind, L, turn):
    """With a limit, too, whatever moves do; and no document has more topics than the limit."""
    births = 0
    for seed in range(2):
        allocation = ALLOCATIONS[(turn + seed + L) % 3]
        model, source, start = problem(kind, allocation, seed)
        model = replace(model, kind=replace(model.kind, most_kept=L))
        n_batches = (1, 3)[(turn + seed) % 2]
        found = laps(model, source, start, ("birth", "merge", "delete"), n_batches, seed=seed)
        bounds = np.array([lap.lower_bound for lap in found.history])
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
        assert found.total.N.sum() == pytest.approx(source.total_weight, rel=1e-9)
        assert (found.counts > 0.0).sum(axis=0).max() == min(L, found.total.K)
        births += sum(record.tried for lap in found.history for record in lap.moves if record.kind == "birth")
    assert births > 0


@every
@pytest.mark.parametrize("kind", ["words", "zero-mean"])
def test_a_visit_does_not_depend_on_batches_or_threads(kind, allocation):
    model, source, start = problem(kind, allocation, 1)
    parameters = model.parameters(start, FLOAT)
    with Threads(2) as threads:
        one = visit(model, parameters, source, source.batches(1)[0], threads).summary
        parts = [visit(model, parameters, source, chunks, threads).summary for chunks in source.batches(4)]
    total = parts[0] + parts[1] + parts[2] + parts[3]
    for name in ("N", "S", "H", "base", "P", "Q", "P_rest", "Q_rest", "D"):
        np.testing.assert_allclose(getattr(total, name), getattr(one, name), rtol=1e-10, atol=1e-9, err_msg=name)
    assert one.counts.shape == (5, source.n_rows)
    assert total.counts.shape == (5, 0)


@every
@pytest.mark.parametrize("kind", ["words", "zero-mean"])
def test_a_merge_is_an_exact_replacement(kind, allocation):
    """Its summary against dense responsibilities: r' = r_a + r_b, and theta' = N' + the prior of both."""
    model, source, start = problem(kind, allocation, 2)
    parameters = model.parameters(start, FLOAT)
    X, weights = source.read(source.batches(1)[0][0])
    prepared = model.kind.prepare(model.likelihood, parameters, source)
    summary, kept = model.kind.local_step(model.likelihood, prepared, Batch(X, weights), True, True)
    merged = model.kind.track(model.likelihood, None, (3, 1), Batch(X, weights), kept, summary)
    indptr, rows, counts = model.kind.entries(X)
    documents = np.repeat(np.arange(source.n_rows), np.diff(indptr))
    r = (kept.tables.E[rows] * kept.p[documents] / np.exp(kept.log_Z)[:, None])[:, [1, 3]].sum(axis=1)
    rho = kept.p[:, [1, 3]].sum(axis=1)[kept.single]
    assert len(rho) < source.n_rows
    assert (len(rho) > 0) == (kind == "words")
    r[kept.single[documents]] = kept.p[documents][:, [1, 3]].sum(axis=1)[kept.single[documents]]
    N = np.bincount(documents, counts * r, source.n_rows)
    prior = parameters.prior[[1, 3]].sum()
    sizes = np.bincount(documents, counts, source.n_rows)
    n = sizes[kept.single]
    E = psi(N + prior)
    E[kept.single] = rho * psi(prior + n) + (1.0 - rho) * psi(prior)
    E -= psi(sizes + parameters.prior.sum())
    log_gamma = gammaln(N + prior)
    log_gamma[kept.single] = rho * gammaln(prior + n) + (1.0 - rho) * gammaln(prior)
    mixed = ~kept.single[documents]
    H = -(counts * r * np.log(r))[mixed].sum() - xlogy(rho, rho).sum()
    assert pytest.approx([N.sum()]) == merged.N
    np.testing.assert_allclose(merged.S, summary.S[[1]] + summary.S[[3]], rtol=1e-9, atol=1e-9)
    assert pytest.approx([H], rel=1e-9, abs=1e-9) == merged.H
    assert pytest.approx([E.sum()]) == merged.P
    assert pytest.approx([log_gamma.sum() - prior * E.sum()]) == merged.Q


def polya(n, a):
    """log p of labels with counts n (..., K) under Dirichlet(a)."""
    return (gammaln(a + n) - gammaln(a)).sum(-1) + gammaln(a.sum()) - gammaln(a.sum() + n.sum(-1))


@given(seed=SEEDS, alpha=st.sampled_from([0.3, 4.0]))
@settings(max_examples=10)
def test_the_bound_of_lda_is_below_the_enumerated_evidence(seed, alpha):
    """log p(words) by all 2^6 assignments of six tokens in two documents to two topics, with a symmetric prior."""
    rng, V, K = np.random.default_rng(seed), 3, 2
    tokens, owner = rng.integers(V, size=6), np.array([0, 0, 0, 1, 1, 1])
    z = np.array(list(product(range(K), repeat=6)))
    n = np.stack([[(z[:, owner == d] == k).sum(1) for k in range(K)] for d in range(2)])
    s = np.array([[((z == k) & (tokens == v)).sum(1) for v in range(V)] for k in range(K)])
    terms = sum(polya(n[d].T, np.full(K, alpha / K)) for d in range(2))
    terms = terms + sum(polya(s[k].T, np.full(V, 0.5)) for k in range(K))
    evidence = logsumexp(terms)
    X = np.array([np.bincount(tokens[owner == d], minlength=V) for d in range(2)], float)
    model = Model(Multinomial(0.5).resolve(Sample.of(X)), LatentDirichlet(K, alpha, symmetric=True), BAGS)
    S = rng.exponential(1.0, (K, V))
    found = laps(model, BagSource(sparse.csr_array(X)), model.start(S.sum(1), S), max_laps=50)
    assert evidence - 6.0 < found.bound <= evidence + 1e-9


def test_the_bound_of_the_process_is_below_the_evidence():
    """The partition of five tokens in two documents is simulated by the Chinese restaurant franchise."""
    alpha, gamma, V, rng = 1.2, 0.8, 3, np.random.default_rng(0)
    tokens, owner, draws = np.array([0, 0, 1, 1, 2]), np.array([0, 0, 0, 1, 1]), 20_000
    weights = np.empty(draws)
    for i in range(draws):
        dishes, z = [], []  # tables of every topic, topic of every token
        for d in range(2):
            tables = []  # [customers, topic]
            for _ in tokens[owner == d]:
                chances = np.array([t[0] for t in tables] + [alpha])
                table = rng.choice(len(chances), p=chances / chances.sum())
                if table == len(tables):
                    chances = np.array([*dishes, gamma])
                    k = rng.choice(len(chances), p=chances / chances.sum())
                    dishes = [*dishes, 0] if k == len(dishes) else dishes
                    dishes[k] += 1
                    tables.append([0, k])
                tables[table][0] += 1
                z.append(tables[table][1])
        s = np.array([np.bincount(tokens[np.array(z) == k], minlength=V) for k in range(max(z) + 1)])
        weights[i] = polya(s, np.full(V, 0.5)).sum()
    evidence, X = logsumexp(weights) - np.log(draws), np.array([[2.0, 1, 0], [0, 1, 1]])
    error = np.exp(weights - weights.max()).std() / np.exp(weights - weights.max()).mean() / np.sqrt(draws)
    model = Model(Multinomial(0.5).resolve(Sample.of(X)), HierarchicalDirichletProcess(alpha, gamma), BAGS)
    for K in (1, 2, 3):
        S = np.random.default_rng(K).exponential(1.0, (K, V))
        start = model.start(S.sum(1), S)
        assert laps(model, BagSource(sparse.csr_array(X)), start).bound <= evidence + 4.0 * error


@every
@pytest.mark.parametrize("kind", ["words", "zero-mean"])
def test_a_survey_tells_what_merged_topics_are_worth(kind, allocation):
    """The first merge of the tree is the summary of an exact merge, and the root has all tokens without a doubt."""
    model, source, start = problem(kind, allocation, 3)
    total = laps(model, source, start, max_laps=3).total
    steps = list(merges(model.posterior(total)))
    with Threads(2) as threads:
        seen = document_survey(model, total, source, threads, ancestry(steps, total.K), None)
    found = levels_of(model, seen.total, steps, seen.nodes)
    best = model.bound(model.ordered(seen.total))
    assert best - 1.0 < found[0].bound <= best + 1e-6
    X, weights = source.read(source.batches(1)[0][0])
    prepared = model.kind.prepare(model.likelihood, model.parameters(total, FLOAT), source)
    summary, kept = model.kind.local_step(model.likelihood, prepared, Batch(X, weights), True, True)
    merged = model.kind.track(model.likelihood, None, (steps[0].kept, steps[0].gone), Batch(X, weights), kept, summary)
    for name in ("N", "H", "P", "Q"):
        np.testing.assert_allclose(getattr(seen.nodes, name)[[total.K]], getattr(merged, name), rtol=1e-8, atol=1e-7)
    assert seen.nodes.N[-1] == pytest.approx(source.total_weight)
    assert seen.nodes.H[-1] == pytest.approx(0.0, abs=1e-8)


@every
@pytest.mark.parametrize("kind", ["words", "zero-mean"])
def test_a_survey_of_the_first_merges_tells_the_same_of_these(kind, allocation):
    """Without the later merges there are several trees."""
    model, source, start = problem(kind, allocation, 4)
    total = laps(model, source, start, max_laps=3).total
    steps = list(merges(model.posterior(total)))
    found = []
    for some in (steps, steps[:2]):
        with Threads(2) as threads:
            seen = document_survey(model, total, source, threads, ancestry(some, total.K), None)
        found.append(levels_of(model, seen.total, some, seen.nodes))
    everything, first = found
    assert [level.groups for level in first] == [level.groups for level in everything[:3]]
    np.testing.assert_allclose([level.bound for level in first], [level.bound for level in everything[:3]], rtol=1e-12)


@every
@pytest.mark.parametrize("kind", ["words", "zero-mean"])
def test_documents_without_the_topics_of_a_move_add_what_their_prior_says(kind, allocation):
    """A factor next to zero has the documents iterated that are otherwise left out."""
    model, source, start = problem(kind, allocation, 5)
    small = replace(model, allocation=replace(allocation, document_concentration=0.05))
    total = laps(small, source, start, max_laps=8).total
    X, weights = source.read(source.batches(1)[0][0])
    parameters = small.parameters(total, FLOAT)
    prepared = small.kind.prepare(small.likelihood, parameters, source)
    batch = Batch(X, weights)
    summary, kept = small.kind.local_step(small.likelihood, prepared, batch, True, True)
    assert (kept.p == 0.0).any(axis=1).mean() > 0.5
    everywhere = kept._replace(p=np.maximum(kept.p, 1e-120))
    children = small.kind.prepare(small.likelihood, parameters.take(np.array([1, 2])), source)
    for removed, added in (((3, 1), None), ((0, 1, 2), children), ((4,), children)):
        some = small.kind.track(small.likelihood, added, removed, batch, kept, summary)
        all_ = small.kind.track(small.likelihood, added, removed, batch, everywhere, summary)
        for name in ("N", "S", "H", "P", "Q", "P_rest", "Q_rest", "D", "counts"):
            np.testing.assert_allclose(getattr(some, name), getattr(all_, name), rtol=1e-9, atol=1e-7, err_msg=name)
