"""A gamma prior on the concentration of shares of topics and of states: against integrals over sticks and concentrations."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, logsumexp, psi, roots_jacobi
from scipy.stats import gamma

from stickbreak import HMM, TopicModel, load
from stickbreak.allocations import GammaConcentration, HDPMarkovChain, HierarchicalDirichletProcess
from stickbreak.allocations._sticks import expected_logs, stick_logits, stick_weight
from stickbreak.model import DocumentSummary, SequenceSummary, Summary

PRIORS = [GammaConcentration(1.0, 1.0), GammaConcentration(0.4, 0.1), GammaConcentration(6.0, 2.0)]
pytestmark = pytest.mark.filterwarnings("ignore:not converged")
every_prior = pytest.mark.parametrize("prior", PRIORS, ids=str)


def dirichlet_multinomial(n, a):
    """Log probability of labels with counts n (K,) under shares with pseudo-counts a (..., K)."""
    return (gammaln(n + a) - gammaln(a)).sum(axis=-1) + gammaln(a.sum(axis=-1)) - gammaln(a.sum(axis=-1) + n.sum())


def of_states(M, begins):
    K = len(begins)
    return SequenceSummary.of(Summary(begins + M.sum(axis=0), np.zeros((K, 0)), np.zeros(K), np.zeros(())), M, begins)


def of_documents(N, a):
    theta = np.column_stack([N, np.zeros(len(N))]) + a
    E = psi(theta) - psi(theta.sum(axis=1, keepdims=True))
    Q = gammaln(theta).sum(axis=0) - (a * E).sum(axis=0)
    K, P, zero = N.shape[1], E.sum(axis=0), np.zeros(())
    rest = np.array(Q[K] - gammaln(theta.sum(axis=1)).sum())
    return DocumentSummary(
        N.sum(axis=0), np.zeros((K, 0)), np.zeros(K), zero, P[:K], Q[:K], np.array(P[K]), rest,
        np.array(float(len(N))), np.zeros((K, 0), np.float32),
    )  # fmt: skip


M, BEGINS = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([1.0, 1.0])
N = np.array([[3.0, 0.0], [1.0, 2.0], [0.0, 1.0]])


def of_labelled_states(allocation, beta):
    first, alpha, kappa = allocation.start_concentration, allocation.transition_concentration, allocation.stickiness
    total = dirichlet_multinomial(np.append(BEGINS, 0.0), first * beta)
    for j in range(2):
        total += dirichlet_multinomial(np.append(M[j], 0.0), alpha * beta + kappa * np.eye(3)[j])
    return total


def of_labelled_tokens(allocation, beta):
    return sum(dirichlet_multinomial(np.append(n, 0.0), allocation.document_concentration * beta) for n in N)


def settled_documents(allocation):
    """The documents at their optimum: theta and shares in turn."""
    a = allocation.document_concentration * np.array([0.4, 0.3, 0.3])
    bounds = []
    for _ in range(40):
        s = of_documents(N, a)
        bounds.append(allocation.bound(s))
        a = allocation.update(s, allocation.solve(s)).prior
    assert np.all(np.diff(bounds) > -1e-7)
    return s


CASES = {
    "states": (HDPMarkovChain(1.3, 0.8, 2.0, 1.5), of_labelled_states, lambda allocation: of_states(M, BEGINS)),
    "sticky states": (HDPMarkovChain(3.0, 20.0, 1.0, 1.5), of_labelled_states, lambda allocation: of_states(M, BEGINS)),
    "topics": (HierarchicalDirichletProcess(1.2, 1.5), of_labelled_tokens, settled_documents),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def log_evidence(allocation, labelled, prior):
    """Log p(labels): polynomials in the sticks by exact quadrature, on a grid of concentrations."""
    t, step = np.linspace(-14.0, 4.6, 187, retstep=True)  # up to 100
    logs = np.empty(len(t))
    for i, c in enumerate(np.exp(t)):
        x, p = roots_jacobi(8, c - 1.0, 0.0)
        u = (x + 1.0) / 2.0
        first, second = np.meshgrid(u, u, indexing="ij")
        beta = np.stack([first, (1.0 - first) * second, (1.0 - first) * (1.0 - second)], axis=-1)
        weights = np.outer(p, p) / p.sum() ** 2
        with np.errstate(divide="ignore"):
            logs[i] = logsumexp(labelled(allocation, np.maximum(beta, 1e-300)) + np.log(weights))
    return logsumexp(logs + gamma(prior.shape, scale=1.0 / prior.rate).logpdf(np.exp(t)) + t + np.log(step))


@every_case
@every_prior
def test_the_bound_is_below_the_probability_of_the_labels(case, prior):
    """Summed over sticks and concentrations; no further below than at a known concentration, by more than a nat."""
    known, labelled, summary_of = case
    allocation = replace(known, concentration=prior)
    gap = log_evidence(allocation, labelled, prior) - allocation.bound(summary_of(allocation))
    assert gap > 0.0
    certain = GammaConcentration(1e6, 1e6 / 1.5)
    of_known = log_evidence(known, labelled, GammaConcentration(4e3, 4e3 / 1.5)) - known.bound(summary_of(known))
    assert gap < of_known + 1.0
    assert replace(known, concentration=certain).bound(summary_of(known)) == pytest.approx(
        known.bound(summary_of(known)), abs=1e-3
    )


@every_case
@every_prior
def test_the_posterior_of_the_concentration_is_that_of_its_sticks(case, prior):
    """Blei and Jordan's q(c) against numerical integrals, and the bound against one at a known concentration."""
    known, _, summary_of = case
    allocation = replace(known, concentration=prior)
    s = summary_of(known)
    solution, found = allocation.solve(s), allocation.concentration_moments(s)
    at = replace(known, concentration=found.mean)
    sticks = at._sticks(s)
    x = stick_logits(solution.shares)
    u = 1.0 / (1.0 + np.exp(-x))
    rest = expected_logs(u, stick_weight(u, sticks.exponents, found.mean, sticks.strengths))[1].sum()
    density = gamma(prior.shape, scale=1.0 / prior.rate)
    moments = [quad(lambda c, m=m: density.pdf(c) * c ** (2 + m) * np.exp(c * rest), 0.0, np.inf)[0] for m in range(3)]
    mean = moments[1] / moments[0]
    assert found.mean == pytest.approx(mean, rel=1e-4)
    assert found.std == pytest.approx(np.sqrt(moments[2] / moments[0] - mean**2), rel=1e-3)
    expected = at.at(s, solution.shares).value + np.log(moments[0]) - 2.0 * np.log(found.mean) - found.mean * rest
    assert solution.value == pytest.approx(expected, abs=1e-6)
    assert allocation.at(s, solution.shares).value == pytest.approx(solution.value, abs=1e-7)
    for factor in (0.5, 0.9, 1.1, 2.0):  # sticks that are best for another concentration
        other = replace(known, concentration=found.mean * factor).solve(s)
        assert allocation.at(s, other.shares).value <= solution.value + 1e-8


