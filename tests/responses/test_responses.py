"""Responses against evidences in closed form and by integration, and what local steps read against numerical derivatives."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_softmax

from stickbreak.responses import CategoricalResponse, GaussianResponse, HingeResponse, MarginResponse, NoResponse
from stickbreak.responses.gaussian import RATE, SHAPE
from stickbreak.responses.hinge import largest_score

K, C = 4, 3


def shares(n, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(K, 0.4), n)


def sums_of(m, terms, weight=1.0):
    """Sums of documents, by loops."""
    found = SimpleNamespace(M=np.zeros((K, K)), B=np.zeros((K, terms.targets.shape[1])), Y=0.0, A=weight * len(m))
    for d in range(len(m)):
        found.M += terms.weights[d] * np.outer(m[d], m[d])
        found.B += np.outer(m[d], terms.targets[d])
        found.Y += terms.constants[d]
    return found


def sums_for(response, y, m, rounds=60):
    """Sums at a fixed point of parabolas and weights."""
    sums = sums_of(m, response.reading(nothing(response)).terms(y, m), weight_of(response))
    for _ in range(rounds):
        sums = sums_of(m, response.reading(sums).terms(y, m), weight_of(response))
    return sums


def weight_of(response):
    return response.reading(nothing(response)).weight


def nothing(response):
    return SimpleNamespace(M=np.zeros((K, K)), B=np.zeros((K, response.n_outputs)), Y=0.0, A=0.0)


def gaussian(y, **given):
    return GaussianResponse(**given).resolved(y)


CASES = {
    "margin": MarginResponse(3.0, 0.2, 0.3, 0.0, 1.0),
    "gaussian": gaussian(np.array([1.0, 4.0]), weight=2.5, precision=0.3),
    "classes": CategoricalResponse(C, 2.5, 0.3),
    "hinge": HingeResponse(C, 4.0, 0.3),
}


@pytest.fixture(params=list(CASES))
def case(request):
    """A response, answers, shares and sums."""
    response = CASES[request.param]
    rng = np.random.default_rng(1)
    m = shares(30)
    y = (
        rng.normal(m @ [1.0, -1.0, 2.0, 0.0], 0.3)
        if request.param == "gaussian"
        else rng.integers(C, size=30).astype(float)
    )
    return response, y, m, sums_for(response, y, m)


def test_numbers_have_the_evidence_of_a_conjugate_regression():
    """Under it, y is of Student's t distribution."""
    y = np.random.default_rng(2).normal(5.0, 3.0, 20)
    m = shares(20)
    response = gaussian(y, precision=0.7)
    sums = sums_for(response, response.standardised(y), m)
    shape = (RATE / SHAPE) * (np.eye(20) + m @ m.T / 0.7)
    want = stats.multivariate_t(np.full(20, y.mean()), y.std() ** 2 * shape, 2.0 * SHAPE).logpdf(y)
    assert response.bound(sums) == pytest.approx(want, rel=1e-10)
    ridge = np.linalg.solve(m.T @ m + 0.7 * np.eye(K), m.T @ (y - y.mean()))
    np.testing.assert_allclose(response.predicted(sums, m), y.mean() + m @ ridge, rtol=1e-10)
    np.testing.assert_allclose(response.means(sums)[:, 0], y.mean() + ridge, rtol=1e-10)


def test_the_bound_of_classes_is_below_their_evidence_and_near_it():
    """Of two classes and documents of one topic only the difference of two weights counts: one integral."""
    n = 12
    y = (np.arange(n) % 3 > 0).astype(float)
    m = np.tile(np.eye(K)[0], (n, 1))
    response = CategoricalResponse(2, precision=0.5)
    bound = response.bound(sums_for(response, y, m))

    def density(x):  # of the difference, whose variance is 2 / precision
        return stats.norm.pdf(x, 0.0, 2.0) * np.exp(sum(log_softmax([0.0, x])[int(c)] for c in y))

    evidence = np.log(quad(density, -15.0, 15.0)[0])
    assert evidence - 0.2 < bound < evidence


