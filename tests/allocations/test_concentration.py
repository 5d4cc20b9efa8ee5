"""A gamma prior on the concentration against numerical integration, Blei and Jordan's updates, and enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp, psi
from scipy.stats import gamma

from partitions import chinese_restaurant, growth_strings
from stickbreak import Mixture, load
from stickbreak.allocations import DirichletProcess, FiniteDirichlet, GammaConcentration, PitmanYor
from stickbreak.likelihoods import Gaussian, Sample
from stickbreak.model import Model, local_step

SIZES = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=5).map(np.array)
PRIORS = [(1.0, 1.0), (0.3, 0.02), (20.0, 2.0), (3.0, 1e-3), (200.0, 0.5)]
KINDS = {
    "dp": DirichletProcess,
    "pitman-yor": lambda c: PitmanYor(c, 0.3),
    "finite": lambda c: FiniteDirichlet(6, c),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def integrated(kind, summary, shape, rate):
    """Log evidence, mean and standard deviation by trapezoids over the log concentration."""
    t, step = np.linspace(-12.0 - 30.0 / shape, 15.0, 1201, retstep=True)
    bounds = [KINDS[kind](float(np.exp(x))).bound(summary) for x in t]
    logs = gamma(shape, scale=1.0 / rate).logpdf(np.exp(t)) + t + bounds
    weights = np.exp(logs - logs.max())
    mean, square = (weights @ np.exp(m * t) / weights.sum() for m in (1, 2))
    return logs.max() + np.log(weights.sum() * step), mean, np.sqrt(square - mean**2)


@every_kind
@pytest.mark.parametrize(("shape", "rate"), PRIORS)
def test_bound_and_posterior_are_those_of_numerical_integration(naive, kind, shape, rate):
    for N in ([7.0, 2.5, 1.0, 0.4], [30.0], [1e4, 300.0, 20.0, 1.0, 1.0]):
        summary = naive.counted(N)
        prior = KINDS[kind](GammaConcentration(shape, rate))
        exact, mean, std = integrated(kind, summary, shape, rate)
        assert prior.bound(summary) == pytest.approx(exact, rel=1e-9, abs=1e-9)
        moments = prior.concentration_moments(summary)
        assert moments.mean == pytest.approx(mean, rel=1e-6)
        assert moments.std == pytest.approx(std, rel=1e-5)


@every_kind
@given(N=SIZES)
def test_update_is_the_derivative_of_the_bound(naive, kind, N):
    prior, h = KINDS[kind](GammaConcentration(2.0, 0.7)), 2e-3
    found = prior.update(naive.counted(N + 1), prior.solve(naive.counted(N + 1))).log_weights
    for k, e in enumerate(h * np.eye(len(N))):
        near = prior.bound(naive.counted(N + 1 + e)) - prior.bound(naive.counted(N + 1 - e))
        far = prior.bound(naive.counted(N + 1 + 2 * e)) - prior.bound(naive.counted(N + 1 - 2 * e))
        assert (8 * near - far) / (12 * h) == pytest.approx(found[k], rel=1e-7, abs=1e-7)
    assert prior.mean_weights(naive.counted(N)).sum() == pytest.approx(1.0, rel=1e-12)


@every_kind
@given(N=SIZES)
def test_empty_clusters_change_nothing(naive, kind, N):
    prior = KINDS[kind](GammaConcentration(2.0, 0.7))
    some, more = naive.counted(N), naive.counted(np.append(N, 0.0))
    assert prior.bound(more) == pytest.approx(prior.bound(some), rel=1e-13, abs=1e-12)
    found = [prior.update(summary, prior.solve(summary)).log_weights for summary in (some, more)]
    np.testing.assert_allclose(found[1][: len(N)], found[0], rtol=1e-11)


@given(N=SIZES, shape=st.floats(1.0, 20.0), rate=st.floats(0.01, 5.0))
def test_the_bound_is_above_that_of_independent_sticks(naive, N, shape, rate):
    """Blei and Jordan's updates, appendix B, until they settle: a looser family, with nearly the same posterior mean."""
    N = np.sort(N + 1.0)[::-1]
    later = np.append(np.cumsum(N[::-1])[-2::-1], 0.0)
    w1, w2 = shape + len(N), rate
    for _ in range(100):
        on, off = 1.0 + N, w1 / w2 + later
        rest = psi(off) - psi(on + off)
        w2 = rate - rest.sum()
    on, off = 1.0 + N, w1 / w2 + later
    rest = psi(off) - psi(on + off)
    log_c = psi(w1) - np.log(w2)
    sticks = len(N) * log_c + (w1 / w2 + later - off) @ rest + (gammaln(on) + gammaln(off) - gammaln(on + off)).sum()
    prior = shape * np.log(rate) - gammaln(shape) + (shape - w1) * log_c - (rate - w2) * w1 / w2
    factorised = sticks + prior + gammaln(w1) - w1 * np.log(w2)
    found = DirichletProcess(GammaConcentration(shape, rate))
    gap = found.bound(naive.counted(N)) - factorised
    assert -1e-9 < gap < 1.0


