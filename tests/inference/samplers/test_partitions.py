"""Collapsed Gibbs sampling against posteriors enumerated over all partitions."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from partitions import chinese_restaurant, expected_distance, growth_strings, posterior, probabilities
from stickbreak.allocations import (
    DirichletProcess,
    FiniteDirichlet,
    GammaConcentration,
    PitmanYor,
    TruncatedDirichletProcess,
)
from stickbreak.allocations.seating import Seating
from stickbreak.allocations.slice_sampling import slice_step
from stickbreak.inference.samplers.blocked import BlockedSteps
from stickbreak.inference.samplers.chain import ChainStart, ChainTask
from stickbreak.inference.samplers.collapsed import CollapsedSteps
from stickbreak.inference.samplers.partition import Partition, Table
from stickbreak.inference.samplers.split_merge import seat

WHOLE, ROWS = (partial(CollapsedSteps.begin, split_merge) for split_merge in (True, False))
PRIORS = [DirichletProcess(0.7), FiniteDirichlet(3, 1.5), FiniteDirichlet(20, 4.0)]


def table(naive, likelihood, allocation, X):
    return Table.of(likelihood, allocation, naive.features(likelihood, X), float(likelihood.log_base(X).sum()))


def few_rows(naive, family, allocation, seed, n, D=2):
    rng = np.random.default_rng(seed)
    likelihood = family.likelihood(family.rows(rng, 30, D))
    return table(naive, likelihood, allocation, family.rows(rng, n, D))


@pytest.mark.parametrize(
    ("name", "allocation", "begin"),
    [
        ("known_covariance_gaussian-given", DirichletProcess(1.0), WHOLE),
        ("known_covariance_gaussian-given", DirichletProcess(1.0), ROWS),
        ("bernoulli-missing", FiniteDirichlet(3, 1.5), WHOLE),
        ("categorical-given", PitmanYor(0.5, 0.4), ROWS),
        ("known_covariance_gaussian-given", DirichletProcess(1.0), partial(BlockedSteps.begin, 30)),
        ("bernoulli-missing", FiniteDirichlet(3, 1.5), partial(BlockedSteps.begin, 3)),
    ],
    ids=lambda value: value.func.__self__.__name__ if isinstance(value, partial) else str(value),
)
def test_partitions_are_drawn_from_the_posterior(naive, known_families, name, allocation, begin):
    """The distance from the enumerated posterior is that of a third as many independent draws, at most."""
    rows = few_rows(naive, known_families[name], allocation, 5, 6)
    partitions, joint = posterior(rows.likelihood, allocation, rows.T)
    p = probabilities(joint)
    assert p.max() < 0.5  # a posterior that one partition does not decide
    n_draws = 1500
    drawn = ChainTask(rows, begin, 20, n_draws)(ChainStart(np.zeros(6, np.int64), 1))
    place = {tuple(z): i for i, z in enumerate(partitions.tolist())}
    which = np.array([place[tuple(z)] for z in drawn.labels.tolist()])
    found = np.bincount(which, minlength=len(p)) / n_draws
    assert 0.5 * np.abs(found - p).sum() < expected_distance(p, n_draws / 3)
    np.testing.assert_allclose(drawn.log_joint, joint[which] + rows.base, rtol=1e-9)
    np.testing.assert_array_equal(drawn.n_clusters, partitions[which].max(axis=1) + 1)


@pytest.mark.parametrize("concentration", [0.8, 4.0])
def test_a_truncated_process_is_sampled_as_it_is(naive, known_families, concentration):
    """Against the posterior summed over all labels, with sticks drawn from the formula for three of them."""
    T, n, n_draws = 3, 5, 2000
    prior = TruncatedDirichletProcess(T, concentration)
    rows = few_rows(naive, known_families["known_covariance_gaussian-given"], prior, 5, n)
    joint = {}
    for z in product(range(T), repeat=n):
        N = np.bincount(z, minlength=T).astype(float)
        later = N.sum() - np.cumsum(N)
        log_p = (betaln(1.0 + N[:-1], concentration + later[:-1]) - betaln(1.0, concentration)).sum()
        log_p += rows.likelihood.log_marginal(N, np.eye(T)[list(z)].T @ rows.T).sum()
        first = tuple(dict.fromkeys(z))
        key = tuple(first.index(k) for k in z)
        joint[key] = np.logaddexp(joint.get(key, -np.inf), log_p)
    p = probabilities(np.array(list(joint.values())))
    drawn = ChainTask(rows, partial(BlockedSteps.begin, T), 50, n_draws)(ChainStart(np.zeros(n, np.int64), 1))
    place = {z: i for i, z in enumerate(joint)}
    found = np.bincount([place[tuple(z)] for z in drawn.labels.tolist()], minlength=len(p)) / n_draws
    assert 0.5 * np.abs(found - p).sum() < expected_distance(p, n_draws / 4)
    assert p.max() < 0.6


@pytest.mark.long
@pytest.mark.parametrize("begin", [WHOLE, partial(BlockedSteps.begin, 12)], ids=["collapsed", "blocked"])
def test_a_concentration_with_a_prior_is_drawn_along(naive, known_families, begin):
    """Partitions and the mean concentration against the enumerated posterior, summed over a grid of concentrations."""
    prior, n_draws = GammaConcentration(2.0, 3.0), 2000
    family = known_families["known_covariance_gaussian-given"]
    rows = few_rows(naive, family, DirichletProcess(prior), 5, 5)
    grid = np.exp(np.linspace(-9.0, 3.0, 241))
    log_p = stats.gamma(2.0, scale=1.0 / 3.0).logpdf(grid) + np.log(grid)
    joint = np.array([posterior(rows.likelihood, DirichletProcess(c), rows.T)[1] for c in grid]) + log_p[:, None]
    p = probabilities(joint)
    partitions = growth_strings(5)
    drawn = ChainTask(rows, begin, 50, n_draws)(ChainStart(np.zeros(5, np.int64), 2))
    place = {tuple(z): i for i, z in enumerate(partitions.tolist())}
    found = np.bincount([place[tuple(z)] for z in drawn.labels.tolist()], minlength=len(partitions)) / n_draws
    assert 0.5 * np.abs(found - p.sum(axis=0)).sum() < expected_distance(p.sum(axis=0), n_draws / 4)
    mean = grid @ p.sum(axis=1)
    blocks = drawn.concentration.reshape(20, -1).mean(axis=1)
    assert abs(drawn.concentration.mean() - mean) < 3.5 * blocks.std(ddof=1) / np.sqrt(20)
    assert mean != pytest.approx(prior.mean, rel=0.05)


@pytest.mark.parametrize("seating", [Seating(0.7), Seating(0.2, 0.6), Seating(1.5, -0.5)], ids=str)
def test_labels_of_so_many_clusters_are_a_distribution(seating):
    """The chances of all labels sum to one, and drawn weights have the posterior mean of the next label."""
    every = [np.bincount(z, minlength=3).astype(float) for z in product(range(3), repeat=4)]
    assert np.exp([seating.log_labels(N) for N in every]).sum() == pytest.approx(1.0, rel=1e-12)
    N, rng = np.array([3.0, 0.0, 2.0]), np.random.default_rng(0)
    drawn = np.exp([seating.draw_log_weights(N, rng) for _ in range(3000)])
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    expected = np.exp([seating.log_labels(N + e) - seating.log_labels(N) for e in np.eye(3)])
    assert (np.abs(drawn.mean(axis=0) - expected) < 4.0 * drawn.std(axis=0) / np.sqrt(3000)).all()


def test_slices_leave_a_density_as_it_is():
    """Of log c for a gamma variable c: its mean and that of its square, from a bad start."""
    rng, t, found = np.random.default_rng(0), 8.0, np.empty(4000)
    for i in range(len(found)):
        t = slice_step(lambda t: 3.0 * t - 2.0 * np.exp(t), t, rng)
        found[i] = np.exp(t)
    for values, mean in ((found[50:], 1.5), (found[50:] ** 2, 3.0)):
        assert abs(values.mean() - mean) < 0.1 * mean


def test_gains_are_those_of_the_predictive(naive, known_families):
    """Log p(x | the other rows of a cluster) is the predictive density, for every row and cluster, its own among them."""
    for name, family in known_families.items():
        if family.latent or family.conditional or not family.conjugate:
            continue  # their predictive is not a ratio of marginals alone
        rng = np.random.default_rng(2)
        likelihood = family.likelihood(family.rows(rng, 30, 2))
        X = family.rows(rng, 9, 2)
        labels = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
        partition = Partition.of(table(naive, likelihood, DirichletProcess(0.7), X), labels)
        found = partition.gains(np.arange(9), np.arange(3)) + likelihood.log_base(X)[:, None]
        T = partition.table.T
        for i, k in product(range(9), range(3)):
            others = (labels == k) & (np.arange(9) != i)
            N, S = others.sum(keepdims=True).astype(float), T[others].sum(axis=0)[None]
            expected = likelihood.log_predictive(X[i : i + 1], N, S)[0, 0]
            assert found[i, k] == pytest.approx(expected, rel=1e-7, abs=1e-7), name


@pytest.mark.parametrize("allocation", PRIORS, ids=str)
def test_statistics_follow_the_rows(naive, known_families, allocation):
    """After sweeps, splits and merges the statistics are those of the labels."""
    rows = few_rows(naive, known_families["gaussian-given"], allocation, 3, 40)
    chain = ChainTask(rows, WHOLE, 0, 3)
    labels = chain(ChainStart(np.arange(40) % allocation.max_clusters % 7, 4)).labels
    for z in labels:
        whole = Partition.of(rows, z)
        assert allocation.max_clusters >= whole.K
        assert whole.log_joint == pytest.approx(whole.fresh().log_joint, rel=1e-12)
    walked = Partition.of(rows, labels[-1])
    for row, k in ((3, 1), (5, walked.K), (7, 0), (9, 1)):
        if k == walked.K == allocation.max_clusters:
            continue
        own = int(walked.labels[row])
        if k == own:
            continue
        k = min(k, walked.K)
        gain = rows.alone[row] if k == walked.K else walked.gains(np.array([row]), np.array([k]))[0, 0]
        walked.move(row, k, float(gain), float(walked.gains(np.array([row]), np.array([own]))[0, 0]))
    again = Partition.of(rows, walked.labels)
    order = [int(np.unique(walked.labels).tolist().index(k)) for k in range(walked.K)]
    np.testing.assert_allclose(walked.S, again.S[order], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(walked.marginal, again.marginal[order], rtol=1e-9, atol=1e-9)


def test_rows_far_from_all_others_leave_no_rounding_behind(naive, known_families):
    """A row of 1e12 deviations comes and goes, and the others of its cluster are as before."""
    rng = np.random.default_rng(0)
    family = known_families["gaussian-given"]
    X = family.rows(rng, 12, 2)
    likelihood = family.likelihood(X)
    X[4] = 1e12
    far = table(naive, likelihood, DirichletProcess(1.0), X)
    np.testing.assert_array_equal(np.flatnonzero(far.far), [4])
    partition = Partition.of(far, np.arange(12) % 2)
    gains = partition.gains(np.array([4]), np.array([0]))
    partition.move(4, 2, float(far.alone[4]), float(gains[0, 0]))
    others = Partition.of(far, partition.labels)
    np.testing.assert_allclose(partition.S, others.S, rtol=1e-12)
    np.testing.assert_allclose(partition.marginal, others.marginal, rtol=1e-6)
    drawn = ChainTask(far, WHOLE, 5, 5)(ChainStart(np.arange(12) % 2, 0))
    assert all((z == z[4]).sum() == 1 for z in drawn.labels)


def test_the_chances_of_all_seatings_sum_to_one(naive, known_families):
    rows = few_rows(naive, known_families["poisson-given"], DirichletProcess(1.0), 1, 6)
    others, rng = np.array([5, 2, 0, 4]), np.random.default_rng(0)
    chances = [
        seat(rows, 1, 3, others, rng, np.array(second)).log_chance for second in product([False, True], repeat=4)
    ]
    assert np.exp(chances).sum() == pytest.approx(1.0, rel=1e-12)
    drawn = seat(rows, 1, 3, others, rng)
    assert drawn.log_chance == seat(rows, 1, 3, others, rng, drawn.second).log_chance


@pytest.mark.parametrize(
    "seating", [Seating(0.7), Seating(0.2, 0.6), Seating(3.0, 0.3), Seating(2.0, -0.5), Seating(1.5, -0.5)], ids=str
)
def test_a_seating_is_a_distribution_over_partitions(seating):
    """Probabilities of all partitions sum to one, and their ratios are the weights of the next row."""
    M = np.inf if seating.discount >= 0.0 else -seating.concentration / seating.discount
    for n in range(1, 6):
        sizes = [np.bincount(z).astype(float) for z in growth_strings(n) if z.max() < M]
        log_p = np.array([seating.log_partition(N) for N in sizes])
        assert np.exp(log_p).sum() == pytest.approx(1.0, rel=1e-12)
        if seating.discount >= 0.0:
            expected = [chinese_restaurant(N.tolist(), *seating) for N in sizes]
            np.testing.assert_allclose(log_p, expected, rtol=1e-11, atol=1e-12)
        for N, before in zip(sizes, log_p):
            weights = seating.log_weights(N) - np.log(n + seating.concentration)
            for k in range(len(N) + (len(N) < M)):
                more = np.append(N, 0.0)[: max(len(N), k + 1)] + (np.arange(max(len(N), k + 1)) == k)
                assert weights[k] == pytest.approx(seating.log_partition(more) - before, rel=1e-9, abs=1e-9)
        assert all((seating.log_weights(N)[-1] == -np.inf) == (len(N) >= M) for N in sizes)


@pytest.mark.long
def test_the_sampler_leaves_the_joint_distribution_of_rows_and_partitions_as_it_is(naive, known_families):
    """Geweke (2004): rows drawn given the partition, and the partition given the rows, in turn, go on as the prior does."""
    family = known_families["bernoulli-given"]
    rng = np.random.default_rng(7)
    likelihood, allocation = family.likelihood(family.rows(rng, 30, 1)), DirichletProcess(1.3)
    n, rounds = 4, 2000
    labels = np.zeros(n, np.int64)
    clusters, together, same = np.empty(rounds), np.empty(rounds), np.empty(rounds)
    for r in range(rounds):
        X = np.empty((n, 1))
        for k in range(labels.max() + 1):
            N, S = 0.0, np.zeros(1)
            for i in np.flatnonzero(labels == k):
                X[i] = likelihood.sample(N, S, rng, 1)[0]
                N, S = N + 1.0, S + X[i]
        chain = ChainTask(table(naive, likelihood, allocation, X), WHOLE, 0, 1)
        labels = chain(ChainStart(labels, int(rng.integers(2**63)))).labels[0].astype(np.int64)
        clusters[r] = labels.max() + 1
        together[r] = labels[0] == labels[1]
        same[r] = X[0, 0] == X[1, 0]
    a, b, alpha = float(likelihood.a[0]), float(likelihood.b[0]), allocation.concentration
    alike = (a * (a + 1) + b * (b + 1)) / ((a + b) * (a + b + 1))  # two rows of one cluster
    apart = (a**2 + b**2) / (a + b) ** 2
    p = 1.0 / (1.0 + alpha)
    expected = {
        "clusters": (clusters, sum(alpha / (alpha + i) for i in range(n))),
        "together": (together, p),
        "same": (same, p * alike + (1.0 - p) * apart),
    }
    for name, (values, mean) in expected.items():
        blocks = values.reshape(40, -1).mean(axis=1)  # independent enough to tell the error of the mean
        error = max(blocks.std(ddof=1) / np.sqrt(40), values.std() / np.sqrt(rounds))
        assert abs(values.mean() - mean) < 3.5 * error, name