def test_parabolas_touch_and_are_below():
    """Of classes they touch log softmax at the shares they were made for; of numbers they are the square."""
    rng = np.random.default_rng(3)
    y = rng.integers(C, size=200).astype(float)
    m = shares(200)
    response = CategoricalResponse(C, precision=1.0)
    reading = response.reading(sums_of(m, response.reading(nothing(response)).terms(y, m)))
    terms = reading.terms(y, m)

    def parabola(scores):
        part = terms.constants + (terms.targets * scores).sum(axis=1)
        return part - 0.5 * terms.weights * ((scores - scores.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)

    own = m @ reading.means
    truth = log_softmax(own, axis=1)[np.arange(200), y.astype(int)]
    np.testing.assert_allclose(parabola(own), truth, atol=1e-12)
    other = own + rng.normal(0.0, 3.0, own.shape)
    assert (parabola(other) <= log_softmax(other, axis=1)[np.arange(200), y.astype(int)] + 1e-12).all()


def test_margins_forgive_small_errors_and_are_above_the_loss():
    """The parabola is below minus the expected loss, by integration over q(w), and near it for any answer."""
    rng = np.random.default_rng(4)
    m = shares(50)
    y = rng.normal(0.0, 1.0, 50)
    response = CASES["margin"]
    sums = sums_for(response, y, m, 200)
    reading = response.reading(sums)
    terms = reading.terms(y, m)
    mean = (m @ reading.means)[:, 0]
    deviation = np.sqrt(np.einsum("nk,kj,nj->n", m, reading.covariance, m))
    square = mean**2 + deviation**2
    parabola = terms.constants + terms.targets[:, 0] * mean - 0.5 * terms.weights * square
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    errors = np.abs(y[:, None] - mean[:, None] - deviation[:, None] * nodes)
    loss = 3.0 * np.maximum(errors - 0.2, 0.0) @ (weights / weights.sum())
    assert (parabola <= -loss + 1e-6).all()
    assert (parabola >= -loss - 1.5 * 3.0 * deviation).all()
    found = minimize(
        lambda w: penalised(w, y, m), np.zeros(K), method="Nelder-Mead", options={"maxiter": 20_000, "xatol": 1e-6}
    )
    assert penalised(reading.means[:, 0], y, m) - found.fun < 0.05 * abs(found.fun)


def penalised(w, y, m):
    """The loss at w, and the cost of w."""
    return 3.0 * np.maximum(np.abs(y - m @ w) - 0.2, 0.0).sum() + 0.15 * (w**2).sum()


def lowest_above(psi, spread):
    """The average of the lowest parabola above the largest of scores, over its top t, width and center b, whose mean is zero.

    |a - b|^2 / (2 gamma) + t + gamma/2 (1 - 1/C), with b <= t, is above max_c a_c for scores that add up to zero.
    """
    C = len(psi)
    psi = psi - psi.mean()

    def average(x):
        apart = psi - x[2:]
        return (apart @ apart + spread) / (2.0 * x[1]) + x[0] + 0.5 * x[1] * (1.0 - 1.0 / C)

    limits = [
        {"type": "ineq", "fun": lambda x: x[0] - x[2:]},
        {"type": "eq", "fun": lambda x: x[2:].sum()},
    ]
    start = np.concatenate([[psi.max(), 1.0 + np.sqrt(spread)], psi])
    bounds = [(None, None), (1e-3, None), *[(None, None)] * C]
    options = {"maxiter": 2000, "ftol": 1e-13}
    return minimize(average, start, method="SLSQP", bounds=bounds, constraints=limits, options=options).fun


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_parabolas_above_the_largest_score_are_the_lowest(n_classes):
    """Above it for any scores; on average as low as by numerical optimisation over all of them."""
    rng = np.random.default_rng(n_classes)
    for spread in (0.01, 0.3, 30.0):
        psi = rng.normal(0.0, 1.5, (4, n_classes))
        found = largest_score(psi, np.full(4, spread))
        np.testing.assert_allclose(found.chances.sum(axis=1), 1.0)
        apart = rng.normal(0.0, 1.0, (4, 200, n_classes)) * rng.choice([0.1, 1.0, 10.0], (1, 200, 1))
        square = (apart**2).sum(axis=2) - n_classes * apart.mean(axis=2) ** 2
        above = found.values[:, None] + np.einsum("nc,nsc->ns", found.chances, apart)
        above += 0.5 * found.steepness[:, None] * square
        assert (above >= (psi[:, None] + apart).max(axis=2) - 1e-9).all()
        means = found.values + 0.5 * found.steepness * spread
        want = [own.mean() + lowest_above(own, spread) for own in psi]
        np.testing.assert_allclose(means, want, rtol=1e-6)


def test_of_two_classes_the_parabola_is_that_of_a_margin():
    """As |u| <= u^2 / (2 gamma) + gamma / 2 at gamma^2 = E[u^2] (Polson and Scott 2011)."""
    u = np.array([-3.0, 0.0, 0.7])
    found = largest_score(np.stack([u, -u], axis=1) / 2.0, np.full(3, 0.4))
    np.testing.assert_allclose(1.0 / found.steepness, np.sqrt(u**2 + 0.8))  # u varies by twice what a does
    np.testing.assert_allclose(found.values + 0.2 * found.steepness, 0.5 * np.sqrt(u**2 + 0.8))


def test_a_hinge_finds_the_weights_of_a_support_vector_machine():
    """The loss of Crammer and Singer, and the cost of weights, are nearly as low as by numerical optimisation."""
    rng = np.random.default_rng(6)
    m = shares(60)
    y = (m @ rng.normal(0.0, 3.0, (K, C))).argmax(axis=1)
    response = HingeResponse(C, 5.0, 0.1)
    sums = sums_for(response, y, m, 300)
    w = response.means(sums)
    np.testing.assert_allclose(w.sum(axis=1), 0.0, atol=1e-9)

    def loss(flat):
        scores = m @ flat.reshape(K, C)
        ahead = scores + 1.0 - np.eye(C)[y]
        return 5.0 * (ahead.max(axis=1) - scores[np.arange(60), y]).sum() + 0.05 * (flat**2).sum()

    start = np.zeros(K * C)
    for _ in range(3):
        start = minimize(loss, start, method="Powell", options={"maxiter": 20_000}).x
    assert loss(start) <= loss(w.ravel()) < 1.1 * loss(start)
    assert response.bound(sums) < -loss(start)  # the price of the volume of q(w) on top
    chances = response.chances(sums, m)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_array_equal(chances.argmax(axis=1), (m @ w).argmax(axis=1))


def test_what_local_steps_read_is_the_gradient_of_the_bound(case):
    """The bound is the maximum over q(w), so its derivatives by the sums are the expectations under q(w)."""
    response, _, _, sums = case
    reading = response.reading(sums)
    step = 1e-5

    def changed(name, delta):
        values = dict(vars(sums))
        values[name] = values[name] + delta
        return response.bound(SimpleNamespace(**values))

    for k in range(K):
        for c in range(response.n_outputs):
            e = np.zeros(sums.B.shape)
            e[k, c] = step
            by_target = (changed("B", e) - changed("B", -e)) / (2 * step)
            assert by_target == pytest.approx(reading.slopes[k, c], rel=1e-5, abs=1e-6)
        for j in range(K):
            e = np.zeros((K, K))
            e[k, j] += 0.5 * step
            e[j, k] += 0.5 * step
            by_square = (changed("M", e) - changed("M", -e)) / (2 * step)
            assert -2.0 * by_square == pytest.approx(reading.curvature[k, j], rel=1e-4, abs=1e-5)


def test_what_local_steps_read_can_be_extrapolated(case):
    """E[w] beyond its last change, and the curvature and slopes of weights with that mean."""
    response, _, _, sums = case
    now = response.reading(sums)
    before = response.reading(SimpleNamespace(**dict(vars(sums)) | {"B": 0.9 * sums.B}))
    ahead = now.ahead(before, 2.0)
    np.testing.assert_allclose(ahead.means, 3.0 * now.means - 2.0 * before.means, rtol=1e-12)
    np.testing.assert_allclose(ahead.slopes, now.precision * ahead.means, rtol=1e-12)
    second = ahead.curvature - now.curvature
    np.testing.assert_allclose(
        second, now.precision * (ahead.means @ ahead.means.T - now.means @ now.means.T), rtol=1e-9, atol=1e-9
    )
    assert np.linalg.eigvalsh(ahead.curvature).min() > -1e-9


def test_topics_without_answers(case):
    """An empty topic changes nothing, and no answers say nothing."""
    response, _, _, sums = case
    padded = SimpleNamespace(M=np.pad(sums.M, (0, 1)), B=np.pad(sums.B, ((0, 1), (0, 0))), Y=sums.Y, A=sums.A)
    assert response.bound(padded) == pytest.approx(response.bound(sums), rel=1e-12)
    assert response.bound(nothing(response)) == pytest.approx(0.0, abs=1e-12)
    assert not response.reading(nothing(response)).slopes.any()
    assert not response.reading(nothing(response)).curvature.any()
    assert NoResponse().bound(sums) == 0.0


def test_a_learnt_precision_raises_the_bound_to_its_top(case):
    response, _, _, sums = case
    best = response
    bounds = [response.bound(sums)]
    for _ in range(20):
        best = best.tuned(sums, ("precision",))
        bounds.append(best.bound(sums))
    assert (np.diff(bounds) >= 0.0).all()
    grid = [replace(best, precision=float(p)).bound(sums) for p in best.precision * np.geomspace(0.5, 2.0, 21)]
    assert bounds[-1] == pytest.approx(max(grid), abs=1e-4)
    assert response.tuned(sums, ()) == response


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianResponse(weight=0.0), "weight must be"),
        (lambda: GaussianResponse(precision=np.nan), "precision must be"),
        (lambda: GaussianResponse(scale=-1.0), "scale must be"),
        (lambda: GaussianResponse(center=np.inf), "center must be"),
        (lambda: MarginResponse(tolerance=-0.1), "tolerance must be"),
        (lambda: MarginResponse(0.0), "cost must be"),
        (lambda: CategoricalResponse(1), "at least 2"),
        (lambda: HingeResponse(1), "at least 2"),
        (lambda: HingeResponse(cost=0.0), "cost must be"),
        (lambda: CategoricalResponse(2.5), "n_classes must be"),
        (lambda: CategoricalResponse(weight="1"), "weight must be"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()