@pytest.mark.parametrize("kind", ["dp", "pitman-yor"])
@pytest.mark.parametrize(("shape", "rate"), PRIORS[:3])
def test_the_bound_is_below_the_evidence_summed_over_partitions_and_concentrations(naive, kind, shape, rate):
    """The evidence on a fine grid of concentrations; for several responsibilities and along coordinate ascent."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(5, 1)) * [[1.0], [1.0], [1.0], [6.0], [6.0]]
    likelihood = Gaussian().resolve(Sample.of(X))
    T = naive.features(likelihood, X)
    t = np.linspace(-40.0, 12.0, 4001)
    log_prior = gamma(shape, scale=1.0 / rate).logpdf(np.exp(t)) + t + np.log(t[1] - t[0])
    discount = 0.3 if kind == "pitman-yor" else 0.0
    terms = []
    for z in growth_strings(len(X)):
        R = np.eye(z.max() + 1)[z]
        sizes = R.sum(axis=0)
        seats = chinese_restaurant(sizes, np.exp(t), discount)
        terms.append(logsumexp(log_prior + seats) + likelihood.log_marginal(sizes, R.T @ T).sum())
    exact = logsumexp(terms) + likelihood.log_base(X).sum()
    model = Model(likelihood, KINDS[kind](GammaConcentration(shape, rate)))
    for softness in (0.05, 1.0, 30.0):
        summary = naive.summarise(likelihood, X, rng.dirichlet(np.full(3, softness), len(X)))
        bounds = [model.bound(summary)]
        for _ in range(6):
            summary = model.ordered(summary)
            summary, _ = local_step(likelihood, model.parameters(summary, np.dtype(float)), X, np.ones(len(X)))
            bounds.append(model.bound(summary))
        assert max(bounds) < exact
        assert np.all(np.diff(bounds) > -1e-10)


def test_a_fit_has_the_posterior_of_the_concentration(tmp_path):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, 1.0, (40, 1)) for m in (-20.0, 0.0, 20.0)])
    prior = GammaConcentration(2.0, 1.0)
    found = Mixture("gaussian", concentration=prior, random_state=0, n_jobs=1, n_batches=2).fit(X)
    assert found.n_clusters_ == 3
    assert np.all(np.diff(found.lower_bounds_) >= 0.0)
    _, mean, std = integrated("dp", found.summary_, 2.0, 1.0)
    assert found.concentration_ == pytest.approx(mean, rel=1e-5)
    assert found.concentration_std_ == pytest.approx(std, rel=1e-5)
    found.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.concentration == again.model_.allocation.concentration == prior
    assert again.concentration_std_ == found.concentration_std_
    known = Mixture("gaussian", concentration=2.5, random_state=0, n_jobs=1, moves=()).fit(X)
    assert (known.concentration_, known.concentration_std_) == (2.5, 0.0)


def test_what_a_prior_excludes_is_refused():
    X, prior = np.eye(4), GammaConcentration()
    with pytest.raises(ValueError, match="learn names 'concentration', but what can be learnt is"):
        Mixture("gaussian", concentration=prior, learn=("concentration",)).fit(X)


@pytest.mark.parametrize(("name", "value"), [("shape", 0.0), ("shape", np.nan), ("rate", -1.0), ("rate", "x")])
def test_bad_priors_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a number from .* to 1e6; got"):
        GammaConcentration(**{name: value})
