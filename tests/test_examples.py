"""The examples run: the prior, and the family of docs/new_likelihood.md, which does what the page says."""

import ast
import re
import runpy
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse, stats

from stickbreak import Mixture, allocations, load
from stickbreak.allocations import DirichletProcess, GammaConcentration
from stickbreak.data import ArraySource
from stickbreak.inference import Options, RowSearch, Session, Threads
from stickbreak.inference.init import one_cluster
from stickbreak.likelihoods import REGISTRY, DiagonalGaussian, Product, Sample
from stickbreak.model import Model

ROOT = Path(__file__).parents[1]
FILE, PAGE = ROOT / "examples" / "geometric.py", ROOT / "docs" / "new_likelihood.md"
Geometric = runpy.run_path(str(FILE))["Geometric"]
PRIOR = ROOT / "examples" / "beta_sticks.py"
BetaSticks = runpy.run_path(str(PRIOR))["BetaSticks"]
THETA = np.tile([[0.8, 0.8], [0.8, 0.05], [0.05, 0.8], [0.05, 0.001], [0.001, 0.05]], 2)  # five unlike clusters


def rows(seed, n, missing=0.1):
    """Rows of the five clusters, a share of their values missing, and which cluster each is from."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(len(THETA), size=n)
    X = rng.geometric(THETA[labels]) - 1.0
    X[rng.random(X.shape) < missing] = np.nan
    return X, labels


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(REGISTRY, "geometric", Geometric)


def test_the_file_runs(capsys):
    runpy.run_path(str(FILE), run_name="__main__")
    assert "4 clusters" in capsys.readouterr().out


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "gallery").glob("*.py")), ids=lambda path: path.stem)
def test_a_script_of_the_gallery_is_short_titled_and_ends_in_its_picture(script):
    text = script.read_text(encoding="utf-8")
    code = ast.parse(text)
    title, line = ast.get_docstring(code).splitlines()[:2]
    assert line == "=" * len(title)
    assert 30 <= text.count("\n") <= 80
    assert ast.unparse(code.body[-1]) == "plt.show()"


def bare(node):
    """A function or a class as code without annotations, docstrings and the decorators of the page."""
    for part in ast.walk(node):
        if isinstance(part, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(part):
            part.body = part.body[1:]
        if isinstance(part, ast.FunctionDef):
            part.decorator_list, part.returns = [], None
            for argument in part.args.args:
                argument.annotation = None
    return ast.unparse(node)


def test_the_pieces_of_the_page_are_those_of_the_file():
    code = "\n".join(re.findall(r"^```python\n(?!>>>)(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S))
    found = {}
    for node in ast.parse(code).body:
        inside = node.body if isinstance(node, ast.ClassDef) and node.name == "Geometric" else [node]
        found |= {part.name: bare(part) for part in inside if isinstance(part, ast.FunctionDef)}
    family = next(n for n in ast.parse(FILE.read_text(encoding="utf-8")).body if getattr(n, "name", "") == "Geometric")
    wanted = {part.name: bare(part) for part in family.body if isinstance(part, ast.FunctionDef)}
    assert found == found | wanted


def test_the_predictive_and_its_moments_are_those_of_scipy():
    X = np.random.default_rng(1).geometric(0.2, (30, 1)) - 1.0
    likelihood = Geometric(a=0.7, b=2.0).resolve(Sample.of(X))
    x = np.arange(200.0)[:, None]
    for n in (0, 1, 30):  # beta-negative-binomial with r = 1
        N, S = np.array([float(n)]), X[:n].sum(axis=0, keepdims=True)
        reference = stats.betanbinom(1, 0.7 + n, 2.0 + S[0, 0])
        np.testing.assert_allclose(likelihood.log_predictive(x, N, S)[:, 0], reference.logpmf(x[:, 0]), rtol=1e-10)
    profile = likelihood.profile(N, S)
    assert profile.means[0, 0] == pytest.approx(reference.mean(), rel=1e-10)
    assert profile.variances[0, 0] == pytest.approx(reference.var(), rel=1e-10)
    drawn = likelihood.sample(N[0], S[0], np.random.default_rng(2), 50_000)
    assert abs(drawn.mean() - reference.mean()) < 4.0 * reference.std() / np.sqrt(50_000)


def test_weights_and_marginal_are_integrals_over_theta():
    X, _ = rows(3, 40)
    likelihood = Geometric(a=2.5, b=4.0).resolve(Sample.of(X))
    T = likelihood.features(X, np.empty((40, likelihood.n_statistics)))
    N, S = np.array([40.0]), T.sum(axis=0, keepdims=True)
    W, b = likelihood.weights(N, S)
    score, marginal = 0.0, 0.0
    theta, step = np.linspace(0.0, 1.0, 400_001, retstep=True)
    theta = theta[1:-1]
    for values in X.T:
        seen = values[~np.isnan(values)]
        log_joint = stats.beta(2.5, 4.0).logpdf(theta) + seen.sum() * np.log1p(-theta) + len(seen) * np.log(theta)
        p = np.exp(log_joint - log_joint.max())
        marginal += np.log(p.sum() * step) + log_joint.max()
        score += (p @ (7.0 * np.log1p(-theta) + np.log(theta))) / p.sum()  # of the value 7
    assert likelihood.log_marginal(N, S)[0] == pytest.approx(marginal, rel=1e-9)
    sevens = likelihood.features(np.full((1, X.shape[1]), 7.0), np.empty((1, likelihood.n_statistics)))
    assert (sevens @ W.T + b)[0, 0] == pytest.approx(score, rel=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_five_clusters_are_found_and_the_bound_never_decreases(dtype):
    X, labels = rows(0, 3000)
    model = Mixture(Geometric(), random_state=0, n_jobs=1).fit(X.astype(dtype))
    assert model.n_clusters_ == 5
    nearest = np.abs(np.log(model.probabilities_[:, None] / THETA)).sum(axis=2)
    assert sorted(nearest.argmin(axis=1)) == list(range(5))
    assert nearest.min(axis=1).max() < 0.5
    assert (nearest.argmin(axis=1)[model.labels_] == labels).mean() > 0.9
    assert np.all(np.diff(model.lower_bounds_) >= -(1e-9 if dtype == np.float64 else 1e-6) * abs(model.lower_bound_))
    assert np.isfinite(model.impute(X)).all()
    assert np.isfinite(model.score(X))


def test_every_step_of_a_search_raises_the_bound():
    """With `check`, a step that lowers it is an error."""
    X, _ = rows(4, 400)
    model = Model(Geometric().resolve(Sample.of(X)), DirichletProcess(1.0))
    with Threads(1) as threads:
        options = Options(n_batches=4, check=True)
        moves, rng = ("birth", "merge", "delete"), np.random.default_rng(0)
        search = RowSearch(model, ArraySource(X), moves, Session(threads), rng, options)
        search.run(one_cluster(model))
    assert search.total.K >= 4


def test_a_model_comes_back_from_its_file(registered, tmp_path):
    X, _ = rows(5, 500)
    model = Mixture("geometric", random_state=0, n_jobs=1).fit(X)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again.model_.likelihood) is Geometric
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.probabilities_, model.probabilities_)


def test_a_family_that_is_not_registered_is_refused_with_the_cure(tmp_path):
    with pytest.raises(TypeError, match="REGISTRY"):
        Mixture(Geometric(), random_state=0, n_jobs=1).fit(rows(5, 50)[0]).save(tmp_path / "model")


def test_what_comes_for_free():
    X, _ = rows(6, 600, missing=0.0)
    options = {"random_state": 0, "n_jobs": 1}
    dense = Mixture(Geometric(), **options).fit(X)
    assert dense.n_clusters_ == 5
    csr = Mixture(Geometric(), **options).fit(sparse.csr_array(X))
    assert csr.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    counted, weights = np.unique(X, axis=0, return_counts=True)
    weighted = Mixture(Geometric(), **options).fit(counted, sample_weight=weights)
    assert weighted.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-6)
    plain = Mixture(Geometric(), learn=False, **options).fit(X)
    assert dense.lower_bound_ > plain.lower_bound_
    steps = Mixture(Geometric(), algorithm="stochastic", init=dense, max_laps=30, tol=1e-3, **options).fit(X)
    assert steps.lower_bound_ == pytest.approx(dense.lower_bound_, rel=1e-2)
    both = Product({"failures": (Geometric(), range(4)), "size": (DiagonalGaussian(), [4])})
    assert Mixture(both, **options).fit(np.column_stack([X, X[:, 0] > 5.0])).n_clusters_ >= 4


@pytest.mark.parametrize("value", [-1.0, 0.5, np.inf])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="row 1, column 0"):
        Mixture(Geometric()).fit([[1.0], [value]])


def test_the_file_of_the_prior_runs(capsys):
    runpy.run_path(str(PRIOR), run_name="__main__")
    assert capsys.readouterr().out.count("3 clusters") == 3


def test_the_evidence_of_the_prior_is_that_of_rows_one_by_one(naive):
    prior = BetaSticks(1.7, 0.6)
    N = np.array([4.0, 2.0, 1.0])
    expected = 0.0
    seen = np.zeros(3)
    for k in (1, 0, 0, 2, 1, 0, 0):
        u = [(0.6 + seen[j]) / (0.6 + 1.7 + seen[j:].sum()) for j in range(3)]
        expected += np.log(u[k] * np.prod([1.0 - u[j] for j in range(k)]))
        seen[k] += 1.0
    assert prior.bound(naive.counted(N)) == pytest.approx(expected, rel=1e-12)
    assert prior.bound(naive.counted(np.append(N, 0.0))) == pytest.approx(expected, rel=1e-12)


def test_the_prior_keeps_what_is_asked_of_priors(naive):
    """Its weights are the slope of its bound, decreasing size is its best order, and with shape 1 it is a Dirichlet process."""
    N = np.array([7.5, 3.0, 1.2, 0.4])
    for prior in (BetaSticks(1.7, 0.6), BetaSticks(0.3, 4.0), BetaSticks(GammaConcentration(2.0, 1.0), 2.5)):
        weights = prior.update(naive.counted(N), None).log_weights
        for k, e in enumerate(1e-4 * np.eye(4)):
            slope = prior.bound(naive.counted(N + e)) - prior.bound(naive.counted(N - e))
            assert slope / 2e-4 == pytest.approx(weights[k], rel=1e-6)
        best = max(permutations(N), key=lambda order: prior.bound(naive.counted(np.array(order))))
        assert best == tuple(N)
        assert prior.mean_weights(naive.counted(N)).sum() == pytest.approx(1.0)
    same = DirichletProcess(1.7).mean_weights(naive.counted(N))
    np.testing.assert_allclose(BetaSticks(1.7).mean_weights(naive.counted(N)), same, rtol=1e-12)


def test_a_prior_of_ones_own_is_saved_once_it_is_registered_and_says_what_it_lacks(monkeypatch, tmp_path):
    X = np.random.default_rng(0).normal(np.repeat([[-5.0], [5.0]], 60, axis=0), 1.0, (120, 2))
    model = Mixture("gaussian", allocation=BetaSticks(1.0, 2.0), learn=False, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"allocations\.REGISTRY"):
        model.save(tmp_path / "model")
    monkeypatch.setitem(allocations.REGISTRY, "BetaSticks", BetaSticks)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.model_.allocation == BetaSticks(1.0, 2.0)
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    with pytest.raises(ValueError, match="BetaSticks does not say how rows join"):
        Mixture("gaussian", allocation=BetaSticks(), algorithm="sequential").fit(X)