@every_case
def test_a_concentration_with_a_prior_is_not_learnt(case):
    known, _, summary_of = case
    allocation = replace(known, concentration=PRIORS[0])
    s = summary_of(known)
    assert allocation.tuned(s, ("concentration",), allocation.solve(s))[0] == allocation
    names = tuple(name for name in vars(known) if name.endswith("concentration"))
    best, solution = allocation.tuned(s, names, allocation.solve(s))
    assert best.concentration == PRIORS[0]
    assert solution.value >= allocation.solve(s).value


def words():
    rng = np.random.default_rng(2)
    topics, shares = rng.dirichlet(np.full(20, 0.1), 3), rng.dirichlet(np.full(3, 0.3), 60)
    return np.array([rng.multinomial(40, p) for p in shares @ topics]).astype(float)


def series():
    rng = np.random.default_rng(1)
    states = np.repeat(rng.integers(3, size=20), 12)
    return 6.0 * states[:, None] + rng.normal(size=(240, 1))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (lambda **given: TopicModel(n_init_topics=5, **given), words()),
        (lambda **given: HMM("gaussian", **given), series()),
    ],
    ids=["topics", "states"],
)
def test_a_fit_has_the_posterior_of_the_concentration(kind, data, tmp_path):
    prior = GammaConcentration(2.0, 0.5)
    model = kind(concentration=prior, random_state=0, n_jobs=1, max_laps=40, tol=0.1).fit(data)
    assert np.all(np.diff(model.lower_bounds_) >= -1e-9 * abs(model.lower_bound_))
    found = model.model_.allocation.concentration_moments(model.summary_)
    assert (model.concentration_, model.concentration_std_) == found
    K = model.summary_.K
    assert found.std / found.mean == pytest.approx(1.0 / np.sqrt(2.0 + K), rel=1e-9)  # Gamma(s_1 + K, ...)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.concentration == again.model_.allocation.concentration == prior
    assert again.concentration_std_ == model.concentration_std_
    with pytest.raises(ValueError, match="concentration must be a positive number or 'learn', or a GammaConcentration"):
        kind(concentration="gamma").fit(data)


def test_finite_priors_have_no_concentration_of_shares():
    model = HMM("gaussian", concentration=2.0, random_state=0, max_laps=40, tol=0.1).fit(series())
    assert (model.concentration_, model.concentration_std_) == (2.0, 0.0)
    model.set_params(allocation="finite", n_init_states=3).fit(series())
    assert not hasattr(model, "concentration_")


def test_what_a_prior_excludes_is_refused():
    """Words have a concentration of their own, which may be learnt."""
    prior = PRIORS[0]
    with pytest.raises(ValueError, match="learn names 'concentration', but what can be learnt is"):
        HMM("gaussian", concentration=prior, learn=("concentration",)).fit(series())
    with pytest.raises(ValueError, match="learn names 'concentration', but what can be learnt is"):
        HMM("gaussian", allocation=HDPMarkovChain(concentration=prior), learn=("concentration",)).fit(series())
    learnt = TopicModel(concentration=prior, learn=("concentration",), n_init_topics=2, max_laps=3).fit(words())
    assert learnt.model_.allocation.concentration == prior
